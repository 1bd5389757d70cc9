/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This machine's PCI tree as NCCL reads it from sysfs: from a GPU or NIC two path components up
 * per level, so that a switch is known by its upstream port; the first component that is no PCI
 * address ends the way at the NUMA node of the device last seen.
 */
#include "node/choice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "node/nccl_graph.h"
#include "base/banned.h"

enum { MAX_DOMAIN = 0xffff };

struct builder {
	struct pp_node *n;
	struct pp_nccl_graph g;
	int *vertex; /* of a PCI function, -1 not in the graph yet */
	int *nic;    /* order among the NICs, of a vertex */
	int *cpu;    /* vertex of NUMA node numa + 1 */
	unsigned int n_cpus;
};

/* The function that NCCL takes for the parent; -1: a CPU. */
static int parent_of(const struct pp_pci *pci, int i)
{
	for (unsigned int up = 0; up < 2; up++) {
		i = pci->dev[i].parent;
		/* A component of more than 12 characters is no address to NCCL. */
		if (i < 0 || pci->dev[i].bdf.domain > MAX_DOMAIN)
			return -1;
	}
	return i;
}

/* The CPU of a NUMA node, made when it is new. Nodes that cannot be read share one. */
static int cpu_of(struct builder *b, int numa)
{
	struct pp_nccl_node cpu = {.kind = PP_NCCL_CPU, .parent = -1, .id = "cpu"};
	int *place;

	if (numa < PP_UNREADABLE || (unsigned int)(numa - PP_UNREADABLE) >= b->n_cpus)
		numa = PP_UNREADABLE;
	place = &b->cpu[numa - PP_UNREADABLE];
	if (*place < 0)
		*place = pp_nccl_graph_add(&b->g, &cpu);
	return *place;
}

static uint64_t ids_of(const struct pp_pci_dev *d)
{
	return (uint64_t)d->vendor << 48 | (uint64_t)d->device << 32 |
	       (uint64_t)d->subsystem_vendor << 16 | d->subsystem_device;
}

/*
 * Adds a GPU or NIC with the switches above it. 0, -E2BIG, -ENOMEM. Switches
 * that are new are gathered first, since a parent comes before its children.
 */
static int add_device(struct builder *b, int at, enum pp_nccl_kind kind, bool c2c)
{
	int chain[PP_NCCL_MAX_DEPTH], parent = -1;
	const struct pp_pci *pci = &b->n->pci;
	struct pp_nccl_node v;
	unsigned int n = 0;
	int i;

	for (i = at; i >= 0 && b->vertex[i] < 0; i = parent_of(pci, i)) {
		if (n == PP_NCCL_MAX_DEPTH)
			return -E2BIG;
		chain[n++] = i;
	}
	if (!n)
		return 0;
	parent = i >= 0 ? b->vertex[i] : cpu_of(b, pci->dev[chain[n - 1]].numa);
	while (n-- && parent >= 0) {
		v = (struct pp_nccl_node){.kind = n ? PP_NCCL_SWITCH : kind,
					  .id = "",
					  .parent = parent,
					  .device = ids_of(&pci->dev[chain[n]]),
					  .net_gbytes = PP_NCCL_UNLIMITED,
					  .c2c = !n && c2c};
		parent = b->vertex[chain[n]] = pp_nccl_graph_add(&b->g, &v);
	}
	return parent < 0 ? parent : 0;
}

static int build(struct builder *b)
{
	struct pp_node *n = b->n;
	struct pp_object *o;
	int r = 0;

	pp_objects_foreach (&n->facts, o) {
		if ((o->kind != PP_GPU && o->kind != PP_HCA) || o->pci < 0 ||
		    (unsigned int)o->pci >= n->pci.n)
			continue;
		r = add_device(b, o->pci, o->kind == PP_GPU ? PP_NCCL_GPU : PP_NCCL_NIC,
			       pp_fact_is(o, PP_F_GPU_C2C));
		if (r)
			return r;
	}
	r = pp_nccl_graph_finish(&b->g);
	if (r)
		return r;
	b->nic = calloc(b->g.n + 1, sizeof(*b->nic));
	if (!b->nic)
		return -ENOMEM;
	for (unsigned int i = 0; i < b->g.n_nics; i++)
		b->nic[b->g.nic[i]] = (int)i;
	return 0;
}

static int begin(struct builder *b)
{
	b->n_cpus = 3;
	for (unsigned int i = 0; i < b->n->pci.n; i++)
		if (b->n->pci.dev[i].numa >= 0 && b->n->pci.dev[i].numa < 4096 &&
		    (unsigned int)b->n->pci.dev[i].numa + 3 > b->n_cpus)
			b->n_cpus = (unsigned int)b->n->pci.dev[i].numa + 3;
	pp_nccl_graph_init(&b->g);
	b->vertex = malloc((b->n->pci.n + 1) * sizeof(*b->vertex));
	b->cpu = malloc(b->n_cpus * sizeof(*b->cpu));
	if (!b->vertex || !b->cpu)
		return -ENOMEM;
	memset(b->vertex, 0xff, (b->n->pci.n + 1) * sizeof(*b->vertex));
	memset(b->cpu, 0xff, b->n_cpus * sizeof(*b->cpu));
	return 0;
}

static void done(struct builder *b)
{
	pp_nccl_graph_done(&b->g);
	free(b->vertex);
	free(b->cpu);
	free(b->nic);
}

/* True if a switch on the way up could not be named: fused switches would not be seen. */
static bool nameless_switch(const struct pp_nccl_graph *g, int at)
{
	for (; at >= 0; at = g->node[at].parent)
		if (g->node[at].kind == PP_NCCL_SWITCH && !(g->node[at].device >> 48))
			return true;
	return false;
}

static int root_of(const struct pp_nccl_graph *g, int at)
{
	while (g->node[at].parent >= 0)
		at = g->node[at].parent;
	return at;
}

/* What of the answer hangs on something that could not be read; NULL: nothing. */
static const char *doubt(const struct builder *b, const struct pp_object *pair,
			 const struct pp_nccl_path *p)
{
	int gpu = b->vertex[pair->parent->pci], nic = b->vertex[pair->peer->pci];
	const char *arch = pp_fact_str_or(b->n->self, PP_F_KERNEL_ARCH, NULL);
	const struct pp_fact *c2c = pp_fact_get(pair->parent, PP_F_GPU_C2C);

	if (p->flat >= PP_NCCL_P2C && b->cpu[0] >= 0 &&
	    (root_of(&b->g, gpu) == b->cpu[0] || root_of(&b->g, nic) == b->cpu[0]))
		return "numa_node of one of them could not be read";
	/* Only arm64 machines have coherent links, which turn PHB into P2C. */
	if (p->flat == PP_NCCL_PHB && (!c2c || !c2c->known) &&
	    (!arch || strcmp(arch, "x86_64") != 0))
		return "whether the GPU has a coherent link to its CPU is not known";
	return NULL;
}

static void pair_facts(struct builder *b, struct pp_object *pair, const struct pp_nccl_path *p)
{
	const struct pp_fact *able = pp_fact_get(pair->parent, PP_F_GPU_GDR);
	bool near = pp_nccl_gdr_near(p->flat), off = able && able->known && !able->i64;
	const char *why = doubt(b, pair, p), *then;
	struct pp_facts *f = &b->n->facts;

	if (why) {
		pp_fact_unknown(f, pair, PP_F_PAIR_NCCL, NULL, "%s", why);
		pp_fact_unknown(f, pair, PP_F_PAIR_NCCL_GDR, NULL, "%s", why);
		return;
	}
	pp_fact_bool(f, pair, PP_F_PAIR_NCCL_GDR, near && !off, NULL);
	then = !near ? "no GPUDirect RDMA (farther than P2C)"
	       : off ? "no GPUDirect RDMA (the GPU is not able to)"
		     : "GPUDirect RDMA";
	if (p->flat == PP_NCCL_PXB && (nameless_switch(&b->g, b->vertex[pair->parent->pci]) ||
				       nameless_switch(&b->g, b->vertex[pair->peer->pci])))
		pp_fact_unknown(f, pair, PP_F_PAIR_NCCL, NULL,
				"PIX or PXB: the model of a switch could not be read");
	else
		pp_fact_str(f, pair, PP_F_PAIR_NCCL,
			    pp_arena_printf(f->arena, "%s, %s", pp_nccl_type_name(p->flat), then),
			    NULL);
}

static void all_unknown(struct pp_node *n, const char *why)
{
	struct pp_object *pair = NULL;

	while ((pair = pp_object_next(&n->facts, PP_PAIR, pair))) {
		pp_fact_unknown(&n->facts, pair, PP_F_PAIR_NCCL, NULL, "%s", why);
		pp_fact_unknown(&n->facts, pair, PP_F_PAIR_NCCL_GDR, NULL, "%s", why);
	}
}

/* Pairs stand gpu by gpu, so a row of paths is computed once for each. */
static int all_pairs(struct builder *b)
{
	struct pp_nccl_path *PP_AUTO_FREE row = calloc(b->g.n_nics + 1, sizeof(*row));
	struct pp_object *pair = NULL, *of = NULL;
	const char *why;

	if (!row)
		return -ENOMEM;
	while ((pair = pp_object_next(&b->n->facts, PP_PAIR, pair))) {
		why = pp_choice_obstacle(b->n, pair);
		if (why) {
			pp_fact_unknown(&b->n->facts, pair, PP_F_PAIR_NCCL, NULL, "%s", why);
			pp_fact_unknown(&b->n->facts, pair, PP_F_PAIR_NCCL_GDR, NULL, "%s", why);
			continue;
		}
		for (unsigned int i = 0; pair->parent != of && i < b->g.n_gpus; i++) {
			if (b->g.gpu[i] != b->vertex[pair->parent->pci])
				continue;
			pp_nccl_paths(&b->g, i, row);
			of = pair->parent;
		}
		if (pair->parent == of)
			pair_facts(b, pair, &row[b->nic[b->vertex[pair->peer->pci]]]);
	}
	return 0;
}

void pp_choice_nccl(struct pp_node *n)
{
	struct builder b = {.n = n};
	int r;

	if (!n->facts.count[PP_PAIR])
		return;
	r = begin(&b);
	if (!r)
		r = build(&b);
	if (!r)
		r = all_pairs(&b);
	if (r == -E2BIG)
		all_unknown(n, "more devices than NCCL's graph is computed for here");
	else if (r)
		n->arena.failed = true;
	done(&b);
}
