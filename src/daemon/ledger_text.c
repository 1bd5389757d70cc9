/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts as they are kept: UTF-8, one line, bounded. They come from logs and names of others, and
 * go to a database, a terminal and JSON.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/utf8.h"
#include "daemon/ledger_parts.h"
#include "base/banned.h"

void pp_ledger_clean(char *text)
{
	unsigned char *s = (unsigned char *)text;

	pp_sanitize(text, false);
	while (*s) {
		size_t n = pp_utf8_length(s, SIZE_MAX);

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
	copy = strndup(text, pp_utf8_fit(text, len, most));
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
