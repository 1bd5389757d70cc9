/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_trials: the trials of one arm, from what the user names: a result of canary, a bundle
 * that holds one, or a directory of these.
 */
#ifndef PP_CLI_COMPARE_INPUT_H
#define PP_CLI_COMPARE_INPUT_H

#include "judge/comparison.h"

struct pp_trials {
	const struct pp_trial *trial[PP_COMPARISON_TRIALS]; /* owned */
	size_t n;
};

/*
 * Adds what @path holds. 0 or a negative errno with one line in @err; what was added before stays.
 * -E2BIG: more than PP_COMPARISON_TRIALS; -ENODATA: a directory without any.
 */
int pp_trials_add(struct pp_trials *t, const char *path, struct pp_error *err);
/* One document; @name is used in messages and kept. */
int pp_trials_take(struct pp_trials *t, const char *name, const char *text, size_t len,
		   struct pp_error *err);
void pp_trials_done(struct pp_trials *t);

#endif
