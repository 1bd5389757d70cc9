/* SPDX-License-Identifier: Apache-2.0 */
/* peerpath nccl perf: collectives timed and checked. */
#ifndef PP_CLI_NCCL_PERF_H
#define PP_CLI_NCCL_PERF_H

#include "cli/verb.h"

/* Returns an exit code. */
int pp_nccl_perf(const struct pp_args *args);

#endif
