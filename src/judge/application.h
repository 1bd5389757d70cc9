/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gate 4: the application as it was measured, against the service level that its canary file
 * declares, and beside itself before a change where that is given. Pure.
 *
 * A level is met, or missed, when so many of the runs are on that side of it that the median of all
 * runs is there, at 95 %: five of five runs. Fewer, or runs on both sides, do not tell.
 */
#ifndef PP_JUDGE_APPLICATION_H
#define PP_JUDGE_APPLICATION_H

#include "judge/comparison.h"

struct pp_gate_application {
	enum pp_verdict verdict; /* of gate 4 */
	char sentence[400];	 /* what may be said; simulated: "chain exercised in simulation" */
	char evidence[400];
	char raise[320]; /* what would raise it; "" for pass */
	char next[240];	 /* one command; "" for pass */
	bool simulated;
	bool passed; /* simulated: the chain did all it should */
};

/* @c: NULL, or @t beside what was before; then its verdict is the gate's. */
void pp_gate_application_judge(const struct pp_trial *t, const struct pp_comparison *c,
			       struct pp_gate_application *ret);
/* {"verdict", "claim", "evidence", "raise", "next", "simulated", "passed"} */
void pp_gate_application_write(struct pp_json *j, const char *key,
			       const struct pp_gate_application *g);

#endif
