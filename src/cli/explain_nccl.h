/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same text as a job's NCCL log: what peerpath nccl judge would say of it, in one paragraph.
 */
#ifndef PP_CLI_EXPLAIN_NCCL_H
#define PP_CLI_EXPLAIN_NCCL_H

#include "base/out.h"
#include "nccl/feed.h"

struct pp_explain_nccl {
	struct pp_nccl_feed feed;
};

int pp_explain_nccl_init(struct pp_explain_nccl *n); /* -ENOMEM */
void pp_explain_nccl_done(struct pp_explain_nccl *n);
void pp_explain_nccl_push(struct pp_explain_nccl *n, const char *bytes, size_t len);
/* The text is over. Adds nothing when it held no line of NCCL. -ENOMEM. */
int pp_explain_nccl_show(struct pp_explain_nccl *n, struct pp_out *o);

#endif
