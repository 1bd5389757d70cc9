/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/match.h"

#include <string.h>

#include "base/find.h"
#include "base/banned.h"

const char *pp_nccl_span_find(struct pp_nccl_span s, const char *word)
{
	return pp_find(s.at, s.len, word, strlen(word));
}

static int digit_of(char c, bool hex)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (hex && c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (hex && c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

size_t pp_nccl_digits(struct pp_nccl_span s, bool hex, uint64_t *ret)
{
	enum { SAFE = 15 }; /* digits of either base that overflow nothing */
	size_t start = hex && s.len > 2 && s.at[0] == '0' && s.at[1] == 'x' ? 2 : 0, i = start;
	size_t safe = s.len - start < SAFE ? s.len : start + SAFE;
	uint64_t value = 0;
	int d;

	for (; !hex && i < safe && (unsigned char)(s.at[i] - '0') < 10; i++)
		value = value * 10 + (unsigned char)(s.at[i] - '0');
	for (; hex && i < safe && (d = digit_of(s.at[i], true)) >= 0; i++)
		value = value * 16 + (unsigned int)d;
	for (; i >= safe && i < s.len && (d = digit_of(s.at[i], hex)) >= 0; i++)
		if (__builtin_mul_overflow(value, hex ? 16U : 10U, &value) ||
		    __builtin_add_overflow(value, (uint64_t)d, &value))
			return 0;
	if (i == start)
		return 0;
	*ret = value;
	return i;
}

bool pp_nccl_span_number(struct pp_nccl_span s, const char *key, bool hex, uint64_t *ret)
{
	const char *at = pp_nccl_span_find(s, key);

	if (!at)
		return false;
	at += strlen(key);
	return pp_nccl_digits((struct pp_nccl_span){at, (size_t)(s.at + s.len - at)}, hex, ret) > 0;
}

/* Bytes of a pattern that do not stand for themselves. */
static bool is_special(char c)
{
	static const bool special[256] = {
		['\0'] = true, ['%'] = true, [' '] = true, ['*'] = true, ['~'] = true};

	return special[(unsigned char)c];
}

static const char *look(struct pp_nccl_trial *t, const char *pattern)
{
	if (pattern > t->seen)
		t->seen = pattern;
	return NULL;
}

static const char *match_number(char kind, const char *at, const char *end,
				struct pp_nccl_field *ret)
{
	bool minus = kind == 'i' && at < end && *at == '-';
	struct pp_nccl_span rest = {at + minus, (size_t)(end - at) - minus};
	size_t n = pp_nccl_digits(rest, kind == 'x', &ret->value);

	if (n && minus)
		ret->value = 0 - ret->value;
	return n ? rest.at + n : NULL;
}

/* @stop: the byte that ends a word before a blank does, the pattern's next one if literal. */
static const char *match_word(struct pp_nccl_trial *t, char stop, const char *at)
{
	const char *p = at;

	if (is_special(stop)) {
		if (at < t->from || at >= t->blank) {
			p = memchr(at, ' ', (size_t)(t->end - at));
			t->from = at;
			t->blank = p ? p : t->end;
		}
		return at < t->blank ? t->blank : NULL;
	}
	while (p < t->end && *p != ' ' && *p != stop)
		p++;
	return p > at ? p : NULL;
}

/* Up to the next piece of the pattern, its blanks included. */
static const char *match_text(struct pp_nccl_trial *t, const char *pattern, const char *at)
{
	const char *found;
	size_t n = 0;

	if (!*pattern || *pattern == '*')
		return t->end;
	while (!is_special(pattern[n]) || pattern[n] == ' ')
		n++;
	found = n ? pp_find(at, (size_t)(t->end - at), pattern, n) : NULL;
	t->never |= !found;
	return found ? found : look(t, pattern + n);
}

/* One conversion, @p at its letter: behind the text that it takes, NULL when it does not fit. */
static const char *match_field(struct pp_nccl_trial *t, const char *p, const char *at,
			       struct pp_nccl_field *ret)
{
	const char *end;

	ret->value = 0;
	if (*p == 's')
		end = match_text(t, p + 1, at);
	else if (*p == 'w')
		end = match_word(t, p[1], at);
	else
		end = match_number(*p, at, t->end, ret);
	if (!end)
		return look(t, p + 2);
	ret->text = (struct pp_nccl_span){at, (size_t)(end - at)};
	return end;
}

static const char *behind_blanks(const char *at, const char *end)
{
	while (at < end && *at == ' ')
		at++;
	return at;
}

/* The pattern from @p on, and its fields from @field on, against the text from @at on. */
static bool match_on(struct pp_nccl_trial *t, const char *p, const char *at,
		     struct pp_nccl_field ret[PP_NCCL_FIELDS], size_t field)
{
	const char *end = t->end;

	for (;; p++) {
		for (; !is_special(*p) && at < end && *at == *p; p++)
			at++;
		if (*p == '*')
			return true;
		if (*p == '%' && field < PP_NCCL_FIELDS) {
			if (p[1] == 's') {
				t->mark = p;
				t->mark_at = at;
				t->mark_field = field;
			}
			at = match_field(t, ++p, at, &ret[field++]);
			if (!at)
				return false;
		} else if (*p == '~' || (*p == ' ' && at < end && *at == ' ')) {
			at = behind_blanks(at, end);
		} else {
			(void)look(t, p + 1);
			return !*p && at == end;
		}
	}
}

bool pp_nccl_match_at(struct pp_nccl_trial *t, const char *pattern, const char *at,
		      struct pp_nccl_field ret[PP_NCCL_FIELDS])
{
	t->seen = pattern;
	t->mark = NULL;
	t->never = false;
	return match_on(t, pattern, at, ret, 0);
}

bool pp_nccl_match_again(struct pp_nccl_trial *t, const char *failed, const char *pattern,
			 struct pp_nccl_field ret[PP_NCCL_FIELDS])
{
	const char *p = pattern + (t->mark - failed);

	t->seen = p;
	t->never = false;
	return match_on(t, p, t->mark_at, ret, t->mark_field);
}

struct pp_nccl_span pp_nccl_pattern_head(const char *pattern)
{
	size_t n = 0;

	if (*pattern != '*')
		return (struct pp_nccl_span){pattern, 0};
	pattern++;
	while (pattern[n] && pattern[n] != '%' && pattern[n] != '~' && pattern[n] != '*')
		if (pattern[n++] == ' ')
			break;
	return (struct pp_nccl_span){pattern, n};
}

bool pp_nccl_match(const char *pattern, struct pp_nccl_span text,
		   struct pp_nccl_field ret[PP_NCCL_FIELDS])
{
	struct pp_nccl_span head = pp_nccl_pattern_head(pattern);
	struct pp_nccl_trial t = {.end = text.at + text.len};
	const char *at;

	if (!head.len)
		return text.len && pp_nccl_match_at(&t, pattern, text.at, ret);
	while (!t.never && (at = pp_find(text.at, text.len, head.at, head.len))) {
		if (pp_nccl_match_at(&t, head.at, at, ret))
			return true;
		text.len -= (size_t)(at + 1 - text.at);
		text.at = at + 1;
	}
	return false;
}
