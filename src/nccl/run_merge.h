/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports of the processes of one run brought together: nodes by host, settings by value. Pure.
 */
#ifndef PP_NCCL_RUN_MERGE_H
#define PP_NCCL_RUN_MERGE_H

#include "nccl/run.h"

/*
 * Adds what another process saw. Of one host the sums are of all its processes, and what is of the
 * whole node is taken from who looked at it. -ENOMEM; -E2BIG: more than PP_NCCL_RUN_NODES hosts.
 */
int pp_nccl_run_merge(struct pp_nccl_run *into, const struct pp_nccl_run *from);

#endif
