/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of few samples: medians, quantiles, and intervals that assume no distribution.
 * Pure. Sources of formulas are named at each function in statistics.c.
 */
#ifndef PP_BASE_STATISTICS_H
#define PP_BASE_STATISTICS_H

#include <stddef.h>

struct pp_interval {
	double low, high; /* NaN: too few samples for the level */
};

/* NaN for no samples. @sample is not changed. */
double pp_median(const double *sample, size_t n);
double pp_quantile(const double *sample, size_t n, double q);
/* In place; then the value of the nearest rank, which is one of them; 0 for none. */
void pp_sort(double *value, size_t n);
double pp_percentile(const double *sorted, size_t n, double q);
/* Of the median, by order statistics, at 95 % or more; 6 samples at least. */
struct pp_interval pp_median_interval(const double *sample, size_t n);
/* (largest - smallest) / median; 0 for one sample. */
double pp_spread(const double *sample, size_t n);
/* Median of the ratios of a to b, repeat by repeat, and its interval; n pairs. */
double pp_ratio(const double *a, const double *b, size_t n, struct pp_interval *ret);

#endif
