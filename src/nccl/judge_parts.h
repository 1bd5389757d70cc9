/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a judgement, each in its own file: what the connections are, how much of the job
 * is here, which version wrote it.
 */
#ifndef PP_NCCL_JUDGE_PARTS_H
#define PP_NCCL_JUDGE_PARTS_H

#include "base/compiler.h"
#include "nccl/judge.h"

struct pp_nccl_case {
	const struct pp_nccl_job *job;
	const struct pp_nccl_group *group;
	struct pp_nccl_judgement *j;
};

int pp_nccl_judge_ends(struct pp_nccl_case *c);
int pp_nccl_judge_coverage(struct pp_nccl_case *c);
void pp_nccl_judge_version(struct pp_nccl_case *c);
void pp_nccl_judge_next(struct pp_nccl_case *c);
void pp_nccl_judge_expected(struct pp_nccl_case *c);

/* Each says why when it is true. */
bool pp_nccl_refuted_by_ends(struct pp_nccl_case *c);
bool pp_nccl_refuted_by_capability(struct pp_nccl_case *c);
bool pp_nccl_failed_before_moving(struct pp_nccl_case *c);

/* The first of a kind; @tcp: only of a network over TCP. NULL: none. */
const struct pp_nccl_choice *pp_nccl_find_choice(const struct pp_nccl_job *job,
						 enum pp_nccl_kind kind, bool tcp);
const struct pp_nccl_error *pp_nccl_root(const struct pp_nccl_case *c); /* NULL: no root */

/*
 * Every end of every connection is here and direct, and checked traffic used them to its end.
 * Says what is there, or what is missing.
 */
bool pp_nccl_proof(struct pp_nccl_case *c);

void pp_nccl_because(struct pp_nccl_case *c, struct pp_nccl_place at, const char *fmt, ...)
	PP_PRINTF(3, 4);

#endif
