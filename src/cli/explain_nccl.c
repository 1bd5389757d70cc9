/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/explain_nccl.h"

#include <errno.h>

#include "base/banned.h"

static void take_line(void *ctx, const char *text, size_t len, uint64_t number)
{
	struct pp_explain_nccl *n = ctx;

	n->reader->table = pp_nccl_job_line(&n->job, text, len, number);
}

int pp_explain_nccl_init(struct pp_explain_nccl *n)
{
	pp_nccl_job_init(&n->job);
	pp_nccl_job_file(&n->job, "text");
	n->reader = pp_nccl_reader_new(take_line, n);
	return n->reader ? 0 : -ENOMEM;
}

void pp_explain_nccl_done(struct pp_explain_nccl *n)
{
	pp_nccl_reader_free(n->reader);
	n->reader = NULL;
	pp_nccl_job_done(&n->job);
}

void pp_explain_nccl_push(struct pp_explain_nccl *n, const char *bytes, size_t len)
{
	pp_nccl_reader_feed(n->reader, bytes, len);
}

static void show(struct pp_out *o, const struct pp_nccl_judgement *j)
{
	const char *path = pp_nccl_path_name(j->path), *claim = pp_nccl_claim_name(j->claim_gdr);

	pp_out_open(o, "nccl");
	pp_out_str(o, "path", NULL, path);
	pp_out_str(o, "mechanism", NULL, pp_nccl_mechanism_name(j->mechanism));
	pp_out_str(o, "claim_gdr", NULL, claim);
	pp_out_str(o, "coverage", NULL, pp_nccl_coverage_name(j->coverage));
	pp_out_str(o, "nccl_version", NULL, j->version);
	pp_out_str(o, "why", NULL, j->n_why ? j->why[0].text : NULL);
	pp_out_str(o, "next", NULL, j->next);
	pp_out_close(o);
	if (j->path == PP_NCCL_PATH_UNDETERMINED && j->claim_gdr != PP_NCCL_REFUTED)
		return;
	pp_out_para(o, 0, "\nAs a log of NCCL: path %s; GPUDirect RDMA %s%s%s.", path, claim,
		    j->n_why ? ": " : "", j->n_why ? j->why[0].text : "");
	pp_out_para(o, 2, "  All of it: peerpath nccl judge LOG...");
}

int pp_explain_nccl_show(struct pp_explain_nccl *n, struct pp_out *o)
{
	struct pp_nccl_judgement j;
	struct pp_nccl_group group;
	int r;

	pp_nccl_reader_end(n->reader);
	n->job.cut = n->reader->cut;
	if (!n->job.lines)
		return 0;
	r = pp_nccl_group_make(&n->job, &group);
	if (!r)
		r = pp_nccl_judge(&n->job, &group, &j);
	if (!r)
		show(o, &j);
	pp_nccl_group_done(&group);
	return r;
}
