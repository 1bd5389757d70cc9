/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_nccl_feed: bytes of logs -> a job. Files one after the other, each in pieces of any
 * size; then the job is judged by pp_nccl_feed_judge().
 */
#ifndef PP_NCCL_FEED_H
#define PP_NCCL_FEED_H

#include "nccl/judge.h"
#include "nccl/reader.h"

struct pp_nccl_feed {
	struct pp_nccl_job job;
	struct pp_nccl_reader *reader; /* owned */
};

/* -ENOMEM, or 0; done() takes one that failed too. Must not be moved afterwards. */
int pp_nccl_feed_init(struct pp_nccl_feed *f);
void pp_nccl_feed_done(struct pp_nccl_feed *f);

/* What follows comes from the file of this name; end() says that it is over. */
void pp_nccl_feed_file(struct pp_nccl_feed *f, const char *name);
void pp_nccl_feed_push(struct pp_nccl_feed *f, const char *bytes, size_t len);
void pp_nccl_feed_end(struct pp_nccl_feed *f);

/* -ENOMEM, or 0. @ret_group is given away on success only: pp_nccl_group_done(). */
int pp_nccl_feed_judge(struct pp_nccl_feed *f, struct pp_nccl_group *ret_group,
		       struct pp_nccl_judgement *ret);

#endif
