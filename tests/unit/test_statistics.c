/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics against values of others: R's documentation and data sets, published tables, and sums
 * of binomial coefficients made by Python's integers.
 */
#include "unit.h"

#include <math.h>

#include "base/compiler.h"
#include "base/statistics.h"

static void near(double got, double want)
{
	if (!(fabs(got - want) <= 1e-9 * fmax(1, fabs(want))))
		fail_msg("%.12g is not %.12g", got, want);
}

/*
 * R 4: quantile(c(1,2,3,4,5,6,7,8,9,10)) is 1.00 3.25 5.50 7.75 10.00 (type 7); median(c(2,8,1,9))
 * is 5; quantile(rivers) of its data set `women`: height 58..72: 61.5 at 25 %.
 */
static void test_quantiles_of_r(void **state)
{
	static const double ten[] = {7, 3, 10, 1, 5, 9, 2, 8, 4, 6}, four[] = {2, 8, 1, 9};
	static const double women[] = {58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71, 72};

	(void)state;
	near(pp_quantile(ten, 10, 0), 1);
	near(pp_quantile(ten, 10, 0.25), 3.25);
	near(pp_median(ten, 10), 5.5);
	near(pp_quantile(ten, 10, 0.75), 7.75);
	near(pp_quantile(ten, 10, 1), 10);
	near(pp_median(four, 4), 5);
	near(pp_quantile(women, 15, 0.25), 61.5);
	near(pp_quantile(women, 15, 0.75), 68.5);
	assert_true(ten[0] == 7); /* not sorted in place */
}

/* NumPy's documentation of percentile(): of [[10, 7, 4], [3, 2, 1]], 50 % is 3.5. */
static void test_quantile_of_numpy(void **state)
{
	static const double a[] = {10, 7, 4, 3, 2, 1};

	(void)state;
	near(pp_median(a, 6), 3.5);
	near(pp_quantile(a + 3, 3, 0.5), 2);
}

/*
 * Ranks of the 95 % interval of a median: k = qbinom(0.025, n, 0.5) of R, and n + 1 - k; here the
 * largest k with 2 * sum(comb(n, i) for i < k) <= 0.05 * 2**n, by Python's integers. For 5 samples
 * there is none: 1 - 2 / 2^5 is 93.75 %.
 */
static void test_interval_ranks(void **state)
{
	static const struct {
		size_t n, low, high;
	} table[] = {{6, 1, 6},	   {7, 1, 7},	 {8, 1, 8},    {9, 2, 8},    {10, 2, 9},
		     {11, 2, 10},  {12, 3, 10},	 {15, 4, 12},  {20, 6, 15},  {25, 8, 18},
		     {30, 10, 21}, {40, 14, 27}, {50, 18, 33}, {100, 40, 61}};
	double ranks[100];

	(void)state;
	for (size_t i = 0; i < 100; i++)
		ranks[99 - i] = (double)i + 1;
	for (size_t i = 0; i < PP_ARRAY_LEN(table); i++) {
		size_t n = table[i].n;
		struct pp_interval x = pp_median_interval(ranks + 100 - n, n);

		near(x.low, (double)table[i].low);
		near(x.high, (double)table[i].high);
	}
	assert_true(isnan(pp_median_interval(ranks, 5).low));
	assert_true(isnan(pp_median_interval(ranks, 0).high));
}

/* By the same sum. */
static void test_interval_of_many(void **state)
{
	double *PP_AUTO_FREE ranks = malloc(10001 * sizeof(double));
	struct pp_interval x;

	(void)state;
	assert_non_null(ranks);
	for (size_t i = 0; i < 10001; i++)
		ranks[i] = (double)i + 1;
	x = pp_median_interval(ranks, 1000);
	near(x.low, 469);
	near(x.high, 532);
	x = pp_median_interval(ranks, 10001);
	near(x.low, 4902);
	near(x.high, 5100);
}

static void test_spread_and_ratio(void **state)
{
	static const double a[] = {90, 100, 110, 95, 105, 100}, b[] = {100, 100, 100, 100, 100, 0};
	static const double none[] = {1, NAN, 3};
	struct pp_interval x;

	(void)state;
	near(pp_spread(a, 6), 0.2);
	near(pp_spread(a, 1), 0);
	assert_true(isnan(pp_spread(a, 0)));
	near(pp_ratio(a, b, 5, &x), 1.0);
	assert_true(isnan(x.low));
	assert_true(isnan(pp_ratio(a, b, 6, &x))); /* nothing by nothing */
	near(pp_ratio(a, a, 6, &x), 1.0);
	near(x.low, 1.0);
	near(x.high, 1.0);
	/* one that was not measured makes the whole unknown */
	assert_true(isnan(pp_median(none, 3)));
	assert_true(isnan(pp_spread(none, 3)));
	assert_true(isnan(pp_median(none, 0)));
	assert_true(isnan(pp_quantile(a, 6, 1.5)));
}

/* Ratios are taken repeat by repeat: a machine that slows down slows both. */
static void test_ratio_is_paired(void **state)
{
	static const double a[] = {90, 45, 9}, b[] = {100, 50, 10};
	struct pp_interval x;

	(void)state;
	near(pp_ratio(a, b, 3, &x), 0.9);
}

/* The usual example of the nearest rank, 15 20 35 40 50, unsorted: always a value that was there.
 */
static void test_nearest_rank(void **state)
{
	double value[] = {40, 15, 50, 20, 35};

	(void)state;
	pp_sort(value, 5);
	assert_true(pp_percentile(value, 5, 0.05) == 15 && pp_percentile(value, 5, 0.30) == 20);
	assert_true(pp_percentile(value, 5, 0.40) == 20 && pp_percentile(value, 5, 0.50) == 35);
	assert_true(pp_percentile(value, 5, 1) == 50 && pp_percentile(NULL, 0, 0.5) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quantiles_of_r),	 cmocka_unit_test(test_quantile_of_numpy),
		cmocka_unit_test(test_interval_ranks),	 cmocka_unit_test(test_interval_of_many),
		cmocka_unit_test(test_spread_and_ratio), cmocka_unit_test(test_ratio_is_paired),
		cmocka_unit_test(test_nearest_rank),
	};

	return cmocka_run_group_tests_name("statistics", tests, NULL, NULL);
}
