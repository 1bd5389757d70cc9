/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device nodes as ls shows them: there in one place (the host), absent in a later one (a
 * container). The reverse order is read as nothing: so looks a module that was loaded meanwhile.
 */
#include "judge/derived_measured.h"

#include <stdbool.h>
#include <string.h>

#include "base/compiler.h"
#include "base/find.h"
#include "base/banned.h"

/* Length of the path of a device node at @p; 0 when it is none, or too long to be kept. */
static size_t path_length(const char *p, const char *end)
{
	size_t n = 0;

	if (end - p < 6 || memcmp(p, "/dev/", 5) != 0)
		return 0;
	/* Quotes of UTF-8 end it too. */
	while (p + n < end && p[n] > ' ' && p[n] <= '~' && !strchr("'\":,", p[n]))
		n++;
	return n < PP_DERIVED_PATH ? n : 0;
}

static void keep(struct pp_derived_shell *s, const char *p, size_t n)
{
	if (!n || s->n_seen == PP_DERIVED_PATHS)
		return;
	memcpy(s->seen[s->n_seen], p, n);
	s->seen[s->n_seen++][n] = '\0';
}

static bool is_seen(const struct pp_derived_shell *s, const char *p, size_t n)
{
	for (unsigned int i = 0; n && i < s->n_seen; i++)
		if (strlen(s->seen[i]) == n && !memcmp(s->seen[i], p, n))
			return true;
	return false;
}

void pp_derived_read_node(struct pp_derived *d, const char *text, size_t len, uint64_t line)
{
	const char *end = text + len, *p;
	size_t n;

	if (len > 4 && !memcmp(text, "crw-", 4)) {
		p = pp_find(text, len, " /dev/", 6);
		if (p)
			keep(&d->shell, p + 1, path_length(p + 1, end));
		return;
	}
	p = pp_derived_behind(text, len, "cannot access ");
	if (!p || !pp_find(text, len, "No such file", 12))
		return;
	/* A quote is up to three bytes. */
	for (n = 0; n < 3 && p < end && *p != '/'; n++)
		p++;
	n = path_length(p, end);
	if (is_seen(&d->shell, p, n))
		pp_derived_say(d, PP_DERIVED_NODE, line,
			       "peerpath: device node %.*s is there in one place and absent in "
			       "another",
			       (int)n, p);
}
