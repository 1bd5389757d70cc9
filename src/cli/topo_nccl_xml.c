/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `topo --nccl-xml FILE`: what NCCL makes of a topology file, pair by pair, and what in the file
 * spoils it. The verdict is about the file at NCCL's defaults, not about this machine.
 */
#include "cli/topo.h"

#include <errno.h>
#include <stdlib.h>

#include "cli/input.h"
#include "cli/session.h"
#include "node/nccl_xml.h"
#include "base/banned.h"

struct judged {
	const struct pp_nccl_graph *g;
	struct pp_nccl_path *path;	   /* n_gpus rows of n_nics */
	unsigned int far, first_far;	   /* GPUs that no NIC is near enough to */
	unsigned int unable, first_unable; /* GPUs with near NICs, of which none is able to */
};

static const struct pp_nccl_path *path_at(const struct judged *j, unsigned int gpu,
					  unsigned int nic)
{
	return &j->path[(size_t)gpu * j->g->n_nics + nic];
}

static const struct pp_nccl_node *gpu_at(const struct judged *j, unsigned int i)
{
	return &j->g->node[j->g->gpu[i]];
}

static const struct pp_nccl_node *nic_at(const struct judged *j, unsigned int i)
{
	return &j->g->node[j->g->nic[i]];
}

static void pairs(struct pp_out *o, const struct judged *j)
{
	static const struct pp_out_column columns[] = {
		{"gpu", "GPU", false},	   {"nic", "NIC", false},
		{"nets", "NETS", true},	   {"raw", "RAW", false},
		{"flat", "NCCL", false},   {"bandwidth_gbytes", "GB/S", false},
		{"local", "LOCAL", false}, {"gdr", "GDR BY DEFAULT", false}};
	const struct pp_nccl_path *p;

	pp_out_heading(o, "Paths as NCCL computes them");
	pp_out_table(o, "pairs", columns, PP_ARRAY_LEN(columns));
	for (unsigned int i = 0; i < j->g->n_gpus; i++) {
		for (unsigned int k = 0; k < j->g->n_nics; k++) {
			p = path_at(j, i, k);
			pp_out_cell(o, gpu_at(j, i)->id);
			pp_out_cell(o, nic_at(j, k)->id);
			pp_out_cell(o, nic_at(j, k)->nets ? nic_at(j, k)->nets : "");
			pp_out_cell(o, pp_nccl_type_name(p->raw));
			pp_out_cell(o, pp_nccl_type_name(p->flat));
			pp_out_cell_double(o, p->gbytes);
			pp_out_cell_bool(o, p->local);
			pp_out_cell(
				o, pp_nccl_gdr_text(p->flat, gpu_at(j, i)->gdr, nic_at(j, k)->gdr));
		}
	}
	pp_out_table_end(o);
}

static void finding(struct pp_out *o, const char *name, unsigned int count, const char *first,
		    const char *text)
{
	pp_out_cell(o, name);
	pp_out_cell_i64(o, count);
	pp_out_cell(o, first && *first ? first : NULL);
	pp_out_cell(o, text);
}

static void count_gpus(struct judged *j)
{
	bool near, able;

	for (unsigned int i = 0; i < j->g->n_gpus; i++) {
		near = able = false;
		for (unsigned int k = 0; k < j->g->n_nics; k++) {
			if (!pp_nccl_gdr_near(path_at(j, i, k)->flat))
				continue;
			near = true;
			able |= gpu_at(j, i)->gdr && nic_at(j, k)->gdr;
		}
		if (!near && !j->far++)
			j->first_far = i;
		if (near && !able && !j->unable++)
			j->first_unable = i;
	}
}

static enum pp_verdict verdict(const struct pp_nccl_xml *x, const struct judged *j)
{
	if (!j->g->n_gpus || !j->g->n_nics)
		return PP_UNKNOWN;
	return j->far || j->unable || x->odd[PP_NCCL_ODD_SLOW_SWITCH] || x->odd[PP_NCCL_ODD_VERSION]
		       ? PP_DEGRADED
		       : PP_PASS;
}

static void far_gpus(struct pp_out *o, const struct judged *j)
{
	if (j->far)
		finding(o, "gpu-without-near-nic", j->far, gpu_at(j, j->first_far)->id,
			"no NIC at P2C or nearer: NCCL stages through host memory by default, "
			"unless "
			"an NVLink peer is near a NIC (PXN)");
	if (j->unable)
		finding(o, "gdr-off", j->unable, gpu_at(j, j->first_unable)->id,
			"near NICs, but gdr=\"0\" of the GPU or of the NIC: NCCL stages through "
			"host "
			"memory");
}

static void findings(struct pp_out *o, const struct pp_nccl_xml *x, const struct judged *j)
{
	static const struct pp_out_column columns[] = {{"finding", "FINDING", false},
						       {"count", "COUNT", false},
						       {"first", "FIRST", false},
						       {"text", "WHAT", true}};

	pp_out_heading(o, "Findings");
	pp_out_table(o, "findings", columns, PP_ARRAY_LEN(columns));
	if (!j->g->n_gpus)
		finding(o, "no-gpu", 0, NULL,
			"no GPU in the file: NCCL adds those that it finds on the machine");
	if (!j->g->n_nics)
		finding(o, "no-nic", 0, NULL,
			"no NIC in the file: NCCL adds those that it finds on the machine");
	else
		far_gpus(o, j);
	for (unsigned int i = 0; i < PP_NCCL_ODDS; i++)
		if (x->odd[i])
			finding(o, pp_nccl_odd_name(i), x->odd[i], x->odd_first[i],
				pp_nccl_odd_text(i));
	pp_out_table_end(o);
}

static void document(struct pp_out *o, const char *file, const struct pp_nccl_xml *x,
		     const struct judged *j)
{
	pp_out_document(o, "peerpath.topo-nccl/1");
	pp_out_str(o, "file", "topology file", pp_input_name(file));
	pp_out_u64(o, "gpus", "GPUs", j->g->n_gpus);
	pp_out_u64(o, "nics", "NICs", j->g->n_nics);
	pp_out_verdict(o, "verdict", "verdict", verdict(x, j));
	pairs(o, j);
	findings(o, x, j);
}

static int judge(const struct pp_nccl_xml *x, struct judged *ret)
{
	const struct pp_nccl_graph *g = &x->graph;
	size_t n = (size_t)g->n_gpus * g->n_nics; /* bounded by PP_NCCL_MAX_PAIRS */

	*ret = (struct judged){.g = g};
	ret->path = calloc(n ? n : 1, sizeof(*ret->path));
	if (!ret->path)
		return -ENOMEM;
	for (unsigned int i = 0; g->n_nics && i < g->n_gpus; i++)
		pp_nccl_paths(g, i, &ret->path[(size_t)i * g->n_nics]);
	count_gpus(ret);
	return 0;
}

int pp_topo_nccl_xml(const struct pp_args *args, const char *file)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(PP_NCCL_XML_MAX_BYTES);
	struct pp_error err = {0};
	struct pp_session session;
	struct pp_nccl_xml xml;
	struct judged j;
	int code = pp_session_open_output(args, &session);

	if (code)
		return pp_session_close(&session, code);
	if (pp_input_read(file, &text, &err) ||
	    pp_nccl_xml_parse(pp_input_name(file), pp_buf_text(&text), text.len, &xml, &err))
		return pp_session_close(
			&session,
			pp_complain(args, err.code == -ENOMEM ? PP_EXIT_INTERNAL : PP_EXIT_INPUT,
				    "%s", err.text));
	if (judge(&xml, &j))
		code = pp_complain(args, PP_EXIT_INTERNAL, "out of memory");
	else
		document(session.out, file, &xml, &j);
	if (!code)
		code = pp_exit_of(args, verdict(&xml, &j));
	free(j.path);
	pp_nccl_xml_done(&xml);
	return pp_session_close(&session, code);
}
