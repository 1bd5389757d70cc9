/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/record.h"

#include <string.h>

#include "nccl/match.h"
#include "base/banned.h"

static const char HEAD[] = "{\"log\":\"";

bool pp_nccl_record_is(const char *at, const char *end)
{
	return (size_t)(end - at) >= sizeof(HEAD) - 1 && !memcmp(at, HEAD, sizeof(HEAD) - 1);
}

/* "\u003e" and the like, @at its first digit: only ASCII matters here. */
static char code_point(const char *at)
{
	uint64_t value;

	if (pp_nccl_digits((struct pp_nccl_span){at, 4}, true, &value) != 4)
		return '?';
	return value < 0x80 ? (char)value : '?';
}

/* The byte that an escape stands for; *@at is its backslash, and becomes its last byte. */
static char unescape(const char **at, const char *end)
{
	static const char letters[] = "nrtbf", bytes[] = "\n\r\t\b\f";
	const char *p = *at + 1, *letter;

	if (p == end)
		return '?';
	*at = p;
	letter = strchr(letters, *p);
	if (letter && *letter)
		return bytes[letter - letters];
	if (*p != 'u')
		return *p;
	if (end - p < 5)
		return '?';
	*at = p + 4;
	return code_point(p + 1);
}

char *pp_nccl_record_open(char *at, char *end, char **ret_text, bool *ret_partial)
{
	const char *from = at + sizeof(HEAD) - 1;
	char *to = at;

	for (; from < end && *from != '"'; from++)
		*to++ = *from == '\\' ? unescape(&from, end) : *from;
	*ret_text = at;
	if (to > at && to[-1] == '\n')
		to--;
	else
		*ret_partial = true;
	return to;
}
