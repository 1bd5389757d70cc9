/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every way of computing CRC-32 that this processor has, against zlib's, and the constants of
 * the ways against the polynomial itself, shifted one bit at a time.
 */
#include "unit.h"

#include <pthread.h>
#include <stdbool.h>

#include <zlib.h>

#include "soft/wire/crc32.h"
#include "soft/wire/crc32_fold.h"
#include "soft/wire/crc32_way.h"

enum { LENGTHS = 600, ALIGNMENTS = 17, BIG = 70000, GUARD = 64 };

static uint8_t *noise(size_t len)
{
	uint8_t *p = malloc(len);
	uint64_t x = 88172645463325252u;

	assert_non_null(p);
	for (size_t i = 0; i < len; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		p[i] = (uint8_t)x;
	}
	return p;
}

/* zlib inverts before and after; a bare state is its argument and result inverted. */
static uint32_t by_zlib(uint32_t state, const uint8_t *p, size_t len)
{
	return ~(uint32_t)crc32(~state, p, (uInt)len);
}

static void lengths_of(const struct soft_crc32_way *way, const uint8_t *from)
{
	static const uint32_t states[] = {0, 0xffffffff, 0xdebb20e3, 1, 0x80000000};
	uint8_t to[LENGTHS + ALIGNMENTS + 2 * GUARD];

	for (size_t len = 0; len <= LENGTHS; len++) {
		for (size_t at = 0; at < ALIGNMENTS; at++) {
			uint32_t state = states[(len + at) % 5];
			uint32_t want = by_zlib(state, from + at, len);
			uint8_t *out = to + GUARD + (ALIGNMENTS - 1 - at);

			assert_int_equal(way->sum(state, from + at, len), want);
			memset(to, 0xa5, sizeof(to));
			assert_int_equal(way->copy(state, out, from + at, len), want);
			assert_memory_equal(out, from + at, len);
			for (size_t i = 1; i <= GUARD; i++) {
				assert_int_equal(out[-(ptrdiff_t)i], 0xa5);
				assert_int_equal(out[len + i - 1], 0xa5);
			}
		}
	}
}

static void big_of(const struct soft_crc32_way *way, const uint8_t *from)
{
	uint8_t *to = calloc(1, BIG);

	assert_non_null(to);
	for (size_t len = LENGTHS; len <= BIG; len += len / 7 + 1) {
		uint32_t want = by_zlib(0x12345678, from, len);

		assert_int_equal(way->sum(0x12345678, from, len), want);
		assert_int_equal(way->copy(0x12345678, to, from, len), want);
		assert_memory_equal(to, from, len);
	}
	free(to);
}

static void agrees_with_zlib(void **state)
{
	uint8_t *from = noise(BIG);
	unsigned int ways = 0;

	for (const struct soft_crc32_way *const *w = soft_crc32_ways; *w; w++) {
		if (!(*w)->usable()) {
			print_message("%s: not on this processor, not tested\n", (*w)->name);
			continue;
		}
		print_message("%s\n", (*w)->name);
		lengths_of(*w, from);
		big_of(*w, from);
		ways++;
	}
	assert_true(ways >= 1);
	free(from);
}

/* The check value that catalogues of CRCs give for CRC-32/ISO-HDLC. */
static void catalogue_value(void **state)
{
	assert_int_equal(~soft_crc32(0xffffffff, "123456789", 9), 0xcbf43926);
}

/* The state after the eight bytes of ones that stand for the local route header. */
static void state_of_ones(void **state)
{
	assert_int_equal(soft_crc32(0xffffffff, "\xff\xff\xff\xff\xff\xff\xff\xff", 8), 0xdebb20e3);
}

static void parts_make_the_whole(void **state)
{
	uint8_t *from = noise(5000);

	for (size_t cut = 0; cut <= 5000; cut += 37)
		assert_int_equal(soft_crc32(soft_crc32(7, from, cut), from + cut, 5000 - cut),
				 by_zlib(7, from, 5000));
	free(from);
}

/* x^n mod P, reflected: bit 31 is x^0. */
static uint32_t power(unsigned int n)
{
	uint32_t v = 0x80000000;

	while (n--)
		v = v >> 1 ^ (v & 1 ? 0xedb88320 : 0);
	return v;
}

static void tables_are_powers(void **state)
{
	for (unsigned int k = 0; k < 8; k++)
		for (unsigned int n = 0; n < 256; n++) {
			uint32_t want = 0;

			for (unsigned int j = 0; j < 8; j++)
				if (n >> j & 1)
					want ^= power(32 + 8 * k + 7 - j);
			assert_int_equal(soft_crc32_tables[k][n], want);
		}
}

/* crc32_fold.h's, from what it says they are. */
static void folding_constants_are_powers(void **state)
{
	static const struct {
		uint32_t constant;
		unsigned int power;
	} rows[] = {
		{SOFT_FOLD_128_A, 128 + 31},
		{SOFT_FOLD_128_B, 128 - 33},
		{SOFT_FOLD_256_A, 256 + 31},
		{SOFT_FOLD_256_B, 256 - 33},
		{SOFT_FOLD_384_A, 384 + 31},
		{SOFT_FOLD_384_B, 384 - 33},
		{SOFT_FOLD_512_A, 512 + 31},
		{SOFT_FOLD_512_B, 512 - 33},
		{SOFT_FOLD_2048_A, 2048 + 31},
		{SOFT_FOLD_2048_B, 2048 - 33},
		{SOFT_FOLD_32, 63},
	};
	const uint64_t p = 0x104c11db7; /* bit n is x^n */
	uint64_t rest = 0, quotient = 0, mu = 0, reflected = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(rows[i].constant, power(rows[i].power));

	/* x^64 divided by P the school way: the dividend's bits come down one at a time. */
	for (int bit = 64; bit >= 0; bit--) {
		rest = rest << 1 | (bit == 64);
		quotient <<= 1;
		if (rest >> 32) {
			rest ^= p;
			quotient |= 1;
		}
	}
	for (int bit = 0; bit <= 32; bit++) {
		mu |= (quotient >> bit & 1) << (32 - bit);
		reflected |= (p >> bit & 1) << (32 - bit);
	}
	assert_int_equal(mu, SOFT_BARRETT_MU);
	assert_int_equal(reflected, SOFT_BARRETT_P);
}

static void *first_call(void *arg)
{
	const uint8_t *from = arg;

	return soft_crc32(0, from, 100) == by_zlib(0, from, 100) ? arg : NULL;
}

/* Says something under the thread sanitizer: the first call chooses the way. */
static void threads_call_first_at_once(void **state)
{
	uint8_t *from = noise(100);
	pthread_t thread[8];
	void *right;

	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, first_call, from), 0);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(pthread_join(thread[i], &right), 0);
		assert_ptr_equal(right, from);
	}
	free(from);
}

struct writer {
	uint8_t *bytes;
	size_t len;
	unsigned int passes; /* over all bytes */
	bool stop;
};

static __attribute__((no_sanitize("thread"))) void *keep_writing(void *arg)
{
	struct writer *w = arg;
	uint8_t v = 0;

	while (!__atomic_load_n(&w->stop, __ATOMIC_RELAXED)) {
		v++;
		for (size_t i = 0; i < w->len; i++)
			__atomic_store_n(&w->bytes[i], v, __ATOMIC_RELAXED);
		__atomic_fetch_add(&w->passes, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Copies while the other thread writes all bytes over, often. */
static void copy_under_writer(const struct soft_crc32_way *way, struct writer *w)
{
	enum { PASSES = 500, COPIES_MOST = 10000000 };
	unsigned int begin = __atomic_load_n(&w->passes, __ATOMIC_RELAXED), now = begin;
	uint8_t to[1500];

	for (unsigned int i = 0; i < COPIES_MOST && now - begin < PASSES; i++) {
		size_t len = w->len - i % 300;
		uint32_t sum = way->copy(0, to, w->bytes, len);

		assert_int_equal(sum, by_zlib(0, to, len));
		now = __atomic_load_n(&w->passes, __ATOMIC_RELAXED);
	}
	assert_true(now != begin);
}

/* A client may write to a buffer that is being sent: the packet must still have a right sum. */
static void copies_what_it_summed(void **state)
{
	struct writer w = {.bytes = noise(1500), .len = 1500};
	pthread_t thread;

#ifdef __SANITIZE_THREAD__
	skip(); /* the race is meant */
#endif
	assert_int_equal(pthread_create(&thread, NULL, keep_writing, &w), 0);
	for (const struct soft_crc32_way *const *way = soft_crc32_ways; *way; way++)
		if ((*way)->usable())
			copy_under_writer(*way, &w);
	__atomic_store_n(&w.stop, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, NULL), 0);
	free(w.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_call_first_at_once),
		cmocka_unit_test(agrees_with_zlib),
		cmocka_unit_test(catalogue_value),
		cmocka_unit_test(state_of_ones),
		cmocka_unit_test(parts_make_the_whole),
		cmocka_unit_test(tables_are_powers),
		cmocka_unit_test(folding_constants_are_powers),
		cmocka_unit_test(copies_what_it_summed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
