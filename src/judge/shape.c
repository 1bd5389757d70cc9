/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/shape.h"

#include <string.h>

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

static uint64_t mix(uint64_t h, uint64_t word)
{
	unsigned __int128 product = (unsigned __int128)(h ^ word) * 0xd6e8feb86659fd93ULL;

	return (uint64_t)product ^ (uint64_t)(product >> 64) ^ 0x9e3779b97f4a7c15ULL;
}

/* The next bytes, at most eight, with zeros behind them. */
static uint64_t load(const char *p, const char *end)
{
	uint64_t word = 0;

	if (end - p >= 8)
		memcpy(&word, p, sizeof(word));
	else
		for (unsigned int i = 0; p + i < end; i++)
			word |= (uint64_t)(unsigned char)p[i] << (8 * i);
	return word;
}

/* The high bit of each byte that is a digit. */
static uint64_t digits_of(uint64_t word)
{
	const uint64_t ones = 0x0101010101010101ULL, low = word & (0x7f * ones);

	return (low + (0x80 - '0') * ones) & ~(low + (0x7f - '9') * ones) & ~word & (0x80 * ones);
}

static uint64_t mix_bytes(uint64_t h, const char *p, const char *end)
{
	for (; p < end; p += 8)
		h = mix(h, load(p, end));
	return h;
}

/* Digits behind "0x"; a long row is an address, of which nothing counts. */
static const char *take_hex(uint64_t *h, const char *p, const char *end)
{
	const char *start = p;

	while (p < end && is_hex(*p))
		p++;
	*h = p - start > HEX_SHORT ? mix(*h, '\1') : mix_bytes(*h, start, p);
	return p;
}

/* A number, of which only those count that signatures speak of, and "0x" that may begin in it. */
static const char *take_number(const struct pp_shapes *s, uint64_t *h, const char *p,
			       const char *end, bool in_head)
{
	unsigned int value;
	size_t n = number(p, end, &value);

	if (in_head || !(s->told[value / 64] >> (value % 64) & 1))
		*h = mix(*h, '\2');
	else
		*h = mix_bytes(*h, p, p + n);
	p += n;
	if (p == end || *p != 'x' || p[-1] != '0')
		return p;
	*h = mix(*h, 'x');
	return take_hex(h, p + 1, end);
}

uint64_t pp_shape_of(const struct pp_shapes *s, const char *text, size_t len, size_t head)
{
	const char *p = text, *end = text + len;
	uint64_t h = 0, word, digits;
	unsigned int bits;

	while (p < end) {
		word = load(p, end);
		digits = digits_of(word);
		if (!digits) {
			h = mix(h, word);
			p += end - p < 8 ? end - p : 8;
			continue;
		}
		bits = (unsigned int)__builtin_ctzll(digits) & ~7U;
		if (bits)
			h = mix(h, word & (((uint64_t)1 << bits) - 1));
		p += bits / 8;
		p = take_number(s, &h, p, end, p < text + head);
	}
	return h ? h : 1;
}
