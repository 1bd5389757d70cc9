/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/match.h"

#include <string.h>

#include "base/banned.h"

bool pp_nccl_span_is(struct pp_nccl_span s, const char *word)
{
	return strlen(word) == s.len && !memcmp(s.at, word, s.len);
}

bool pp_nccl_span_begins(struct pp_nccl_span s, const char *head)
{
	size_t n = strlen(head);

	return n <= s.len && !memcmp(s.at, head, n);
}

/*
 * By its first byte that is no blank, which lines have few of; memmem() builds a table first, which
 * costs more than a look at all of a usual line.
 */
static const char *find(struct pp_nccl_span s, const char *piece, size_t n)
{
	enum { USUAL = 256 };
	size_t rare = n > 1 && *piece == ' ';
	const char *at, *end;

	if (s.len < n || !s.len || s.len > USUAL)
		return s.len > USUAL ? memmem(s.at, s.len, piece, n) : NULL;
	end = s.at + s.len - n + 1 + rare;
	for (at = s.at + rare; at < end && (at = memchr(at, piece[rare], (size_t)(end - at))); at++)
		if (at[n - 1 - rare] == piece[n - 1] && !memcmp(at - rare, piece, n))
			return at - rare;
	return NULL;
}

const char *pp_nccl_span_find_span(struct pp_nccl_span s, struct pp_nccl_span piece)
{
	return find(s, piece.at, piece.len);
}

const char *pp_nccl_span_find(struct pp_nccl_span s, const char *word)
{
	return find(s, word, strlen(word));
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
	uint64_t value = 0;
	int d;

	for (; i < s.len && i - start < SAFE && (d = digit_of(s.at[i], hex)) >= 0; i++)
		value = value * (hex ? 16U : 10U) + (uint64_t)d;
	for (; i < s.len && (d = digit_of(s.at[i], hex)) >= 0; i++)
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

static size_t match_number(char kind, struct pp_nccl_span rest, uint64_t *ret)
{
	bool minus = kind == 'i' && rest.len && *rest.at == '-';
	size_t n;

	if (minus) {
		rest.at++;
		rest.len--;
	}
	n = pp_nccl_digits(rest, kind == 'x', ret);
	if (n && minus)
		*ret = 0 - *ret;
	return n ? n + minus : 0;
}

/* The byte that ends a word before a blank does: the next one of the pattern, if it is literal. */
static char stop_of(const char *pattern)
{
	return *pattern == '%' || *pattern == '~' || *pattern == '*' ? '\0' : *pattern;
}

static size_t match_word(const char *pattern, struct pp_nccl_span rest)
{
	char stop = stop_of(pattern);
	size_t n = 0;

	while (n < rest.len && rest.at[n] != ' ' && !(stop && rest.at[n] == stop))
		n++;
	return n;
}

/* Up to the next piece of the pattern, its blanks included. SIZE_MAX: it is not in the text. */
static size_t match_text(const char *pattern, struct pp_nccl_span rest)
{
	const char *found;
	size_t n = 0;

	if (!*pattern || *pattern == '*')
		return rest.len;
	while (pattern[n] && pattern[n] != '%' && pattern[n] != '~' && pattern[n] != '*')
		n++;
	found = n ? find(rest, pattern, n) : NULL;
	return found ? (size_t)(found - rest.at) : SIZE_MAX;
}

/* One conversion: bytes taken, SIZE_MAX when it does not fit. @behind: the pattern after it. */
static size_t match_field(char kind, const char *behind, struct pp_nccl_span rest,
			  struct pp_nccl_field *ret)
{
	size_t n;

	*ret = (struct pp_nccl_field){0};
	switch (kind) {
	case 'u':
	case 'i':
	case 'x':
		n = match_number(kind, rest, &ret->value);
		n = n ? n : SIZE_MAX;
		break;
	case 'w':
		n = match_word(behind, rest);
		n = n ? n : SIZE_MAX;
		break;
	default:
		n = match_text(behind, rest);
	}
	if (n != SIZE_MAX)
		ret->text = (struct pp_nccl_span){rest.at, n};
	return n;
}

static const char *behind_blanks(const char *at, const char *end)
{
	while (at < end && *at == ' ')
		at++;
	return at;
}

static bool match_here(const char *p, struct pp_nccl_span text, struct pp_nccl_field *ret)
{
	const char *at = text.at, *end = at + text.len, *from;
	size_t n, field = 0;

	for (; *p; p++) {
		switch (*p) {
		case '*':
			return true;
		case ' ':
		case '~':
			from = at;
			at = behind_blanks(at, end);
			if (at == from && *p == ' ')
				return false;
			break;
		case '%':
			if (field == PP_NCCL_FIELDS)
				return false;
			n = match_field(p[1], p + 2, (struct pp_nccl_span){at, (size_t)(end - at)},
					&ret[field++]);
			if (n == SIZE_MAX)
				return false;
			at += n;
			p++;
			break;
		default:
			if (at == end || *at != *p)
				return false;
			at++;
		}
	}
	return at == end;
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
	const char *at;

	if (!head.len)
		return text.len && (*pattern == *text.at || *pattern == '%') &&
		       match_here(pattern, text, ret);
	while ((at = find(text, head.at, head.len))) {
		text.len -= (size_t)(at - text.at);
		text.at = at;
		if (match_here(head.at, text, ret))
			return true;
		text.at++;
		text.len--;
	}
	return false;
}
