/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/pattern.h"

#include <ctype.h>
#include <string.h>

#include "base/banned.h"

enum { MOST = PP_PATTERN_ATOMS + 1, DEPTH = 64, COUNT = 9999 };

struct sum {
	size_t all, last; /* of this group; of its last piece, which a repeat copies */
};

static size_t most(size_t n)
{
	return n < MOST ? n : MOST;
}

static void add(struct sum *s, size_t atoms)
{
	s->last = most(atoms);
	s->all = most(s->all + s->last);
}

static void repeat(struct sum *s, size_t times)
{
	size_t more = times > 1 ? most(s->last * (times - 1)) : 0;

	s->last = most(s->last + more);
	s->all = most(s->all + more);
}

/* Behind a bracket's end; "[]a]", "[^]a]" and "[[:digit:]]" hold one that is none. */
static const char *behind_bracket(const char *at)
{
	at += 1 + (at[1] == '^');
	at += *at == ']';
	while (*at && *at != ']') {
		const char end[] = {at[1], ']', '\0'};
		const char *closed =
			*at == '[' && at[1] && strchr(".:=", at[1]) ? strstr(at + 2, end) : NULL;

		at = closed ? closed + 2 : at + 1;
	}
	return at + (*at != '\0');
}

static size_t number(const char **at)
{
	size_t n = 0;

	for (; isdigit((unsigned char)**at); ++*at)
		n = n < COUNT ? n * 10 + (size_t)(**at - '0') : COUNT;
	return n;
}

/* "{3}", "{3,}", "{3,7}", "{,7}"; anything else begins with a brace that stands for itself. */
static const char *interval(struct sum *s, const char *at)
{
	const char *end = at + 1;
	size_t low = number(&end), high = low;

	if (*end == ',') {
		end++;
		high = isdigit((unsigned char)*end) ? number(&end) : low + 1;
	}
	if (*end != '}' || end == at + 1) {
		add(s, 1);
		return at + 1;
	}
	repeat(s, high > low ? high : low);
	return end + 1;
}

size_t pp_pattern_atoms(const char *text)
{
	struct sum open[DEPTH] = {{0}};
	size_t depth = 0;

	for (const char *at = text; *at;) {
		struct sum *s = &open[depth];

		if (*at == '(' && depth + 1 == DEPTH)
			return MOST;
		if (*at == '(') {
			open[++depth] = (struct sum){0};
			at++;
		} else if (*at == ')' && depth) {
			depth--;
			add(&open[depth], s->all + 1);
			at++;
		} else if (*at == '[') {
			at = behind_bracket(at);
			add(s, 1);
		} else if (*at == '{') {
			at = interval(s, at);
		} else if (*at == '+') {
			repeat(s, 2);
			at++;
		} else if (*at == '*' || *at == '?') {
			at++;
		} else {
			at += 1 + (*at == '\\' && at[1]);
			add(s, 1);
		}
	}
	while (depth--)
		add(&open[depth], open[depth + 1].all + 1);
	return open[0].all;
}
