/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerpath check --probe: registers, shows what answered, and lets the rules know it.
 */
#include "cli/check.h"

#include <errno.h>
#include <stdio.h>

#include "base/banned.h"

static void add_fact(struct pp_node *n, const struct pp_probe_result *row)
{
	enum pp_fact_id id =
		row->method == PP_PROBE_HOST ? PP_F_HCA_PROBE_HOST : PP_F_HCA_PROBE_DMABUF;
	struct pp_object *hca = pp_object_find(&n->facts, PP_HCA, row->hca);

	if (row->method != PP_PROBE_HOST && row->method != PP_PROBE_DMABUF_FD)
		return;
	if (row->verdict == PP_UNKNOWN)
		pp_fact_unknown(&n->facts, hca, id, "probe", "%s", row->note);
	else
		pp_fact_bool(&n->facts, hca, id, row->verdict == PP_PASS, "probe");
}

int pp_check_probe(struct pp_check *c)
{
	const struct pp_probe_options options = {.busy_ok = pp_args_has(c->s.args, "busy-ok")};
	struct pp_error err = {0};

	if (pp_probe_run(c->s.node, &options, &c->probe, &err))
		return pp_complain(c->s.args, PP_EXIT_INTERNAL, "%s", err.text);
	for (size_t i = 0; i < c->probe->n; i++)
		add_fact(c->s.node, &c->probe->row[i]);
	return c->s.node->arena.failed ? pp_complain(c->s.args, PP_EXIT_INTERNAL, "out of memory")
				       : 0;
}

/* Rows of one hca and all GPUs differ in nothing that a person could use: one line tells them. */
static bool shown(const struct pp_out *o, const struct pp_probe_result *row)
{
	return pp_out_is_json(o) || row->method <= PP_PROBE_DMABUF_FD;
}

static void gpu_line(struct pp_out *o, const struct pp_probe *probe)
{
	for (size_t i = 0; i < probe->n; i++) {
		if (probe->row[i].method <= PP_PROBE_DMABUF_FD)
			continue;
		pp_out_para(o, 2,
			    "  GPU memory with any hca, by DMA-BUF and by peermem: unknown: %s.",
			    probe->row[i].note);
		return;
	}
}

void pp_check_probe_out(struct pp_out *o, const struct pp_probe *probe)
{
	static const struct pp_out_column columns[] = {
		{"verdict", "VERDICT", false}, {"hca", "HCA", false},	{"name", NULL, false},
		{"gpu", NULL, false},	       {"method", "BY", false}, {"errno", NULL, false},
		{"took_ns", NULL, false},      {"note", "WHAT", true},
	};

	pp_out_heading(o, "Probe");
	pp_out_table(o, "probe", columns, PP_ARRAY_LEN(columns));
	for (size_t i = 0; i < probe->n; i++) {
		const struct pp_probe_result *row = &probe->row[i];

		if (!shown(o, row))
			continue;
		pp_out_cell_verdict(o, row->verdict);
		pp_out_cell(o, row->hca);
		pp_out_cell(o, row->name);
		pp_out_cell(o, row->gpu[0] ? row->gpu : NULL);
		pp_out_cell(o, pp_probe_method_name(row->method));
		pp_out_cell_i64(o, row->error);
		pp_out_cell_i64(o, row->took);
		pp_out_cell(o, row->note);
	}
	pp_out_table_end(o);
	if (!probe->n)
		pp_out_para(o, 2, "  No hca to probe.");
	gpu_line(o, probe);
	if (probe->users_note[0])
		pp_out_para(o, 2, "  %s", probe->users_note);
	pp_out_u64(o, "probe_busy_hcas", NULL, probe->busy);
	pp_out_bool(o, "probe_users_known", NULL, probe->users_known);
	pp_out_str(o, "probe_users", NULL, probe->users_note);
}
