/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The estimate is the median of all differences within blocks (Hodges and Lehmann, "Estimates of
 * Location Based on Rank Tests", Annals of Mathematical Statistics 34 (1963)). How many of these
 * differences exceed the true shift has, whatever the distribution, that of a sum of Mann and
 * Whitney's statistics, one a block; so two order statistics of the differences hold the shift with
 * a probability that can be counted (Hollander, Wolfe and Chicken, "Nonparametric Statistical
 * Methods", 3rd ed., 4.3; blocks: Lehmann, "Nonparametrics", 3.3). Ties make it wider than it must
 * be, never narrower.
 */
#include "base/shift.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/banned.h"

/* Counting takes differences times samples. Beyond this the normal distribution is as good. */
enum { COUNTED_DIFFERENCES = 1 << 14, COUNTED_SAMPLES = 512 };

/* What the blocks that count add up to. */
struct sum {
	size_t differences, samples, blocks, smallest;
	double variance; /* of the statistic; its mean is half the differences */
};

static bool counts(const struct pp_shift_block *b)
{
	return b->n_a && b->n_b;
}

static int add(struct sum *s, const struct pp_shift_block *b)
{
	size_t fewer = b->n_a < b->n_b ? b->n_a : b->n_b, product;

	if (!counts(b))
		return 0;
	if (__builtin_mul_overflow(b->n_a, b->n_b, &product) ||
	    __builtin_add_overflow(s->differences, product, &s->differences) ||
	    s->differences > PP_SHIFT_DIFFERENCES)
		return -E2BIG;
	s->samples += b->n_a + b->n_b;
	s->variance += (double)product * (double)(b->n_a + b->n_b + 1) / 12;
	s->smallest = !s->blocks || fewer < s->smallest ? fewer : s->smallest;
	s->blocks++;
	return 0;
}

static int differences(const struct pp_shift_block *block, size_t n, double *ret)
{
	for (size_t k = 0; k < n; k++)
		for (size_t i = 0; i < block[k].n_a; i++)
			for (size_t j = 0; j < block[k].n_b; j++) {
				double d = block[k].b[j] - block[k].a[i];

				if (!isfinite(d))
					return -EINVAL;
				*ret++ = d;
			}
	return 0;
}

/*
 * Multiplies a distribution's generating function by that of a block: over i from 1 to n_a,
 * (1 - x^(n_b+i)) / (1 - x^i), each scaled to a sum of 1 (Mann and Whitney, 1947). A coefficient
 * depends on lower ones alone, so the lower tail, which is all that is used, stays exact.
 */
static void convolve(double *p, size_t size, const struct pp_shift_block *b)
{
	for (size_t i = 1; i <= b->n_a; i++) {
		size_t up = b->n_b + i;

		for (size_t u = size; u-- > up;)
			p[u] -= p[u - up];
		for (size_t u = i; u < size; u++)
			p[u] += p[u - i];
		for (size_t u = 0; u < size; u++)
			p[u] *= (double)i / (double)up;
	}
}

/* How many of the lowest differences lie outside, at most @tail likely: by counting. */
static int rank_counted(const struct pp_shift_block *block, size_t n, size_t n_differences,
			double tail, size_t *ret, double *ret_tail)
{
	size_t size = n_differences / 2 + 1, k = 0;
	double *PP_AUTO_FREE p = calloc(size, sizeof(*p)), below = 0;

	if (!p)
		return -ENOMEM;
	p[0] = 1;
	for (size_t i = 0; i < n; i++)
		if (counts(&block[i]))
			convolve(p, size, &block[i]);
	while (k < size && below + p[k] < tail)
		below += p[k++];
	*ret = k;
	*ret_tail = below;
	return 0;
}

/* Smallest z that a standard normal variable lies below -z of with probability @tail. */
static double normal_bound(double tail)
{
	double low = 0, high = 40;

	for (int i = 0; i < 100; i++) {
		double z = (low + high) / 2;

		if (erfc(z / M_SQRT2) / 2 > tail)
			low = z;
		else
			high = z;
	}
	return high;
}

static size_t rank_normal(const struct sum *s, double tail)
{
	double k = ceil((double)s->differences / 2 + 0.5 - normal_bound(tail) * sqrt(s->variance));

	return k > 1 ? (size_t)k - 1 : 0;
}

static int interval(const struct pp_shift_block *block, size_t n, const struct sum *s,
		    const double *sorted, struct pp_shift *ret)
{
	double tail = (1 - ret->level) / 2;
	size_t k;
	int r = 0;

	ret->exact = s->differences <= COUNTED_DIFFERENCES && s->samples <= COUNTED_SAMPLES;
	ret->ci = (struct pp_interval){NAN, NAN};
	ret->coverage = NAN;
	if (ret->exact)
		r = rank_counted(block, n, s->differences, tail, &k, &tail);
	else
		k = rank_normal(s, tail);
	if (r || !k)
		return r;
	ret->ci = (struct pp_interval){sorted[k - 1], sorted[s->differences - k]};
	ret->coverage = 1 - 2 * tail;
	return 0;
}

int pp_shift_estimate(const struct pp_shift_block *block, size_t n, double level,
		      struct pp_shift *ret)
{
	double *PP_AUTO_FREE d = NULL;
	struct sum s = {0};
	int r = level > 0 && level < 1 ? 0 : -EINVAL;

	for (size_t i = 0; !r && i < n; i++)
		r = add(&s, &block[i]);
	if (!r && !s.blocks)
		r = -ENODATA;
	if (!r && !(d = malloc(s.differences * sizeof(*d))))
		r = -ENOMEM;
	r = r ? r : differences(block, n, d);
	if (r)
		return r;
	pp_sort(d, s.differences);

	struct pp_shift found = {.differences = s.differences,
				 .blocks = s.blocks,
				 .smallest = s.smallest,
				 .level = level};

	found.shift = (d[(s.differences - 1) / 2] + d[s.differences / 2]) / 2;
	r = interval(block, n, &s, d, &found);
	if (!r)
		*ret = found;
	return r;
}

enum pp_shift_verdict pp_shift_judge(const struct pp_shift *s, double margin)
{
	/* With NaN every comparison is false. */
	if (s->ci.low > margin)
		return PP_SHIFT_ABOVE;
	if (s->ci.high < -margin)
		return PP_SHIFT_BELOW;
	return s->ci.low > -margin && s->ci.high < margin ? PP_SHIFT_SAME : PP_SHIFT_MORE;
}

/* Fewest samples an arm with which there is an interval at all: the extreme must be rare enough. */
static size_t fewest(const struct pp_shift *s)
{
	double extreme = 1;
	size_t n = 0;

	/* C(2n, n) grows by (2n)(2n - 1) / n^2. */
	do {
		n++;
		extreme *= pow((double)n / (double)(2 * (2 * n - 1)), (double)s->blocks);
	} while (extreme >= (1 - s->level) / 2 && n < PP_SHIFT_NEED_MAX);
	return n;
}

size_t pp_shift_need(const struct pp_shift *s, double margin)
{
	double half = fmax(s->ci.high - s->shift, s->shift - s->ci.low);
	double room = fabs(margin - fabs(s->shift)), n;

	if (isnan(s->ci.low))
		return fewest(s);
	if (pp_shift_judge(s, margin) != PP_SHIFT_MORE)
		return s->smallest;
	/* The interval narrows with the root of the samples. */
	n = ceil((double)s->smallest * pow(half / room, 2)) + 1;
	return n < PP_SHIFT_NEED_MAX ? (size_t)n : PP_SHIFT_NEED_MAX;
}
