/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of bufinfo. Formats: drivers/dma-buf/dma-buf.c; docs/internals/trace.md names the
 * versions.
 *
 *   Dma-buf Objects:
 *   size  flags  mode  count  exp_name  ino  name      words of the header; the last two are newer
 *   08388608 00000002 ... nv_dmabuf 00000001 <none>    one row an object
 *   	kernel fence: ...                               lines of its fences, of several shapes
 *   	Attached Devices:
 *   	0000:3b:00.0                                    one a line
 *   Total 1 devices attached
 *
 *   Total 1 objects, 8388608 bytes
 *
 * A buffer's name is what its owner wrote, line breaks too: so counts must fit, and a text whose
 * totals do not is cut.
 */
#include "trace/buffer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "trace/surface_report.h"
#include "base/banned.h"

enum { COLUMNS = 12, ATTACHED_MAX = 1 << 20 };

enum column { SIZE, FLAGS, MODE, COUNT, EXPORTER, INODE, NAME, OTHER };

static const struct {
	const char *word;
	enum column is;
} header_words[] = {
	{"size", SIZE},		{"flags", FLAGS}, {"mode", MODE}, {"count", COUNT},
	{"exp_name", EXPORTER}, {"ino", INODE},	  {"name", NAME},
};

/* Where a parse is. */
enum place { BEFORE, HEADER, BETWEEN, ROW, ATTACHED };

struct parse {
	struct pp_buffers *ret;
	enum place place;
	enum column column[COLUMNS];
	unsigned int n_columns;
	bool name_unsaid;
	size_t cap, attached_cap;
	uint64_t bytes; /* of all objects so far */
	bool ended;	/* the total was seen, and it fits */
	int error;
};

static bool begins(const char *line, const char *with)
{
	return !strncmp(line, with, strlen(with));
}

/* Room for one more of @size bytes; false when there is none. */
static bool room(void **list, size_t n, size_t *cap, size_t max, size_t size, int *error)
{
	size_t more = *cap ? *cap * 2 : 64;
	void *grown;

	if (n < *cap)
		return true;
	if (n >= max)
		return false;
	if (more > max)
		more = max;
	grown = reallocarray(*list, more, size);
	if (!grown) {
		*error = -ENOMEM;
		return false;
	}
	*list = grown;
	*cap = more;
	return true;
}

/* The text up to the next TAB, or all that is left; NULL at the end. Blanks around it go. */
static char *field(char **rest, bool last)
{
	char *start = *rest, *tab;

	if (!start)
		return NULL;
	tab = last ? NULL : strchr(start, '\t');
	if (tab)
		*tab = '\0';
	*rest = tab ? tab + 1 : NULL;
	return pp_trim(start);
}

static void read_header(struct parse *p, char *line)
{
	bool seen[OTHER + 1] = {0};
	char *word;

	while (p->n_columns < COLUMNS - 1 && (word = field(&line, false))) {
		enum column is = OTHER;

		for (size_t i = 0; i < PP_ARRAY_LEN(header_words); i++)
			if (!strcmp(word, header_words[i].word))
				is = header_words[i].is;
		p->column[p->n_columns++] = is;
		seen[is] = true;
	}
	if (!seen[SIZE] || !seen[EXPORTER] || !seen[COUNT] || line)
		p->error = -EBADMSG;
	/* 4.19 to 5.17 print a name below a header that has no word for it. */
	p->name_unsaid = !seen[NAME];
	p->place = BETWEEN;
}

static int set_column(struct pp_buffer *b, enum column is, const char *text)
{
	uint64_t n;

	switch (is) {
	case SIZE:
		return pp_parse_u64(text, 0, UINT64_MAX, &b->size);
	case COUNT:
		return pp_parse_u64(text, 0, INT64_MAX, &b->count);
	case INODE:
		return pp_parse_u64(text, 0, UINT64_MAX, &b->inode);
	case FLAGS:
	case MODE:
		return pp_parse_hex(text, UINT32_MAX, &n);
	case EXPORTER:
		(void)snprintf(b->exporter, sizeof(b->exporter), "%s", text);
		return 0;
	case NAME:
		if (strcmp(text, "<none>") != 0)
			(void)snprintf(b->name, sizeof(b->name), "%s", text);
		return 0;
	case OTHER:
		break;
	}
	return 0;
}

/* True when the line is a row: all columns are there and numbers are numbers. */
static bool read_row(struct parse *p, char *line, struct pp_buffer *b)
{
	char *text;

	*b = (struct pp_buffer){.first = (uint32_t)p->ret->n_attached};
	if (*line == '\t')
		return false;
	for (unsigned int i = 0; i < p->n_columns; i++) {
		text = field(&line, p->column[i] == NAME && i + 1 == p->n_columns);
		if (!text || set_column(b, p->column[i], text))
			return false;
	}
	text = p->name_unsaid ? field(&line, true) : NULL;
	if (text)
		(void)set_column(b, NAME, text);
	return !line && b->exporter[0];
}

static void add_row(struct parse *p, const struct pp_buffer *b)
{
	if (!room((void **)&p->ret->item, p->ret->n, &p->cap, PP_BUFFERS_MAX, sizeof(*b),
		  &p->error)) {
		pp_surface_cut(&p->ret->report, "more objects than %d", PP_BUFFERS_MAX);
		return;
	}
	p->ret->item[p->ret->n++] = *b;
	if (__builtin_add_overflow(p->bytes, b->size, &p->bytes))
		pp_surface_cut(&p->ret->report, "sizes beyond 64 bits");
	p->place = ROW;
}

static void add_attached(struct parse *p, const char *line)
{
	struct pp_buffers *r = p->ret;
	struct pp_buffer *b = &r->item[r->n - 1];
	const char *name = line + (*line == '\t');

	if (!room((void **)&r->attached, r->n_attached, &p->attached_cap, ATTACHED_MAX,
		  sizeof(*r->attached), &p->error)) {
		pp_surface_cut(&r->report, "more attachments than %d", ATTACHED_MAX);
		return;
	}
	if (strlen(name) >= sizeof(*r->attached))
		pp_surface_cut(&r->report, "a device's name is longer than %zu bytes",
			       sizeof(*r->attached) - 1);
	(void)snprintf(r->attached[r->n_attached++], sizeof(*r->attached), "%s", name);
	b->n_attached++;
}

/* The number of "Total N WORDS...", and what follows the words; -1 when it is no such line. */
static int64_t total(const char *line, const char *words, const char **ret_rest)
{
	const char *number = line + strlen("Total ");
	size_t digits = strspn(number, "0123456789");
	char text[24];
	uint64_t n;

	if (digits >= sizeof(text) || !begins(number + digits, words))
		return -1;
	memcpy(text, number, digits);
	text[digits] = '\0';
	*ret_rest = number + digits + strlen(words);
	return pp_parse_u64(text, 0, INT64_MAX, &n) ? -1 : (int64_t)n;
}

/* The end of one object's attachments. What does not fit its own count is not believed. */
static void close_row(struct parse *p, const char *line)
{
	struct pp_buffers *r = p->ret;
	struct pp_buffer *b = &r->item[r->n - 1];
	const char *rest = "";

	p->place = BETWEEN;
	if (total(line, " devices attached", &rest) == (int64_t)b->n_attached && !*rest)
		return;
	pp_surface_cut(&r->report, "an object has another number of attached devices than it says");
	r->n_attached = b->first;
	b->n_attached = 0;
}

/* "Total N objects, N bytes": the last line of a whole text. */
static void close_all(struct parse *p, const char *line)
{
	const char *rest = "";
	bool fits = total(line, " objects, ", &rest) == (int64_t)p->ret->n;
	size_t digits = strspn(rest, "0123456789");
	char text[24];
	uint64_t bytes;

	if (fits && digits < sizeof(text)) {
		memcpy(text, rest, digits);
		text[digits] = '\0';
		fits = !pp_parse_u64(text, 0, UINT64_MAX, &bytes) && bytes == p->bytes &&
		       !strcmp(rest + digits, " bytes");
	}
	if (!fits || digits >= sizeof(text))
		pp_surface_cut(&p->ret->report,
			       "the total is of other objects or bytes than are listed");
	p->ended = true;
}

static void read_line(struct parse *p, char *line)
{
	struct pp_buffer b;

	if (p->ended && *line)
		pp_surface_cut(&p->ret->report, "text after the total");
	switch (p->place) {
	case BEFORE:
		if (!strcmp(line, "Dma-buf Objects:"))
			p->place = HEADER;
		else if (*line)
			p->error = -EBADMSG;
		break;
	case HEADER:
		read_header(p, line);
		break;
	case BETWEEN:
		if (begins(line, "Total "))
			close_all(p, line);
		else if (*line && read_row(p, line, &b))
			add_row(p, &b);
		else if (*line)
			pp_surface_cut(&p->ret->report, "a line that is no object: \"%.60s\"",
				       line);
		break;
	case ROW:
		/* Fences have several shapes; the list of devices ends them. */
		if (!strcmp(line, "\tAttached Devices:"))
			p->place = ATTACHED;
		break;
	case ATTACHED:
		if (begins(line, "Total "))
			close_row(p, line);
		else if (*line)
			add_attached(p, line);
		break;
	}
}

static void read_lines(struct parse *p, char *text, size_t len)
{
	char *end = text + len, *line = text, *stop;

	for (char *c = text; c < end; c++)
		if (!*c)
			*c = '?';
	while (line < end && !p->error) {
		stop = memchr(line, '\n', (size_t)(end - line));
		if (!stop)
			stop = end;
		*stop = '\0';
		read_line(p, line);
		line = stop + 1;
	}
}

int pp_buffers_parse(const char *text, size_t len, struct pp_buffers *ret)
{
	char *PP_AUTO_FREE copy = malloc(len + 1);
	struct parse p = {.ret = ret};

	*ret = (struct pp_buffers){.report = {.state = PP_SURFACE_READ}};
	if (!copy)
		return -ENOMEM;
	if (len)
		memcpy(copy, text, len);
	copy[len] = '\0';
	read_lines(&p, copy, len);
	if (!p.error && (p.place == BEFORE || p.place == HEADER))
		p.error = -EBADMSG;
	if (p.error) {
		pp_buffers_done(ret);
		return p.error;
	}
	if (!p.ended || p.place != BETWEEN)
		pp_surface_cut(&ret->report, "the text ends before its total");
	return 0;
}

void pp_buffers_done(struct pp_buffers *b)
{
	free(b->item);
	free(b->attached);
	b->item = NULL;
	b->attached = NULL;
	b->n = b->n_attached = 0;
}

bool pp_exporter_is_nvidia(const char *exporter)
{
	return !strcmp(exporter, "nv_dmabuf") || !strcmp(exporter, "nvidia");
}
