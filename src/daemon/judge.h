/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pp_signals_judge(): from a round of looks, what is known and the site's thresholds to signals.
 *
 * Pure: no clock, no file, no driver; the same round on the same knowledge gives the same. Rules:
 *
 *   state    other than its baseline: open until it is the baseline's again
 *   counter  grew: open until it has not for the quiet time; with a threshold, while it grows
 *            faster. A smaller sum is a counter that began anew, or one of 32 bits that went round
 *            where its growth so far makes that likely; one that was away begins anew too.
 *   gauge    beyond its bound; it must come back by a tenth of the bound to be within again
 *   event    named once and for all: one that was seen is no event. Equal ones share a signal.
 *   unknown  is no change: the last look stands, and kind WATCHER tells it
 *
 * A signal that came back within the quiet time is the same signal, counted; it is not over before
 * it was quiet for so long. What nobody has told the baseline of is its own baseline.
 */
#ifndef PP_DAEMON_JUDGE_H
#define PP_DAEMON_JUDGE_H

#include "daemon/ledger.h"
#include "daemon/threshold.h"

/* What one watcher told: the looks from @from on, up to the next part's. */
struct pp_round_part {
	const char *watcher;
	size_t from;
};

struct pp_round {
	const struct pp_look *looks;
	size_t n;
	const struct pp_round_part *parts;
	size_t n_parts;
	size_t left_out; /* looks beyond the most */
	const struct pp_thresholds *thresholds;
	int64_t wall_ns, now_ns; /* now_ns: monotonic, above 0 */
};

/* -ENOMEM: what is known is then no longer whole, and must be read from the database again. */
int pp_signals_judge(struct pp_ledger *k, const struct pp_round *round);

/*
 * The looks of a recording become the baseline; those of another that is known are replaced, and
 * what the recording does not tell stays. -ENOMEM.
 */
int pp_baseline_take(struct pp_ledger *k, const struct pp_round *round);

#endif
