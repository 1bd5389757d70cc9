/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a node gives to the coordinator's bundle: a capture of itself, made by `peerpath capture` in
 * a process that sees the machine as it is, also from within a simulation.
 */
#ifndef PP_CLI_BENCH_RECORD_H
#define PP_CLI_BENCH_RECORD_H

#include <stddef.h>

/* struct pp_party_service's record: an archive, malloc'ed. Negative errno. */
int pp_bench_record(char **ret, size_t *ret_len, const void *arg);

#endif
