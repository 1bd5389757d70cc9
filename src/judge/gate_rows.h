/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gates that this version can judge, one file each. Texts go to the arena.
 */
#ifndef PP_JUDGE_GATE_ROWS_H
#define PP_JUDGE_GATE_ROWS_H

#include "judge/gate.h"

void pp_gate_identity(const struct pp_facts *facts, struct pp_arena *arena,
		      struct pp_gate_row *row);
/* -ENOMEM. */
int pp_gate_prerequisites(const struct pp_facts *facts, const struct pp_findings *findings,
			  struct pp_arena *arena, struct pp_gate_row *row);

/* All but @row->run. */
void pp_gate_memory(const struct pp_facts *facts, const struct pp_gate_runs *runs,
		    struct pp_arena *arena, struct pp_gate_row *row);
void pp_gate_library(const struct pp_facts *facts, const struct pp_gate_runs *runs,
		     struct pp_arena *arena, struct pp_gate_row *row);
void pp_gate_application(const struct pp_gate_runs *runs, struct pp_arena *arena,
			 struct pp_gate_row *row);

/*
 * The row of a gate that nothing was run for, in a run that simulated: nobody is sent to simulate
 * again. @no_hca: the node has no RDMA device.
 */
void pp_gate_beside_simulation(bool no_hca, struct pp_gate_row *row);

/*
 * What is missing, collected while a gate looks: the first three in words, the rest as a number.
 */
struct pp_missing {
	struct pp_arena *arena;
	const char *text; /* NULL: nothing is missing */
	unsigned int n;
};

void pp_missing_add(struct pp_missing *m, const char *fmt, ...) PP_PRINTF(2, 3);
/* An unknown fact of @o: key, reason, and how to get it. */
void pp_missing_fact(struct pp_missing *m, const struct pp_object *o, enum pp_fact_id id);
/* "a; b; c; and 5 more"; NULL when nothing is missing. */
const char *pp_missing_text(const struct pp_missing *m);

#endif
