/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The logs of a run, all of them read, into what the run says of them.
 */
#ifndef PP_NCCL_RUN_JUDGE_H
#define PP_NCCL_RUN_JUDGE_H

#include "nccl/feed.h"
#include "nccl/run.h"

/*
 * Fills @r's judgement, networks, in_network, speed and simulated. *ret_root: the line of the first
 * error, "" none; for who can explain it. -ENOMEM.
 */
int pp_nccl_run_judge(struct pp_nccl_feed *f, struct pp_nccl_run *r, char *ret_root, size_t size);

#endif
