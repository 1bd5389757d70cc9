/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of `nccl perf`, as its command line and its launcher give them.
 */
#ifndef PP_CLI_NCCL_PERF_OPTIONS_H
#define PP_CLI_NCCL_PERF_OPTIONS_H

#include "cli/verb.h"
#include "nccl/perf.h"
#include "rdma/launch.h"
#include "rdma/token.h"

/* Points into itself: made where it is used. */
struct pp_nccl_perf_options {
	const struct pp_args *args;
	struct pp_perf_options options;
	struct pp_launch launch;
	bool launched;
	unsigned int local;
	uint64_t size[PP_PERF_SIZES];
	char token[PP_TOKEN_MOST + 1];
};

/* 0 or an exit code after one line on stderr. Texts are borrowed from @args. */
int pp_nccl_perf_options_read(const struct pp_args *args, struct pp_nccl_perf_options *r);

#endif
