/* SPDX-License-Identifier: Apache-2.0 */
/*
 * By how much one arm of an experiment lies beside the other: an estimate, an interval that assumes
 * no distribution, and what a margin declared beforehand makes of it. Pure.
 *
 * Samples are compared inside blocks only (a pair of nodes, a day): what differs between blocks
 * never looks like a difference between arms. One block with all samples is the plain comparison
 * of two groups; blocks of one sample an arm are repeats that were paired.
 */
#ifndef PP_BASE_SHIFT_H
#define PP_BASE_SHIFT_H

#include <stdbool.h>

#include "base/statistics.h"

enum { PP_SHIFT_DIFFERENCES = 1 << 22, PP_SHIFT_NEED_MAX = 1000 };

struct pp_shift_block {
	const double *a, *b;
	size_t n_a, n_b; /* a block that lacks an arm says nothing and is passed over */
};

struct pp_shift {
	double shift;	       /* of b against a, in the samples' unit */
	struct pp_interval ci; /* of the shift; NaN: too few samples for the level */
	double coverage;       /* that it has under any distribution; NaN with it */
	size_t differences;    /* within blocks, that it is made of */
	size_t blocks;	       /* that had both arms */
	size_t smallest;       /* samples of the smaller arm of the smallest of these */
	double level;	       /* asked for */
	bool exact;	       /* false: many samples, by the normal approximation */
};

/*
 * @level: 0.95. 0; -EINVAL: a sample that is not a finite number, a level outside 0 to 1; -ENODATA:
 * no block has both arms; -E2BIG: more than PP_SHIFT_DIFFERENCES; -ENOMEM.
 */
int pp_shift_estimate(const struct pp_shift_block *block, size_t n, double level,
		      struct pp_shift *ret);

enum pp_shift_verdict {
	PP_SHIFT_SAME,	/* all of the interval lies within the margin */
	PP_SHIFT_ABOVE, /* b lies above a by more than the margin */
	PP_SHIFT_BELOW,
	PP_SHIFT_MORE, /* these samples do not tell */
};

/* @margin in the shift's unit, 0 or more. With 0 nothing is ever the same. */
enum pp_shift_verdict pp_shift_judge(const struct pp_shift *s, double margin);

/*
 * Samples an arm and block that would tell, with the spread seen so far: for `need n more` subtract
 * what is there. PP_SHIFT_NEED_MAX: so near the margin that repeating does not settle it.
 */
size_t pp_shift_need(const struct pp_shift *s, double margin);

#endif
