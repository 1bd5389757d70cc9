/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/reader.h"

#include <stdlib.h>
#include <string.h>

#include "nccl/line.h"
#include "base/banned.h"

struct pp_nccl_reader *pp_nccl_reader_new(pp_nccl_reader_fn *fn, void *ctx)
{
	struct pp_nccl_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->buf = malloc(PP_NCCL_READER_BYTES);
	if (!r->buf)
		return pp_nccl_reader_free(r);
	r->fn = fn;
	r->ctx = ctx;
	return r;
}

struct pp_nccl_reader *pp_nccl_reader_free(struct pp_nccl_reader *r)
{
	if (!r)
		return NULL;
	free(r->buf);
	free(r);
	return NULL;
}

/* Behind an escape sequence that begins at @at: CSI up to its final byte, OSC up to BEL or ESC. */
static const char *behind_escape(const char *at, const char *end)
{
	if (++at == end)
		return at;
	if (*at == '[') {
		for (at++; at < end && !(*at >= 0x40 && *at <= 0x7e); at++)
			;
		return at < end ? at + 1 : end;
	}
	if (*at == ']') {
		for (at++; at < end && *at != '\a' && *at != '\x1b'; at++)
			;
		return at < end && *at == '\a' ? at + 1 : at;
	}
	return at + 1;
}

static size_t clean(struct pp_nccl_reader *r, const char *at, const char *end)
{
	size_t n = 0;

	while (at < end && n < PP_NCCL_LINE_MAX) {
		unsigned char c = (unsigned char)*at;

		if (c >= 0x20 && c < 0x7f) { /* nearly all */
			r->clean[n++] = (char)c;
			at++;
			continue;
		}
		if (c == 0x1b) {
			at = behind_escape(at, end);
			continue;
		}
		at++;
		/* holes of a file that was truncated under its writer */
		if (c == '\0')
			continue;
		r->clean[n++] = c >= 0x80 ? '?' : ' ';
	}
	if (at < end && !r->counted) {
		r->cut++;
		r->counted = true;
	}
	while (n && r->clean[n - 1] == ' ')
		n--;
	r->clean[n] = '\0';
	return n;
}

static void hand_on(struct pp_nccl_reader *r, const char *at, const char *end)
{
	size_t n = clean(r, at, end);

	if (n)
		r->fn(r->ctx, r->clean, n, r->number);
}

/* A row of numbers, whatever stands before or behind it: its end is mostly digits. */
static bool is_row(const char *at, const char *end)
{
	size_t digits = 0;

	if (end - at < 48)
		return false;
	for (const char *p = end - 48; p < end; p++)
		digits += *p >= '0' && *p <= '9';
	return digits >= 10;
}

/*
 * "/GDRDMA", perhaps behind the end of a device's number: what a terminal or an editor broke off a
 * connection line, which without it says the opposite.
 */
static bool is_torn(const char *at, const char *end)
{
	const char *p = at;

	while (p < end && p - at < 8 && ((*p >= '0' && *p <= '9') || *p == '(' || *p == ')'))
		p++;
	return end - p >= 7 && !memcmp(p, "/GDRDMA", 7);
}

static const char *find_hash(const char *at, const char *end)
{
	const char *p = at < end ? memchr(at, '#', (size_t)(end - at)) : NULL;

	return p ? p : end;
}

/* Whole lines of [at, end); returns where the unfinished one begins. */
static const char *scan(struct pp_nccl_reader *r, const char *at, const char *end)
{
	const char *word = pp_nccl_line_find_word(at, end), *hash = find_hash(at, end), *eol;

	while (at < end && (eol = memchr(at, '\n', (size_t)(end - at)))) {
		if (!r->skipping)
			r->number++;
		if (word < at)
			word = pp_nccl_line_find_word(at, end);
		if (hash < at)
			hash = find_hash(at, end);
		if (r->skipping)
			r->cut += !r->counted && word < eol;
		else if (word < eol || hash < eol || is_torn(at, eol) ||
			 (r->table && is_row(at, eol)))
			hand_on(r, at, eol);
		r->skipping = r->counted = false;
		at = eol + 1;
	}
	return at;
}

/*
 * The buffer holds one unfinished line only: judge its beginning, drop the rest. Only a line that
 * speaks of NCCL counts as cut. Three bytes stay: the word may lie across two buffers.
 */
static void cut_line(struct pp_nccl_reader *r)
{
	const char *end = r->buf + r->len;
	bool word = pp_nccl_line_find_word(r->buf, end) < end;

	if (!r->skipping) {
		r->number++;
		if (word)
			hand_on(r, r->buf, end);
	}
	if (word && !r->counted) {
		r->cut++;
		r->counted = true;
	}
	r->skipping = true;
	memmove(r->buf, end - 3, 3);
	r->len = 3;
}

void pp_nccl_reader_feed(struct pp_nccl_reader *r, const char *bytes, size_t len)
{
	const char *rest;
	size_t part;

	while (len) {
		part = PP_NCCL_READER_BYTES - r->len;
		part = part < len ? part : len;
		memcpy(r->buf + r->len, bytes, part);
		r->len += part;
		bytes += part;
		len -= part;
		rest = scan(r, r->buf, r->buf + r->len);
		r->len = (size_t)(r->buf + r->len - rest);
		if (r->len == PP_NCCL_READER_BYTES)
			cut_line(r);
		else if (rest != r->buf)
			memmove(r->buf, rest, r->len);
	}
}

void pp_nccl_reader_end(struct pp_nccl_reader *r)
{
	r->partial = true;
	if (r->len && !r->skipping)
		pp_nccl_reader_feed(r, "\n", 1);
	r->partial = false;
	r->len = 0;
	r->number = 0;
	r->skipping = r->counted = false;
	r->table = false;
}
