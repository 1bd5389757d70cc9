/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_transfer: the verdict of gate 2 on a run of `bench`. Pure on the run, the margins, and
 * known problems.
 *
 *   host unstable or bad        fail: the fabric; GPU memory is not judged
 *   host good, GPU fails        fail: registration; the cause from errno, call and facts
 *   both bad alike              fail or degraded, and not the registration
 *   GPU well below host         degraded, the hop named (the narrowest that fits the figure)
 *   throttled GPU               void: unknown
 *   nothing that is no hardware passes; a simulated run is `simulation: passed | failed`
 */
#ifndef PP_JUDGE_TRANSFER_H
#define PP_JUDGE_TRANSFER_H

#include "bench/result.h"
#include "judge/known.h"
#include "judge/statistics.h"

/* DESIGN 3.4; policy.conf [transfer]; printed with the verdict. */
struct pp_margins {
	double spread;	 /* of repeats, of the median: 0.05 */
	double gpu_host; /* GPU/host bandwidth, least: 0.90 */
	double hop;	 /* of the narrowest hop, least: 0.70 */
	uint64_t from;	 /* sizes that these hold for, bytes: 1 MiB */
};

extern const struct pp_margins pp_margins_default;

struct pp_transfer_row { /* of one pair and rung, or of one pair (rung PP_RUNGS) */
	unsigned int pair;
	enum pp_rung rung;
	enum pp_verdict verdict;
	const char *sentence; /* what may be said */
	const char *hop;      /* that limits; NULL */
	const char *cause;    /* id of a known problem; NULL */
	const char *next;     /* one command; NULL for pass */
};

struct pp_transfer {
	enum pp_verdict verdict; /* worst pair */
	bool simulated, passed;	 /* simulated: whether the simulation passed */
	const char *sentence;
	struct pp_transfer_row *rows;
	unsigned int n_rows;
	double gpu_host, direct_staged; /* medians at the largest size; NaN */
	uint64_t direct_wins_from;	/* least size from which direct beats staged; 0 none */
	struct pp_arena arena;
};

/* @known NULL: causes are not looked for. @facts of the node that failed first, or NULL. */
int pp_transfer_judge(const struct pp_bench *b, const struct pp_margins *margins,
		      const struct pp_known_set *known, const struct pp_facts *facts,
		      struct pp_transfer *ret);
void pp_transfer_done(struct pp_transfer *t);
/* As objects: "transfer": {"verdict", "sentence", "margins", "rows", ...}. */
void pp_transfer_write(struct pp_json *j, const char *key, const struct pp_transfer *t,
		       const struct pp_margins *margins);

#endif
