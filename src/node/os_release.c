/* SPDX-License-Identifier: Apache-2.0 */
#include "node/os_release.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/banned.h"

/* Value with its quotes to plain text. -EBADMSG leaves @buf alone when a quote stays open. */
static int unquote(const char *p, const char *end, char *buf, size_t size)
{
	char quote = '\0';
	size_t len = 0;

	for (; p < end; p++) {
		if (!quote && (*p == ' ' || *p == '\t'))
			break;
		if (*p == quote && quote) {
			quote = '\0';
			continue;
		}
		if (!quote && (*p == '"' || *p == '\'')) {
			quote = *p;
			continue;
		}
		if (*p == '\\' && quote != '\'' && p + 1 < end)
			p++;
		if (len + 1 < size)
			buf[len++] = *p;
	}
	buf[len] = '\0';
	return quote ? -EBADMSG : 0;
}

int pp_os_release_value(const char *text, const char *key, char *buf, size_t size)
{
	size_t key_len = strlen(key);
	const char *found = NULL, *found_end = NULL, *end;

	for (const char *line = text; *line; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		line += strspn(line, " \t");
		if ((size_t)(end - line) > key_len && !memcmp(line, key, key_len) &&
		    line[key_len] == '=') {
			found = line + key_len + 1;
			found_end = end;
		}
	}
	return found ? unquote(found, found_end, buf, size) : -ENOENT;
}
