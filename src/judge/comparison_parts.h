/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PP_JUDGE_COMPARISON_PARTS_H
#define PP_JUDGE_COMPARISON_PARTS_H

#include "judge/comparison.h"

struct pp_comparison_arm {
	const struct pp_trial *const *trial;
	size_t n;
};

struct pp_comparison_case {
	struct pp_comparison *c;
	struct pp_comparison_arm arm[2]; /* before, after */
};

/* Names each difference that was not declared, and each that was. */
void pp_comparison_liken(struct pp_comparison_case *k);
/* Fills a row whose metric is set. -ENOMEM. */
int pp_comparison_measure(struct pp_comparison_case *k, struct pp_comparison_row *row);
/* Verdict, sentence and what to do, from what the rows show. */
void pp_comparison_conclude(struct pp_comparison_case *k);

/* The metric of a trial by its name; NULL. */
const struct pp_metric *pp_trial_metric(const struct pp_trial *t, const char *name);
/* The nodes of a trial in one text, sorted. */
const char *pp_trial_nodes(const struct pp_trial *t, struct pp_arena *arena);

#endif
