/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32 by ARMv8's PMULL, sixteen bytes a step, four side by side: crc32_fold.h's steps.
 */
#include <arm_neon.h>
#include <sys/auxv.h>
#include <asm/hwcap.h>

#include "soft/wire/crc32_fold.h"
#include "soft/wire/crc32_way.h"
#include "base/banned.h"

#define TARGET	  __attribute__((target("+crypto")))
#define TARGET_IN static inline __attribute__((always_inline)) TARGET

/* Constants for A and B. */
struct factors {
	poly64_t a, b;
};

static bool usable(void)
{
	return (getauxval(AT_HWCAP) & HWCAP_PMULL) != 0;
}

/* Loads once, as soft_crc32_load8() does, and stores what was loaded if @store, a constant. */
TARGET_IN uint64x2_t take(bool store, uint8_t *to, const uint8_t *from)
{
	uint64x2_t v = vreinterpretq_u64_u8(vld1q_u8(from));

	__asm__ volatile("" : "+w"(v));
	if (store)
		vst1q_u8(to, vreinterpretq_u8_u64(v));
	return v;
}

TARGET_IN uint64x2_t multiply(uint64_t a, poly64_t b)
{
	return vreinterpretq_u64_p128(vmull_p64((poly64_t)a, b));
}

TARGET_IN uint64x2_t fold(uint64x2_t x, struct factors k, uint64x2_t next)
{
	return veorq_u64(next, veorq_u64(multiply(vgetq_lane_u64(x, 0), k.a),
					 multiply(vgetq_lane_u64(x, 1), k.b)));
}

TARGET_IN uint32_t reduce(uint64x2_t x)
{
	const uint64_t low32 = 0xffffffff;
	uint64x2_t y = multiply(vgetq_lane_u64(x, 0), SOFT_FOLD_128_B);
	uint64_t low = vgetq_lane_u64(y, 0) ^ vgetq_lane_u64(x, 1);
	uint64_t w = low >> 32 | vgetq_lane_u64(y, 1) << 32;
	uint64_t q;

	w ^= vgetq_lane_u64(multiply(low & low32, SOFT_FOLD_32), 0);
	q = vgetq_lane_u64(multiply(w & low32, SOFT_BARRETT_MU), 0);
	q = vgetq_lane_u64(multiply(q & low32, SOFT_BARRETT_P), 0);
	return (uint32_t)((w ^ q) >> 32);
}

TARGET_IN uint32_t finish(uint64x2_t x, bool store, uint8_t *to, const uint8_t *from, size_t len)
{
	const struct factors k = {SOFT_FOLD_128_A, SOFT_FOLD_128_B};

	for (; len >= 16; len -= 16, from += 16) {
		x = fold(x, k, take(store, to, from));
		to = soft_crc32_on(store, to, 16);
	}
	return soft_crc32_rest(reduce(x), store, to, from, len);
}

/* From 64 bytes on. */
TARGET_IN uint32_t wide(uint32_t state, bool store, uint8_t *to, const uint8_t *from, size_t len)
{
	const struct factors k = {SOFT_FOLD_512_A, SOFT_FOLD_512_B};
	const struct factors k1 = {SOFT_FOLD_128_A, SOFT_FOLD_128_B};
	uint64x2_t a = take(store, to, from);
	uint64x2_t b = take(store, soft_crc32_on(store, to, 16), from + 16);
	uint64x2_t c = take(store, soft_crc32_on(store, to, 32), from + 32);
	uint64x2_t d = take(store, soft_crc32_on(store, to, 48), from + 48);

	a = veorq_u64(a, vsetq_lane_u64(state, vdupq_n_u64(0), 0));
	for (;;) {
		from += 64;
		to = soft_crc32_on(store, to, 64);
		len -= 64;
		if (len < 64)
			break;
		a = fold(a, k, take(store, to, from));
		b = fold(b, k, take(store, soft_crc32_on(store, to, 16), from + 16));
		c = fold(c, k, take(store, soft_crc32_on(store, to, 32), from + 32));
		d = fold(d, k, take(store, soft_crc32_on(store, to, 48), from + 48));
	}
	b = fold(a, k1, b);
	c = fold(b, k1, c);
	d = fold(c, k1, d);
	return finish(d, store, to, from, len);
}

TARGET_IN uint32_t all(uint32_t state, bool store, uint8_t *to, const uint8_t *from, size_t len)
{
	uint64x2_t x;

	if (len < 16)
		return soft_crc32_rest(state, store, to, from, len);
	if (len >= 64)
		return wide(state, store, to, from, len);
	x = veorq_u64(take(store, to, from), vsetq_lane_u64(state, vdupq_n_u64(0), 0));
	return finish(x, store, soft_crc32_on(store, to, 16), from + 16, len - 16);
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

const struct soft_crc32_way soft_crc32_by_pmull = {"pmull", usable, sum, copy};
