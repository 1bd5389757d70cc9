/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bare peerpath: one screen about this node, its rails, and what is wrong. Read-only.
 */
#include "cli/session.h"
#include "cli/view.h"
#include "cli/proof.h"
#include "base/banned.h"

enum { FINDINGS_SHOWN = 5 };

static const char *short_text(const struct pp_object *o, enum pp_fact_id id)
{
	return pp_fact_str_or(o, id, "unknown");
}

static void headline(struct pp_out *o, const struct pp_node *n)
{
	const struct pp_object *self = n->self;

	pp_out_para(o, 2, "Linux %s, NVIDIA module %s (%s), RDMA %s, libibverbs %s",
		    short_text(self, PP_F_KERNEL_RELEASE), short_text(self, PP_F_NVIDIA_VERSION),
		    short_text(self, PP_F_NVIDIA_FLAVOUR), short_text(self, PP_F_RDMA_STACK),
		    short_text(self, PP_F_IBVERBS_VERSION));
	pp_out_str(o, "kernel_release", NULL, pp_fact_str_or(self, PP_F_KERNEL_RELEASE, NULL));
	pp_out_str(o, "nvidia_version", NULL, pp_fact_str_or(self, PP_F_NVIDIA_VERSION, NULL));
	pp_out_str(o, "nvidia_flavour", NULL, pp_fact_str_or(self, PP_F_NVIDIA_FLAVOUR, NULL));
	pp_out_i64(o, "gpus", NULL, n->facts.count[PP_GPU]);
	pp_out_i64(o, "hcas", NULL, n->facts.count[PP_HCA]);
}

/* The gpu's rail among its pairs; NULL when none was chosen. */
static const struct pp_object *rail_of(const struct pp_node *n, const struct pp_object *gpu)
{
	const struct pp_object *o = NULL;

	while ((o = pp_object_next(&n->facts, PP_PAIR, o)))
		if (o->parent == gpu && pp_fact_is(o, PP_F_PAIR_RAIL))
			return o;
	return NULL;
}

/* An empty list is an answer only where the bus could be read. */
static void no_gpu(const struct pp_view *v)
{
	const struct pp_fact *n = pp_fact_get(v->node->self, PP_F_N_GPUS);

	if (n && n->known)
		pp_out_raw(v->out, "No GPU was found.\n");
	else
		pp_out_para(v->out, 0, "Whether there is a GPU is unknown: %s",
			    n && n->why ? n->why : "not observed");
}

static void rails(struct pp_view *v)
{
	static const struct pp_out_column columns[] = {
		{"gpu", "GPU", false},		 {"gpu_name", "NAME", true},
		{"hca", "RAIL", false},		 {"hca_name", "HCA", false},
		{"distance", "DISTANCE", false}, {"route", "ROUTE", false},
		{"active_ports", "PORTS", false}};
	const struct pp_object *gpu = NULL, *pair;

	if (!v->node->facts.count[PP_GPU] && !pp_out_is_json(v->out)) {
		no_gpu(v);
		return;
	}
	if (!pp_out_is_json(v->out))
		pp_out_raw(v->out, "\n");
	pp_out_table(v->out, "rails", columns, PP_ARRAY_LEN(columns));
	while ((gpu = pp_object_next(&v->node->facts, PP_GPU, gpu))) {
		pair = rail_of(v->node, gpu);
		pp_out_cell(v->out, gpu->id);
		pp_view_cell(v, gpu, PP_F_GPU_NAME);
		pp_out_cell(v->out, pair ? pair->peer->id : NULL);
		if (pair) {
			pp_view_cell(v, pair->peer, PP_F_HCA_NAME);
			pp_view_cell(v, pair, PP_F_PAIR_DISTANCE);
			pp_view_cell(v, pair, PP_F_PAIR_ROUTE);
			pp_view_cell(v, pair->peer, PP_F_HCA_ACTIVE_PORTS);
		} else {
			for (int i = 0; i < 4; i++)
				pp_out_cell(v->out, NULL);
		}
	}
	pp_out_table_end(v->out);
}

static void gates(struct pp_out *o, const struct pp_gates *g)
{
	static const struct pp_out_column columns[] = {
		{"gate", "GATE", false}, {"verdict", "VERDICT", false}, {"claim", "CLAIM", true}};

	if (!pp_out_is_json(o))
		pp_out_raw(o, "\n");
	pp_out_table(o, "gates", columns, PP_ARRAY_LEN(columns));
	for (unsigned int i = 0; i <= (unsigned int)g->through; i++) {
		pp_out_cellf(o, "%u %s", i, pp_gate_name(g->row[i].gate));
		pp_out_cell_verdict(o, g->row[i].verdict);
		pp_out_cell(o, g->row[i].claim);
	}
	pp_out_table_end(o);
}

static void nothing_wrong(struct pp_out *o, const struct pp_gates *g)
{
	unsigned int missing = 0;

	for (unsigned int i = 0; i <= (unsigned int)g->through; i++)
		missing += g->row[i].missing;
	pp_out_cell(o, " ");
	pp_out_cell(o, " ");
	pp_out_cell(o, NULL);
	if (g->verdict != PP_UNKNOWN)
		pp_out_cell(o, "nothing known to be wrong");
	else if (missing == 1)
		pp_out_cell(o, "nothing known to be wrong, but 1 needed fact is unknown");
	else
		pp_out_cellf(o, "nothing known to be wrong, but %u needed facts are unknown",
			     missing);
}

static void worst(struct pp_out *o, const struct pp_findings *f, const struct pp_gates *g)
{
	static const struct pp_out_column columns[] = {{"verdict", "VERDICT", false},
						       {"of", "WHERE", false},
						       {"rule", NULL, false},
						       {"title", "WHAT IS WRONG", true}};
	size_t shown = 0;

	if (!pp_out_is_json(o))
		pp_out_raw(o, "\n");
	pp_out_table(o, "worst", columns, PP_ARRAY_LEN(columns));
	for (size_t i = 0; i < f->n && shown < FINDINGS_SHOWN; i++) {
		if (f->list[i].state != PP_TRUE || !f->list[i].counts)
			continue;
		pp_out_cell_verdict(o, f->list[i].verdict);
		pp_out_cell(o, f->list[i].of->id);
		pp_out_cell(o, f->list[i].rule->id);
		pp_out_cell(o, f->list[i].what);
		shown++;
	}
	if (!shown && !pp_out_is_json(o))
		nothing_wrong(o, g);
	pp_out_table_end(o);
}

int pp_cmd_show(const struct pp_args *args)
{
	struct pp_proof p = {0};
	struct pp_session s;
	struct pp_view v;
	int code = pp_session_open(args, false, &s);

	if (!code)
		code = pp_proof_judge(&s, PP_GATE_PREREQUISITES, &p);
	if (code)
		goto out;
	v = PP_VIEW(s.out, s.node);
	pp_out_document(s.out, "peerpath.show/1");
	headline(s.out, s.node);
	rails(&v);
	gates(s.out, &p.gates);
	worst(s.out, &p.findings, &p.gates);
	pp_out_verdict(s.out, "verdict", NULL, p.gates.verdict);
	pp_out_para(s.out, 0,
		    "\nnext: peerpath check --details, or peerpath prove; peerpath --help");
	code = pp_exit_of(args, p.gates.verdict);
out:
	code = pp_session_close(&s, code);
	pp_proof_done(&p);
	return code;
}
