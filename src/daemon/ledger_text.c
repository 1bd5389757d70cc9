/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts as they are kept: UTF-8, one line, bounded. They come from logs and names of others, and
 * go to a database, a terminal and JSON.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "daemon/ledger_parts.h"
#include "base/banned.h"

/* Bytes of the character at @s; 0: it is none. */
static size_t character(const unsigned char *s)
{
	size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	unsigned int code = n == 1 ? s[0] : s[0] & (0xffu >> (n + 1));

	if ((s[0] >= 0x80 && s[0] < 0xc2) || s[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3fu);
	}
	/* Longer than needed, half of a pair, beyond the last. */
	if ((n == 3 && code < 0x800) || (n == 4 && (code < 0x10000 || code > 0x10ffff)) ||
	    (code >= 0xd800 && code <= 0xdfff))
		return 0;
	return n;
}

void pp_ledger_clean(char *text)
{
	unsigned char *s = (unsigned char *)text;

	pp_sanitize(text, false);
	while (*s) {
		size_t n = character(s);

		if (!n)
			*s = '?';
		s += n ? n : 1;
	}
}

static int text_set(char **at, const char *text, size_t most)
{
	size_t len = text ? strlen(text) : 0;
	char *copy;

	if (*at && text && !strcmp(*at, text))
		return 0;
	if (!text) {
		free(*at);
		*at = NULL;
		return 0;
	}
	if (len > most) {
		len = most;
		while (len && ((unsigned char)text[len] & 0xc0) == 0x80)
			len--;
	}
	copy = strndup(text, len);
	if (!copy)
		return -ENOMEM;
	pp_ledger_clean(copy);
	free(*at);
	*at = copy;
	return 0;
}

int pp_text_set(char **at, const char *text)
{
	return text_set(at, text, PP_LEDGER_TEXT);
}

int pp_text_set_whole(char **at, const char *text)
{
	return text && strlen(text) > PP_LEDGER_MARK ? -E2BIG : text_set(at, text, PP_LEDGER_MARK);
}
