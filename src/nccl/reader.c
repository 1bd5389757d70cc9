/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "nccl/line.h"
#include "nccl/record.h"
#include "base/banned.h"

enum { ROW_TAIL = 48 };

struct pp_nccl_reader *pp_nccl_reader_new(pp_nccl_reader_fn *fn, void *ctx)
{
	struct pp_nccl_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->buf = malloc(PP_NCCL_READER_BYTES + 1);
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

/* Whether these are all printable ASCII. */
typedef signed char block __attribute__((vector_size(16)));

static bool is_plain(const char *at)
{
	uint64_t odd[2];
	block b;

	memcpy(&b, at, sizeof(b));
	/* as signed numbers all others are below a blank, but for DEL */
	b = (block)(b < 0x20) | (block)(b == 0x7f);
	memcpy(odd, &b, sizeof(odd));
	return !(odd[0] | odd[1]);
}

/* How many bytes from @at on are printable ASCII: nearly all of nearly every line. */
static size_t plain_len(const char *at, const char *end)
{
	const ptrdiff_t step = sizeof(block);
	const char *p = at;

	while (end - p >= step && is_plain(p))
		p += step;
	if (end - p < step && end - at >= step && is_plain(end - step))
		return (size_t)(end - at);
	while (p < end && *p >= 0x20 && *p < 0x7f)
		p++;
	return (size_t)(p - at);
}

static size_t clean(struct pp_nccl_reader *r, const char *at, const char *end)
{
	size_t n = 0, run;

	while (at < end && n < PP_NCCL_LINE_MAX) {
		run = plain_len(at, end);
		run = run < PP_NCCL_LINE_MAX - n ? run : PP_NCCL_LINE_MAX - n;
		memcpy(r->clean + n, at, run);
		n += run;
		at += run;
		if (at == end || n == PP_NCCL_LINE_MAX)
			break;
		if (*at == 0x1b) {
			at = behind_escape(at, end);
			continue;
		}
		/* holes of a file that was truncated under its writer leave nothing */
		if (*at)
			r->clean[n++] = *at & 0x80 ? '?' : ' ';
		at++;
	}
	if (at < end && !r->counted) {
		r->cut++;
		r->counted = true;
	}
	while (n && r->clean[n - 1] == ' ')
		n--;
	return n;
}

/* Hands on a line of our buffer; *@end is ours too. A clean line is not copied. */
static void hand_on(struct pp_nccl_reader *r, char *at, char *end)
{
	bool partial = r->partial;
	char *text;
	size_t n;

	if (pp_nccl_record_is(at, end))
		end = pp_nccl_record_open(at, end, &at, &r->partial);
	text = at;
	while (end > at && (end[-1] == ' ' || end[-1] == '\r'))
		end--;
	n = (size_t)(end - at);
	if (n > PP_NCCL_LINE_MAX || plain_len(at, end) < n) {
		n = clean(r, at, end);
		text = r->clean;
	}
	text[n] = '\0';
	if (n)
		r->fn(r->ctx, text, n, r->number);
	r->partial = partial;
}

/* A row of numbers, whatever stands before or behind it: its end is mostly digits. */
static bool is_row(const char *at, const char *end)
{
	size_t digits = 0;

	if (end - at < ROW_TAIL)
		return false;
	for (const char *p = end - ROW_TAIL; p < end; p++)
		digits += *p >= '0' && *p <= '9';
	return digits >= 10;
}

/* "# nThread", "#  Rank" and their like (formats.def); comments of shell and Markdown are many. */
static bool is_head(const char *at, const char *end)
{
	enum { SHORTEST = 9 };
	static const bool third[256] = {[' '] = true, ['n'] = true, ['R'] = true, ['O'] = true,
					['U'] = true, ['s'] = true, ['C'] = true};

	return end - at > SHORTEST && at[1] == ' ' && third[(unsigned char)at[2]] &&
	       !memchr(at, '\n', SHORTEST);
}

static const char *find_head(const char *at, const char *end)
{
	while (at < end && (at = memchr(at, '#', (size_t)(end - at)))) {
		do {
			if (is_head(at, end))
				return at;
			at++;
		} while (at < end && *at == '#');
	}
	return end;
}

/*
 * "/GDRDMA" where a line begins, perhaps behind the end of a device's number: what a terminal or an
 * editor broke off a connection line, which without it says the opposite.
 */
static const char *find_torn(const char *start, const char *at, const char *end)
{
	const char *p;

	for (; at < end && (at = memchr(at, 'G', (size_t)(end - at))); at++) {
		if (end - at < 6 || memcmp(at, "GDRDMA", 6) != 0 || at == start || at[-1] != '/')
			continue;
		for (p = at - 1; p > start && at - p < 9; p--)
			if (!((p[-1] >= '0' && p[-1] <= '9') || p[-1] == '(' || p[-1] == ')'))
				break;
		if (p == start || p[-1] == '\n')
			return at;
	}
	return end;
}

/* The first row of numbers in [at, end), both where a line begins; @end when there is none. */
static char *find_row(char *at, char *end)
{
	char *eol;

	while (end - at > ROW_TAIL) {
		eol = memrchr(at, '\n', ROW_TAIL); /* lines that are too short */
		if (!eol) {
			eol = memchr(at + ROW_TAIL, '\n', (size_t)(end - at - ROW_TAIL));
			if (!eol || is_row(at, eol))
				return eol ? at : end;
		}
		at = eol + 1;
	}
	return end;
}

static uint64_t count_lines(const char *at, const char *end)
{
	const uint64_t ones = 0x0101010101010101ULL, low = 0x7f * ones;
	uint64_t n = 0, w;

	for (; end - at >= 8; at += 8) {
		memcpy(&w, at, sizeof(w));
		w ^= '\n' * ones;
		/* the high bit of each byte that is not zero */
		w = (((w & low) + low) | w) & ~low;
		n += 8 - ((w >> 7) * ones >> 56);
	}
	for (; at < end; at++)
		n += *at == '\n';
	return n;
}

/* What launchers say of a process that ended by a signal (formats.def), without NCCL's name. */
static const struct pp_nccl_span ENDS[] = {{" signal ", 8}, {"(exitcode: -", 12}};

static const char *find_end(size_t i, const char *at, const char *end)
{
	const char *found = memmem(at, (size_t)(end - at), ENDS[i].at, ENDS[i].len);

	return found ? found : end;
}

/* Where the next word, head, torn end and ends are, so that none is searched for twice. */
struct sights {
	const char *word, *head, *torn, *ended[PP_ARRAY_LEN(ENDS)];
};

/* The next line of [at, end) that may say something; @end is behind a newline. */
static char *next_line(const struct pp_nccl_reader *r, struct sights *s, char *at, char *end)
{
	const char *first;
	char *eol, *begin;

	if (s->word < at)
		s->word = pp_nccl_line_find_word(at, end);
	if (s->head < at)
		s->head = find_head(at, end);
	if (s->torn < at)
		s->torn = find_torn(at, at, end);
	first = s->word < s->head ? s->word : s->head;
	first = s->torn < first ? s->torn : first;
	for (size_t i = 0; i < PP_ARRAY_LEN(ENDS); i++) {
		if (s->ended[i] < at)
			s->ended[i] = find_end(i, at, end);
		first = s->ended[i] < first ? s->ended[i] : first;
	}
	begin = end;
	if (first < end) {
		eol = memrchr(at, '\n', (size_t)(first - at));
		begin = eol ? eol + 1 : at;
	}
	return r->table ? find_row(at, begin) : begin;
}

/* Whole lines of [at, end); returns where the unfinished one begins. */
static char *scan(struct pp_nccl_reader *r, char *at, char *end)
{
	char *eol = memrchr(at, '\n', (size_t)(end - at)), *whole, *line;
	struct sights s;

	if (!eol)
		return at;
	whole = eol + 1;
	if (r->skipping) {
		eol = memchr(at, '\n', (size_t)(whole - at));
		r->cut += !r->counted && pp_nccl_line_find_word(at, eol) < eol;
		at = eol + 1;
	}
	r->skipping = r->counted = false;
	s.word = pp_nccl_line_find_word(at, whole);
	s.head = find_head(at, whole);
	s.torn = find_torn(at, at, whole);
	for (size_t i = 0; i < PP_ARRAY_LEN(ENDS); i++)
		s.ended[i] = find_end(i, at, whole);
	while (at < whole) {
		line = next_line(r, &s, at, whole);
		r->number += count_lines(at, line);
		if (line == whole)
			break;
		r->number++;
		eol = memchr(line, '\n', (size_t)(whole - line));
		hand_on(r, line, eol);
		r->counted = false;
		at = eol + 1;
	}
	return whole;
}

/*
 * The buffer holds one unfinished line only: judge its beginning, drop the rest. Only a line that
 * speaks of NCCL counts as cut. Three bytes stay: the word may lie across two buffers.
 */
static void cut_line(struct pp_nccl_reader *r)
{
	char *end = r->buf + r->len;
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
	char *rest;
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
