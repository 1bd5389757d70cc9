/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerpath check --probe: registers, shows what answered, and lets the rules know it.
 */
#include "cli/check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/banned.h"

static void add_fact(struct pp_node *n, const struct pp_probe_result *row)
{
	static const enum pp_fact_id facts[] = {
		[PP_PROBE_HOST] = PP_F_HCA_PROBE_HOST,
		[PP_PROBE_DMABUF_FD] = PP_F_HCA_PROBE_DMABUF,
		[PP_PROBE_GPU_DMABUF] = PP_F_PAIR_PROBE_DMABUF,
		[PP_PROBE_GPU_PEERMEM] = PP_F_PAIR_PROBE_PEERMEM,
	};
	struct pp_object *of;
	char pair[128];

	(void)snprintf(pair, sizeof(pair), "%s/%s", row->gpu, row->hca);
	of = row->gpu[0] ? pp_object_find(&n->facts, PP_PAIR, pair)
			 : pp_object_find(&n->facts, PP_HCA, row->hca);
	if (row->verdict == PP_UNKNOWN)
		pp_fact_unknown(&n->facts, of, facts[row->method], "probe", "%s", row->note);
	else
		pp_fact_bool(&n->facts, of, facts[row->method], row->verdict == PP_PASS, "probe");
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

/* Pairs are many, and most of them alike: people read those that are alike as one line. */
enum { GROUPS = 12 };

struct group {
	const struct pp_probe_result *first;
	unsigned int n;
};

static bool alike(const struct pp_probe_result *a, const struct pp_probe_result *b)
{
	return a->method == b->method && a->verdict == b->verdict && !strcmp(a->note, b->note);
}

static void count(struct group groups[GROUPS + 1], const struct pp_probe_result *row)
{
	unsigned int i = 0;

	while (i < GROUPS && groups[i].n && !alike(groups[i].first, row))
		i++;
	if (!groups[i].n++)
		groups[i].first = row;
}

static void gpu_lines(struct pp_out *o, const struct pp_probe *probe)
{
	struct group groups[GROUPS + 1] = {0};

	if (pp_out_is_json(o))
		return;
	for (size_t i = 0; i < probe->n; i++)
		if (probe->row[i].gpu[0])
			count(groups, &probe->row[i]);
	for (unsigned int i = 0; i < GROUPS && groups[i].n; i++) {
		const struct pp_probe_result *row = groups[i].first;

		pp_out_para(o, 2, "  %s: %s, %u pair%s%s%s%s%s: %s.", pp_verdict_name(row->verdict),
			    pp_probe_method_name(row->method), groups[i].n,
			    groups[i].n == 1 ? " " : "s (the first ", row->gpu, " with ", row->name,
			    groups[i].n == 1 ? "" : ")", row->note);
	}
	if (groups[GROUPS].n)
		pp_out_para(o, 2, "  and %u pairs with other reasons: --json has them all.",
			    groups[GROUPS].n);
}

/* A pair's row is in the document; its line is one of gpu_lines(). */
static bool shown(const struct pp_out *o, const struct pp_probe_result *row)
{
	return pp_out_is_json(o) || !row->gpu[0];
}

void pp_check_probe_out(struct pp_out *o, const struct pp_probe *probe)
{
	static const struct pp_out_column columns[] = {
		{"verdict", "VERDICT", false}, {"hca", "HCA", false},	{"name", NULL, false},
		{"gpu", NULL, false},	       {"method", "BY", false}, {"errno", NULL, false},
		{"took_ns", NULL, false},      {"note", "WHAT", true},	{"simulated", NULL, false},
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
		pp_out_cell_bool(o, row->simulated);
	}
	pp_out_table_end(o);
	if (!probe->n)
		pp_out_para(o, 2, "  No hca to probe.");
	gpu_lines(o, probe);
	if (probe->users_note[0])
		pp_out_para(o, 2, "  %s", probe->users_note);
	pp_out_u64(o, "probe_busy_hcas", NULL, probe->busy);
	pp_out_u64(o, "probe_busy_gpus", NULL, probe->busy_gpus);
	pp_out_bool(o, "probe_users_known", NULL, probe->users_known);
	pp_out_str(o, "probe_users", NULL, probe->users_note);
}
