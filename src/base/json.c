/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/utf8.h"
#include "base/banned.h"

static void newline(struct pp_json *j)
{
	static const char text[] =
		"\n                                                              ";

	static_assert(sizeof(text) > 2 * PP_JSON_DEPTH + 1, "an indent of every depth");
	if (j->pretty)
		pp_buf_add(j->out, text, 1 + 2 * (size_t)j->depth);
}

/* Bytes that stand for themselves: nearly all of nearly every text. */
static size_t plain_length(const unsigned char *p)
{
	size_t n = 0;

	while (p[n] >= 0x20 && p[n] < 0x7f && p[n] != '"' && p[n] != '\\')
		n++;
	return n;
}

static void quoted(struct pp_json *j, const char *text)
{
	static const char replacement[] = "\xef\xbf\xbd";
	const unsigned char *p = (const unsigned char *)text;
	size_t n;

	pp_buf_char(j->out, '"');
	for (;;) {
		n = plain_length(p);
		pp_buf_add(j->out, p, n);
		p += n;
		if (!*p)
			break;
		if (*p == '"' || *p == '\\') {
			pp_buf_char(j->out, '\\');
			pp_buf_char(j->out, (char)*p++);
		} else if (*p == '\n' || *p == '\t' || *p == '\r') {
			pp_buf_str(j->out, *p == '\n' ? "\\n" : *p == '\t' ? "\\t" : "\\r");
			p++;
		} else if (*p < 0x20 || *p == 0x7f) {
			pp_buf_printf(j->out, "\\u%04x", *p++);
		} else {
			n = pp_utf8_length(p, SIZE_MAX);
			if (n)
				pp_buf_add(j->out, p, n);
			else
				pp_buf_str(j->out, replacement);
			p += n ? n : 1;
		}
	}
	pp_buf_char(j->out, '"');
}

/* What stands before a value: comma, line break, key. */
static void lead(struct pp_json *j, const char *key)
{
	if (j->depth) {
		if (j->filled[j->depth - 1])
			pp_buf_char(j->out, ',');
		j->filled[j->depth - 1] = true;
		newline(j);
	}
	if (key) {
		quoted(j, key);
		pp_buf_str(j->out, j->pretty ? ": " : ":");
	}
}

static void open_level(struct pp_json *j, const char *key, char bracket)
{
	lead(j, key);
	assert(j->depth < PP_JSON_DEPTH);
	j->filled[j->depth++] = false;
	pp_buf_char(j->out, bracket);
}

static void close_level(struct pp_json *j, char bracket)
{
	bool filled;

	assert(j->depth);
	filled = j->filled[--j->depth];
	if (filled)
		newline(j);
	pp_buf_char(j->out, bracket);
	if (!j->depth && j->pretty)
		pp_buf_char(j->out, '\n');
}

void pp_json_object(struct pp_json *j, const char *key)
{
	open_level(j, key, '{');
}

void pp_json_array(struct pp_json *j, const char *key)
{
	open_level(j, key, '[');
}

void pp_json_end_object(struct pp_json *j)
{
	close_level(j, '}');
}

void pp_json_end_array(struct pp_json *j)
{
	close_level(j, ']');
}

void pp_json_str(struct pp_json *j, const char *key, const char *value)
{
	lead(j, key);
	if (value)
		quoted(j, value);
	else
		pp_buf_str(j->out, "null");
}

/* A document of a large job is mostly numbers: printf() took half its time. */
static void number(struct pp_json *j, bool minus, uint64_t value)
{
	char text[24], *at = text + sizeof(text), *end = at;

	do {
		*--at = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	if (minus)
		*--at = '-';
	pp_buf_add(j->out, at, (size_t)(end - at));
}

void pp_json_u64(struct pp_json *j, const char *key, uint64_t value)
{
	lead(j, key);
	number(j, false, value);
}

void pp_json_i64(struct pp_json *j, const char *key, int64_t value)
{
	lead(j, key);
	number(j, value < 0, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void pp_json_double(struct pp_json *j, const char *key, double value)
{
	lead(j, key);
	if (isfinite(value))
		pp_buf_printf(j->out, "%.6g", value);
	else
		pp_buf_str(j->out, "null");
}

void pp_json_bool(struct pp_json *j, const char *key, bool value)
{
	lead(j, key);
	pp_buf_str(j->out, value ? "true" : "false");
}

void pp_json_null(struct pp_json *j, const char *key)
{
	lead(j, key);
	pp_buf_str(j->out, "null");
}
