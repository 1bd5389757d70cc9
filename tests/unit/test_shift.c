/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shifts against R (tests/fixtures/shift: 200 sets by its wilcox.test, 60 with blocks by its rank
 * sum's distribution), and what the margin makes of made experiments.
 */
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/shift.h"

enum { BLOCKS = 8, SAMPLES = 1024 };

static bool is_near(double got, double want)
{
	return fabs(got - want) <= 1e-9 * fmax(1, fabs(want));
}

static double number(FILE *f)
{
	char word[64], *end;
	double d;

	assert_int_equal(fscanf(f, "%63s", word), 1);
	if (!strcmp(word, "NA"))
		return NAN;
	d = strtod(word, &end);
	assert_true(end != word && !*end);
	return d;
}

static void check(int line, const char *what, double got, double want)
{
	if (isnan(want) ? !isnan(got) : !is_near(got, want))
		fail_msg("set %d: %s is %.12g, R has %.12g", line, what, got, want);
}

static void test_as_r_has_it(void **state)
{
	char path[512], word[64];
	FILE *f;
	int line = 0, unknown = 0;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/../fixtures/shift/shift.txt", getenv("PP_TEST_DIR"));
	f = fopen(path, "r");
	assert_non_null(f);
	while (fscanf(f, "%63s", word) == 1) {
		double sample[SAMPLES], *at = sample, level = strtod(word, NULL);
		struct pp_shift_block block[BLOCKS];
		size_t n = (size_t)number(f);
		struct pp_shift s;

		line++;
		assert_true(n <= BLOCKS);
		for (size_t i = 0; i < n; i++) {
			block[i].n_a = (size_t)number(f);
			block[i].n_b = (size_t)number(f);
			assert_true(at + block[i].n_a + block[i].n_b <= sample + SAMPLES);
			block[i].a = at;
			block[i].b = at + block[i].n_a;
			for (size_t k = block[i].n_a + block[i].n_b; k; k--)
				*at++ = number(f);
		}
		assert_int_equal(pp_shift_estimate(block, n, level, &s), 0);
		assert_true(s.exact);
		check(line, "the estimate", s.shift, number(f));
		check(line, "the lower bound", s.ci.low, number(f));
		check(line, "the upper bound", s.ci.high, number(f));
		check(line, "the coverage", s.coverage, number(f));
		unknown += isnan(s.ci.low);
	}
	(void)fclose(f);
	assert_int_equal(line, 260);
	assert_in_range(unknown, 1, 60);
}

/* Marsaglia's xorshift64*, and Box and Muller: no draw differs from one machine to the next. */
static uint64_t seed;

static double uniform(void)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return (double)((seed * 0x2545f4914f6cdd1dULL) >> 11) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(1 - uniform())) * cos(2 * M_PI * uniform());
}

/* A skewed one, as latencies are. */
static double skewed(void)
{
	return exp(normal());
}

/* How often, of 2,000 experiments of n samples an arm in pairs of nodes that differ, each verdict.
 */
static void experiments(double (*draw)(void), size_t pairs, size_t n, double shift, double margin,
			int ret[PP_SHIFT_MORE + 1])
{
	double a[4][32], b[4][32];
	struct pp_shift_block block[4];

	memset(ret, 0, sizeof(*ret) * (PP_SHIFT_MORE + 1));
	for (int e = 0; e < 2000; e++) {
		struct pp_shift s;

		for (size_t p = 0; p < pairs; p++) {
			double node = 20 * normal();

			for (size_t i = 0; i < n; i++) {
				a[p][i] = node + draw();
				b[p][i] = node + draw() + shift;
			}
			block[p] = (struct pp_shift_block){a[p], b[p], n, n};
		}
		assert_int_equal(pp_shift_estimate(block, pairs, 0.95, &s), 0);
		ret[pp_shift_judge(&s, margin)]++;
	}
}

/*
 * Without a true difference at most 5 % may be found to be one, also with no margin at all: of
 * 2,000 at most 100, and 3 standard deviations of such a count (29) for the draw.
 */
static void test_no_difference_is_rarely_found(void **state)
{
	static const size_t sizes[] = {4, 5, 10, 20};
	int count[PP_SHIFT_MORE + 1];

	(void)state;
	seed = 20261130;
	for (size_t pairs = 1; pairs <= 4; pairs += 3)
		for (size_t i = 0; i < PP_ARRAY_LEN(sizes); i++)
			for (int skew = 0; skew <= 1; skew++) {
				experiments(skew ? skewed : normal, pairs, sizes[i], 0, 0, count);
				assert_int_equal(count[PP_SHIFT_SAME], 0);
				assert_in_range(count[PP_SHIFT_ABOVE] + count[PP_SHIFT_BELOW], 1,
						129);
				experiments(skew ? skewed : normal, pairs, sizes[i], 0, 0.5, count);
				assert_in_range(count[PP_SHIFT_ABOVE] + count[PP_SHIFT_BELOW], 0,
						20);
			}
}

/* docs/compare.md's table: margin 3, spread (standard deviation) 1: how often the truth is told. */
static void test_power(void **state)
{
	static const struct {
		double shift;
		size_t n;
		enum pp_shift_verdict truth;
		int least, most;
	} row[] = {
		{0, 5, PP_SHIFT_SAME, 1700, 1900},  {0, 10, PP_SHIFT_SAME, 2000, 2000},
		{6, 5, PP_SHIFT_ABOVE, 1900, 2000}, {-6, 10, PP_SHIFT_BELOW, 2000, 2000},
		{3, 20, PP_SHIFT_MORE, 1860, 1960}, /* at the margin nothing is told */
	};
	int count[PP_SHIFT_MORE + 1];

	(void)state;
	seed = 7;
	for (size_t i = 0; i < PP_ARRAY_LEN(row); i++) {
		experiments(normal, 1, row[i].n, row[i].shift, 3, count);
		if (count[row[i].truth] < row[i].least || count[row[i].truth] > row[i].most)
			fail_msg("row %zu: %d", i, count[row[i].truth]);
	}
}

static void test_what_is_no_experiment(void **state)
{
	static const double one[] = {1}, four[] = {1, 2, 3, 4}, bad[] = {1, NAN},
			    far[] = {INFINITY};
	static const double same[] = {5, 5, 5, 5};
	struct pp_shift_block b = {one, four, 1, 4};
	struct pp_shift s = {0};

	(void)state;
	assert_int_equal(pp_shift_estimate(&b, 0, 0.95, &s), -ENODATA);
	assert_int_equal(pp_shift_estimate(&b, 1, 1, &s), -EINVAL);
	assert_int_equal(pp_shift_estimate(&b, 1, NAN, &s), -EINVAL);
	b.n_a = 0;
	assert_int_equal(pp_shift_estimate(&b, 1, 0.95, &s), -ENODATA);
	b = (struct pp_shift_block){bad, four, 2, 4};
	assert_int_equal(pp_shift_estimate(&b, 1, 0.95, &s), -EINVAL);
	b = (struct pp_shift_block){far, four, 1, 4};
	assert_int_equal(pp_shift_estimate(&b, 1, 0.95, &s), -EINVAL);
	b = (struct pp_shift_block){four, four, SIZE_MAX, 3};
	assert_int_equal(pp_shift_estimate(&b, 1, 0.95, &s), -E2BIG);

	/* One sample an arm: an estimate, no interval; four tell (2/70 < 5 %), three do not (2/20).
	 */
	b = (struct pp_shift_block){one, one, 1, 1};
	assert_int_equal(pp_shift_estimate(&b, 1, 0.95, &s), 0);
	assert_true(s.shift == 0 && isnan(s.ci.low) && isnan(s.coverage));
	assert_int_equal(pp_shift_judge(&s, 1), PP_SHIFT_MORE);
	assert_int_equal(pp_shift_need(&s, 1), 4);

	/* No variance at all: the interval is a point. */
	b = (struct pp_shift_block){same, same, 4, 4};
	assert_int_equal(pp_shift_estimate(&b, 1, 0.95, &s), 0);
	assert_true(s.ci.low == 0 && s.ci.high == 0);
	assert_int_equal(pp_shift_judge(&s, 0.1), PP_SHIFT_SAME);
	assert_int_equal(pp_shift_judge(&s, 0), PP_SHIFT_MORE);
}

/* Many samples: the normal approximation beside R's exact interval of the same normal quantiles. */
static void test_many(void **state)
{
	static double a[400], b[400];
	struct pp_shift_block block = {a, b, 400, 400};
	struct pp_shift s, parts;

	(void)state;
	seed = 3;
	for (size_t i = 0; i < 400; i++) {
		a[i] = normal();
		b[i] = 0.3 + normal();
	}
	assert_int_equal(pp_shift_estimate(&block, 1, 0.95, &s), 0);
	assert_false(s.exact);
	/* Standard error of the difference of 400 and 400 with spread 1: 0.0707, rank's 2 % more.
	 */
	assert_true(s.ci.low > 0.3 - 0.35 && s.ci.high < 0.3 + 0.35);
	assert_true(s.ci.high - s.ci.low > 2 * 1.96 * 0.065 &&
		    s.ci.high - s.ci.low < 2 * 1.96 * 0.080);
	/* Just below and above the bound of counting: the same samples, nearly the same interval.
	 */
	block.n_a = block.n_b = 128;
	assert_int_equal(pp_shift_estimate(&block, 1, 0.95, &s), 0);
	assert_true(s.exact);
	block.n_b = 129;
	assert_int_equal(pp_shift_estimate(&block, 1, 0.95, &parts), 0);
	assert_false(parts.exact);
	assert_true(fabs(s.ci.low - parts.ci.low) < 0.02 && fabs(s.ci.high - parts.ci.high) < 0.02);
}

/* What it asks for suffices, most times: experiments that did not tell are repeated with so many.
 */
static void test_need(void **state)
{
	double a[200], b[200];
	int told = 0, asked = 0;

	(void)state;
	seed = 11;
	while (asked < 200) {
		struct pp_shift_block block = {a, b, 5, 5};
		struct pp_shift s;
		size_t need;

		for (size_t i = 0; i < 200; i++) {
			a[i] = normal();
			b[i] = normal();
		}
		assert_int_equal(pp_shift_estimate(&block, 1, 0.95, &s), 0);
		need = pp_shift_need(&s, 1.2);
		if (pp_shift_judge(&s, 1.2) != PP_SHIFT_MORE || need > 200)
			continue;
		assert_true(need > 5);
		asked++;
		block.n_a = block.n_b = need;
		assert_int_equal(pp_shift_estimate(&block, 1, 0.95, &s), 0);
		told += pp_shift_judge(&s, 1.2) != PP_SHIFT_MORE;
	}
	assert_in_range(told, 100, 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_r_has_it),
		cmocka_unit_test(test_no_difference_is_rarely_found),
		cmocka_unit_test(test_power),
		cmocka_unit_test(test_what_is_no_experiment),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_need),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
