/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells of a pair in the order in which a person reads them: a group has one operation, measure
 * and mode (alone or together), a row of it one size, and in a row the rungs stand side by side.
 */
#ifndef PP_BENCH_ORDER_H
#define PP_BENCH_ORDER_H

#include "bench/result.h"

/* malloc'ed list of @pair->n_cells pointers into the pair. -ENOMEM. */
int pp_bench_order(const struct pp_bench_pair *pair, const struct pp_bench_cell ***ret);
bool pp_bench_same_group(const struct pp_bench_cell *a, const struct pp_bench_cell *b);
bool pp_bench_same_row(const struct pp_bench_cell *a, const struct pp_bench_cell *b);

#endif
