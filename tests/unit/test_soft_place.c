/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placing: the right bytes and no others at every length and alignment, and the order in which
 * another thread sees them.
 */
#include "unit.h"

#include <pthread.h>
#include <stdbool.h>

#include "soft/copy/place.h"

enum { LENGTHS = 200, GUARD = 32, ROUNDS = 20000, SLOT = 4096 };

static void bytes_and_no_others(void **state)
{
	static const size_t more[] = {4095, 4096, 4097, 12289, 70001};
	uint8_t *from = malloc(80000), *to = malloc(80000);

	assert_non_null(from);
	assert_non_null(to);
	for (size_t i = 0; i < 80000; i++)
		from[i] = (uint8_t)(i * 7 + i / 251);
	for (size_t i = 0; i < LENGTHS + sizeof(more) / sizeof(more[0]); i++)
		for (size_t at = 0; at < 17; at++) {
			size_t len = i < LENGTHS ? i : more[i - LENGTHS];
			uint8_t *out = to + GUARD + at;

			memset(to, 0xa5, len + 2 * GUARD + 17);
			soft_copy_place(out, from + (at * 5 & 15), len);
			assert_memory_equal(out, from + (at * 5 & 15), len);
			for (size_t j = 1; j <= GUARD / 2; j++) {
				assert_int_equal(out[-(ptrdiff_t)j], 0xa5);
				assert_int_equal(out[len + j - 1], 0xa5);
			}
		}
	free(from);
	free(to);
}

struct slot {
	_Alignas(64) uint8_t bytes[SLOT];
	size_t at, len;
	unsigned int torn;
	uint64_t seen;
};

static uint64_t word_at(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return v;
}

/* Waits for each new last word, then reads what lies before it: has to be of that round or later.
 */
static void *poll_last_word(void *arg)
{
	struct slot *s = arg;
	const uint8_t *last = s->bytes + ((s->at + s->len) & ~(size_t)7) - 8;

	while (s->seen < ROUNDS) {
		uint64_t now =
			__atomic_load_n((const uint64_t *)(const void *)last, __ATOMIC_ACQUIRE);

		if (now == s->seen)
			continue;
		for (size_t i = (s->at + 7) & ~(size_t)7; s->bytes + i < last; i += 8)
			s->torn += word_at(s->bytes + i) < now;
		s->seen = now;
	}
	return NULL;
}

/* Each round fills the slot with its number. @at and @len leave whole words at known places. */
static void order_of(size_t at, size_t len)
{
	struct slot *s = aligned_alloc(64, sizeof(*s));
	uint8_t *from = malloc(SLOT);
	pthread_t thread;

	assert_non_null(s);
	assert_non_null(from);
	memset(s, 0, sizeof(*s));
	memset(from, 0, SLOT);
	s->at = at;
	s->len = len;
	assert_int_equal(pthread_create(&thread, NULL, poll_last_word, s), 0);
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		for (size_t i = (at + 7) & ~(size_t)7; i + 8 <= at + len; i += 8)
			memcpy(from + i - at, &round, 8);
		soft_copy_place(s->bytes + at, from, len);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(s->torn, 0);
	free(from);
	free(s);
}

static void last_word_is_last(void **state)
{
#ifdef __SANITIZE_THREAD__
	skip(); /* the reader's plain loads of a slot that is being written again are a race */
#endif
	order_of(0, 64); /* NCCL's slot of a request to send */
	order_of(0, 4096);
	order_of(8, 1032);
	order_of(4, 1500);
	order_of(3, 77);
}

/* One hand-over without writing again: no race by C's rules, and the sanitizer agrees. */
static void *wait_once(void *arg)
{
	struct slot *s = arg;

	while (__atomic_load_n((uint64_t *)(void *)(s->bytes + 1016), __ATOMIC_ACQUIRE) == 0)
		;
	for (size_t i = 0; i < 1024; i++)
		s->torn += s->bytes[i] != 0x5a;
	return NULL;
}

static void release_is_seen_by_acquire(void **state)
{
	struct slot *s = aligned_alloc(64, sizeof(*s));
	uint8_t from[1024];
	pthread_t thread;

	assert_non_null(s);
	memset(s, 0, sizeof(*s));
	memset(from, 0x5a, sizeof(from));
	assert_int_equal(pthread_create(&thread, NULL, wait_once, s), 0);
	soft_copy_place(s->bytes, from, sizeof(from));
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(s->torn, 0);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_and_no_others),
		cmocka_unit_test(last_word_is_last),
		cmocka_unit_test(release_is_seen_by_acquire),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
