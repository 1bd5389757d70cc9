/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <stdbool.h>

#include "base/banned.h"

static bool continues(unsigned char c)
{
	return (c & 0xc0) == 0x80;
}

size_t pp_utf8_length(const void *text, size_t left)
{
	const unsigned char *p = text;
	size_t n;

	if (!left || (*p >= 0x80 && *p < 0xc2) || *p > 0xf4)
		return 0;
	n = *p < 0x80 ? 1 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : 4;
	if (n > left)
		return 0;
	for (size_t i = 1; i < n; i++)
		if (!continues(p[i]))
			return 0;
	/* Longer than needed, half of a pair, behind the last. */
	if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) ||
	    (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

size_t pp_utf8_fit(const char *text, size_t len, size_t most)
{
	if (len <= most)
		return len;
	while (most && continues((unsigned char)text[most]))
		most--;
	return most;
}
