/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables. The cells are held until the end of the table, since column widths depend on all.
 */
#include "base/out_text.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/banned.h"

enum { GAP = 2 };

void pp_out_table(struct pp_out *o, const char *key, const struct pp_out_column *columns,
		  unsigned int n)
{
	assert(!o->columns && n && n <= PP_OUT_COLUMNS);
	o->columns = columns;
	o->n_columns = n;
	o->column = 0;
	o->first = o->last = NULL;
	o->spare = "";
	o->left_out = 0;
	if (o->is_json)
		pp_json_array(&o->json, key);
}

void pp_out_spare(struct pp_out *o, const char *keys)
{
	assert(o->columns);
	o->spare = keys;
}

static bool is_shown(const struct pp_out *o, unsigned int column)
{
	return o->columns[column].title && !(o->left_out & (1u << column));
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

static struct pp_out_held *hold(struct pp_out *o, const char *text)
{
	struct pp_out_held *c = pp_arena_alloc(&o->cells, sizeof(*c));

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
	struct pp_out_held *held;

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

/* What the table needs when its texts are as narrow as reads well. */
static size_t readable_width(const struct pp_out *o, const size_t width[])
{
	size_t total = 0;

	for (unsigned int i = 0; i < o->n_columns; i++)
		if (is_shown(o, i))
			total += (o->columns[i].wrap && width[i] > PP_OUT_READABLE ? PP_OUT_READABLE
										   : width[i]) +
				 GAP;
	return total;
}

static void leave_out(struct pp_out *o, const char *key, size_t len)
{
	for (unsigned int i = 0; i < o->n_columns; i++)
		if (o->columns[i].key && strlen(o->columns[i].key) == len &&
		    !strncmp(o->columns[i].key, key, len))
			o->left_out |= 1u << i;
}

static void leave_out_spare(struct pp_out *o, const size_t width[])
{
	const char *key = o->spare;
	size_t len;

	for (; *key && readable_width(o, width) > o->width + GAP; key += len) {
		key += strspn(key, " ");
		len = strcspn(key, " ");
		leave_out(o, key, len);
	}
}

/* Natural widths, without what can be spared, then narrowed from the widest wrappable column until
 * the row fits. */
static void column_widths(struct pp_out *o, size_t width[PP_OUT_COLUMNS])
{
	const struct pp_out_held *c = o->first;
	size_t total = 0, w;
	unsigned int widest;

	for (unsigned int i = 0; i < o->n_columns; i++)
		width[i] = o->columns[i].title ? strlen(o->columns[i].title) : 0;
	for (unsigned int i = 0; c; c = c->next, i = (i + 1) % o->n_columns) {
		w = pp_out_columns_of(c->text, strlen(c->text));
		if (o->columns[i].title && w > width[i])
			width[i] = w;
	}
	leave_out_spare(o, width);
	for (unsigned int i = 0; i < o->n_columns; i++)
		total += is_shown(o, i) ? width[i] + GAP : 0;
	while (total > o->width + GAP) {
		widest = o->n_columns;
		for (unsigned int i = 0; i < o->n_columns; i++)
			if (is_shown(o, i) && o->columns[i].wrap && width[i] > PP_OUT_NARROWEST &&
			    (widest == o->n_columns || width[i] > width[widest]))
				widest = i;
		if (widest == o->n_columns)
			return;
		width[widest]--;
		total--;
	}
}

/* One row of cells, as many lines as the longest wrapped cell needs. */
static void text_row(struct pp_out *o, const struct pp_out_held *cells[], const size_t width[])
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
			if (!is_shown(o, i))
				continue;
			n = pp_out_fit(rest[i], width[i], &skip);
			used = pp_out_columns_of(rest[i], n);
			if (n) {
				pp_out_spaces(o, pending);
				pending = 0;
				if (cells[i]->is_verdict)
					pp_buf_str(&o->buf, pp_out_color(o, cells[i]->verdict));
				pp_out_plain(o, rest[i], n);
				if (cells[i]->is_verdict)
					pp_buf_str(&o->buf, pp_out_color_end(o));
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
	const struct pp_out_held *row[PP_OUT_COLUMNS], *c = o->first;
	struct pp_out_held heads[PP_OUT_COLUMNS] = {0};
	size_t width[PP_OUT_COLUMNS] = {0};
	unsigned int i;

	column_widths(o, width);
	for (i = 0; i < o->n_columns; i++) {
		heads[i].text = o->columns[i].title ? o->columns[i].title : "";
		row[i] = &heads[i];
	}
	if (!c) {
		pp_buf_str(&o->buf, "  none\n");
		return;
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
