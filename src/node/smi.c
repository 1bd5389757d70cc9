/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Works on lines: the text is copied once, escape sequences taken out, and each line becomes a
 * header, a row, a legend entry, the count of NICs, or nothing. The whole is checked at the end.
 */
#include "node/smi.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/smi_text.h"
#include "base/banned.h"

enum { ARENA_BYTES = 16 << 20, MAX_HEADERS = 16 };

struct parser {
	const char *name;
	struct pp_error *err;
	struct pp_smi s;
	struct pp_smi_dev **sorted; /* by column, for lookup */
	unsigned int titles;	    /* PP_SMI_TITLE_* of the header */
	unsigned int headers, rows;
	unsigned int after; /* columns of a header that follows the whole matrix, 0 none */
	unsigned int line;
};

static PP_PRINTF(2, 3) int refuse(struct parser *p, const char *fmt, ...)
{
	char what[384];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return pp_error_set(p->err, -EBADMSG, "%s:%u: %s", p->name, p->line, what);
}

/*
 * Walks what may be a header from its first GPU column on. Counts the columns; with @dev it also
 * fills them. False when anything but columns and titles stands there.
 */
static bool walk_header(struct parser *p, const char *text, const char *end, struct pp_smi_dev *dev,
			unsigned int *ret_n, unsigned int *ret_titles)
{
	unsigned int n = 0, seen = 0, bit, index;
	const char *stop;

	for (text = pp_smi_skip_blanks(text, end); text < end;
	     text = pp_smi_skip_blanks(text, end)) {
		bit = pp_smi_title(&text, end);
		seen |= bit;
		if (bit)
			continue;
		stop = pp_smi_column_end(text, end, &index);
		if (!stop || stop - text >= PP_SMI_NAME_BYTES || seen)
			return false;
		if (dev)
			dev[n] = (struct pp_smi_dev){
				.column = pp_arena_strn(&p->s.arena, text, (size_t)(stop - text)),
				.is_gpu = pp_smi_starts(text, end, "GPU"),
				.named = !pp_smi_starts(text, end, "NIC"),
				.index = index,
			};
		if (++n > PP_SMI_MAX_COLUMNS)
			break;
		text = stop;
	}
	*ret_n = n;
	*ret_titles = seen;
	return n > 0;
}

static int by_column(const void *a, const void *b)
{
	return strcmp((*(struct pp_smi_dev *const *)a)->column,
		      (*(struct pp_smi_dev *const *)b)->column);
}

static int begin_matrix(struct parser *p, const char *text, const char *end, unsigned int n)
{
	struct pp_arena *a = &p->s.arena;

	if (n > PP_SMI_MAX_COLUMNS)
		return pp_error_set(p->err, -EFBIG, "%s:%u: more than %d columns", p->name, p->line,
				    PP_SMI_MAX_COLUMNS);
	if (p->headers++ == MAX_HEADERS)
		return refuse(p, "header %u without a row of cells before it", p->headers);
	pp_arena_done(a);
	p->s.dev = pp_arena_array(a, n, sizeof(*p->s.dev));
	p->s.cell = pp_arena_array(a, (size_t)n * n, sizeof(*p->s.cell));
	p->sorted = pp_arena_array(a, n, sizeof(*p->sorted));
	if (!p->s.dev || !p->s.cell || !p->sorted)
		return pp_error_set(p->err, -ENOMEM, "%s: out of memory", p->name);
	(void)walk_header(p, text, end, p->s.dev, &p->s.n, &p->titles);
	p->s.n_gpus = 0;
	for (unsigned int i = 0; i < n; i++) {
		p->s.dev[i].name = p->s.dev[i].column;
		p->s.n_gpus += p->s.dev[i].is_gpu;
		p->sorted[i] = &p->s.dev[i];
	}
	qsort(p->sorted, n, sizeof(*p->sorted), by_column);
	for (unsigned int i = 1; i < n; i++)
		if (!by_column(&p->sorted[i - 1], &p->sorted[i]))
			return refuse(p, "column %s stands twice in the header",
				      p->sorted[i]->column);
	return 0;
}

/* 1: the line is a header and was taken; 0: it is none. */
static int try_header(struct parser *p, const char *line, const char *end)
{
	const char *at = line;
	unsigned int n = 0, seen;
	int r;

	while (at &&
	       !(at + 3 < end && isdigit((unsigned char)at[3]) && pp_smi_starts(at, end, "GPU")))
		at = at + 1 < end ? memmem(at + 1, (size_t)(end - at - 1), "GPU", 3) : NULL;
	if (!at || !walk_header(p, at, end, NULL, &n, &seen) || (n < 2 && !seen))
		return 0;
	if (p->rows && p->rows < p->s.n)
		return refuse(p, "a second header after %u of %u rows: cut", p->rows, p->s.n);
	if (p->rows) {
		p->after = n;
		return 1;
	}
	r = begin_matrix(p, at, end, n);
	return r ? r : 1;
}

static struct pp_smi_dev *find_column(const struct parser *p, const char *text, size_t len)
{
	char name[PP_SMI_NAME_BYTES];
	struct pp_smi_dev key = {.column = name}, *want = &key, **found;

	if (!p->s.n || !len || len >= sizeof(name))
		return NULL;
	memcpy(name, text, len);
	name[len] = '\0';
	found = bsearch(&want, p->sorted, p->s.n, sizeof(want), by_column);
	return found ? *found : NULL;
}

/*
 * A row of a device that has one already: another machine's matrix is refused, `topo -p2p` and the
 * like, whose cells are other words, are passed over.
 */
static int row_again(struct parser *p, const struct pp_smi_dev *d, const char *text,
		     const char *end)
{
	unsigned int n = 0, want = p->after && p->after < p->s.n ? p->after : p->s.n;
	struct pp_smi_cell cell;

	while (n < want && pp_smi_cell_scan(&text, end, &cell))
		n++;
	if (n < want)
		return 0;
	return refuse(p, "row %s stands twice (first at line %u): give one machine's output",
		      d->column, d->line);
}

/* Ends before the header does: with the word that is no cell, where there is one. */
static int refuse_short_row(struct parser *p, const struct pp_smi_dev *d, unsigned int n,
			    const char *text, const char *end)
{
	const char *word = pp_smi_skip_blanks(text, end), *stop = word;

	while (stop < end && !isblank((unsigned char)*stop))
		stop++;
	if (stop > word)
		return refuse(p, "row %s: '%.*s' is no cell (after %u of %u): cut or edited",
			      d->column, (int)(stop - word < 32 ? stop - word : 32), word, n,
			      p->s.n);
	return refuse(p, "row %s has %u cells, the header has %u columns: cut or edited", d->column,
		      n, p->s.n);
}

static int take_row(struct parser *p, struct pp_smi_dev *d, const char *text, const char *end)
{
	size_t row = (size_t)(d - p->s.dev);
	struct pp_smi_cell extra, *cell = p->s.cell + row * p->s.n;
	unsigned int n = 0;
	const char *rest;

	if (d->line)
		return row_again(p, d, text, end);
	d->line = p->line;
	p->rows++;
	while (n < p->s.n && pp_smi_cell_scan(&text, end, &cell[n]))
		n++;
	if (n < p->s.n)
		return refuse_short_row(p, d, n, text, end);
	rest = text;
	if (pp_smi_cell_scan(&rest, end, &extra))
		return refuse(p, "row %s has more cells than the header's %u columns", d->column,
			      p->s.n);
	if (!d->is_gpu)
		return 0;
	pp_smi_affinity(&p->s.arena, p->titles, text, end, d);
	return 0;
}

/* 1: the line is a row and was taken. Words before the column's name are a log's prefix. */
static int try_row(struct parser *p, const char *line, const char *end)
{
	struct pp_smi_cell first;
	struct pp_smi_dev *d;
	const char *text, *stop, *cells;
	int r;

	for (text = pp_smi_skip_blanks(line, end); text < end;
	     text = pp_smi_skip_blanks(stop, end)) {
		for (stop = text; stop < end && !isblank((unsigned char)*stop);)
			stop++;
		d = find_column(p, text, (size_t)(stop - text));
		cells = stop;
		if (!d || !pp_smi_cell_scan(&cells, end, &first))
			continue;
		r = take_row(p, d, stop, end);
		return r ? r : 1;
	}
	return 0;
}

/* "NIC7: mlx5_15". */
static void try_legend(struct parser *p, const char *line, const char *end)
{
	const char *at = line, *stop = line;
	struct pp_smi_dev *d;

	do {
		at = memmem(stop, (size_t)(end - stop), "NIC", 3);
		if (!at)
			return;
		for (stop = at + 3; stop < end && isdigit((unsigned char)*stop);)
			stop++;
	} while (stop == end || *stop != ':');
	d = find_column(p, at, (size_t)(stop - at));
	if (!d || d->named)
		return;
	line = pp_smi_skip_blanks(stop + 1, end);
	while (end > line && isblank((unsigned char)end[-1]))
		end--;
	d->named = pp_smi_is_name(line, end);
	if (d->named)
		d->name = pp_arena_strn(&p->s.arena, line, (size_t)(end - line));
	else
		p->s.legend_scraps++;
}

/* "140 NICs found in the topology, only displaying 63 in the matrix." */
static void try_count(struct parser *p, const char *line, const char *end)
{
	static const char marker[] = " NICs found", shown[] = "only displaying ";
	const char *at = memmem(line, (size_t)(end - line), marker, strlen(marker)), *number = at;

	while (number && number > line && isdigit((unsigned char)number[-1]))
		number--;
	if (!number || !pp_smi_number(&number, end, 99999, &p->s.nics_found))
		return;
	at = memmem(at, (size_t)(end - at), shown, strlen(shown));
	at = at ? at + strlen(shown) : NULL;
	if (!at || !pp_smi_number(&at, end, 99999, &p->s.nics_shown))
		p->s.nics_found = p->s.nics_shown = 0;
}

static int one_line(struct parser *p, const char *line, const char *end)
{
	int r = try_header(p, line, end);

	if (!r && p->s.n)
		r = try_row(p, line, end);
	if (r)
		return r < 0 ? r : 0;
	if (p->rows)
		try_legend(p, line, end);
	else
		try_count(p, line, end);
	return 0;
}

static int all_lines(struct parser *p, const char *text, size_t len)
{
	const char *end = text + len, *stop;
	int r = 0;

	for (; !r && text < end; text = stop + 1) {
		stop = memchr(text, '\n', (size_t)(end - text));
		stop = stop ? stop : end;
		p->line++;
		r = one_line(p, text, stop);
	}
	return r;
}

/* What the rows must say together. */
static int check(struct parser *p)
{
	struct pp_smi *s = &p->s;
	bool self;

	if (!s->n)
		return pp_error_set(p->err, -EBADMSG,
				    "%s: no matrix: expected a line of columns GPU0, GPU1, ... "
				    "as 'nvidia-smi topo -m' prints",
				    p->name);
	for (unsigned int i = 0; i < s->n; i++)
		if (!s->dev[i].line)
			return refuse(p, "the text ends and row %s is missing: cut (%u of %u rows)",
				      s->dev[i].column, p->rows, s->n);
	for (unsigned int i = 0; i < s->n; i++) {
		for (unsigned int j = 0; j < s->n; j++) {
			p->line = s->dev[i].line;
			self = pp_smi_at(s, i, j).class == PP_SMI_SELF;
			if (self != (i == j))
				return refuse(p, "row %s, column %s: %s is not X in every row",
					      s->dev[i].column, s->dev[j].column,
					      self ? "another device" : "the device itself");
			if (j < i && !pp_smi_cell_equal(pp_smi_at(s, i, j), pp_smi_at(s, j, i)))
				s->asymmetric++;
		}
	}
	return 0;
}

int pp_smi_parse(const char *name, const char *text, size_t len, struct pp_smi *ret,
		 struct pp_error *err)
{
	struct parser p = {.name = name, .err = err, .s.arena = PP_ARENA(ARENA_BYTES)};
	char *PP_AUTO_FREE copy = NULL;
	int r;

	if (len > PP_SMI_MAX_BYTES)
		return pp_error_set(err, -EFBIG, "%s: longer than %d MiB", name,
				    PP_SMI_MAX_BYTES >> 20);
	copy = pp_smi_clean(text, len, &len);
	if (!copy)
		return pp_error_set(err, -ENOMEM, "%s: out of memory", name);
	r = all_lines(&p, copy, len);
	if (!r)
		r = check(&p);
	if (!r && p.s.arena.failed)
		r = pp_error_set(err, -ENOMEM, "%s: out of memory", name);
	if (r)
		pp_smi_done(&p.s);
	else
		*ret = p.s;
	return r;
}
