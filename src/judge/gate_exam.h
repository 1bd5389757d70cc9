/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_exam: what gate 1 finds while it looks at a node. Texts go to the arena.
 */
#ifndef PP_JUDGE_GATE_EXAM_H
#define PP_JUDGE_GATE_EXAM_H

#include "judge/gate_rows.h"
#include "judge/prerequisite.h"

struct pp_exam {
	const struct pp_facts *facts;
	const struct pp_object *node;
	const struct pp_findings *findings;
	struct pp_arena *arena;
	struct pp_way_tests *tests;
	struct pp_missing missing; /* what keeps the gate at unknown */
	const char *refuted;	   /* a disqualifier, in words; NULL none */
	const char *lessened;	   /* a way that a probe found refused, in words; NULL none */
	bool of_process;	   /* what refutes is this process's, another one may not have it */
	bool no_device;		   /* known to have no RDMA device, and no function of one */
	bool probe_helps;	   /* what is missing is what check --probe finds */
	unsigned int good;	   /* GPUs with a rail that has all */
	unsigned int near;	   /* of these, with a near one */
	unsigned int by_way[PP_WAYS];
};

/* Looks at the rails of @gpu; one that has all makes it good. */
void pp_exam_gpu(struct pp_exam *e, const struct pp_object *gpu);

/* What another user, container or image of this node may have. */
bool pp_exam_of_process(enum pp_fact_id id);

#endif
