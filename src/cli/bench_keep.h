/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench --keep DIR: each node's own bundle, for whoever puts them together (prove).
 */
#ifndef PP_CLI_BENCH_KEEP_H
#define PP_CLI_BENCH_KEEP_H

#include "cli/verb.h"
#include "rdma/party.h"

/*
 * DIR/ID.tar.zst of each node; of one that has none DIR/ID.why, and the others all the same. 0,
 * also without --keep, or an exit code after one line on stderr for each that is missing.
 */
int pp_bench_keep(const struct pp_args *args, struct pp_party *party);

#endif
