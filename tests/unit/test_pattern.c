/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pattern: what a check says of a changed buffer, and that neither places nor seeds agree.
 */
#include "unit.h"

#include "mem/pattern.h"

enum { BYTES = 3 * 4096 + 5 };

static uint8_t whole[BYTES], other[BYTES + 2];

/* Any part, begun at any byte, is the whole's. */
static void test_parts(void **state)
{
	static const struct {
		size_t from, len;
	} parts[] = {{0, 1},   {1, 1}, {7, 2},	   {3, 5},	 {8, 8},	 {5, 4096},
		     {13, 27}, {0, 0}, {511, 513}, {4093, 4100}, {BYTES - 1, 1}, {1, BYTES - 1}};

	(void)state;
	pp_pattern_fill(whole, 0, BYTES, 7);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		memset(other, 0xa5, sizeof(other));
		pp_pattern_fill(other + 1, parts[i].from, parts[i].len, 7);
		assert_memory_equal(other + 1, whole + parts[i].from, parts[i].len);
		assert_int_equal(other[0], 0xa5);
		assert_int_equal(other[1 + parts[i].len], 0xa5);
	}
}

static void test_right(void **state)
{
	struct pp_pattern_wrong w;

	(void)state;
	for (size_t from = 0; from < 17; from++) {
		pp_pattern_fill(whole, from, BYTES, 1);
		pp_pattern_check(whole, from, BYTES, 1, &w);
		assert_int_equal(w.bytes, 0);
	}
	pp_pattern_check(whole, 0, 0, 1, &w);
	assert_int_equal(w.bytes, 0);
}

/* Each place, from the first to the last, of a buffer that begins anywhere. */
static void test_one_wrong(void **state)
{
	struct pp_pattern_wrong w;

	(void)state;
	pp_pattern_fill(whole, 3, BYTES, 1);
	for (size_t i = 0; i < BYTES; i += i < 1100 || i > BYTES - 1100 ? 1 : 97) {
		whole[i] ^= 0x10;
		pp_pattern_check(whole, 3, BYTES, 1, &w);
		assert_int_equal(w.bytes, 1);
		assert_int_equal(w.first, i);
		assert_int_equal(w.found, whole[i]);
		assert_int_equal(w.expected, whole[i] ^ 0x10);
		whole[i] ^= 0x10;
	}
}

static void test_several_wrong(void **state)
{
	struct pp_pattern_wrong w;

	(void)state;
	pp_pattern_fill(whole, 0, BYTES, 1);
	whole[100] ^= 1;
	whole[101] ^= 1;
	whole[8000] ^= 1;
	whole[BYTES - 1] ^= 1;
	pp_pattern_check(whole, 0, BYTES, 1, &w);
	assert_int_equal(w.bytes, 4);
	assert_int_equal(w.first, 100);
}

/* Of bytes that have nothing to do with what is expected one in 256 fits by chance. */
static void assert_strange(uint64_t seed, uint64_t from)
{
	struct pp_pattern_wrong w;

	pp_pattern_check(whole, from, BYTES, seed, &w);
	assert_in_range(w.bytes, BYTES - BYTES / 64, BYTES);
}

static void test_strangers(void **state)
{
	(void)state;
	pp_pattern_fill(whole, 0, BYTES, 1);
	assert_strange(2, 0);
	assert_strange(0, 0);
	assert_strange(UINT64_MAX, 0);
	assert_strange(1, 8);
	assert_strange(1, 4096);
	assert_strange(1, (uint64_t)1 << 40);
	memset(whole, 0, sizeof(whole));
	assert_strange(1, 0);
	assert_strange(0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts),	  cmocka_unit_test(test_right),
		cmocka_unit_test(test_one_wrong), cmocka_unit_test(test_several_wrong),
		cmocka_unit_test(test_strangers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
