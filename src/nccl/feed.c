/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/feed.h"

#include <errno.h>

#include "base/banned.h"

static void take_line(void *ctx, const char *text, size_t len, uint64_t number)
{
	struct pp_nccl_feed *f = ctx;

	f->job.partial = f->reader->partial;
	f->reader->table = pp_nccl_job_line(&f->job, text, len, number);
}

int pp_nccl_feed_init(struct pp_nccl_feed *f)
{
	pp_nccl_job_init(&f->job);
	f->reader = pp_nccl_reader_new(take_line, f);
	return f->reader ? 0 : -ENOMEM;
}

void pp_nccl_feed_done(struct pp_nccl_feed *f)
{
	f->reader = pp_nccl_reader_free(f->reader);
	pp_nccl_job_done(&f->job);
}

void pp_nccl_feed_file(struct pp_nccl_feed *f, const char *name)
{
	pp_nccl_job_file(&f->job, name);
}

void pp_nccl_feed_push(struct pp_nccl_feed *f, const char *bytes, size_t len)
{
	pp_nccl_reader_feed(f->reader, bytes, len);
}

void pp_nccl_feed_end(struct pp_nccl_feed *f)
{
	pp_nccl_reader_end(f->reader);
	f->job.cut = f->reader->cut;
}

int pp_nccl_feed_judge(struct pp_nccl_feed *f, struct pp_nccl_group *ret_group,
		       struct pp_nccl_judgement *ret)
{
	int r = pp_nccl_job_starved(&f->job) ? -ENOMEM : 0;

	if (r)
		return r;
	r = pp_nccl_group_make(&f->job, ret_group);
	if (!r)
		r = pp_nccl_judge(&f->job, ret_group, ret);
	if (r)
		pp_nccl_group_done(ret_group);
	return r;
}
