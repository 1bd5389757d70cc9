/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_crc32_way: one way of computing crc32.h's function, and the small steps that all
 * ways use for what is shorter than their block. Inside wire/ and for its tests only.
 *
 * A word is loaded once, into a register, by soft_crc32_load*(): what a copy stores is then what
 * it summed, whoever writes to the source meanwhile.
 */
#ifndef SOFT_WIRE_CRC32_WAY_H
#define SOFT_WIRE_CRC32_WAY_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct soft_crc32_way {
	const char *name;
	bool (*usable)(void); /* does this processor have it? */
	uint32_t (*sum)(uint32_t state, const void *bytes, size_t len);
	uint32_t (*copy)(uint32_t state, void *restrict to, const void *restrict from, size_t len);
};

/* What was compiled in, fastest first, ends with NULL. The last, "table", is always usable. */
extern const struct soft_crc32_way *const soft_crc32_ways[];

extern const struct soft_crc32_way soft_crc32_by_vpclmul;
extern const struct soft_crc32_way soft_crc32_by_pclmul;
extern const struct soft_crc32_way soft_crc32_by_pmull;
extern const struct soft_crc32_way soft_crc32_by_table;

/* [k][n]: what byte n, with k bytes of zero behind it, adds to the state. */
extern const uint32_t soft_crc32_tables[8][256];

/*
 * The empty statement makes the value unknown to the compiler, which therefore cannot read the
 * memory a second time instead of keeping the register.
 */
static inline uint64_t soft_crc32_load8(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	__asm__ volatile("" : "+r"(v));
	return v;
}

static inline uint32_t soft_crc32_load4(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	__asm__ volatile("" : "+r"(v));
	return v;
}

static inline uint32_t soft_crc32_load1(const uint8_t *p)
{
	uint32_t v = *p;

	__asm__ volatile("" : "+r"(v));
	return v;
}

/* @to moved on by @n, or NULL where nothing is stored: adding to NULL is undefined. */
static inline __attribute__((always_inline)) uint8_t *soft_crc32_on(bool store, uint8_t *to,
								    size_t n)
{
	return store ? to + n : to;
}

static inline uint32_t soft_crc32_step1(uint32_t state, uint32_t byte)
{
	return soft_crc32_tables[0][(state ^ byte) & 0xff] ^ state >> 8;
}

/* @word as it lies in memory. */
static inline uint32_t soft_crc32_step4(uint32_t state, uint32_t word)
{
	uint32_t v = state ^ le32toh(word);

	return soft_crc32_tables[3][v & 0xff] ^ soft_crc32_tables[2][v >> 8 & 0xff] ^
	       soft_crc32_tables[1][v >> 16 & 0xff] ^ soft_crc32_tables[0][v >> 24];
}

static inline uint32_t soft_crc32_step8(uint32_t state, uint64_t word)
{
	uint64_t v = state ^ le64toh(word);
	uint32_t low = (uint32_t)v, high = (uint32_t)(v >> 32);

	return soft_crc32_tables[7][low & 0xff] ^ soft_crc32_tables[6][low >> 8 & 0xff] ^
	       soft_crc32_tables[5][low >> 16 & 0xff] ^ soft_crc32_tables[4][low >> 24] ^
	       soft_crc32_tables[3][high & 0xff] ^ soft_crc32_tables[2][high >> 8 & 0xff] ^
	       soft_crc32_tables[1][high >> 16 & 0xff] ^ soft_crc32_tables[0][high >> 24];
}

/* By tables; the ways use it for what is left below a block of 16. @store is a constant. */
static inline __attribute__((always_inline)) uint32_t
soft_crc32_rest(uint32_t state, bool store, uint8_t *to, const uint8_t *from, size_t len)
{
	for (; len >= 8; len -= 8, from += 8) {
		uint64_t word = soft_crc32_load8(from);

		state = soft_crc32_step8(state, word);
		if (store) {
			memcpy(to, &word, 8);
			to += 8;
		}
	}
	if (len & 4) {
		uint32_t word = soft_crc32_load4(from);

		state = soft_crc32_step4(state, word);
		if (store) {
			memcpy(to, &word, 4);
			to += 4;
		}
		from += 4;
	}
	for (len &= 3; len; len--, from++) {
		uint32_t byte = soft_crc32_load1(from);

		state = soft_crc32_step1(state, byte);
		if (store)
			*to++ = (uint8_t)byte;
	}
	return state;
}

#endif
