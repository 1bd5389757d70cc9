/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps on 128-bit registers that both x86 ways share. For their .c files only: a function here is
 * inlined into one that is compiled for the same instructions.
 */
#ifndef SOFT_WIRE_CRC32_X86_H
#define SOFT_WIRE_CRC32_X86_H

#include <immintrin.h>

#include "soft/wire/crc32_fold.h"
#include "soft/wire/crc32_way.h"

#define SOFT_X86_128 static inline __attribute__((always_inline, target("pclmul,sse4.1")))

/* Loads once, as soft_crc32_load8() does, and stores what was loaded if @store, a constant. */
SOFT_X86_128 __m128i soft_x86_take(bool store, uint8_t *to, const uint8_t *from)
{
	__m128i v = _mm_loadu_si128((const __m128i_u *)(const void *)from);

	__asm__ volatile("" : "+x"(v));
	if (store)
		_mm_storeu_si128((__m128i_u *)(void *)to, v);
	return v;
}

/* @x moved forward by the distance of constants @k (low: for A, high: for B), onto @next. */
SOFT_X86_128 __m128i soft_x86_fold(__m128i x, __m128i k, __m128i next)
{
	return _mm_xor_si128(next, _mm_xor_si128(_mm_clmulepi64_si128(x, k, 0x00),
						 _mm_clmulepi64_si128(x, k, 0x11)));
}

/* crc32_fold.h, "The end". */
SOFT_X86_128 uint32_t soft_x86_reduce(__m128i x)
{
	const __m128i fold = _mm_set_epi64x(SOFT_FOLD_32, SOFT_FOLD_128_B);
	const __m128i barrett = _mm_set_epi64x(SOFT_BARRETT_P, SOFT_BARRETT_MU);
	const __m128i low32 = _mm_set_epi32(0, 0, 0, -1);
	__m128i w, q;

	x = _mm_xor_si128(_mm_srli_si128(x, 8), _mm_clmulepi64_si128(x, fold, 0x00));
	w = _mm_xor_si128(_mm_srli_si128(x, 4),
			  _mm_clmulepi64_si128(_mm_and_si128(x, low32), fold, 0x10));
	q = _mm_clmulepi64_si128(_mm_and_si128(w, low32), barrett, 0x00);
	q = _mm_clmulepi64_si128(_mm_and_si128(q, low32), barrett, 0x10);
	return (uint32_t)_mm_extract_epi32(_mm_xor_si128(w, q), 1);
}

/* What follows the wide blocks: whole 16 bytes onto @x, then the rest. @store is a constant. */
SOFT_X86_128 uint32_t soft_x86_finish(__m128i x, bool store, uint8_t *to, const uint8_t *from,
				      size_t len)
{
	const __m128i k = _mm_set_epi64x(SOFT_FOLD_128_B, SOFT_FOLD_128_A);

	for (; len >= 16; len -= 16, from += 16) {
		x = soft_x86_fold(x, k, soft_x86_take(store, to, from));
		to = soft_crc32_on(store, to, 16);
	}
	return soft_crc32_rest(soft_x86_reduce(x), store, to, from, len);
}

/*
 * From 64 bytes on: four registers side by side hide the multiplication's latency. Four variables
 * and no array: gcc would keep an array in memory.
 */
SOFT_X86_128 uint32_t soft_x86_long(uint32_t state, bool store, uint8_t *to, const uint8_t *from,
				    size_t len)
{
	const __m128i k = _mm_set_epi64x(SOFT_FOLD_512_B, SOFT_FOLD_512_A);
	const __m128i k1 = _mm_set_epi64x(SOFT_FOLD_128_B, SOFT_FOLD_128_A);
	__m128i a = soft_x86_take(store, to, from);
	__m128i b = soft_x86_take(store, soft_crc32_on(store, to, 16), from + 16);
	__m128i c = soft_x86_take(store, soft_crc32_on(store, to, 32), from + 32);
	__m128i d = soft_x86_take(store, soft_crc32_on(store, to, 48), from + 48);

	a = _mm_xor_si128(a, _mm_cvtsi32_si128((int)state));
	for (;;) {
		from += 64;
		to = soft_crc32_on(store, to, 64);
		len -= 64;
		if (len < 64)
			break;
		a = soft_x86_fold(a, k, soft_x86_take(store, to, from));
		b = soft_x86_fold(b, k,
				  soft_x86_take(store, soft_crc32_on(store, to, 16), from + 16));
		c = soft_x86_fold(c, k,
				  soft_x86_take(store, soft_crc32_on(store, to, 32), from + 32));
		d = soft_x86_fold(d, k,
				  soft_x86_take(store, soft_crc32_on(store, to, 48), from + 48));
	}
	b = soft_x86_fold(a, k1, b);
	c = soft_x86_fold(b, k1, c);
	d = soft_x86_fold(c, k1, d);
	return soft_x86_finish(d, store, to, from, len);
}

/* Any length by 128-bit registers. */
SOFT_X86_128 uint32_t soft_x86_all(uint32_t state, bool store, uint8_t *to, const uint8_t *from,
				   size_t len)
{
	__m128i x;

	if (len < 16)
		return soft_crc32_rest(state, store, to, from, len);
	if (len >= 64)
		return soft_x86_long(state, store, to, from, len);
	x = soft_x86_take(store, to, from);
	x = _mm_xor_si128(x, _mm_cvtsi32_si128((int)state));
	return soft_x86_finish(x, store, soft_crc32_on(store, to, 16), from + 16, len - 16);
}

#endif
