/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses what is drawn: every GPU, every hca that is a rail or has a fault beside a GPU, the
 * switches and host bridges above them, and one counted box for the other hcas of a host bridge.
 */
#include "bundle/drawing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bundle/drawing_notes.h"
#include "node/link.h"
#include "base/banned.h"

enum {
	MAX_ITEMS = 4096,
	MAX_BLOCKS = 64,
	MAX_SENTENCES = 64,
	MAX_DEPTH = 32,
	FEW = 4, /* so many hcas beside the rails of a host bridge are drawn one by one */
};

static const size_t ARENA_LIMIT = (size_t)16 << 20;

struct maker {
	struct pp_drawing *d;
	const struct pp_pci *pci;
	int *item_of;			/* by PCI index: item, -1 */
	int *host_item;			/* by host bridge: item, -1 */
	unsigned int *beside;		/* by host bridge: hcas that are no rail */
	const struct pp_object **links; /* by PCI index */
};

static int find_block(struct maker *m, const struct pp_pci_dev *dev)
{
	struct pp_drawing *d = m->d;
	int numa = dev->numa;

	for (unsigned int i = 0; i < d->n_blocks; i++)
		if (d->blocks[i].numa == numa)
			return (int)i;
	if (d->n_blocks == d->cap_blocks)
		return (int)d->n_blocks - 1;
	d->blocks[d->n_blocks].numa = numa;
	d->blocks[d->n_blocks].cpus = dev->local_cpus;
	d->blocks[d->n_blocks].package = -1;
	if (numa >= 0 && (unsigned int)numa < m->pci->n_node_package)
		d->blocks[d->n_blocks].package = m->pci->node_package[numa];
	return (int)d->n_blocks++;
}

static struct pp_item *add_item(struct maker *m, enum pp_item_kind kind, int pci, int parent)
{
	struct pp_drawing *d = m->d;
	struct pp_item *i;

	if (d->n == d->cap)
		return NULL;
	i = &d->items[d->n++];
	*i = (struct pp_item){.kind = kind, .pci = pci, .parent = parent, .port = -1, .rail = -1};
	if (parent >= 0) {
		i->block = d->items[parent].block;
		i->level = d->items[parent].level + 1;
	}
	return i;
}

/* A bridge that is only the line to what hangs below it: a root port, a downstream port. */
static bool is_port(const struct pp_pci *pci, int i)
{
	int kind = pp_pci_port_kind(pci, i);

	return kind == PP_PORT_ROOT || kind == PP_PORT_DOWNSTREAM;
}

/* Functions whose place is not known share one slot behind those of the host bridges. */
static int slot_of(const struct maker *m, const struct pp_pci_dev *dev)
{
	return dev->host_bridge < 0 ? (int)m->pci->n_bridges : dev->host_bridge;
}

static int host_of(struct maker *m, const struct pp_pci_dev *dev)
{
	int slot = slot_of(m, dev);
	struct pp_item *i;

	if (m->host_item[slot] >= 0)
		return m->host_item[slot];
	i = add_item(m, PP_ITEM_HOST, -1, -1);
	if (!i)
		return -1;
	i->block = find_block(m, dev);
	if (dev->host_bridge < 0) {
		i->title = "place unknown";
		i->subtitle = "no path to it";
	} else {
		i->title = m->pci->bridges[slot];
		if (strrchr(i->title, '/'))
			i->title = strrchr(i->title, '/') + 1;
		i->subtitle = "host bridge";
	}
	m->host_item[slot] = (int)(i - m->d->items);
	return m->host_item[slot];
}

/* The nearest drawn thing above @pci, made when it is missing; -1 when there is no room. */
static int above(struct maker *m, int pci)
{
	int chain[MAX_DEPTH], n = 0, parent;
	struct pp_item *i;

	for (int p = m->pci->dev[pci].parent; p >= 0 && n < MAX_DEPTH; p = m->pci->dev[p].parent)
		if (!is_port(m->pci, p))
			chain[n++] = p;
	parent = host_of(m, &m->pci->dev[pci]);
	while (n-- && parent >= 0) {
		if (m->item_of[chain[n]] < 0) {
			i = add_item(m, PP_ITEM_SWITCH, chain[n], parent);
			if (!i)
				return -1;
			m->item_of[chain[n]] = (int)(i - m->d->items);
			pp_note_switch(m->d, i, m->links[chain[n]]);
		}
		parent = m->item_of[chain[n]];
	}
	return parent;
}

static struct pp_item *add_device(struct maker *m, enum pp_item_kind kind,
				  const struct pp_object *o)
{
	int parent = above(m, o->pci);
	struct pp_item *i = parent < 0 ? NULL : add_item(m, kind, o->pci, parent);

	if (!i)
		return NULL;
	i->object = o;
	m->item_of[o->pci] = (int)(i - m->d->items);
	return i;
}

static void add_gpus(struct maker *m)
{
	const struct pp_object *o = NULL;
	struct pp_item *i;

	while ((o = pp_object_next(&m->d->node->facts, PP_GPU, o))) {
		if (o->pci < 0)
			continue;
		i = add_device(m, PP_ITEM_GPU, o);
		if (i)
			pp_note_gpu(m->d, i, m->links[o->pci]);
	}
}

static void add_hca(struct maker *m, const struct pp_object *o)
{
	struct pp_item *i;

	if (o->pci < 0 || m->item_of[o->pci] >= 0)
		return;
	i = add_device(m, PP_ITEM_HCA, o);
	if (i)
		pp_note_hca(m->d, i, m->links[o->pci]);
}

static void add_rails(struct maker *m)
{
	struct pp_drawing *d = m->d;
	const struct pp_object *p = NULL;
	struct pp_rail_line *line;

	while (d->n_rails < d->cap_rails && (p = pp_object_next(&d->node->facts, PP_PAIR, p))) {
		if (!pp_fact_is(p, PP_F_PAIR_RAIL) || !p->parent || !p->peer ||
		    p->parent->pci < 0 || p->peer->pci < 0)
			continue;
		add_hca(m, p->peer);
		if (m->item_of[p->parent->pci] < 0 || m->item_of[p->peer->pci] < 0)
			continue;
		line = &d->rails[d->n_rails];
		*line = (struct pp_rail_line){
			.pair = p,
			.gpu = m->item_of[p->parent->pci],
			.hca = m->item_of[p->peer->pci],
			.distance = pp_fact_str_or(p, PP_F_PAIR_DISTANCE, "unknown"),
		};
		line->near = !strcmp(line->distance, "PIX") || !strcmp(line->distance, "PXB");
		d->items[line->gpu].rail = (int)d->n_rails;
		if (d->items[line->hca].rail < 0)
			d->items[line->hca].rail = (int)d->n_rails;
		d->n_rails++;
	}
}

/* hcas that are no rail: a few beside GPUs are drawn, the others counted per host bridge. */
static void add_other_hcas(struct maker *m)
{
	const struct pp_object *o = NULL;
	const struct pp_pci_dev *dev;

	while ((o = pp_object_next(&m->d->node->facts, PP_HCA, o))) {
		dev = o->pci < 0 ? NULL : &m->pci->dev[o->pci];
		if (dev && m->item_of[o->pci] < 0)
			m->beside[slot_of(m, dev)]++;
	}
	while ((o = pp_object_next(&m->d->node->facts, PP_HCA, o))) {
		dev = o->pci < 0 ? NULL : &m->pci->dev[o->pci];
		if (!dev || m->item_of[o->pci] >= 0)
			continue;
		if (m->beside[slot_of(m, dev)] <= FEW && m->host_item[slot_of(m, dev)] >= 0)
			add_hca(m, o);
		else
			pp_note_group(m->d, o, host_of(m, dev));
	}
}

static int make_index(struct maker *m)
{
	const struct pp_object *o = NULL;
	unsigned int n = m->pci->n, n_bridges = m->pci->n_bridges;
	struct pp_arena *a = &m->d->arena;

	m->item_of = pp_arena_array(a, n + 1, sizeof(*m->item_of));
	m->host_item = pp_arena_array(a, n_bridges + 1, sizeof(*m->host_item));
	m->beside = pp_arena_array(a, n_bridges + 1, sizeof(*m->beside));
	m->links = pp_arena_array(a, n + 1, sizeof(*m->links));
	if (a->failed)
		return -EFBIG;
	memset(m->item_of, -1, n * sizeof(*m->item_of));
	memset(m->host_item, -1, (n_bridges + 1) * sizeof(*m->host_item));
	while ((o = pp_object_next(&m->d->node->facts, PP_LINK, o)))
		if (o->pci >= 0)
			m->links[o->pci] = o;
	return 0;
}

static int make_room(struct pp_drawing *d)
{
	const unsigned int *count = d->node->facts.count;

	d->cap_rails = count[PP_GPU] < MAX_ITEMS ? count[PP_GPU] : MAX_ITEMS;
	d->cap = MAX_ITEMS;
	d->cap_blocks = MAX_BLOCKS;
	d->cap_sentences = MAX_SENTENCES;
	d->items = pp_arena_array(&d->arena, d->cap, sizeof(*d->items));
	d->blocks = pp_arena_array(&d->arena, d->cap_blocks, sizeof(*d->blocks));
	d->rails = pp_arena_array(&d->arena, d->cap_rails + 1, sizeof(*d->rails));
	d->faults = pp_arena_array(&d->arena, d->cap_sentences, sizeof(*d->faults));
	d->unknowns = pp_arena_array(&d->arena, d->cap_sentences, sizeof(*d->unknowns));
	return d->arena.failed ? -ENOMEM : 0;
}

int pp_drawing_make(const struct pp_node *node, struct pp_drawing *ret)
{
	struct maker m = {.d = ret, .pci = &node->pci};
	int r;

	*ret = (struct pp_drawing){.node = node, .arena = PP_ARENA(ARENA_LIMIT)};
	r = make_room(ret);
	if (!r)
		r = make_index(&m);
	if (r)
		return r;
	add_gpus(&m);
	add_rails(&m);
	add_other_hcas(&m);
	pp_note_rails(ret);
	pp_note_node(ret);
	return ret->n == ret->cap || ret->arena.failed ? -EFBIG : 0;
}

void pp_drawing_done(struct pp_drawing *d)
{
	pp_arena_done(&d->arena);
	*d = (struct pp_drawing){0};
}
