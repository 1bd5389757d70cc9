/* SPDX-License-Identifier: Apache-2.0 */
#include "base/version.h"

#include <stdint.h>

#include "base/banned.h"

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

int pp_version_valid(const char *text)
{
	return is_digit(*text);
}

/* Next number of *text, 0 at its end; saturates. */
static uint64_t part(const char **text)
{
	uint64_t v = 0;
	const char *p = *text;

	for (; is_digit(*p); p++)
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			v = UINT64_MAX / 10;
	if (*p == '.' && is_digit(p[1]))
		p++;
	else
		p = ""; /* a suffix ends the comparable part */
	*text = p;
	return v;
}

int pp_version_compare(const char *a, const char *b)
{
	while (*a || *b) {
		uint64_t x = part(&a), y = part(&b);

		if (x != y)
			return x < y ? -1 : 1;
	}
	return 0;
}
