/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What follows from the tree: links, pairs of gpu and hca, rails. Reads nothing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "node/choice.h"
#include "node/link.h"
#include "node/node.h"
#include "node/path.h"
#include "node/rail.h"
#include "node/smi_compare.h"
#include "base/banned.h"

enum { NEARER_SHOWN = 4 };

static void set_int(struct pp_node *n, struct pp_object *o, enum pp_fact_id id, int64_t value,
		    const char *why)
{
	if (value >= 0)
		pp_fact_int(&n->facts, o, id, value, NULL);
	else
		pp_fact_unknown(&n->facts, o, id, NULL, "%s", why);
}

/* 1, 0, -1 unknown */
static void set_bool(struct pp_node *n, struct pp_object *o, enum pp_fact_id id, int value,
		     const char *why)
{
	if (value >= 0)
		pp_fact_bool(&n->facts, o, id, value, NULL);
	else
		pp_fact_unknown(&n->facts, o, id, NULL, "%s", why);
}

static void add_link(struct pp_node *n, int lower)
{
	struct pp_link link = pp_link_of(&n->pci, lower);
	const char *why = link.why ? link.why : "not read at both ends";
	char id[PP_BDF_TEXT];
	struct pp_object *o =
		pp_object_add(&n->facts, PP_LINK, pp_bdf_format(&n->pci.dev[lower].bdf, id));

	if (!o)
		return;
	o->pci = lower;
	pp_fact_str(&n->facts, o, PP_F_LINK_BELOW,
		    pp_pci_is_gpu(&n->pci.dev[lower])	   ? "gpu"
		    : pp_pci_is_bridge(&n->pci.dev[lower]) ? "bridge"
							   : "hca",
		    NULL);
	set_int(n, o, PP_F_LINK_SPEED, link.speed_mts, why);
	set_int(n, o, PP_F_LINK_WIDTH, link.width, why);
	set_int(n, o, PP_F_LINK_SPEED_POSSIBLE, link.possible_speed_mts, why);
	set_int(n, o, PP_F_LINK_WIDTH_POSSIBLE, link.possible_width, why);
	set_bool(n, o, PP_F_LINK_NARROW, link.narrow, why);
	set_bool(n, o, PP_F_LINK_SLOW, link.slow, link.slow_why ? link.slow_why : why);
	set_bool(n, o, PP_F_LINK_SLOT_LIMITED, link.slot_limited, why);
	set_int(n, o, PP_F_LINK_CEILING, link.gb_per_s > 0 ? (int64_t)(link.gb_per_s * 1000) : -1,
		why);
}

/* Each link on the ways of gpus and hcas up to their root ports, once. */
static void add_links(struct pp_node *n)
{
	bool *seen = pp_arena_array(&n->arena, n->pci.n, sizeof(*seen));
	struct pp_object *o, *last = n->facts.last;

	if (!seen)
		return;
	for (o = n->facts.first; o; o = o == last ? NULL : o->next) {
		if ((o->kind != PP_GPU && o->kind != PP_HCA) || o->pci < 0)
			continue;
		for (int i = o->pci; i >= 0; i = n->pci.dev[i].parent) {
			if (!pp_link_above(&n->pci, i) || seen[n->pci.dev[i].parent])
				continue;
			seen[n->pci.dev[i].parent] = true;
			add_link(n, i);
		}
	}
}

static void acs_facts(struct pp_node *n, struct pp_object *o, const struct pp_path *p)
{
	const char *at[PP_ARRAY_LEN(p->redirect)];
	char id[PP_BDF_TEXT];

	set_bool(n, o, PP_F_PAIR_ACS_REDIRECT, p->acs_redirect, p->acs_why);
	set_bool(n, o, PP_F_PAIR_ACS_DT, p->acs_dt,
		 *p->acs_why ? p->acs_why : "ACS bits of a port on the way could not be read");
	for (unsigned int i = 0; i < p->n_redirect; i++)
		at[i] = pp_arena_str(&n->arena, pp_bdf_format(&n->pci.dev[p->redirect[i]].bdf, id));
	if (p->acs_redirect < 0)
		pp_fact_unknown(&n->facts, o, PP_F_PAIR_ACS_AT, NULL, "%s", p->acs_why);
	else
		pp_fact_list(&n->facts, o, PP_F_PAIR_ACS_AT, at, p->n_redirect, NULL);
}

static void group_fact(struct pp_node *n, struct pp_object *o, const struct pp_object *gpu,
		       const struct pp_object *hca)
{
	const struct pp_pci_dev *a = &n->pci.dev[gpu->pci], *b = &n->pci.dev[hca->pci];

	if (a->iommu_group == PP_UNREADABLE || b->iommu_group == PP_UNREADABLE)
		pp_fact_unknown(&n->facts, o, PP_F_PAIR_SAME_IOMMU_GROUP, NULL,
				"the IOMMU group of one of them could not be read");
	else
		pp_fact_bool(&n->facts, o, PP_F_PAIR_SAME_IOMMU_GROUP,
			     a->iommu_group >= 0 && a->iommu_group == b->iommu_group, NULL);
}

static void path_facts(struct pp_node *n, struct pp_object *o, const struct pp_path *p,
		       const char *distance_why)
{
	struct pp_facts *f = &n->facts;

	if (p->distance == PP_DISTANCE_UNKNOWN)
		pp_fact_unknown(f, o, PP_F_PAIR_DISTANCE, NULL, "%s", distance_why);
	else
		pp_fact_str(f, o, PP_F_PAIR_DISTANCE, pp_distance_name(p->distance), NULL);
	if (p->route == PP_ROUTE_UNKNOWN)
		pp_fact_unknown(f, o, PP_F_PAIR_ROUTE, NULL, "%s", p->route_why);
	else
		pp_fact_str(f, o, PP_F_PAIR_ROUTE, pp_route_name(p->route), NULL);
	set_bool(n, o, PP_F_PAIR_TRANSLATED, p->translated, p->translated_why);
	acs_facts(n, o, p);
	set_int(n, o, PP_F_PAIR_CEILING, p->ceiling_mbytes, p->ceiling_why);
	if (*p->ceiling_at)
		pp_fact_str(f, o, PP_F_PAIR_CEILING_AT, p->ceiling_at, NULL);
	else
		pp_fact_unknown(f, o, PP_F_PAIR_CEILING_AT, NULL, "%s", p->ceiling_why);
}

struct pp_path_hints pp_path_hints_of(const struct pp_node *n, const struct pp_object *gpu)
{
	const char *vm = pp_fact_str_or(n->self, PP_F_VIRTUAL_MACHINE, NULL);

	return (struct pp_path_hints){
		.c2c = pp_fact_is(gpu, PP_F_GPU_C2C),
		.guest = (int8_t)(!vm ? -1 : strcmp(vm, "none") != 0),
	};
}

/*
 * The pair objects of one gpu, in the order of r->nic. Returns 1 when an hca is near, 0 when none
 * is, -1 when that is not known.
 */
static int add_pairs(struct pp_node *n, struct pp_rails *r, unsigned int g,
		     struct pp_object **pairs)
{
	struct pp_object *gpu = r->gpu[g], *hca;
	struct pp_path_hints hints = pp_path_hints_of(n, gpu);
	struct pp_rail_rank *rank;
	struct pp_path path;
	int near = 0;

	for (unsigned int i = 0; i < r->n_nics; i++) {
		hca = r->nic[i].o;
		rank = &r->rank[(size_t)g * r->n_nics + i];
		hints.port = r->nic[i].port;
		pp_path_find(&n->pci, gpu->pci, hca->pci, &hints, &path);
		*rank = pp_rail_rank_of(&n->pci, gpu->pci, &r->nic[i], path.distance,
					path.ceiling_mbytes);
		if (path.distance <= PP_DISTANCE_PXB && !r->nic[i].dropped)
			near = 1;
		else if (path.distance == PP_DISTANCE_UNKNOWN && !near)
			near = -1;
		pairs[i] = pp_object_add(&n->facts, PP_PAIR,
					 pp_arena_printf(&n->arena, "%s/%s", gpu->id, hca->id));
		if (!pairs[i])
			return near;
		pairs[i]->parent = gpu;
		pairs[i]->peer = hca;
		path_facts(n, pairs[i], &path, pp_distance_why(&n->pci, gpu->pci, hca->pci));
		group_fact(n, pairs[i], gpu, hca);
	}
	return near;
}

/* What stands between the gpu and a better rail is the first thing to repair. */
static void nearer_fact(struct pp_node *n, const struct pp_rails *r, unsigned int g,
			unsigned int rail, struct pp_object *pair)
{
	const struct pp_rail_rank *rank = &r->rank[(size_t)g * r->n_nics];
	const char *list[NEARER_SHOWN];
	unsigned int k = 0;

	for (unsigned int i = 0; i < r->n_nics && k < NEARER_SHOWN; i++)
		if (r->nic[i].lacks && rank[i].distance < rank[rail].distance)
			list[k++] = pp_arena_printf(
				&n->arena, "%s hca %s (%s) %s",
				rank[i].distance <= PP_DISTANCE_PXB ? "near" : "nearer",
				r->nic[i].o->id, pp_distance_name(rank[i].distance),
				r->nic[i].lacks);
	pp_fact_list(&n->facts, pair, PP_F_PAIR_NEARER_UNUSABLE, list, k, NULL);
}

static void rail_facts(struct pp_node *n, const struct pp_rails *r, struct pp_object *const *pairs)
{
	char why[320];

	for (unsigned int g = 0; g < r->n_gpus; g++) {
		for (unsigned int i = 0; i < r->n_nics; i++) {
			struct pp_object *o = pairs[(size_t)g * r->n_nics + i];

			pp_fact_bool(&n->facts, o, PP_F_PAIR_RAIL, r->choice[g] == (int)i, NULL);
			pp_fact_str(&n->facts, o, PP_F_PAIR_RAIL_WHY,
				    pp_rail_why(r, g, i, why, sizeof(why)), NULL);
			if (r->choice[g] == (int)i)
				nearer_fact(n, r, g, i, o);
		}
	}
}

static int add_rails(struct pp_node *n)
{
	struct pp_rails PP_CLEANUP(pp_rails_done) r = {0};
	struct pp_object **PP_AUTO_FREE pairs = NULL;
	int near = 0, unknown = 0, one, e = pp_rails_list(n, &r);

	if (e)
		return e;
	pairs = calloc((size_t)r.n_gpus * r.n_nics + 1, sizeof(struct pp_object *));
	if (!pairs)
		return -ENOMEM;
	for (unsigned int g = 0; g < r.n_gpus; g++) {
		one = add_pairs(n, &r, g, pairs + (size_t)g * r.n_nics);
		near += one > 0;
		unknown += one < 0;
	}
	e = n->arena.failed ? -ENOMEM : pp_rails_choose(&r);
	if (e)
		return e;
	rail_facts(n, &r, pairs);
	if (unknown)
		pp_fact_unknown(&n->facts, n->self, PP_F_NODE_CLOSE_PAIRS, NULL,
				"distances of %d gpus are not known", unknown);
	else
		pp_fact_int(&n->facts, n->self, PP_F_NODE_CLOSE_PAIRS, near, NULL);
	return 0;
}

static void collect_pairs(struct pp_node *n)
{
	int r;

	if (n->pci.why) {
		pp_fact_unknown(&n->facts, n->self, PP_F_NODE_CLOSE_PAIRS, NULL, "%s", n->pci.why);
		return;
	}
	r = add_rails(n);
	if (r == -EFBIG)
		pp_fact_unknown(&n->facts, n->self, PP_F_NODE_CLOSE_PAIRS, NULL,
				"more than %d pairs of gpu and hca: not looked at", PP_RAIL_PAIRS);
	else if (r)
		n->arena.failed = true;
}

void pp_collect_paths(struct pp_node *n)
{
	add_links(n);
	collect_pairs(n);
	pp_choice_facts(n);
	pp_smi_compare(n);
}
