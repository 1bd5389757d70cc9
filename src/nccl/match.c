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

const char *pp_nccl_span_find(struct pp_nccl_span s, const char *word)
{
	return s.len ? memmem(s.at, s.len, word, strlen(word)) : NULL;
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
	size_t start = hex && s.len > 2 && s.at[0] == '0' && s.at[1] == 'x' ? 2 : 0, i = start;
	uint64_t value = 0;
	int d;

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

/* Bytes of the pattern up to the next conversion, blank or end. */
static size_t literal_len(const char *p)
{
	return strcspn(p, "% ~*");
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

static size_t match_word(const char *pattern, struct pp_nccl_span rest)
{
	size_t n = 0;

	while (n < rest.len && rest.at[n] != ' ' &&
	       !(literal_len(pattern) && rest.at[n] == *pattern))
		n++;
	return n;
}

/* Up to the next piece of the pattern, its blanks included. SIZE_MAX: it is not in the text. */
static size_t match_text(const char *pattern, struct pp_nccl_span rest)
{
	char piece[64];
	const char *found;
	size_t n;

	if (!*pattern || *pattern == '*')
		return rest.len;
	n = strcspn(pattern, "%~*");
	if (!n || n >= sizeof(piece))
		return SIZE_MAX;
	memcpy(piece, pattern, n);
	piece[n] = '\0';
	found = pp_nccl_span_find(rest, piece);
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

static size_t blanks(struct pp_nccl_span s)
{
	size_t n = 0;

	while (n < s.len && s.at[n] == ' ')
		n++;
	return n;
}

static bool match_here(const char *p, struct pp_nccl_span rest, struct pp_nccl_field *ret)
{
	size_t n, field = 0;

	for (; *p; p++) {
		if (*p == '*')
			return true;
		if (*p == '%' && field < PP_NCCL_FIELDS) {
			n = match_field(p[1], p + 2, rest, &ret[field++]);
			p++;
		} else if (*p == ' ' || *p == '~') {
			n = blanks(rest);
			if (!n && *p == ' ')
				return false;
		} else {
			n = rest.len && *rest.at == *p ? 1 : SIZE_MAX;
		}
		if (n == SIZE_MAX)
			return false;
		rest.at += n;
		rest.len -= n;
	}
	return !rest.len;
}

bool pp_nccl_match(const char *pattern, struct pp_nccl_span text,
		   struct pp_nccl_field ret[PP_NCCL_FIELDS])
{
	char first;
	const char *at;

	if (*pattern != '*')
		return text.len && (*pattern == *text.at || *pattern == '%') &&
		       match_here(pattern, text, ret);
	first = *++pattern;
	while (text.len && (at = memchr(text.at, first, text.len))) {
		text.len -= (size_t)(at - text.at);
		text.at = at;
		if (match_here(pattern, text, ret))
			return true;
		text.at++;
		text.len--;
	}
	return false;
}
