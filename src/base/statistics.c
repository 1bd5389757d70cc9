/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Few samples, no distribution assumed. A sample that is not a number makes the answer none: it
 * was not measured, and leaving it out would look like a smaller, better experiment.
 */
#include "base/statistics.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/banned.h"

enum { ON_STACK = 64, SAMPLES_MAX = 1 << 22 };

struct sorted {
	double few[ON_STACK], *value; /* value: few, or owned */
	size_t n;
};

static int order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void sorted_done(struct sorted *s)
{
	if (s->value != s->few)
		free(s->value);
}

/* False: no samples, too many, no memory, or one that is not a number. */
static bool sort(struct sorted *s, const double *sample, size_t n)
{
	*s = (struct sorted){.n = n};
	s->value = s->few;
	if (!n || n > SAMPLES_MAX)
		return false;
	for (size_t i = 0; i < n; i++)
		if (isnan(sample[i]))
			return false;
	if (n > ON_STACK)
		s->value = malloc(n * sizeof(*sample));
	if (!s->value)
		return false;
	memcpy(s->value, sample, n * sizeof(*sample));
	qsort(s->value, n, sizeof(*sample), order);
	return true;
}

/*
 * Definition 7 of Hyndman and Fan, "Sample Quantiles in Statistical Packages", The American
 * Statistician 50 (1996): what R and NumPy do unless told otherwise. Linear between the order
 * statistics at (n - 1) q.
 */
static double quantile(const struct sorted *s, double q)
{
	double at = (double)(s->n - 1) * q, below = floor(at);
	size_t i = (size_t)below;

	if (i + 1 >= s->n)
		return s->value[s->n - 1];
	return s->value[i] + (at - below) * (s->value[i + 1] - s->value[i]);
}

double pp_quantile(const double *sample, size_t n, double q)
{
	struct sorted PP_CLEANUP(sorted_done) s;

	if (!sort(&s, sample, n) || !(q >= 0 && q <= 1))
		return NAN;
	return quantile(&s, q);
}

void pp_sort(double *value, size_t n)
{
	if (n)
		qsort(value, n, sizeof(*value), order);
}

double pp_percentile(const double *sorted, size_t n, double q)
{
	size_t rank = (size_t)ceil(q * (double)n);

	return n ? sorted[(rank ? rank : 1) - 1] : 0;
}

double pp_median(const double *sample, size_t n)
{
	return pp_quantile(sample, n, 0.5);
}

/* C(n, k) / 2^n: so many of n samples lie below the median. */
static double binomial_half(size_t n, size_t k)
{
	int sign;
	double log_choose = lgamma_r((double)n + 1, &sign) - lgamma_r((double)k + 1, &sign) -
			    lgamma_r((double)(n - k) + 1, &sign);

	return exp(log_choose - (double)n * M_LN2);
}

/*
 * The interval [x(k), x(n+1-k)] holds the median with probability 1 - 2 P(B < k), B binomial of n
 * and 1/2, whatever the distribution: David and Nagaraja, "Order Statistics", 3rd ed., 7.1. The
 * narrowest one of at least 95 % is taken: for 6 samples smallest to largest, 96.9 %.
 */
struct pp_interval pp_median_interval(const double *sample, size_t n)
{
	struct sorted PP_CLEANUP(sorted_done) s;
	double outside = 0;
	size_t k = 0;

	if (!sort(&s, sample, n))
		return (struct pp_interval){NAN, NAN};
	while (k < n / 2) {
		outside += 2 * binomial_half(n, k);
		if (outside > 0.05)
			break;
		k++;
	}
	if (!k)
		return (struct pp_interval){NAN, NAN};
	return (struct pp_interval){s.value[k - 1], s.value[n - k]};
}

double pp_spread(const double *sample, size_t n)
{
	struct sorted PP_CLEANUP(sorted_done) s;
	double middle;

	if (!sort(&s, sample, n))
		return NAN;
	middle = quantile(&s, 0.5);
	return middle > 0 ? (s.value[n - 1] - s.value[0]) / middle : NAN;
}

double pp_ratio(const double *a, const double *b, size_t n, struct pp_interval *ret)
{
	double few[ON_STACK], *PP_AUTO_FREE many = NULL, *ratio = few;

	*ret = (struct pp_interval){NAN, NAN};
	if (!n || n > SAMPLES_MAX)
		return NAN;
	if (n > ON_STACK)
		ratio = many = malloc(n * sizeof(*many));
	if (!ratio)
		return NAN;
	for (size_t i = 0; i < n; i++)
		ratio[i] = b[i] > 0 ? a[i] / b[i] : NAN;
	*ret = pp_median_interval(ratio, n);
	return pp_median(ratio, n);
}
