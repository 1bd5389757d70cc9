/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/shape.h"

#include "base/banned.h"

enum { HEX_SHORT = 4 };

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Length of the number at @p, its value modulo the table in *ret. */
static size_t number(const char *p, const char *end, unsigned int *ret)
{
	const char *start = p;
	unsigned int value = 0;

	for (; p < end && is_digit(*p); p++)
		value = value * 10 + (unsigned int)(*p - '0');
	*ret = value % PP_SHAPE_NUMBERS;
	return (size_t)(p - start);
}

void pp_shapes_tell(struct pp_shapes *s, const char *text)
{
	const char *end = text;
	unsigned int value;

	while (*end)
		end++;
	while (text < end) {
		size_t n = number(text, end, &value);

		if (n)
			s->told[value / 64] |= (uint64_t)1 << (value % 64);
		text += n ? n : 1;
	}
}

static uint64_t mix(uint64_t h, char c)
{
	return (h ^ (unsigned char)c) * 0x100000001b3ULL;
}

/* Digits behind "0x"; a long row is an address, of which nothing counts. */
static const char *take_hex(uint64_t *h, const char *p, const char *end)
{
	const char *start = p;

	while (p < end && is_hex(*p))
		p++;
	if (p - start > HEX_SHORT) {
		*h = mix(*h, '\1');
		return p;
	}
	for (; start < p; start++)
		*h = mix(*h, *start);
	return p;
}

uint64_t pp_shape_of(const struct pp_shapes *s, const char *text, size_t len, size_t head)
{
	const char *p = text, *end = text + len;
	uint64_t h = 0xcbf29ce484222325ULL;
	unsigned int value;
	size_t n;

	while (p < end) {
		if (*p == 'x' && p > text && p[-1] == '0') {
			h = mix(h, *p);
			p = take_hex(&h, p + 1, end);
			continue;
		}
		if (!is_digit(*p)) {
			h = mix(h, *p++);
			continue;
		}
		n = number(p, end, &value);
		if (p < text + head || !(s->told[value / 64] >> (value % 64) & 1)) {
			h = mix(h, '\2');
			p += n;
			continue;
		}
		for (; n; n--)
			h = mix(h, *p++);
	}
	/* The low bits of FNV alone are weak: they choose the place in a table. */
	h ^= h >> 32;
	return h ? h : 1;
}
