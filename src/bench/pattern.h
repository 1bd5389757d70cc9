/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who sends to whom, over the nodes of a party, and which pairs go at once. Pure.
 *
 *   pairs       every two nodes, in rounds of a tournament: in a round no node is in two pairs
 *   ring        each node to the next one
 *   all-to-all  every two nodes
 *   incast      each node to the first
 *
 * Of all but pairs everything is one round. One node is a pair with itself.
 */
#ifndef PP_BENCH_PATTERN_H
#define PP_BENCH_PATTERN_H

#include "bench/result.h"

enum { PP_PATTERN_PAIRS = 4096 };

struct pp_meeting {
	unsigned int from, to; /* nodes; bytes go from the first to the second */
	unsigned int round;
};

/* -EFBIG: more than PP_PATTERN_PAIRS. *ret is malloc'ed, in order of rounds. */
int pp_pattern_meet(enum pp_pattern pattern, unsigned int nodes, struct pp_meeting **ret,
		    unsigned int *ret_n, struct pp_error *err);

#endif
