/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <assert.h>
#include <string.h>

#include "nccl/judge.h"
#include "nccl/reader.h"

struct feed {
	struct pp_nccl_job job;
	struct pp_nccl_reader *reader;
};

static void take(void *ctx, const char *text, size_t len, uint64_t number)
{
	struct feed *f = ctx;

	assert(len && len <= PP_NCCL_LINE_MAX && strlen(text) == len);
	for (size_t i = 0; i < len; i++)
		assert(text[i] >= 0x20 && text[i] < 0x7f);
	f->reader->table = pp_nccl_job_line(&f->job, text, len, number);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pp_nccl_judgement j;
	struct pp_nccl_group g;
	struct feed f;
	/* the first byte says where the stream is cut in two */
	size_t half = size > 1 ? 1 + data[0] % (size - 1) : size;

	pp_nccl_job_init(&f.job);
	f.reader = pp_nccl_reader_new(take, &f);
	if (!f.reader)
		return 0;
	pp_nccl_job_file(&f.job, "fuzz");
	pp_nccl_reader_feed(f.reader, (const char *)data, half);
	pp_nccl_reader_feed(f.reader, (const char *)data + half, size - half);
	pp_nccl_reader_end(f.reader);
	if (!pp_nccl_group_make(&f.job, &g) && !pp_nccl_judge(&f.job, &g, &j)) {
		assert(j.n_why <= PP_NCCL_MAX_WHY && j.ranks_seen <= j.ranks);
		assert(j.claim_mechanism <= j.claim_gdr);
		assert(j.claim_gdr != PP_NCCL_PROVEN || j.path == PP_NCCL_PATH_GDR);
		assert(j.claim_gdr != PP_NCCL_REFUTED || j.path != PP_NCCL_PATH_GDR);
		assert(j.root == PP_NCCL_NONE || j.root < f.job.errors.n);
	}
	pp_nccl_group_done(&g);
	pp_nccl_reader_free(f.reader);
	pp_nccl_job_done(&f.job);
	return 0;
}
