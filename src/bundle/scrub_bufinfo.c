/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the text as its parser does, so that what is scrubbed is read as before. A name may hold
 * line breaks: its further lines stand where fences do, and go with them.
 */
#include <string.h>

#include "bundle/scrub_program.h"
#include "bundle/scrub_text.h"
#include "base/banned.h"

/* Where the text is; of an object's lines all up to its devices are fences, or a name's. */
enum place { TITLE, HEADER, BETWEEN, ROW, DEVICES };

struct bufinfo {
	const struct pp_scrub_map *map;
	struct pp_buf *out;
	enum place place;
	unsigned int before; /* TABs before a row's name */
	bool last;	     /* it goes on to the end of the line, TABs too */
	size_t replaced;
};

static bool is(const char *line, size_t len, const char *text)
{
	return len == strlen(text) && !memcmp(line, text, len);
}

static bool begins(const char *line, size_t len, const char *text)
{
	return len >= strlen(text) && !memcmp(line, text, strlen(text));
}

/* Up to the next TAB. */
static size_t field(const char *line, size_t len)
{
	const char *tab = memchr(line, '\t', len);

	return tab ? (size_t)(tab - line) : len;
}

static size_t without_blanks(const char *text, size_t len)
{
	while (len && text[len - 1] == ' ')
		len--;
	return len;
}

/* Where the header has no word for it a name stands behind all that have one. */
static void read_header(struct bufinfo *b, const char *line, size_t len)
{
	unsigned int columns = 0;
	size_t n;

	b->last = true;
	b->before = 0;
	for (size_t at = 0; at <= len; at += n + 1, columns++) {
		n = field(line + at, len - at);
		if (!is(line + at, without_blanks(line + at, n), "name") || b->before)
			continue;
		b->before = columns;
		b->last = at + n == len;
	}
	b->before = b->before ? b->before : columns;
	b->place = BETWEEN;
}

static void put_row(struct bufinfo *b, const char *line, size_t len)
{
	size_t at = 0, n;

	for (unsigned int tabs = 0; tabs < b->before && at < len; tabs++) {
		n = field(line + at, len - at);
		at += n + (at + n < len);
	}
	n = b->last ? len - at : field(line + at, len - at);
	pp_buf_add(b->out, line, at);
	if (!without_blanks(line + at, n) || is(line + at, n, "<none>")) {
		pp_buf_add(b->out, line + at, len - at);
		return;
	}
	pp_buf_printf(b->out, "buffer-%06x",
		      (unsigned int)(pp_scrub_hash(b->map, 'b', line + at, n) & 0xffffff));
	pp_buf_add(b->out, line + at + n, len - at - n);
	b->replaced++;
}

/* The kernel begins one with digits; its parser lets blanks stand before them. */
static bool is_row(const char *line, size_t len)
{
	size_t at = 0;

	while (at < len && pp_scrub_is_one_of(line[at], " \r\v\f"))
		at++;
	return at < len && line[at] >= '0' && line[at] <= '9';
}

static void put_line(struct bufinfo *b, const char *line, size_t len)
{
	bool plain = !len || is(line, len, "\tAttached Devices:") || begins(line, len, "Total ");

	switch (b->place) {
	case TITLE:
		b->place = is(line, len, "Dma-buf Objects:") ? HEADER : TITLE;
		plain |= b->place == HEADER;
		break;
	case HEADER:
		plain = true;
		read_header(b, line, len);
		break;
	case BETWEEN:
		if (!plain && is_row(line, len)) {
			b->place = ROW;
			put_row(b, line, len);
			return;
		}
		plain |= begins(line, len, "ERROR locking buffer object");
		break;
	case ROW:
		b->place = is(line, len, "\tAttached Devices:") ? DEVICES : ROW;
		plain = b->place == DEVICES;
		break;
	case DEVICES:
		b->place = begins(line, len, "Total ") ? BETWEEN : DEVICES;
		/* a device's name has no blanks */
		plain |= !memchr(line, ' ', len);
		break;
	}
	if (plain) {
		pp_buf_add(b->out, line, len);
		return;
	}
	pp_buf_str(b->out, "\tscrubbed");
	b->replaced++;
}

size_t pp_scrub_bufinfo(const struct pp_scrub_map *m, const char *text, size_t len,
			struct pp_buf *out)
{
	struct bufinfo b = {.map = m, .out = out};
	const char *end = text + len, *stop;

	while (text < end) {
		stop = memchr(text, '\n', (size_t)(end - text));
		put_line(&b, text, (size_t)((stop ? stop : end) - text));
		if (stop)
			pp_buf_char(out, '\n');
		text = stop ? stop + 1 : end;
	}
	return b.replaced;
}
