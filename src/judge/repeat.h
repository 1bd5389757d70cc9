/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_repeat: a run of bench beside an earlier one of the same: does what was found still
 * hold (after a reboot, an update that should change nothing, a rollback)?
 *
 * Unlike things are not compared: nodes with another software or topology class, other pairs,
 * other memory, other sizes. Pairs are the same by address of hca, port and GPU, never by a
 * device's name. Pure.
 */
#ifndef PP_JUDGE_REPEAT_H
#define PP_JUDGE_REPEAT_H

#include "judge/transfer.h"

enum pp_repeat_state {
	PP_REPEAT_SAME,	  /* within the margin */
	PP_REPEAT_BETTER, /* more than the margin, or works now */
	PP_REPEAT_WORSE,  /* more than the margin, or with wrong bytes */
	PP_REPEAT_GONE,	  /* worked before */
	PP_REPEAT_STATES
};

struct pp_repeat_row {
	unsigned int pair; /* of the earlier run */
	enum pp_rung rung;
	const struct pp_bench_cell *before, *after; /* borrowed; NULL: of the whole rung */
	enum pp_repeat_state state;
	bool decides;	 /* speed of a size below the margins' is said, and decides nothing */
	double ratio;	 /* after to before: bandwidth, or latency; NaN */
	const char *why; /* of gone; NULL */
};

enum { PP_REPEAT_DIFFERENCES = 64 };

struct pp_repeat {
	bool alike, simulated;
	const char *difference[PP_REPEAT_DIFFERENCES];
	unsigned int n_differences, more_differences; /* more: not kept */
	struct pp_repeat_row *rows;
	unsigned int n_rows, count[PP_REPEAT_STATES]; /* that decide */
	enum pp_verdict verdict; /* fail: gone or wrong; degraded: worse; unknown: unlike */
	const char *sentence;
	struct pp_arena arena;
};

/* @ret borrows from both. -ENOMEM. */
int pp_repeat_compare(const struct pp_bench *before, const struct pp_bench *after,
		      const struct pp_margins *margins, struct pp_repeat *ret);
void pp_repeat_done(struct pp_repeat *r);
void pp_repeat_write(struct pp_json *j, const char *key, const struct pp_repeat *r);

const char *pp_repeat_state_name(enum pp_repeat_state s); /* "same", "better", ... */

#endif
