/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/explain_nccl.h"

#include "base/banned.h"

int pp_explain_nccl_init(struct pp_explain_nccl *n)
{
	int r = pp_nccl_feed_init(&n->feed);

	pp_nccl_feed_file(&n->feed, "text");
	return r;
}

void pp_explain_nccl_done(struct pp_explain_nccl *n)
{
	pp_nccl_feed_done(&n->feed);
}

void pp_explain_nccl_push(struct pp_explain_nccl *n, const char *bytes, size_t len)
{
	pp_nccl_feed_push(&n->feed, bytes, len);
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

	pp_nccl_feed_end(&n->feed);
	if (!n->feed.job.lines)
		return 0;
	r = pp_nccl_feed_judge(&n->feed, &group, &j);
	if (r)
		return r;
	show(o, &j);
	pp_nccl_group_done(&group);
	return 0;
}
