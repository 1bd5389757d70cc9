/* SPDX-License-Identifier: Apache-2.0 */
#include "node/nccl_graph.h"

#include <errno.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/banned.h"

enum { ARENA_BYTES = 32 << 20 };

/*
 * Between CPUs NCCL has a figure for each CPU model (6 to 40 GB/s); this one is its figure for
 * AMD. It bounds the bandwidth of SYS paths only and decides no type.
 */
static const double SYS_GBYTES = 16.0;
static const uint64_t NET_MBPS = 10000; /* of a port whose speed is not told */

double pp_nccl_link(int speed_mts, unsigned int width)
{
	static const struct {
		int mts;
		unsigned int per_lane; /* 80 per GB/s */
	} speeds[] = {{2500, 15}, {5000, 30}, {8000, 60}, {16000, 120}, {32000, 240}, {64000, 480}};
	unsigned int per_lane = 60;

	for (size_t i = 0; i < PP_ARRAY_LEN(speeds); i++)
		if (speeds[i].mts == speed_mts)
			per_lane = speeds[i].per_lane;
	return (width ? width : 16) * (double)per_lane / 80.0;
}

double pp_nccl_net(uint64_t speed_mbps)
{
	return (double)(speed_mbps ? speed_mbps : NET_MBPS) / 8000.0;
}

const char *pp_nccl_type_name(enum pp_nccl_type t)
{
	static const char *const names[] = {
		[PP_NCCL_LOC] = "LOC", [PP_NCCL_PIX] = "PIX", [PP_NCCL_PXB] = "PXB",
		[PP_NCCL_P2C] = "P2C", [PP_NCCL_PXN] = "PXN", [PP_NCCL_PHB] = "PHB",
		[PP_NCCL_SYS] = "SYS",
	};

	return names[t];
}

const char *pp_nccl_gdr_text(enum pp_nccl_type flat, int gpu, int nic)
{
	if (!pp_nccl_gdr_near(flat))
		return "no: distance";
	if (!gpu || !nic)
		return "no: not able";
	return gpu > 0 && nic > 0 ? "yes" : "if able";
}

void pp_nccl_graph_init(struct pp_nccl_graph *g)
{
	*g = (struct pp_nccl_graph){.arena = PP_ARENA(ARENA_BYTES)};
}

void pp_nccl_graph_done(struct pp_nccl_graph *g)
{
	free(g->node);
	pp_arena_done(&g->arena);
	*g = (struct pp_nccl_graph){.n = 0};
}

int pp_nccl_graph_add(struct pp_nccl_graph *g, const struct pp_nccl_node *node)
{
	struct pp_nccl_node *grown;
	unsigned int cap;

	if (g->n == PP_NCCL_MAX_NODES)
		return -E2BIG;
	if (g->n == g->cap) {
		cap = g->cap ? g->cap * 2 : 64;
		grown = reallocarray(g->node, cap, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		g->node = grown;
		g->cap = cap;
	}
	g->node[g->n] = *node;
	return (int)g->n++;
}

/*
 * Broadcom switches that NCCL fuses with the switch above them into one: two levels of one chip.
 * 0, or the PCIe generation. @level 0 is the upper one.
 */
static int fusible(uint64_t device, unsigned int level)
{
	const uint64_t mask = 0xfffffffffffff000;

	if ((device & mask) == 0x1000c0101000a000)
		return 4;
	return (device & mask) == (0x1000c03010000000 | (uint64_t)level << 12) ? 5 : 0;
}

/* Joins @at to the fusible switch @s if it is the other level of the same chip. */
static void fuse(struct pp_nccl_graph *g, int at, int s, int generation, bool *done)
{
	struct pp_nccl_node *n = &g->node[at];

	if (n->kind == PP_NCCL_SWITCH && n->fused == at && !done[at] &&
	    fusible(n->device, 1) == generation)
		n->fused = s;
}

/*
 * From the top down; a switch that has taken others in takes no part again, as in NCCL. Children
 * of a switch are those behind it whose parent it is: one pass over them by a linked list.
 */
static void flatten(struct pp_nccl_graph *g, bool *done, int *first, int *next)
{
	int generation;

	for (unsigned int i = 0; i < g->n; i++)
		first[i] = next[i] = -1;
	for (int i = (int)g->n - 1; i >= 0; i--) {
		g->node[i].fused = i;
		if (g->node[i].parent < 0)
			continue;
		next[i] = first[g->node[i].parent];
		first[g->node[i].parent] = i;
	}
	for (int i = 0; i < (int)g->n; i++) {
		generation = fusible(g->node[i].device, 0);
		if (g->node[i].kind != PP_NCCL_SWITCH || g->node[i].fused != i || !generation)
			continue;
		if (g->node[i].parent >= 0)
			fuse(g, g->node[i].parent, i, generation, done);
		for (int c = first[i]; c >= 0; c = next[c])
			fuse(g, c, i, generation, done);
		done[i] = true;
	}
}

/* The vertex above what each one is fused with, and the link that leads there. */
static void lift(struct pp_nccl_graph *g)
{
	struct pp_nccl_node *n, *top;

	for (unsigned int i = 0; i < g->n; i++) {
		n = &g->node[i];
		top = &g->node[n->fused];
		while (top->parent >= 0 && g->node[top->parent].fused == n->fused)
			top = &g->node[top->parent];
		n->up = top->parent < 0 ? -1 : g->node[top->parent].fused;
		n->up_gbytes = top->link_gbytes;
	}
}

static int too_deep(const struct pp_nccl_graph *g, unsigned char *depth)
{
	for (unsigned int i = 0; i < g->n; i++) {
		depth[i] = g->node[i].parent < 0 ? 1 : depth[g->node[i].parent] + 1;
		if (depth[i] > PP_NCCL_MAX_DEPTH)
			return -E2BIG;
	}
	return 0;
}

int pp_nccl_graph_finish(struct pp_nccl_graph *g)
{
	bool *done = pp_arena_array(&g->arena, g->n, sizeof(*done));
	int *first = pp_arena_array(&g->arena, g->n, sizeof(*first));
	int *next = pp_arena_array(&g->arena, g->n, sizeof(*next));
	unsigned char *depth = pp_arena_array(&g->arena, g->n, sizeof(*depth));

	g->gpu = pp_arena_array(&g->arena, g->n, sizeof(*g->gpu));
	g->nic = pp_arena_array(&g->arena, g->n, sizeof(*g->nic));
	if (g->arena.failed)
		return -ENOMEM;
	if (too_deep(g, depth))
		return -E2BIG;
	flatten(g, done, first, next);
	lift(g);
	for (unsigned int i = 0; i < g->n; i++) {
		if (g->node[i].kind == PP_NCCL_GPU)
			g->gpu[g->n_gpus++] = (int)i;
		if (g->node[i].kind == PP_NCCL_NIC)
			g->nic[g->n_nics++] = (int)i;
	}
	return (uint64_t)g->n_gpus * g->n_nics > PP_NCCL_MAX_PAIRS ? -E2BIG : 0;
}

struct hop {
	int at;
	enum pp_nccl_type type; /* of the path that leads here */
	double gbytes;
};

/* The way up from a GPU or NIC to its CPU; number of hops, the start included. */
static unsigned int climb(const struct pp_nccl_graph *g, int at, bool flat,
			  struct hop hops[PP_NCCL_MAX_DEPTH])
{
	struct hop h = {at, PP_NCCL_LOC, PP_NCCL_UNLIMITED};
	const struct pp_nccl_node *n;
	enum pp_nccl_type type;
	unsigned int count = 0;
	double gbytes;

	for (hops[count++] = h; count < PP_NCCL_MAX_DEPTH; hops[count++] = h) {
		n = &g->node[h.at];
		gbytes = flat ? n->up_gbytes : n->link_gbytes;
		h.at = flat ? n->up : n->parent;
		if (h.at < 0)
			break;
		type = g->node[h.at].kind == PP_NCCL_CPU ? PP_NCCL_PHB
		       : n->kind == PP_NCCL_SWITCH	 ? PP_NCCL_PXB
							 : PP_NCCL_PIX;
		h.type = type > h.type ? type : h.type;
		h.gbytes = gbytes < h.gbytes ? gbytes : h.gbytes;
	}
	return count;
}

/* Where two ways up meet; two that do not meet end at CPUs, which are joined. */
static struct hop meet(const struct hop *a, unsigned int n_a, const struct hop *b, unsigned int n_b)
{
	struct hop h = {-1, PP_NCCL_SYS, SYS_GBYTES};
	unsigned int i, j = n_b - 1;

	for (i = 0; i < n_a; i++) {
		for (j = 0; j < n_b && a[i].at != b[j].at; j++)
			;
		if (j < n_b)
			break;
	}
	if (i < n_a) {
		h.type = a[i].type > b[j].type ? a[i].type : b[j].type;
		h.gbytes = PP_NCCL_UNLIMITED;
	} else {
		i = n_a - 1;
		j = n_b - 1;
	}
	h.gbytes = a[i].gbytes < h.gbytes ? a[i].gbytes : h.gbytes;
	h.gbytes = b[j].gbytes < h.gbytes ? b[j].gbytes : h.gbytes;
	return h;
}

void pp_nccl_paths(const struct pp_nccl_graph *g, unsigned int gpu, struct pp_nccl_path *ret)
{
	struct hop raw[PP_NCCL_MAX_DEPTH], flat[PP_NCCL_MAX_DEPTH], nic[PP_NCCL_MAX_DEPTH], h;
	unsigned int n_raw = climb(g, g->gpu[gpu], false, raw), n_nic;
	unsigned int n_flat = climb(g, g->gpu[gpu], true, flat);
	enum pp_nccl_type nearest = PP_NCCL_SYS;
	const struct pp_nccl_node *n;
	double widest = 0;

	for (unsigned int i = 0; i < g->n_nics; i++) {
		n = &g->node[g->nic[i]];
		n_nic = climb(g, g->nic[i], false, nic);
		ret[i].raw = meet(raw, n_raw, nic, n_nic).type;
		n_nic = climb(g, g->nic[i], true, nic);
		h = meet(flat, n_flat, nic, n_nic);
		ret[i].flat = h.type;
		ret[i].gbytes = n->net_gbytes < h.gbytes ? n->net_gbytes : h.gbytes;
		if (ret[i].gbytes > widest || (ret[i].gbytes >= widest && h.type < nearest)) {
			widest = ret[i].gbytes;
			nearest = h.type;
		}
	}
	for (unsigned int i = 0; i < g->n_nics; i++) {
		ret[i].local = ret[i].gbytes >= widest && ret[i].flat == nearest;
		if (g->node[g->gpu[gpu]].c2c && ret[i].flat == PP_NCCL_PHB)
			ret[i].flat = PP_NCCL_P2C;
	}
}
