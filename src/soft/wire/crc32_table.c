/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32 by eight tables of 256 words: for processors without a carry-less multiply, and for the
 * short ends of the other ways.
 *
 * The state is a polynomial over GF(2) modulo P = x^32 + x^26 + x^23 + x^22 + x^16 + x^12 + x^11 +
 * x^10 + x^8 + x^7 + x^5 + x^4 + x^2 + x + 1, reflected: bit 31 of a word is the coefficient of
 * x^0, bit 0 that of x^31. A byte followed by k zero bytes adds, for each bit j of it that is set,
 * x^(32 + 8k + 7 - j) mod P. So a table is linear in its index and eight words, those of its
 * single bits, give the other 248; the compiler adds them up. tests/unit/test_soft_crc32.c proves
 * the 64 words below by shifting x^0 one bit at a time.
 */
#include "soft/wire/crc32_way.h"

#include "base/banned.h"

/* One entry: the sum of the words of the bits that are set in n, bit 7 first. */
#define E1(n, a, b, c, d, e, f, g, h)                                                             \
	(((n)&128 ? (a) : 0u) ^ ((n)&64 ? (b) : 0u) ^ ((n)&32 ? (c) : 0u) ^ ((n)&16 ? (d) : 0u) ^ \
	 ((n)&8 ? (e) : 0u) ^ ((n)&4 ? (f) : 0u) ^ ((n)&2 ? (g) : 0u) ^ ((n)&1 ? (h) : 0u))
#define E4(n, ...)                                                              \
	E1(n, __VA_ARGS__), E1((n) + 1, __VA_ARGS__), E1((n) + 2, __VA_ARGS__), \
		E1((n) + 3, __VA_ARGS__)
#define E16(n, ...)                                                             \
	E4(n, __VA_ARGS__), E4((n) + 4, __VA_ARGS__), E4((n) + 8, __VA_ARGS__), \
		E4((n) + 12, __VA_ARGS__)
#define E64(n, ...)                                                                  \
	E16(n, __VA_ARGS__), E16((n) + 16, __VA_ARGS__), E16((n) + 32, __VA_ARGS__), \
		E16((n) + 48, __VA_ARGS__)
#define TABLE(...)                                                                \
	{                                                                         \
		E64(0, __VA_ARGS__), E64(64, __VA_ARGS__), E64(128, __VA_ARGS__), \
			E64(192, __VA_ARGS__)                                     \
	}

/* Row k: x^(32+8k), x^(33+8k) .. x^(39+8k) mod P. */
const uint32_t soft_crc32_tables[8][256] = {
	TABLE(0xedb88320, 0x76dc4190, 0x3b6e20c8, 0x1db71064, 0x0edb8832, 0x076dc419, 0xee0e612c,
	      0x77073096),
	TABLE(0x3b83984b, 0xf0794f05, 0x958424a2, 0x4ac21251, 0xc8d98a08, 0x646cc504, 0x32366282,
	      0x191b3141),
	TABLE(0xe1351b80, 0x709a8dc0, 0x384d46e0, 0x1c26a370, 0x0e1351b8, 0x0709a8dc, 0x0384d46e,
	      0x01c26a37),
	TABLE(0xed59b63b, 0x9b14583d, 0xa032af3e, 0x5019579f, 0xc5b428ef, 0x8f629757, 0xaa09c88b,
	      0xb8bc6765),
	TABLE(0xb1e6b092, 0x58f35849, 0xc1c12f04, 0x60e09782, 0x30704bc1, 0xf580a6c0, 0x7ac05360,
	      0x3d6029b0),
	TABLE(0x1eb014d8, 0x0f580a6c, 0x07ac0536, 0x03d6029b, 0xec53826d, 0x9b914216, 0x4dc8a10b,
	      0xcb5cd3a5),
	TABLE(0x8816eaf2, 0x440b7579, 0xcfbd399c, 0x67de9cce, 0x33ef4e67, 0xf44f2413, 0x979f1129,
	      0xa6770bb4),
	TABLE(0x533b85da, 0x299dc2ed, 0xf9766256, 0x7cbb312b, 0xd3e51bb5, 0x844a0efa, 0x4225077d,
	      0xccaa009e),
};

static bool usable(void)
{
	return true;
}

static uint32_t sum(uint32_t state, const void *bytes, size_t len)
{
	return soft_crc32_rest(state, false, NULL, bytes, len);
}

static uint32_t copy(uint32_t state, void *restrict to, const void *restrict from, size_t len)
{
	return soft_crc32_rest(state, true, to, from, len);
}

const struct soft_crc32_way soft_crc32_by_table = {"table", usable, sum, copy};
