/* SPDX-License-Identifier: Apache-2.0 */
#include "node/layout.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "node/distance.h"
#include "base/banned.h"

enum { MAX_ROWS = 8 * PP_LAYOUT_MAX };

struct comparer {
	const struct pp_layout *l;
	const struct pp_node *n;
	struct pp_arena *a;
	struct pp_layout_rows *rows;
};

static void add(struct comparer *c, enum pp_verdict verdict, const char *what, const char *planned,
		const char *found, const char *note)
{
	struct pp_layout_rows *r = c->rows;

	if (r->n < r->cap)
		r->row[r->n++] = (struct pp_layout_row){what, planned, found, note, verdict};
}

static const char *number(struct comparer *c, int64_t n)
{
	return pp_arena_printf(c->a, "%" PRId64, n);
}

static void compare_numbers(struct comparer *c, const char *what, int64_t planned, int64_t found,
			    const char *why)
{
	if (planned < 0)
		return;
	if (found < 0)
		add(c, PP_UNKNOWN, what, number(c, planned), "unknown", why);
	else
		add(c, planned == found ? PP_PASS : PP_DEGRADED, what, number(c, planned),
		    number(c, found), NULL);
}

static int64_t known_int(const struct pp_object *o, enum pp_fact_id id, const char **ret_why)
{
	const struct pp_fact *f = pp_fact_get(o, id);

	*ret_why = f && !f->known ? f->why : pp_fact_table[id].how;
	return f && f->known ? f->i64 : -1;
}

static void compare_counts(struct comparer *c)
{
	const char *why;
	int64_t n;

	n = known_int(c->n->self, PP_F_N_GPUS, &why);
	compare_numbers(c, "GPUs", c->l->gpus, n, why);
	n = known_int(c->n->self, PP_F_N_HCAS, &why);
	compare_numbers(c, "hcas", c->l->hcas, n, why);
	compare_numbers(c, "NUMA nodes", c->l->numa_nodes, c->n->pci.online_nodes,
			"/sys/devices/system/node could not be read");
}

/*
 * Who a layout means. *ret_why is set when the object was not found and might yet be there:
 * absent is a difference, not identifiable is unknown.
 */
static const struct pp_object *find_gpu(struct comparer *c, const char *word, const char **ret_why)
{
	const struct pp_object *o = NULL;
	const struct pp_fact *f;
	struct pp_bdf bdf;
	uint64_t index = 0;
	bool is_index = !pp_parse_u64(word, 0, 4096, &index);
	int pci = pp_bdf_parse(word, &bdf) ? -1 : pp_pci_find(&c->n->pci, &bdf);

	*ret_why = c->n->pci.why;
	while ((o = pp_object_next(&c->n->facts, PP_GPU, o))) {
		if (pci >= 0 && o->pci == pci)
			return o;
		f = pp_fact_get(o, is_index ? PP_F_GPU_INDEX : PP_F_GPU_UUID);
		if (f && f->known && is_index && f->i64 == (int64_t)index)
			return o;
		if (f && f->known && !is_index && !strcmp(f->str, word))
			return o;
		if (pci < 0 && pp_bdf_parse(word, &bdf) && (!f || !f->known))
			*ret_why = f ? f->why : "index and UUID of the GPUs are not known";
	}
	return NULL;
}

static const struct pp_object *find_hca(struct comparer *c, const char *word, const char **ret_why)
{
	const struct pp_object *o = NULL;
	const struct pp_fact *f;
	struct pp_bdf bdf;
	int pci = pp_bdf_parse(word, &bdf) ? -1 : pp_pci_find(&c->n->pci, &bdf);

	*ret_why = c->n->pci.why;
	while ((o = pp_object_next(&c->n->facts, PP_HCA, o))) {
		if ((pci >= 0 && o->pci == pci) || (o->name && !strcmp(o->name, word)))
			return o;
		f = pp_fact_get(o, PP_F_HCA_HAS_DEVICE);
		if (pp_bdf_parse(word, &bdf) && !o->name && (!f || !f->known))
			*ret_why = f ? f->why : "names of the RDMA devices are not known";
	}
	return NULL;
}

static const struct pp_object *find_pair(const struct pp_node *n, const struct pp_object *gpu,
					 const struct pp_object *hca)
{
	const struct pp_object *p = NULL;

	while ((p = pp_object_next(&n->facts, PP_PAIR, p)))
		if (p->parent == gpu && p->peer == hca)
			return p;
	return NULL;
}

static enum pp_distance distance_parse(const char *word)
{
	for (int d = PP_DISTANCE_PIX; d <= PP_DISTANCE_SYS; d++)
		if (!strcmp(pp_distance_name((enum pp_distance)d), word))
			return (enum pp_distance)d;
	return PP_DISTANCE_UNKNOWN;
}

/* Nearest hca of the machine; a place that is not known makes the answer unknown. */
static enum pp_distance nearest(const struct pp_node *n, const struct pp_object *gpu)
{
	enum pp_distance best = PP_DISTANCE_SYS, d;
	const struct pp_object *o = NULL;

	while ((o = pp_object_next(&n->facts, PP_HCA, o))) {
		d = pp_distance(&n->pci, gpu->pci, o->pci);
		if (d == PP_DISTANCE_UNKNOWN)
			return d;
		best = d < best ? d : best;
	}
	return best;
}

static void compare_distance(struct comparer *c, const struct pp_layout_rail *rail,
			     const struct pp_object *gpu, const struct pp_object *hca)
{
	const char *what = pp_arena_printf(c->a, "rail %s: distance", rail->name);
	enum pp_distance d = pp_distance(&c->n->pci, gpu->pci, hca->pci), planned;
	bool at_most = !strncmp(rail->distance, "<=", 2), good;

	if (!strcmp(rail->distance, "nearest")) {
		planned = nearest(c->n, gpu);
		at_most = true;
	} else {
		planned = distance_parse(rail->distance + (at_most ? 2 : 0));
	}
	if (d == PP_DISTANCE_UNKNOWN || planned == PP_DISTANCE_UNKNOWN) {
		add(c, PP_UNKNOWN, what, rail->distance, pp_distance_name(d),
		    "the place of a function in the PCI tree is not known");
		return;
	}
	good = at_most ? d <= planned : d == planned;
	add(c, good ? PP_PASS : PP_DEGRADED, what, rail->distance, pp_distance_name(d), NULL);
}

/* The hca that is the GPU's rail now, as text. */
static const char *rail_now(struct comparer *c, const struct pp_object *gpu)
{
	const struct pp_object *p = NULL;

	while ((p = pp_object_next(&c->n->facts, PP_PAIR, p)))
		if (p->parent == gpu && p->peer && pp_fact_is(p, PP_F_PAIR_RAIL))
			return pp_arena_printf(c->a, "%s%s%s", p->peer->id,
					       p->peer->name ? " " : "",
					       p->peer->name ? p->peer->name : "");
	return "none";
}

static void compare_rail(struct comparer *c, const struct pp_layout_rail *rail)
{
	const char *what = pp_arena_printf(c->a, "rail %s: hca", rail->name), *why = NULL;
	const struct pp_object *gpu = find_gpu(c, rail->gpu, &why), *hca, *pair;
	const struct pp_fact *is;

	if (!gpu) {
		add(c, why ? PP_UNKNOWN : PP_DEGRADED,
		    pp_arena_printf(c->a, "rail %s: GPU", rail->name), rail->gpu,
		    why ? "unknown" : "missing", why);
		return;
	}
	hca = find_hca(c, rail->hca, &why);
	if (!hca) {
		add(c, why ? PP_UNKNOWN : PP_DEGRADED, what, rail->hca, why ? "unknown" : "missing",
		    why);
		return;
	}
	pair = find_pair(c->n, gpu, hca);
	is = pair ? pp_fact_get(pair, PP_F_PAIR_RAIL) : NULL;
	if (!is || !is->known)
		add(c, PP_UNKNOWN, what, rail->hca, "unknown",
		    is ? is->why : "rails are not known");
	else
		add(c, is->i64 ? PP_PASS : PP_DEGRADED, what, rail->hca, rail_now(c, gpu),
		    is->i64 ? NULL : pp_fact_str_or(pair, PP_F_PAIR_RAIL_WHY, NULL));
	if (rail->distance)
		compare_distance(c, rail, gpu, hca);
}

static bool is_planned(struct comparer *c, const struct pp_object *gpu)
{
	const char *why;

	for (unsigned int i = 0; i < c->l->n_rails; i++)
		if (find_gpu(c, c->l->rails[i].gpu, &why) == gpu)
			return true;
	return false;
}

static void compare_extra_rails(struct comparer *c)
{
	const struct pp_object *p = NULL;

	if (!c->l->n_rails)
		return;
	while ((p = pp_object_next(&c->n->facts, PP_PAIR, p)))
		if (p->parent && pp_fact_is(p, PP_F_PAIR_RAIL) && !is_planned(c, p->parent))
			add(c, PP_DEGRADED, pp_arena_printf(c->a, "GPU %s", p->parent->id),
			    "no rail", rail_now(c, p->parent), "a rail that is not planned");
}

static int lower(int a, int b)
{
	return a < 0 || b < 0 ? -1 : a < b ? a : b;
}

static void compare_link(struct comparer *c, const struct pp_layout_link *link)
{
	int at = pp_pci_find(&c->n->pci, &link->bdf);
	const struct pp_pci_dev *d = at < 0 ? NULL : &c->n->pci.dev[at];
	int speed;

	if (!d) {
		add(c, c->n->pci.why ? PP_UNKNOWN : PP_DEGRADED,
		    pp_arena_printf(c->a, "link %s", link->name), "present",
		    c->n->pci.why ? "unknown" : "missing", c->n->pci.why);
		return;
	}
	compare_numbers(c, pp_arena_printf(c->a, "link %s: lanes", link->name), link->width,
			d->width, "current_link_width could not be read");
	speed = d->speed_mts;
	/* An idle GPU lowers its speed by design: what both ends can do is compared. */
	if (pp_pci_is_gpu(d) && d->parent >= 0)
		speed = lower(d->max_speed_mts, c->n->pci.dev[d->parent].max_speed_mts);
	else if (pp_pci_is_gpu(d))
		speed = d->max_speed_mts;
	compare_numbers(c, pp_arena_printf(c->a, "link %s: MT/s", link->name), link->speed_mts,
			speed, "link speed could not be read");
}

static void compare_iommu(struct comparer *c)
{
	static const struct {
		enum pp_kind kind;
		enum pp_fact_id id;
	} kinds[] = {{PP_GPU, PP_F_GPU_IOMMU}, {PP_HCA, PP_F_HCA_IOMMU}};
	const char *planned = c->l->iommu_type;
	unsigned int seen = 0;

	for (size_t k = 0; planned && k < PP_ARRAY_LEN(kinds); k++) {
		const struct pp_object *o = NULL;

		while ((o = pp_object_next(&c->n->facts, kinds[k].kind, o))) {
			const struct pp_fact *f = pp_fact_get(o, kinds[k].id);
			const char *what = pp_arena_printf(c->a, "IOMMU type of %s", o->id);

			seen++;
			if (!f || !f->known)
				add(c, PP_UNKNOWN, what, planned, "unknown",
				    f ? f->why : pp_fact_table[kinds[k].id].how);
			else
				add(c, strcmp(f->str, planned) ? PP_DEGRADED : PP_PASS, what,
				    planned, f->str, NULL);
		}
	}
	if (planned && !seen)
		add(c, PP_UNKNOWN, "IOMMU type", planned, "unknown", "neither GPU nor hca seen");
}

static void compare_acs(struct comparer *c)
{
	const char *words[] = {"no", "yes"}, *planned;
	const struct pp_object *p = NULL;
	unsigned int seen = 0;

	if (c->l->acs_redirect < 0)
		return;
	planned = words[c->l->acs_redirect];
	while ((p = pp_object_next(&c->n->facts, PP_PAIR, p))) {
		const struct pp_fact *f = pp_fact_get(p, PP_F_PAIR_ACS_REDIRECT);
		const char *what;

		if (!pp_fact_is(p, PP_F_PAIR_RAIL))
			continue;
		seen++;
		what = pp_arena_printf(c->a, "ACS redirect, GPU %s",
				       p->parent ? p->parent->id : "");
		if (!f || !f->known)
			add(c, PP_UNKNOWN, what, planned, "unknown",
			    f ? f->why : pp_fact_table[PP_F_PAIR_ACS_REDIRECT].how);
		else
			add(c, !!f->i64 == c->l->acs_redirect ? PP_PASS : PP_DEGRADED, what,
			    planned, words[!!f->i64], NULL);
	}
	if (!seen)
		add(c, PP_UNKNOWN, "ACS redirect", planned, "unknown", "no rail to look at");
}

int pp_layout_compare(const struct pp_layout *l, const struct pp_node *n, struct pp_arena *a,
		      struct pp_layout_rows *ret)
{
	struct pp_layout_rows rows = {.cap = MAX_ROWS};
	struct comparer c = {.l = l, .n = n, .a = a, .rows = &rows};

	rows.row = pp_arena_array(a, rows.cap, sizeof(*rows.row));
	if (!rows.row)
		return -ENOMEM;
	compare_counts(&c);
	for (unsigned int i = 0; i < l->n_rails; i++)
		compare_rail(&c, &l->rails[i]);
	compare_extra_rails(&c);
	for (unsigned int i = 0; i < l->n_links; i++)
		compare_link(&c, &l->links[i]);
	compare_iommu(&c);
	compare_acs(&c);
	if (a->failed)
		return -ENOMEM;
	*ret = rows;
	return 0;
}
