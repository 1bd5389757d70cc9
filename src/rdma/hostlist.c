/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/hostlist.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/banned.h"

/* Digits of a number; more would not fit anyway. */
enum { DIGITS = 18, LAST = INT32_MAX };

struct walk {
	const char *text;
	bool (*each)(void *arg, const char *name);
	void *arg;
	struct pp_error *err;
	char name[PP_HOSTLIST_NAME + 1];
	unsigned int told;
	bool enough;
};

static int bad(struct walk *w, const char *why)
{
	char shown[80];

	(void)snprintf(shown, sizeof(shown), "%.76s", w->text);
	pp_sanitize(shown, false);
	return pp_error_set(w->err, -EINVAL, "host list \"%s\": %s", shown, why);
}

static int append(struct walk *w, size_t at, const char *bytes, size_t len, size_t *ret_at)
{
	if (len > PP_HOSTLIST_NAME - at)
		return bad(w, "a name is too long");
	memcpy(w->name + at, bytes, len);
	*ret_at = at + len;
	w->name[*ret_at] = '\0';
	return 0;
}

/* Between @from and @end. */
static int number(struct walk *w, const char *from, const char *end, uint64_t *ret)
{
	char digits[DIGITS + 1];
	size_t len = (size_t)(end - from);

	if (!len || len > DIGITS)
		return bad(w, "no number in brackets");
	memcpy(digits, from, len);
	digits[len] = '\0';
	if (strspn(digits, "0123456789") != len || pp_parse_u64(digits, 0, LAST, ret))
		return bad(w, "no number in brackets");
	return 0;
}

static int tell(struct walk *w)
{
	if (w->told++ >= PP_HOSTLIST_MOST)
		return pp_error_set(w->err, -E2BIG, "a host list of more than %d names",
				    PP_HOSTLIST_MOST);
	w->enough = !w->each(w->arg, w->name);
	return 0;
}

static int rest(struct walk *w, size_t at, const char *from, const char *end, unsigned int depth);

/* One element of a bracket, "7" or "07-09", each with what follows the bracket. */
static int range(struct walk *w, size_t at, const char *from, const char *to, const char *after,
		 const char *end, unsigned int depth)
{
	const char *dash = memchr(from, '-', (size_t)(to - from));
	const char *stop = dash ? dash : to;
	uint64_t first, last;
	char text[DIGITS + 8];
	int r = number(w, from, stop, &first), width = (int)(stop - from), n;
	size_t next = 0;

	last = first;
	if (!r && dash)
		r = number(w, dash + 1, to, &last);
	if (!r && last < first)
		r = bad(w, "a range that goes down");
	for (uint64_t i = first; !r && i <= last && !w->enough; i++) {
		n = snprintf(text, sizeof(text), "%0*llu", width, (unsigned long long)i);
		r = append(w, at, text, (size_t)n, &next);
		if (!r)
			r = rest(w, next, after, end, depth + 1);
	}
	return r;
}

/* What of a name begins at @from, behind the @at characters that are there already. */
static int rest(struct walk *w, size_t at, const char *from, const char *end, unsigned int depth)
{
	const char *open = memchr(from, '[', (size_t)(end - from)), *close, *to;
	int r = append(w, at, from, (size_t)((open ? open : end) - from), &at);

	if (r)
		return r;
	if (!open)
		return tell(w);
	if (depth == PP_HOSTLIST_BRACKETS)
		return bad(w, "too many brackets in a name");
	close = memchr(open, ']', (size_t)(end - open));
	if (!close)
		return bad(w, "a bracket is not closed");
	for (from = open + 1; !r && from <= close && !w->enough; from = to + 1) {
		to = memchr(from, ',', (size_t)(close - from));
		to = to ? to : close;
		r = range(w, at, from, to, close + 1, end, depth);
	}
	return r;
}

/* The comma behind a name: one that is in no bracket. */
static const char *name_end(const char *from)
{
	bool inside = false;

	for (; *from && (inside || *from != ','); from++) {
		if (*from == '[')
			inside = true;
		if (*from == ']')
			inside = false;
	}
	return from;
}

static int check(struct walk *w)
{
	bool inside = false;

	for (const char *s = w->text; *s; s++) {
		if (*s <= ' ' || *s == 0x7f)
			return bad(w, "a blank or control character");
		if ((*s == '[' && inside) || (*s == ']' && !inside))
			return bad(w, "brackets do not pair");
		inside = *s == '[' || (inside && *s != ']');
	}
	return inside ? bad(w, "a bracket is not closed") : 0;
}

int pp_hostlist_expand(const char *text, bool (*each)(void *arg, const char *name), void *arg,
		       struct pp_error *err)
{
	struct walk w = {.text = text, .each = each, .arg = arg, .err = err};
	const char *end;
	int r = check(&w);

	while (!r && *text && !w.enough) {
		end = name_end(text);
		/* "a,,b" is a and b. */
		if (end != text)
			r = rest(&w, 0, text, end, 0);
		text = *end ? end + 1 : end;
	}
	return !r && !w.told ? bad(&w, "no name") : r;
}
