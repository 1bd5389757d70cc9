/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of a comparison: repeat_like.c finds whether two runs may be compared, repeat.c does so.
 */
#ifndef PP_JUDGE_REPEAT_PARTS_H
#define PP_JUDGE_REPEAT_PARTS_H

#include "base/compiler.h"
#include "judge/repeat.h"

struct pp_repeat_case {
	const struct pp_bench *before, *after;
	const struct pp_margins *margins;
	struct pp_repeat *r;
	struct pp_arena *arena;
};

void pp_repeat_differ(struct pp_repeat_case *c, const char *fmt, ...) PP_PRINTF(2, 3);
/* Nodes, and that each pair of either run is in the other one. */
void pp_repeat_nodes(struct pp_repeat_case *c);
/* The same pair in the later run; NULL. */
const struct pp_bench_pair *pp_repeat_partner(const struct pp_repeat_case *c,
					      const struct pp_bench_pair *pair);

#endif
