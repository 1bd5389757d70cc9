/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the text as its parser does, so that what is scrubbed is read as before. A name may hold
 * line breaks: its further lines stand where fences do, and go with them.
 */
#include <string.h>

#include "bundle/scrub_program.h"
#include "base/banned.h"

/* Where the text is; of an object's lines all up to its devices are fences, or a name's. */
enum place { TITLE, HEADER, BETWEEN, ROW, DEVICES };

struct bufinfo {
	const struct pp_scrub_map *map;
	struct pp_buf *out;
	enum place place;
	unsigned int before; /* TABs before a row's name; 0: this kernel shows none */
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

static bool has_word(const char *line, size_t len, const char *word)
{
	return memmem(line, len, word, strlen(word)) != NULL;
}

static void read_header(struct bufinfo *b, const char *line, size_t len)
{
	unsigned int tabs = 0;

	for (size_t i = 0; i < len; i++)
		tabs += line[i] == '\t';
	/* "name" is the last of the words; a header without it has a TAB behind its last one */
	if (has_word(line, len, "ino"))
		b->before = tabs + (has_word(line, len, "\tname") || line[len - 1] == '\t' ? 0 : 1);
	b->place = BETWEEN;
}

static void put_row(struct bufinfo *b, const char *line, size_t len)
{
	unsigned int tabs = 0;
	size_t i = 0;

	while (i < len && b->before && tabs < b->before)
		tabs += line[i++] == '\t';
	if (!b->before || tabs < b->before)
		i = len;
	pp_buf_add(b->out, line, i);
	if (i == len || is(line + i, len - i, "<none>")) {
		pp_buf_add(b->out, line + i, len - i);
		return;
	}
	pp_buf_printf(b->out, "buffer-%06x",
		      (unsigned int)(pp_scrub_hash(b->map, 'b', line + i, len - i) & 0xffffff));
	b->replaced++;
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
		if (!plain && line[0] >= '0' && line[0] <= '9') {
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
