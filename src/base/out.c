/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text and JSON from the same calls. Nothing reaches the stream before pp_out_finish(): a failing
 * verb leaves no half document behind.
 */
#include "base/out.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/out_text.h"
#include "base/parse.h"
#include "base/banned.h"

enum { DEFAULT_WIDTH = 100, LABEL_WIDTH = 22 };

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

void pp_out_limit_width(struct pp_out *o, unsigned int most)
{
	if (o->width > most)
		o->width = most;
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
	pp_out_plain(o, title, strlen(title));
	pp_buf_char(&o->buf, '\n');
}

void pp_out_raw(struct pp_out *o, const char *text)
{
	size_t at = o->buf.len;

	if (o->is_json)
		return;
	pp_buf_str(&o->buf, text);
	if (*text && !o->buf.failed)
		pp_sanitize(o->buf.data + at, true);
}

size_t pp_out_columns_of(const char *text, size_t n)
{
	size_t w = 0;

	for (size_t i = 0; i < n; i++)
		w += ((unsigned char)text[i] & 0xc0) != 0x80;
	return w;
}

size_t pp_out_fit(const char *text, size_t width, size_t *skip)
{
	bool is_address = !strncmp(text, "http", 4); /* half of one is none: it runs over */
	size_t n = 0, blank = 0, w = 0;

	*skip = 0;
	for (; text[n] && text[n] != '\n'; n++) {
		if (((unsigned char)text[n] & 0xc0) != 0x80 && w++ >= width &&
		    (blank || !is_address || text[n] == ' '))
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

void pp_out_spaces(struct pp_out *o, size_t n)
{
	while (n--)
		pp_buf_char(&o->buf, ' ');
}

/* Facts hold what machines, logs and files say: none of it may drive the terminal. */
void pp_out_plain(struct pp_out *o, const char *text, size_t n)
{
	size_t at = o->buf.len;

	pp_buf_add(&o->buf, text, n);
	if (n && !o->buf.failed)
		pp_sanitize(o->buf.data + at, false);
}

/* Wraps @text; the first line starts at column @at, the others are indented to @indent. */
static void wrapped(struct pp_out *o, const char *text, size_t at, size_t indent)
{
	size_t n, skip, room, shown;

	do {
		room = o->width > at + PP_OUT_NARROWEST ? o->width - at : PP_OUT_NARROWEST;
		n = pp_out_fit(text, room, &skip);
		for (shown = n; shown && text[shown - 1] == ' ';)
			shown--;
		pp_out_plain(o, text, shown);
		pp_buf_char(&o->buf, '\n');
		text += n + skip;
		at = indent;
		if (*text)
			pp_out_spaces(o, indent);
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
	size_t w = pp_out_columns_of(text, strlen(text));

	pp_out_spaces(o, 2);
	pp_out_plain(o, text, strlen(text));
	pp_out_spaces(o, w < LABEL_WIDTH ? LABEL_WIDTH - w : 1);
}

const char *pp_out_color(const struct pp_out *o, enum pp_verdict v)
{
	static const char *const colors[] = {
		[PP_PASS] = "\033[32m",
		[PP_DEGRADED] = "\033[33m",
		[PP_UNKNOWN] = "\033[36m",
		[PP_FAIL] = "\033[31m",
	};

	return o->color ? colors[v] : "";
}

const char *pp_out_color_end(const struct pp_out *o)
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
	at = pp_out_columns_of(name, strlen(name));
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
		text_field(o, name, "%s%s%s", pp_out_color(o, v), pp_verdict_name(v),
			   pp_out_color_end(o));
	else if (key)
		pp_json_str(&o->json, key, pp_verdict_name(v));
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
