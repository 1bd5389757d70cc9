/* SPDX-License-Identifier: Apache-2.0 */
#include "node/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

static void count(struct pp_buf *out, const char *key, const struct pp_object *o,
		  enum pp_fact_id id)
{
	const struct pp_fact *f = pp_fact_get(o, id);

	if (f && f->known)
		pp_buf_printf(out, "%s = %lld\n", key, (long long)f->i64);
	else
		pp_buf_printf(out, "# %s: unknown\n", key);
}

static void write_rail(struct pp_buf *out, const struct pp_object *p, unsigned int number)
{
	pp_buf_printf(out, "\n[rail %u]\n", number);
	if (p->parent->name || p->peer->name)
		pp_buf_printf(out, "# %s, %s\n", p->parent->name ? p->parent->name : "GPU",
			      p->peer->name ? p->peer->name : "hca");
	pp_buf_printf(out, "gpu = %s\nhca = %s\n", p->parent->id, p->peer->id);
	if (strcmp(pp_fact_str_or(p, PP_F_PAIR_DISTANCE, "unknown"), "unknown") != 0)
		pp_buf_printf(out, "distance = %s\n", pp_fact_str_or(p, PP_F_PAIR_DISTANCE, ""));
}

static void write_link(const struct pp_node *n, struct pp_buf *out, int pci)
{
	const struct pp_pci_dev *d = &n->pci.dev[pci];
	const struct pp_pci_dev *up = d->parent < 0 ? NULL : &n->pci.dev[d->parent];
	int speed = d->speed_mts;
	char bdf[PP_BDF_TEXT];

	if (pp_pci_is_gpu(d)) /* idle GPUs lower it: what both ends can do */
		speed = up && up->max_speed_mts < d->max_speed_mts ? up->max_speed_mts
								   : d->max_speed_mts;
	if (d->width <= 0 && speed <= 0)
		return;
	pp_buf_printf(out, "\n[link %s]\n", pp_bdf_format(&d->bdf, bdf));
	if (d->width > 0)
		pp_buf_printf(out, "width = %d\n", d->width);
	if (speed > 0)
		pp_buf_printf(out, "speed = %d.%dGT/s\n", speed / 1000, speed % 1000 / 100);
}

/* Links on the way of a rail, each once: upstream ports and endpoints. */
static void write_way(const struct pp_node *n, struct pp_buf *out, int pci, unsigned char *done)
{
	for (; pci >= 0; pci = n->pci.dev[pci].parent) {
		int type = n->pci.dev[pci].port_type;

		if (done[pci] || type == PP_PORT_ROOT || type == PP_PORT_DOWNSTREAM)
			continue;
		done[pci] = 1;
		write_link(n, out, pci);
	}
}

/* One word for all of them, or "" when they differ or one is unknown. */
static const char *common_iommu(const struct pp_node *n)
{
	const char *word = NULL, *mine;
	const struct pp_object *o;

	pp_objects_foreach (&n->facts, o) {
		if (o->kind != PP_GPU && o->kind != PP_HCA)
			continue;
		mine = pp_fact_str_or(o, o->kind == PP_GPU ? PP_F_GPU_IOMMU : PP_F_HCA_IOMMU, "");
		if (word && strcmp(word, mine) != 0)
			return "";
		word = mine;
	}
	return word ? word : "";
}

static const char *common_acs(const struct pp_node *n)
{
	const struct pp_object *p = NULL;
	const struct pp_fact *f;
	int all = -1;

	while ((p = pp_object_next(&n->facts, PP_PAIR, p))) {
		if (!pp_fact_is(p, PP_F_PAIR_RAIL))
			continue;
		f = pp_fact_get(p, PP_F_PAIR_ACS_REDIRECT);
		if (!f || !f->known || (all >= 0 && all != !!f->i64))
			return "";
		all = !!f->i64;
	}
	return all < 0 ? "" : all ? "yes" : "no";
}

void pp_layout_write(const struct pp_node *n, struct pp_buf *out)
{
	unsigned char *PP_AUTO_FREE done = calloc((size_t)n->pci.n + 1, 1);
	const struct pp_object *p = NULL;
	unsigned int rails = 0;

	pp_buf_str(out, "# Planned layout for `peerpath topo --expect`, taken from a machine.\n"
			"# Take out what may differ between machines of one kind.\n\n[node]\n");
	count(out, "gpus", n->self, PP_F_N_GPUS);
	count(out, "hcas", n->self, PP_F_N_HCAS);
	if (n->pci.online_nodes > 0)
		pp_buf_printf(out, "numa_nodes = %d\n", n->pci.online_nodes);
	while ((p = pp_object_next(&n->facts, PP_PAIR, p)))
		if (pp_fact_is(p, PP_F_PAIR_RAIL) && p->parent && p->peer)
			write_rail(out, p, rails++);
	if (!rails)
		pp_buf_str(out, "\n# rails: none seen\n");
	while (done && (p = pp_object_next(&n->facts, PP_PAIR, p))) {
		if (!pp_fact_is(p, PP_F_PAIR_RAIL) || !p->parent || !p->peer)
			continue;
		write_way(n, out, p->parent->pci, done);
		write_way(n, out, p->peer->pci, done);
	}
	if (*common_iommu(n))
		pp_buf_printf(out, "\n[iommu]\ntype = %s\n", common_iommu(n));
	else
		pp_buf_str(out, "\n# iommu: unknown, or not the same everywhere\n");
	if (*common_acs(n))
		pp_buf_printf(out, "\n[acs]\nredirect = %s\n", common_acs(n));
	else
		pp_buf_str(out, "\n# acs: unknown, or not the same everywhere\n");
	if (!done && !out->failed)
		out->failed = -ENOMEM;
}
