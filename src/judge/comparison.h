/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_comparison: trials before a change beside trials after it: what moved, by how much, and
 * whether that is more than the margin that was declared beforehand. Pure.
 *
 * Unlike things are not compared: workload, metrics, topology class, software must agree, but for
 * what was declared to change; each difference is named. Runs are compared inside a set of nodes
 * that both arms ran on.
 */
#ifndef PP_JUDGE_COMPARISON_H
#define PP_JUDGE_COMPARISON_H

#include "base/shift.h"
#include "base/words.h"
#include "judge/trial.h"

enum {
	PP_COMPARISON_TRIALS = 256, /* of an arm */
	PP_COMPARISON_DIFFERENCES = 64,
};

enum pp_change {
	PP_CHANGE_SAME,
	PP_CHANGE_BETTER,
	PP_CHANGE_WORSE,
	PP_CHANGE_MORE,	   /* `need n more` */
	PP_CHANGE_MISSING, /* no figure in an arm, or none that has a ratio */
	PP_CHANGES
};

/* A metric on one set of nodes: does it move there the way it does on all? */
struct pp_comparison_block {
	const char *nodes; /* "a b" */
	size_t n[2];
	double shift; /* as the row's; NaN: not in both arms */
};

struct pp_comparison_row {
	const struct pp_metric *metric; /* borrowed */
	enum pp_change change;
	double median[2]; /* of the arms, in the metric's unit; NaN */
	size_t n[2];
	/* Ratio after to before where the margin is one (1.03), else the difference in the unit. */
	double shift, low, high; /* NaN: no interval */
	size_t more;		 /* runs an arm and set of nodes that are still needed */
	bool near_margin;	 /* repeating does not settle it */
	bool slo_met[2], slo_known[2];
	const char *why; /* of MISSING */
	struct pp_comparison_block *block;
	size_t n_blocks;
};

struct pp_comparison {
	const char *workload;
	bool alike, simulated;
	const char *difference[PP_COMPARISON_DIFFERENCES];
	size_t n_differences, more_differences;
	const char
		*declared[PP_COMPARISON_DIFFERENCES]; /* that differ and may: "kernel.release: 6.1
							 before, 6.5 after" */
	size_t n_declared;
	size_t valid[2], voided[2]; /* runs */
	struct pp_comparison_row *row;
	size_t n_rows;
	enum pp_change slo, host; /* all rows of the group together */
	bool proven;		  /* the mechanism, in every trial after the change */
	const char *path[2];	  /* "gdr by dmabuf (proven)"; "not looked at" */
	enum pp_verdict verdict;  /* pass: better, or the same; fail: worse; unknown: else */
	const char *sentence;
	const char *next; /* what to do; never NULL */
	struct pp_arena arena;
};

/*
 * @before, @after: @n of each, borrowed as long as @ret. -ENOMEM; -E2BIG: too many trials;
 * -ENODATA: an arm is empty.
 */
int pp_comparison_make(const struct pp_trial *const *before, size_t n_before,
		       const struct pp_trial *const *after, size_t n_after,
		       struct pp_comparison *ret);
void pp_comparison_done(struct pp_comparison *c);
/* Members of `peerpath.comparison/1`, inside an object that is open. */
void pp_comparison_write(struct pp_json *j, const struct pp_comparison *c);

const char *
pp_change_name(enum pp_change c); /* "same", "better", "worse", "need more", "missing" */

#endif
