/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text and JSON from the same calls. A table is held until its end, since column widths depend on
 * every cell. Nothing reaches the stream before pp_out_finish(): a failing verb leaves no half
 * document behind.
 */
#include "base/out.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/parse.h"
#include "base/banned.h"

enum { DEFAULT_WIDTH = 100, LABEL_WIDTH = 22, GAP = 2, NARROWEST = 10 };

struct cell {
	const char *text;
	bool is_verdict;
	enum pp_verdict verdict;
	struct cell *next;
};

struct pp_out {
	FILE *stream;
	bool is_json, color;
	unsigned int width;
	struct pp_buf buf;
	struct pp_json json;

	/* the open table */
	const struct pp_out_column *columns;
	unsigned int n_columns, column;
	struct pp_arena cells;
	struct cell *first, *last;
};

struct pp_out *pp_out_new(bool json, FILE *stream, unsigned int width, bool color)
{
	struct pp_out *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->stream = stream;
	o->is_json = json;
	o->color = color && !json;
	o->width = width ? width : DEFAULT_WIDTH;
	o->buf = PP_BUF((size_t)256 << 20);
	o->json = PP_JSON(&o->buf, true);
	o->cells = PP_ARENA((size_t)64 << 20);
	return o;
}

struct pp_out *pp_out_free(struct pp_out *o)
{
	if (!o)
		return NULL;
	pp_buf_done(&o->buf);
	pp_arena_done(&o->cells);
	free(o);
	return NULL;
}

bool pp_out_is_json(const struct pp_out *o)
{
	return o->is_json;
}

unsigned int pp_out_width(const struct pp_out *o)
{
	return o->width;
}

struct pp_json *pp_out_json(struct pp_out *o)
{
	return o->is_json ? &o->json : NULL;
}

void pp_out_document(struct pp_out *o, const char *schema)
{
	if (!o->is_json)
		return;
	pp_json_object(&o->json, NULL);
	pp_json_str(&o->json, "schema", schema);
}

void pp_out_open(struct pp_out *o, const char *key)
{
	if (o->is_json)
		pp_json_object(&o->json, key);
}

void pp_out_close(struct pp_out *o)
{
	if (o->is_json)
		pp_json_end_object(&o->json);
}

void pp_out_heading(struct pp_out *o, const char *title)
{
	if (o->is_json)
		return;
	if (o->buf.len)
		pp_buf_char(&o->buf, '\n');
	pp_buf_printf(&o->buf, "%s\n", title);
}

void pp_out_raw(struct pp_out *o, const char *text)
{
	if (!o->is_json)
		pp_buf_str(&o->buf, text);
}

/* Columns that @n bytes of UTF-8 take on a terminal, wide characters apart. */
static size_t columns_of(const char *text, size_t n)
{
	size_t w = 0;

	for (size_t i = 0; i < n; i++)
		w += ((unsigned char)text[i] & 0xc0) != 0x80;
	return w;
}

/*
 * Bytes of @text that fit into @width columns, broken at a blank where there is one.
 * *skip is set to the number of blanks to drop after them.
 */
static size_t fit(const char *text, size_t width, size_t *skip)
{
	size_t n = 0, blank = 0, w = 0;

	*skip = 0;
	for (; text[n] && text[n] != '\n'; n++) {
		if (((unsigned char)text[n] & 0xc0) != 0x80 && w++ == width)
			break;
		if (text[n] == ' ')
			blank = n;
	}
	if (!text[n])
		return n;
	if (text[n] != '\n' && text[n] != ' ' && blank)
		n = blank;
	while (text[n + *skip] == ' ')
		(*skip)++;
	if (text[n + *skip] == '\n')
		(*skip)++;
	return n;
}

static void spaces(struct pp_out *o, size_t n)
{
	while (n--)
		pp_buf_char(&o->buf, ' ');
}

/* Facts hold what machines, logs and files say: none of it may drive the terminal. */
static void plain(struct pp_out *o, const char *text, size_t n)
{
	size_t at = o->buf.len;

	pp_buf_add(&o->buf, text, n);
	if (n && !o->buf.failed)
		pp_sanitize(o->buf.data + at, false);
}

/* Wraps @text; the first line starts at column @at, the others are indented to @indent. */
static void wrapped(struct pp_out *o, const char *text, size_t at, size_t indent)
{
	size_t n, skip, room;

	do {
		room = o->width > at + NARROWEST ? o->width - at : NARROWEST;
		n = fit(text, room, &skip);
		plain(o, text, n);
		pp_buf_char(&o->buf, '\n');
		text += n + skip;
		at = indent;
		if (*text)
			spaces(o, indent);
	} while (*text);
}

void pp_out_para(struct pp_out *o, unsigned int indent, const char *fmt, ...)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF((size_t)1 << 20);
	va_list ap;

	if (o->is_json)
		return;
	va_start(ap, fmt);
	pp_buf_vprintf(&text, fmt, ap);
	va_end(ap);
	wrapped(o, pp_buf_text(&text), 0, indent);
}

static void label(struct pp_out *o, const char *text)
{
	size_t w = columns_of(text, strlen(text));

	pp_buf_printf(&o->buf, "  %s", text);
	spaces(o, w < LABEL_WIDTH ? LABEL_WIDTH - w : 1);
}

static const char *verdict_color(const struct pp_out *o, enum pp_verdict v)
{
	static const char *const colors[] = {
		[PP_PASS] = "\033[32m",
		[PP_DEGRADED] = "\033[33m",
		[PP_UNKNOWN] = "\033[36m",
		[PP_FAIL] = "\033[31m",
	};

	return o->color ? colors[v] : "";
}

static const char *color_end(const struct pp_out *o)
{
	return o->color ? "\033[0m" : "";
}

void pp_out_str(struct pp_out *o, const char *key, const char *name, const char *value)
{
	size_t at;

	if (o->is_json) {
		if (key)
			pp_json_str(&o->json, key, value);
		return;
	}
	if (!name)
		return;
	label(o, name);
	at = columns_of(name, strlen(name));
	at = 2 + (at < LABEL_WIDTH ? LABEL_WIDTH : at + 1);
	wrapped(o, value ? value : "-", at, 2 + LABEL_WIDTH);
}

static void text_field(struct pp_out *o, const char *name, const char *fmt, ...) PP_PRINTF(3, 4);

static void text_field(struct pp_out *o, const char *name, const char *fmt, ...)
{
	va_list ap;

	if (!name)
		return;
	label(o, name);
	va_start(ap, fmt);
	pp_buf_vprintf(&o->buf, fmt, ap);
	va_end(ap);
	pp_buf_char(&o->buf, '\n');
}

void pp_out_i64(struct pp_out *o, const char *key, const char *name, int64_t value)
{
	if (!o->is_json)
		text_field(o, name, "%" PRId64, value);
	else if (key)
		pp_json_i64(&o->json, key, value);
}

void pp_out_u64(struct pp_out *o, const char *key, const char *name, uint64_t value)
{
	if (!o->is_json)
		text_field(o, name, "%" PRIu64, value);
	else if (key)
		pp_json_u64(&o->json, key, value);
}

void pp_out_double(struct pp_out *o, const char *key, const char *name, double value)
{
	if (!o->is_json)
		text_field(o, name, "%.6g", value);
	else if (key)
		pp_json_double(&o->json, key, value);
}

void pp_out_bool(struct pp_out *o, const char *key, const char *name, bool value)
{
	if (!o->is_json)
		text_field(o, name, "%s", value ? "yes" : "no");
	else if (key)
		pp_json_bool(&o->json, key, value);
}

void pp_out_verdict(struct pp_out *o, const char *key, const char *name, enum pp_verdict v)
{
	if (!o->is_json)
		text_field(o, name, "%s%s%s", verdict_color(o, v), pp_verdict_name(v),
			   color_end(o));
	else if (key)
		pp_json_str(&o->json, key, pp_verdict_name(v));
}

void pp_out_table(struct pp_out *o, const char *key, const struct pp_out_column *columns,
		  unsigned int n)
{
	assert(!o->columns && n && n <= PP_OUT_COLUMNS);
	o->columns = columns;
	o->n_columns = n;
	o->column = 0;
	o->first = o->last = NULL;
	if (o->is_json)
		pp_json_array(&o->json, key);
}

/* Moves to the next column; opens and closes the row's object in JSON. Returns the column. */
static const struct pp_out_column *next_column(struct pp_out *o)
{
	assert(o->columns);
	if (o->is_json && o->column == 0)
		pp_json_object(&o->json, NULL);
	return &o->columns[o->column];
}

static void end_column(struct pp_out *o)
{
	if (++o->column < o->n_columns)
		return;
	o->column = 0;
	if (o->is_json)
		pp_json_end_object(&o->json);
}

static struct cell *hold(struct pp_out *o, const char *text)
{
	struct cell *c = pp_arena_alloc(&o->cells, sizeof(*c));

	if (!c)
		return NULL;
	c->text = pp_arena_str(&o->cells, text && *text ? text : "-");
	if (o->last)
		o->last->next = c;
	else
		o->first = c;
	o->last = c;
	return c;
}

void pp_out_cell(struct pp_out *o, const char *value)
{
	const struct pp_out_column *c = next_column(o);

	if (!o->is_json)
		(void)hold(o, value);
	else if (c->key)
		pp_json_str(&o->json, c->key, value);
	end_column(o);
}

void pp_out_cellf(struct pp_out *o, const char *fmt, ...)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF((size_t)64 << 10);
	va_list ap;

	va_start(ap, fmt);
	pp_buf_vprintf(&text, fmt, ap);
	va_end(ap);
	pp_out_cell(o, pp_buf_text(&text));
}

void pp_out_cell_i64(struct pp_out *o, int64_t value)
{
	const struct pp_out_column *c = next_column(o);
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRId64, value);
	if (!o->is_json)
		(void)hold(o, text);
	else if (c->key)
		pp_json_i64(&o->json, c->key, value);
	end_column(o);
}

void pp_out_cell_double(struct pp_out *o, double value)
{
	const struct pp_out_column *c = next_column(o);
	char text[32];

	(void)snprintf(text, sizeof(text), "%.6g", value);
	if (!o->is_json)
		(void)hold(o, text);
	else if (c->key)
		pp_json_double(&o->json, c->key, value);
	end_column(o);
}

void pp_out_cell_bool(struct pp_out *o, bool value)
{
	const struct pp_out_column *c = next_column(o);

	if (!o->is_json)
		(void)hold(o, value ? "yes" : "no");
	else if (c->key)
		pp_json_bool(&o->json, c->key, value);
	end_column(o);
}

void pp_out_cell_verdict(struct pp_out *o, enum pp_verdict v)
{
	const struct pp_out_column *c = next_column(o);
	struct cell *held;

	if (!o->is_json) {
		held = hold(o, pp_verdict_name(v));
		if (held) {
			held->is_verdict = true;
			held->verdict = v;
		}
	} else if (c->key) {
		pp_json_str(&o->json, c->key, pp_verdict_name(v));
	}
	end_column(o);
}

/* Natural widths, then narrowed from the widest wrappable column until the row fits. */
static void column_widths(const struct pp_out *o, size_t width[PP_OUT_COLUMNS])
{
	const struct cell *c = o->first;
	size_t total = 0, w;
	unsigned int widest;

	for (unsigned int i = 0; i < o->n_columns; i++)
		width[i] = o->columns[i].title ? strlen(o->columns[i].title) : 0;
	for (unsigned int i = 0; c; c = c->next, i = (i + 1) % o->n_columns) {
		w = columns_of(c->text, strlen(c->text));
		if (o->columns[i].title && w > width[i])
			width[i] = w;
	}
	for (unsigned int i = 0; i < o->n_columns; i++)
		total += o->columns[i].title ? width[i] + GAP : 0;
	while (total > o->width + GAP) {
		widest = o->n_columns;
		for (unsigned int i = 0; i < o->n_columns; i++)
			if (o->columns[i].title && o->columns[i].wrap && width[i] > NARROWEST &&
			    (widest == o->n_columns || width[i] > width[widest]))
				widest = i;
		if (widest == o->n_columns)
			return;
		width[widest]--;
		total--;
	}
}

/* One row of cells, as many lines as the longest wrapped cell needs. */
static void text_row(struct pp_out *o, const struct cell *cells[], const size_t width[])
{
	const char *rest[PP_OUT_COLUMNS];
	bool more = true;
	size_t n, skip, used, pending;

	for (unsigned int i = 0; i < o->n_columns; i++)
		rest[i] = cells[i]->text;
	while (more) {
		more = false;
		pending = 0;
		for (unsigned int i = 0; i < o->n_columns; i++) {
			if (!o->columns[i].title)
				continue;
			n = fit(rest[i], width[i], &skip);
			used = columns_of(rest[i], n);
			if (n) {
				spaces(o, pending);
				pending = 0;
				if (cells[i]->is_verdict)
					pp_buf_str(&o->buf, verdict_color(o, cells[i]->verdict));
				plain(o, rest[i], n);
				if (cells[i]->is_verdict)
					pp_buf_str(&o->buf, color_end(o));
			}
			pending += (used < width[i] ? width[i] - used : 0) + GAP;
			rest[i] += n + skip;
			more |= *rest[i] != '\0';
		}
		pp_buf_char(&o->buf, '\n');
	}
}

static void text_table(struct pp_out *o)
{
	const struct cell *row[PP_OUT_COLUMNS], *c = o->first;
	struct cell heads[PP_OUT_COLUMNS] = {0};
	size_t width[PP_OUT_COLUMNS] = {0};
	unsigned int i;

	column_widths(o, width);
	for (i = 0; i < o->n_columns; i++) {
		heads[i].text = o->columns[i].title ? o->columns[i].title : "";
		row[i] = &heads[i];
	}
	text_row(o, row, width);
	while (c) {
		for (i = 0; i < o->n_columns && c; i++, c = c->next)
			row[i] = c;
		if (i == o->n_columns)
			text_row(o, row, width);
	}
}

void pp_out_table_end(struct pp_out *o)
{
	assert(o->columns && (o->column == 0 || o->cells.failed));
	if (o->is_json)
		pp_json_end_array(&o->json);
	else
		text_table(o);
	if (o->cells.failed)
		o->buf.failed = -ENOMEM;
	pp_arena_done(&o->cells);
	o->columns = NULL;
	o->first = o->last = NULL;
}

int pp_out_finish(struct pp_out *o)
{
	if (o->is_json && o->json.depth)
		pp_json_end_object(&o->json);
	if (o->buf.failed)
		return o->buf.failed;
	if (o->buf.len && fwrite(o->buf.data, 1, o->buf.len, o->stream) != o->buf.len)
		return errno ? -errno : -EIO;
	if (fflush(o->stream))
		return errno ? -errno : -EIO;
	pp_buf_reset(&o->buf);
	return 0;
}
