/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rails first: which hca each gpu should use, by which route, how fast at most, and why; then
 * what the libraries would decide for these pairs, and where to pin processes.
 */
#include <inttypes.h>

#include "cli/topo.h"
#include "base/banned.h"

const struct pp_object *pp_topo_rail(const struct pp_node *n, const struct pp_object *gpu)
{
	const struct pp_object *o = NULL;

	while ((o = pp_object_next(&n->facts, PP_PAIR, o)))
		if (o->parent == gpu && pp_fact_is(o, PP_F_PAIR_RAIL))
			return o;
	return NULL;
}

/* Why a gpu has no rail: what its first pair says. */
static const char *no_rail(const struct pp_node *n, const struct pp_object *gpu)
{
	const struct pp_object *o = NULL;

	while ((o = pp_object_next(&n->facts, PP_PAIR, o)))
		if (o->parent == gpu)
			return pp_fact_str_or(o, PP_F_PAIR_RAIL_WHY, "not looked at");
	return n->facts.count[PP_HCA] ? "pairs were not looked at: too many"
				      : "no hca on the PCI bus";
}

static void ceiling_cell(struct pp_view *v, const struct pp_object *pair)
{
	const struct pp_fact *fact = pp_fact_get(pair, PP_F_PAIR_CEILING);

	if (!fact || !fact->known || pp_out_is_json(v->out))
		pp_view_cell(v, pair, PP_F_PAIR_CEILING);
	else
		pp_out_cellf(v->out, "%" PRId64 ".%" PRId64 " GB/s", fact->i64 / 1000,
			     fact->i64 % 1000 / 100);
}

static void rail_row(struct pp_view *v, const struct pp_topo *t, unsigned int g)
{
	const struct pp_object *gpu = t->members[g].o, *pair = pp_topo_rail(v->node, gpu);

	pp_out_cell(v->out, t->members[g].name);
	pp_out_cell(v->out, gpu->id);
	pp_out_cell(v->out, pair ? pair->peer->id : NULL);
	pp_out_cell(v->out, pair ? pair->peer->name : NULL);
	if (!pair) {
		for (int i = 0; i < 4; i++)
			pp_out_cell(v->out, NULL);
		pp_out_cell(v->out, no_rail(v->node, gpu));
		return;
	}
	pp_view_cell(v, pair, PP_F_PAIR_DISTANCE);
	pp_view_cell(v, pair, PP_F_PAIR_ROUTE);
	ceiling_cell(v, pair);
	pp_view_cell(v, pair, PP_F_PAIR_CEILING_AT);
	pp_view_cell(v, pair, PP_F_PAIR_RAIL_WHY);
}

void pp_topo_rails(struct pp_view *v, const struct pp_topo *t)
{
	bool narrow = pp_out_width(v->out) < PP_VIEW_NARROW;
	struct pp_out_column columns[] = {
		{NULL, "", false},
		{"gpu", "GPU", false},
		{"hca", "RAIL", false},
		{"hca_name", narrow ? NULL : "HCA", false}, /* the matrix's legend has it */
		{"distance", "DISTANCE", false},
		{"route", "ROUTE", false},
		{"ceiling_mbytes", "CEILING", false},
		{"ceiling_at", NULL, false},
		{"why", "WHY", true},
	};

	if (!t->gpus && !pp_out_is_json(v->out))
		return;
	pp_out_heading(v->out, "Rails");
	pp_out_table(v->out, "rails", columns, PP_ARRAY_LEN(columns));
	for (unsigned int g = 0; g < t->gpus; g++)
		rail_row(v, t, g);
	pp_out_table_end(v->out);
}

void pp_topo_choices(struct pp_view *v, const struct pp_topo *t)
{
	static const struct pp_out_column columns[] = {
		{"gpu", "GPU", false}, {"hca", "RAIL", false},	     {"nccl", "NCCL", true},
		{"ucx", "UCX", true},  {"nvshmem", "NVSHMEM", true},
	};
	const struct pp_object *pair;
	const char *set;

	if (!v->node->facts.count[PP_PAIR] && !pp_out_is_json(v->out))
		return;
	pp_out_heading(v->out, "What libraries would decide for the rails");
	pp_out_table(v->out, "choices", columns, PP_ARRAY_LEN(columns));
	for (unsigned int g = 0; g < t->gpus; g++) {
		pair = pp_topo_rail(v->node, t->members[g].o);
		if (!pair)
			continue;
		pp_out_cell(v->out, pair->parent->id);
		pp_out_cell(v->out, pair->peer->id);
		pp_view_cell(v, pair, PP_F_PAIR_NCCL);
		pp_view_cell(v, pair, PP_F_PAIR_UCX);
		pp_view_cell(v, pair, PP_F_PAIR_NVSHMEM);
	}
	pp_out_table_end(v->out);
	set = pp_fact_str_or(v->node->self, PP_F_NCCL_IB_HCA, "");
	if (*set)
		pp_out_para(v->out, 2,
			    "  NCCL_IB_HCA=%s is set here: NCCL uses these hcas only, whatever "
			    "stands above.",
			    set);
}

static const char *cpus_of(const struct pp_node *n, const struct pp_object *o)
{
	return o && o->pci >= 0 ? n->pci.dev[o->pci].local_cpus : NULL;
}

void pp_topo_pinning(struct pp_view *v, const struct pp_topo *t)
{
	static const struct pp_out_column columns[] = {
		{"gpu", "GPU", false},
		{"numa_node", "NUMA NODE", false},
		{"gpu_cpus", "CPUS", true},
		{"hca", "RAIL", false},
		{"hca_cpus", "RAIL'S CPUS", true},
	};
	const struct pp_object *gpu, *pair;

	if (!t->gpus && !pp_out_is_json(v->out))
		return;
	pp_out_heading(v->out, "CPU pinning: a gpu's process belongs on the gpu's CPUs");
	pp_out_table(v->out, "pinning", columns, PP_ARRAY_LEN(columns));
	for (unsigned int g = 0; g < t->gpus; g++) {
		gpu = t->members[g].o;
		pair = pp_topo_rail(v->node, gpu);
		pp_out_cell(v->out, gpu->id);
		pp_view_cell(v, gpu, PP_F_GPU_NUMA);
		pp_view_cell(v, gpu, PP_F_GPU_CPUS);
		pp_out_cell(v->out, pair ? pair->peer->id : NULL);
		pp_out_cell(v->out, cpus_of(v->node, pair ? pair->peer : NULL));
	}
	pp_out_table_end(v->out);
}
