/* SPDX-License-Identifier: Apache-2.0 */
#include "base/find.h"

#include <string.h>

#include "base/banned.h"

/* The byte of a piece that few texts have: a capital, else its first one that is no blank. */
static size_t rare_byte(const char *piece, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (piece[i] >= 'A' && piece[i] <= 'Z')
			return i;
	return n > 1 && *piece == ' ';
}

const char *pp_find(const char *text, size_t len, const char *piece, size_t n)
{
	enum { USUAL = 384 }; /* in a longer one the rare byte may be everywhere */
	const char *at, *end;
	size_t rare;

	if (len < n || !n || len > USUAL)
		return len > USUAL ? memmem(text, len, piece, n) : NULL;
	rare = rare_byte(piece, n);
	end = text + len - n + 1 + rare;
	for (at = text + rare; at < end && (at = memchr(at, piece[rare], (size_t)(end - at))); at++)
		if (at[n - 1 - rare] == piece[n - 1] && !memcmp(at - rare, piece, n))
			return at - rare;
	return NULL;
}
