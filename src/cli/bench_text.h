/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run of bench and its verdict on a terminal, or as the document "peerpath.bench/1".
 */
#ifndef PP_CLI_BENCH_TEXT_H
#define PP_CLI_BENCH_TEXT_H

#include "base/out.h"
#include "judge/transfer.h"

/*
 * The whole of it: in JSON mode the document from its schema on (the caller may add members, and
 * pp_out_finish() closes it), else the page.
 */
void pp_bench_emit(struct pp_out *o, const struct pp_bench *b, const struct pp_transfer *t,
		   const struct pp_margins *m);

/* The page alone; nothing in JSON mode. */
void pp_bench_text(struct pp_out *o, const struct pp_bench *b, const struct pp_transfer *t,
		   const struct pp_margins *m);

/* The numbers of one pair: bench_table.c. */
void pp_bench_tables(struct pp_out *o, const struct pp_bench_pair *pair,
		     const struct pp_transfer *t);

#endif
