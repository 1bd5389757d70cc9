/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <assert.h>
#include <string.h>

#include "nccl/feed.h"

static void take(void *ctx, const char *text, size_t len, uint64_t number)
{
	struct pp_nccl_feed *f = ctx;

	assert(len && len <= PP_NCCL_LINE_MAX && strlen(text) == len);
	for (size_t i = 0; i < len; i++)
		assert(text[i] >= 0x20 && text[i] < 0x7f);
	f->reader->table = pp_nccl_job_line(&f->job, text, len, number);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pp_nccl_judgement j;
	struct pp_nccl_group g;
	struct pp_nccl_feed f;
	/* the first byte says where the stream is cut in two */
	size_t half = size > 1 ? 1 + data[0] % (size - 1) : size;

	if (pp_nccl_feed_init(&f))
		return 0;
	f.reader->fn = take;
	pp_nccl_feed_file(&f, "fuzz");
	pp_nccl_feed_push(&f, (const char *)data, half);
	pp_nccl_feed_push(&f, (const char *)data + half, size - half);
	pp_nccl_feed_end(&f);
	if (!pp_nccl_feed_judge(&f, &g, &j)) {
		assert(j.n_why <= PP_NCCL_MAX_WHY && j.ranks_seen <= j.ranks);
		assert(j.claim_mechanism <= j.claim_gdr || j.claim_gdr == PP_NCCL_REFUTED);
		assert(j.claim_gdr != PP_NCCL_PROVEN || j.path == PP_NCCL_PATH_GDR);
		assert(j.claim_gdr != PP_NCCL_REFUTED || j.path != PP_NCCL_PATH_GDR);
		assert(j.root == PP_NCCL_NONE || j.root < f.job.errors.n);
		pp_nccl_group_done(&g);
	}
	pp_nccl_feed_done(&f);
	return 0;
}
