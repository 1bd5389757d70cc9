/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/samples.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/banned.h"

enum { NUMBER = 64, LABELS = 4096 };

static bool is_name(char c, bool first)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':' ||
	       (!first && c >= '0' && c <= '9');
}

/* Bytes of "{...}" at @at, whose values may hold braces and escaped quotes; 0: it has no end. */
static size_t labels(const char *at, size_t len)
{
	bool quoted = false;

	for (size_t i = 1; i < len && i < LABELS; i++) {
		if (quoted && at[i] == '\\')
			i++;
		else if (at[i] == '"')
			quoted = !quoted;
		else if (!quoted && at[i] == '}')
			return i + 1;
	}
	return 0;
}

/* Go's spelling: digits, NaN, +Inf, -Inf. */
static int number(const char *text, size_t len, double *ret)
{
	char copy[NUMBER], *end;

	if (!len || len >= sizeof(copy))
		return -EINVAL;
	(void)memcpy(copy, text, len);
	copy[len] = '\0';
	if (!strcasecmp(copy, "nan") || !strcasecmp(copy, "+inf") || !strcasecmp(copy, "-inf") ||
	    !strcasecmp(copy, "inf")) {
		*ret = copy[0] == '-' ? -INFINITY : strpbrk(copy, "iI") ? INFINITY : NAN;
		return 0;
	}
	if (copy[strspn(copy, "0123456789.eE+-")])
		return -EINVAL;
	*ret = strtod(copy, &end);
	return *end ? -EINVAL : 0;
}

static int one(const char *line, size_t len, pp_sample_each *each, void *ctx, size_t *odd)
{
	size_t bare = 0, name, at, n;
	double value;

	while (bare < len && is_name(line[bare], !bare))
		bare++;
	name = bare;
	if (bare && name < len && line[name] == '{') {
		n = labels(line + name, len - name);
		name = n ? name + n : 0;
	}
	for (at = name; at < len && (line[at] == ' ' || line[at] == '\t');)
		at++;
	for (n = at; n < len && line[n] != ' ' && line[n] != '\t' && line[n] != '\r';)
		n++;
	if (!bare || !name || at == name || number(line + at, n - at, &value)) {
		(*odd)++;
		return 0;
	}
	return each(ctx, line, name, bare, value);
}

int pp_samples_read(const char *text, size_t len, pp_sample_each *each, void *ctx, size_t *ret_odd)
{
	int r = 0;

	*ret_odd = 0;
	while (len && !r) {
		const char *end = memchr(text, '\n', len);
		size_t n = end ? (size_t)(end - text) : len;

		if (n && *text != '#' && *text != '\r')
			r = one(text, n, each, ctx, ret_odd);
		text += n + (end != NULL);
		len -= n + (end != NULL);
	}
	return r;
}
