/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/process_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "node/limits.h"
#include "base/banned.h"

/* The decimal number at @text, of at most 20 digits; what follows in *ret_rest. */
static int leading(const char *text, uint64_t *ret, const char **ret_rest)
{
	size_t digits = strspn(text, "0123456789");
	char number[24];

	if (digits >= sizeof(number))
		return -ERANGE;
	memcpy(number, text, digits);
	number[digits] = '\0';
	*ret_rest = text + digits;
	return pp_parse_u64(number, 0, UINT64_MAX, ret);
}

int pp_process_started(const char *stat, uint64_t *ret)
{
	enum { BEHIND_NAME = 2, STARTED = 22 };
	/* A program chooses its name: parentheses and blanks too. */
	const char *at = strrchr(stat, ')'), *rest;

	for (unsigned int field = BEHIND_NAME; at && field < STARTED; field++) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	if (!at || leading(at, ret, &rest) || (*rest && *rest != ' ' && *rest != '\n'))
		return -EBADMSG;
	return 0;
}

uint64_t pp_process_ns(const char *link)
{
	static const char BEGIN[] = "pid:[";
	const char *rest;
	uint64_t n;

	if (strncmp(link, BEGIN, strlen(BEGIN)) != 0 || leading(link + strlen(BEGIN), &n, &rest) ||
	    strcmp(rest, "]") != 0)
		return 0;
	return n;
}

void pp_process_cgroup(const char *text, char *buf, size_t size)
{
	size_t longest = 0, len;
	const char *path;

	*buf = '\0';
	if (!pp_limits_cgroup(text, "", buf, size))
		return;
	*buf = '\0';
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		path = strchr(line, ':');
		path = path ? strchr(path + 1, ':') : NULL;
		if (!path)
			continue;
		len = strcspn(path + 1, "\n");
		/* Of a line without its colons, the next one's would be taken. */
		if (memchr(line, '\n', (size_t)(path - line)) || len <= longest || len >= size)
			continue;
		longest = len;
		memcpy(buf, path + 1, len);
		buf[len] = '\0';
	}
}
