/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of registered memory: what each opens, and that they neither repeat nor follow a pattern.
 */
#include "unit.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "soft/copy/region.h"

static struct soft_regions *made(void)
{
	struct soft_regions *table = NULL;

	assert_int_equal(soft_regions_new(&table), 0);
	return table;
}

static const int pd_a, pd_b;

static void key_opens_its_range_only(void **state)
{
	enum { RW = SOFT_ACCESS_REMOTE_READ | SOFT_ACCESS_REMOTE_WRITE };
	uint8_t memory[100] = {0};
	struct soft_region r = {.access = RW | SOFT_ACCESS_LOCAL_WRITE,
				.pd = &pd_a,
				.iova = 0x10000,
				.length = 100,
				.base = memory,
				.ops = &soft_region_host};
	const struct {
		const void *pd;
		uint32_t key_off;
		uint64_t va, len;
		uint32_t access;
		bool ok;
	} cases[] = {
		{&pd_a, 0, 0x10000, 100, RW, true},
		{&pd_a, 0, 0x10000, 0, RW, true},
		{&pd_a, 0, 0x10064, 0, RW, true}, /* nothing, at the end */
		{&pd_a, 0, 0x10063, 1, SOFT_ACCESS_REMOTE_READ, true},
		{&pd_a, 0, 0x10063, 1, 0, true},
		{&pd_a, 0, 0x10063, 2, RW, false},
		{&pd_a, 0, 0x10065, 0, RW, false},
		{&pd_a, 0, 0xffff, 1, RW, false},
		{&pd_a, 0, 0xffff, 2, RW, false},
		{&pd_a, 0, 0x10000, 101, RW, false},
		{&pd_a, 0, 0x10001, UINT64_MAX, RW, false},
		{&pd_a, 0, 0x10001, UINT64_MAX - 0x10000, RW, false},
		{&pd_a, 0, UINT64_MAX, 2, RW, false},
		{&pd_a, 0, 0x10000, 4, RW | SOFT_ACCESS_REMOTE_ATOMIC, false},
		{&pd_a, 0, 0x10000, 0, SOFT_ACCESS_REMOTE_ATOMIC, false},
		{&pd_b, 0, 0x10000, 4, RW, false},
		{NULL, 0, 0x10000, 0, 0, false},
		{&pd_a, 1, 0x10000, 4, RW, false},
		{&pd_a, 1, 0x10000, 0, 0, false},
	};
	struct soft_regions *table = made();

	assert_int_equal(soft_regions_add(table, &r), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_ptr_equal(soft_regions_check(table, cases[i].pd, r.key + cases[i].key_off,
						    cases[i].va, cases[i].len, cases[i].access),
				 cases[i].ok ? &r : NULL);
	assert_ptr_equal(soft_region_at(&r, 0x10007), memory + 7);

	soft_regions_remove(table, &r);
	assert_null(soft_regions_find(table, r.key));
	assert_null(soft_regions_check(table, &pd_a, r.key, 0x10000, 1, RW));
	soft_regions_remove(table, &r); /* twice does no harm */
	assert_int_equal(soft_regions_count(table), 0);
	soft_regions_free(table);
	soft_regions_free(NULL);
}

/* The last byte of the address space, and a region that claims to go beyond it. */
static void no_range_wraps(void **state)
{
	struct soft_region r = {.pd = &pd_a, .iova = UINT64_MAX - 9, .length = 100};
	struct soft_regions *table = made();

	assert_int_equal(soft_regions_add(table, &r), 0);
	assert_ptr_equal(soft_regions_check(table, &pd_a, r.key, UINT64_MAX - 9, 9, 0), &r);
	assert_null(soft_regions_check(table, &pd_a, r.key, UINT64_MAX - 9, 11, 0));
	assert_null(soft_regions_check(table, &pd_a, r.key, 5, 1, 0));
	soft_regions_free(table);
}

static void host_memory(void **state)
{
	uint8_t memory[64] = "abcdefgh", out[4];
	struct soft_region r = {.length = 64, .base = memory, .ops = &soft_region_host};

	assert_int_equal(r.ops->fetch(&r, 2, out, 4), 0);
	assert_memory_equal(out, "cdef", 4);
	assert_int_equal(r.ops->store(&r, 1, "XY", 2), 0);
	assert_memory_equal(memory, "aXYdefgh", 8);
	r.ops->release(&r);
}

static int by_value(const void *a, const void *b)
{
	uint32_t x, y;

	memcpy(&x, a, 4);
	memcpy(&y, b, 4);
	return x < y ? -1 : x > y;
}

static void count_each(void *arg, struct soft_region *region)
{
	(*(uint64_t *)arg) += region->iova;
}

/*
 * 20000 regions: all are found, none twice; each bit of a key is set in about half of them (six
 * standard deviations are 424), and neighbours differ in about 16 bits.
 */
static void keys_are_many_and_random(void **state)
{
	enum { N = 20000 };
	struct soft_region *r = calloc(N, sizeof(*r));
	uint32_t *keys = calloc(N, sizeof(*keys));
	struct soft_regions *table = made();
	unsigned int set[32] = {0}, differ = 0;
	uint64_t sum = 0;

	assert_non_null(r);
	assert_non_null(keys);
	for (uint64_t i = 0; i < N; i++) {
		r[i].iova = i;
		assert_int_equal(soft_regions_add(table, &r[i]), 0);
		keys[i] = r[i].key;
		for (int bit = 0; bit < 32; bit++)
			set[bit] += keys[i] >> bit & 1;
		differ += (unsigned int)__builtin_popcount(keys[i] ^ keys[i ? i - 1 : 0]);
	}
	for (int bit = 0; bit < 32; bit++)
		assert_in_range(set[bit], N / 2 - 424, N / 2 + 424);
	assert_in_range(differ, 16 * (N - 1) - 2400, 16 * (N - 1) + 2400);
	for (size_t i = 0; i < N; i++)
		assert_ptr_equal(soft_regions_find(table, r[i].key), &r[i]);
	soft_regions_each(table, count_each, &sum);
	assert_int_equal(sum, (uint64_t)N * (N - 1) / 2);
	qsort(keys, N, sizeof(*keys), by_value);
	assert_int_not_equal(keys[0], 0);
	for (size_t i = 1; i < N; i++)
		assert_int_not_equal(keys[i], keys[i - 1]);
	for (size_t i = 0; i < N; i++)
		soft_regions_remove(table, &r[i]);
	assert_int_equal(soft_regions_count(table), 0);
	soft_regions_free(table);
	free(keys);
	free(r);
}

/*
 * In place of libc's: a test may say which keys are drawn next. The table takes words from the end
 * of what it asked for.
 */
static uint32_t (*next_random)(void);
static unsigned int drawn;

ssize_t getrandom(void *buf, size_t len, unsigned int flags)
{
	if (!next_random)
		return syscall(SYS_getrandom, buf, len, flags);
	for (size_t i = len / 4; i--;) {
		uint32_t word = next_random();

		memcpy((uint8_t *)buf + i * 4, &word, 4);
	}
	return (ssize_t)len;
}

static void draw_from(uint32_t (*next)(void))
{
	next_random = next;
	drawn = 0;
}

static uint32_t some_taken(void)
{
	/* 0x7ff and 0x7fe are 0x701 but for bits that a window's owner chooses; 0x80 is 0. */
	static const uint32_t words[] = {0x701, 0, 0x7ff, 0x80, 0x900, 0x901, 0x7fe, 0, 0xb00};

	return drawn < 9 ? words[drawn++] : 1000 + drawn++;
}

static void taken_keys_are_passed_over(void **state)
{
	struct soft_regions *table = made();
	struct soft_region a = {0}, b = {0}, c = {0};

	draw_from(some_taken);
	assert_int_equal(soft_regions_add(table, &a), 0);
	assert_int_equal(a.key, 0x701);
	assert_int_equal(soft_regions_add(table, &b), 0); /* not 0, not 7: in use */
	assert_int_equal(b.key, 0x900);
	soft_regions_remove(table, &a);
	soft_regions_remove(table, &b);
	assert_int_equal(soft_regions_add(table, &c), 0); /* neither of those that rest */
	assert_int_equal(c.key, 0xb00);
	soft_regions_free(table);
	draw_from(NULL);
}

enum { TIRED = 77777777 };

/* One key, then as many others as may rest beside it, then the one again, another, the one. */
static uint32_t one_and_others(void)
{
	unsigned int n = drawn++;

	return n == 0 || n == SOFT_KEYS_RESTING || n == SOFT_KEYS_RESTING + 2 ? TIRED
									      : (5000 + n) << 8;
}

static void keys_rest(void **state)
{
	struct soft_regions *table = made();
	struct soft_region r = {0};

	draw_from(one_and_others);
	for (int i = 0; i < SOFT_KEYS_RESTING + 1; i++) {
		assert_int_equal(soft_regions_add(table, &r), 0);
		assert_int_equal(r.key == TIRED, i == 0);
		soft_regions_remove(table, &r);
	}
	assert_int_equal(soft_regions_add(table, &r), 0);
	assert_int_equal(r.key, TIRED);
	soft_regions_free(table);
	draw_from(NULL);
}

static uint32_t always_one(void)
{
	return 0x100;
}

static void no_key_left_is_an_error(void **state)
{
	struct soft_regions *table = made();
	struct soft_region a = {0}, b = {.key = 5};

	draw_from(always_one);
	assert_int_equal(soft_regions_add(table, &a), 0);
	assert_int_equal(soft_regions_add(table, &b), -EIO);
	assert_int_equal(b.key, 5);
	assert_int_equal(soft_regions_count(table), 1);
	soft_regions_free(table);
	draw_from(NULL);
}

/* A child has the parent's drawn words in its memory: it must not give the same keys. */
static void child_draws_its_own(void **state)
{
	struct soft_regions *table = made();
	struct soft_region a = {0}, b = {0};
	uint32_t of_child = 0;
	int ends[2], status;
	pid_t child;

	assert_int_equal(soft_regions_add(table, &a), 0);
	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		bool ok = soft_regions_add(table, &b) == 0 && write(ends[1], &b.key, 4) == 4;

		soft_regions_free(table); /* a leak checker looks at the child too */
		_exit(ok ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(read(ends[0], &of_child, 4), 4);
	assert_int_equal(soft_regions_add(table, &b), 0);
	assert_int_not_equal(b.key, of_child);
	(void)close(ends[0]);
	(void)close(ends[1]);
	soft_regions_free(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(key_opens_its_range_only),
		cmocka_unit_test(no_range_wraps),
		cmocka_unit_test(host_memory),
		cmocka_unit_test(keys_are_many_and_random),
		cmocka_unit_test(taken_keys_are_passed_over),
		cmocka_unit_test(keys_rest),
		cmocka_unit_test(no_key_left_is_an_error),
		cmocka_unit_test(child_draws_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
