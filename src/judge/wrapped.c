/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/wrapped.h"

#include <ctype.h>
#include <string.h>

#include "base/compiler.h"
#include "judge/message.h"
#include "base/banned.h"

static bool is_terminal_width(size_t len)
{
	static const size_t widths[] = {80, 100, 120, 132};

	for (size_t i = 0; i < PP_ARRAY_LEN(widths); i++)
		if (len == widths[i])
			return true;
	return false;
}

/* The first word, if it may stand in the middle of a sentence; 0: it begins a line of its own. */
static size_t inner_word(const char *text, size_t len)
{
	size_t n = 0;

	if (!islower((unsigned char)*text))
		return 0;
	for (; n < len && text[n] != ' '; n++)
		if (strchr(":=[|", text[n]) || text[n] == '\t')
			return 0;
	return n;
}

/* Whether a line of this start is one of a log: a date, a rank, "host:1:2 [0] NCCL INFO ". */
static bool has_head(const struct pp_wrapped *w, const char *text, size_t len)
{
	enum { SAME = 6 };

	if (strchr("[<({#*-=|/", *text) || isspace((unsigned char)*text))
		return true;
	if (len >= SAME && w->len >= SAME && !memcmp(text, w->text, SAME))
		return true;
	if (isdigit((unsigned char)*text) && len > 4 && (text[4] == '-' || text[2] == ':'))
		return true;
	return pp_message_prefix(text, len) || !memcmp(text, "NCCL ", len < 5 ? len : 5);
}

static void append(struct pp_wrapped *w, const char *text, size_t len, uint64_t line)
{
	memcpy(w->text + w->len, text, len);
	w->len += len;
	w->last = len;
	w->end = line;
	w->n++;
}

/* At a blank: the next word had no room, and no line of the run is wider than that tells. */
static bool add_word(struct pp_wrapped *w, const char *text, size_t len, uint64_t line)
{
	size_t word = inner_word(text, len), room = w->last + 1 + word;
	size_t widest = w->widest > len ? w->widest : len;

	if (!word || w->last < PP_WRAPPED_NARROWEST)
		return false;
	if (room > w->room)
		room = w->room;
	if (widest >= room)
		return false;
	w->room = room;
	w->widest = widest;
	w->text[w->len++] = ' ';
	append(w, text, len, line);
	return true;
}

bool pp_wrapped_add(struct pp_wrapped *w, const char *text, size_t len, uint64_t line)
{
	if (!w->n || w->n == PP_WRAPPED_LINES || line != w->end + 1 || len > PP_WRAPPED_WIDEST ||
	    strchr(".:;!?", w->text[w->len - 1]) || has_head(w, text, len))
		return false;
	if (!is_terminal_width(w->last) || w->last != w->widest)
		return add_word(w, text, len, line);
	if (len > w->last)
		return false;
	append(w, text, len, line);
	return true;
}

void pp_wrapped_begin(struct pp_wrapped *w, const char *text, size_t len, uint64_t line)
{
	w->n = 0;
	w->worth = false;
	if (len > PP_WRAPPED_WIDEST || len < PP_WRAPPED_NARROWEST)
		return;
	w->len = 0;
	w->widest = len;
	w->room = SIZE_MAX;
	w->first = line;
	append(w, text, len, line);
}
