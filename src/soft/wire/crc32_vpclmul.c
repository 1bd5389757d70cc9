/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32 by VPCLMULQDQ on AVX-512 registers, 64 bytes a step, four side by side. Short lengths go
 * the 128-bit way: they would not fill the registers.
 */
#include "soft/wire/crc32_x86.h"

#include "base/banned.h"

#define TARGET	  __attribute__((target("avx512f,vpclmulqdq,pclmul,sse4.1")))
#define TARGET_IN static inline __attribute__((always_inline)) TARGET

enum { WIDE = 256 };

static bool usable(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq") &&
	       __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}

/* As soft_x86_take(). */
TARGET_IN __m512i take(bool store, uint8_t *to, const uint8_t *from)
{
	__m512i v = _mm512_loadu_si512(from);

	__asm__ volatile("" : "+v"(v));
	if (store)
		_mm512_storeu_si512(to, v);
	return v;
}

TARGET_IN __m512i fold(__m512i x, __m512i k, __m512i next)
{
	enum { XOR3 = 0x96 };

	return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, k, 0x00),
					 _mm512_clmulepi64_epi128(x, k, 0x11), next, XOR3);
}

/* Four quarters into one: each is moved to the last one's place. */
TARGET_IN __m128i join(__m512i x)
{
	const __m512i k = _mm512_set_epi64(0, 0, SOFT_FOLD_128_B, SOFT_FOLD_128_A, SOFT_FOLD_256_B,
					   SOFT_FOLD_256_A, SOFT_FOLD_384_B, SOFT_FOLD_384_A);
	const __m512i moved = fold(x, k, _mm512_setzero_si512());

	return _mm_xor_si128(_mm_xor_si128(_mm512_extracti32x4_epi32(moved, 0),
					   _mm512_extracti32x4_epi32(moved, 1)),
			     _mm_xor_si128(_mm512_extracti32x4_epi32(moved, 2),
					   _mm512_extracti32x4_epi32(x, 3)));
}

/* From WIDE bytes on; soft_x86_long() with four times the width. */
TARGET_IN uint32_t wide(uint32_t state, bool store, uint8_t *to, const uint8_t *from, size_t len)
{
	const __m512i k = _mm512_set4_epi64(SOFT_FOLD_2048_B, SOFT_FOLD_2048_A, SOFT_FOLD_2048_B,
					    SOFT_FOLD_2048_A);
	const __m512i k1 = _mm512_set4_epi64(SOFT_FOLD_512_B, SOFT_FOLD_512_A, SOFT_FOLD_512_B,
					     SOFT_FOLD_512_A);
	__m512i a = take(store, to, from);
	__m512i b = take(store, soft_crc32_on(store, to, 64), from + 64);
	__m512i c = take(store, soft_crc32_on(store, to, 128), from + 128);
	__m512i d = take(store, soft_crc32_on(store, to, 192), from + 192);

	a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)state)));
	for (;;) {
		from += WIDE;
		to = soft_crc32_on(store, to, WIDE);
		len -= WIDE;
		if (len < WIDE)
			break;
		a = fold(a, k, take(store, to, from));
		b = fold(b, k, take(store, soft_crc32_on(store, to, 64), from + 64));
		c = fold(c, k, take(store, soft_crc32_on(store, to, 128), from + 128));
		d = fold(d, k, take(store, soft_crc32_on(store, to, 192), from + 192));
	}
	b = fold(a, k1, b);
	c = fold(b, k1, c);
	d = fold(c, k1, d);
	for (; len >= 64; from += 64, len -= 64) {
		d = fold(d, k1, take(store, to, from));
		to = soft_crc32_on(store, to, 64);
	}
	return soft_x86_finish(join(d), store, to, from, len);
}

TARGET_IN uint32_t all(uint32_t state, bool store, uint8_t *to, const uint8_t *from, size_t len)
{
	return len < WIDE ? soft_x86_all(state, store, to, from, len)
			  : wide(state, store, to, from, len);
}

static TARGET uint32_t sum(uint32_t state, const void *bytes, size_t len)
{
	return all(state, false, NULL, bytes, len);
}

static TARGET uint32_t copy(uint32_t state, void *restrict to, const void *restrict from,
			    size_t len)
{
	return all(state, true, to, from, len);
}

const struct soft_crc32_way soft_crc32_by_vpclmul = {"vpclmul", usable, sum, copy};
