/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/pattern.h"

#include <endian.h>
#include <string.h>

#include "base/banned.h"

/* Words that are compared as one before a difference is looked for. */
enum { BLOCK = 64 };

static const uint64_t STEP = 0x9e3779b97f4a7c15; /* 2^64 divided by the golden ratio, odd */

/* Murmur3's last mixing steps: all bits of a word depend on all of what goes in. */
static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccd;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53;
	x ^= x >> 33;
	return x;
}

/* Half of it: the hot part, where the seed went through all of it already. */
static inline uint64_t word(uint64_t key, uint64_t number)
{
	uint64_t x = key + number * STEP;

	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93;
	x ^= x >> 32;
	return htole64(x);
}

static uint64_t key_of(uint64_t seed)
{
	return mix(seed + STEP);
}

/* Bytes of one word from @skip on, at most @len; returns how many. */
static size_t part(uint64_t value, size_t skip, size_t len, uint8_t bytes[8])
{
	size_t n = sizeof(value) - skip < len ? sizeof(value) - skip : len;

	memcpy(bytes, (const uint8_t *)&value + skip, n);
	return n;
}

void pp_pattern_fill(void *to, uint64_t from, size_t len, uint64_t seed)
{
	const uint64_t key = key_of(seed);
	uint64_t number = from / sizeof(number), value;
	size_t skip = from % sizeof(number), n;
	uint8_t *at = to, bytes[sizeof(number)];

	while (len) {
		if (!skip && len >= sizeof(value)) {
			for (; len >= sizeof(value); len -= sizeof(value)) {
				value = word(key, number++);
				memcpy(at, &value, sizeof(value));
				at += sizeof(value);
			}
			continue;
		}
		n = part(word(key, number++), skip, len, bytes);
		memcpy(at, bytes, n);
		at += n;
		len -= n;
		skip = 0;
	}
}

static void compare(const uint8_t *found, const uint8_t *expected, size_t n, size_t index,
		    struct pp_pattern_wrong *w)
{
	for (size_t i = 0; i < n; i++) {
		if (found[i] == expected[i])
			continue;
		if (!w->bytes++) {
			w->first = index + i;
			w->expected = expected[i];
			w->found = found[i];
		}
	}
}

/* Whole words from @index on, until one differs or @len ends; returns the bytes that agree. */
static size_t agree(const uint8_t *at, size_t len, uint64_t key, uint64_t number)
{
	uint64_t value, differs;
	size_t done = 0;

	while (len - done >= BLOCK * sizeof(value)) {
		differs = 0;
		for (size_t i = 0; i < BLOCK; i++) {
			memcpy(&value, at + done + i * sizeof(value), sizeof(value));
			differs |= value ^ word(key, number + i);
		}
		if (differs)
			return done;
		done += BLOCK * sizeof(value);
		number += BLOCK;
	}
	return done;
}

void pp_pattern_check(const void *at, uint64_t from, size_t len, uint64_t seed,
		      struct pp_pattern_wrong *ret)
{
	const uint64_t key = key_of(seed);
	const uint8_t *bytes = at;
	uint8_t expected[sizeof(key)];
	size_t i = 0, skip, n, block;

	memset(ret, 0, sizeof(*ret));
	while (i < len) {
		skip = (from + i) % sizeof(key);
		if (!skip) {
			n = agree(bytes + i, len - i, key, (from + i) / sizeof(key));
			i += n;
		}
		/* What is left of a block, a part of a word, or a block with a difference. */
		block = len - i < BLOCK * sizeof(key) ? len : i + BLOCK * sizeof(key);
		while (i < block) {
			skip = (from + i) % sizeof(key);
			n = part(word(key, (from + i) / sizeof(key)), skip, block - i, expected);
			compare(bytes + i, expected, n, i, ret);
			i += n;
		}
	}
}
