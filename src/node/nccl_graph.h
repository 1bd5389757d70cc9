/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_nccl_graph: a machine as NCCL 2.27 to 2.30 sees it, and the path types it computes.
 *
 * Vertices are NUMA nodes ("CPU"), PCI switches by their upstream port, GPUs and NICs. It is a
 * forest with a CPU at each root, and all CPUs are joined: so there is one path between a GPU and
 * a NIC, and it is found by climbing. Owns the rules, not the reading: nccl_xml.c fills a graph
 * from a topology file, choice_nccl.c from this machine's PCI tree.
 */
#ifndef PP_NODE_NCCL_GRAPH_H
#define PP_NODE_NCCL_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

/* NCCL's order: a smaller type is nearer. */
enum pp_nccl_type {
	PP_NCCL_LOC = 0,
	PP_NCCL_PIX = 4,
	PP_NCCL_PXB = 5,
	PP_NCCL_P2C = 6, /* through the CPU that a coherent link joins to the GPU */
	PP_NCCL_PXN = 7,
	PP_NCCL_PHB = 8,
	PP_NCCL_SYS = 9,
};

enum pp_nccl_kind { PP_NCCL_CPU, PP_NCCL_SWITCH, PP_NCCL_GPU, PP_NCCL_NIC };

enum {
	PP_NCCL_MAX_NODES = 16384,
	PP_NCCL_MAX_PAIRS = 65536,
	PP_NCCL_MAX_DEPTH = 64,
};

struct pp_nccl_node {
	enum pp_nccl_kind kind;
	const char *id;	    /* "0000:3b:00.0"; "numa0", "cpu0" for what has no address */
	int parent;	    /* index of the vertex above; -1 for a CPU */
	double link_gbytes; /* GB/s of the link to the parent, as NCCL counts it */
	uint64_t device;    /* vendor, device, subsystem vendor, subsystem device: 16 bits each */

	/* NICs */
	const char *nets; /* names, joined by commas */
	double net_gbytes;

	/* GPUs and NICs: -1 not told */
	int8_t gdr; /* able to do GPUDirect RDMA */
	bool c2c;   /* GPU: coherent link to its CPU */

	/* as NCCL's switch flattening leaves it; set by pp_nccl_graph_finish() */
	int fused; /* the vertex that stands for this one */
	int up;	   /* index of the vertex above fused */
	double up_gbytes;
};

struct pp_nccl_graph {
	struct pp_arena arena;
	struct pp_nccl_node *node;
	unsigned int n, cap;
	int *gpu, *nic; /* indexes, in order */
	unsigned int n_gpus, n_nics;
};

struct pp_nccl_path {
	enum pp_nccl_type raw;	/* before switches are flattened */
	enum pp_nccl_type flat; /* as NCCL reports it, without PXN */
	double gbytes;		/* GB/s of the narrowest hop, the network included */
	bool local;		/* among the NICs that NCCL would choose from for this GPU */
};

/* NCCL's word for "no limit", GB/s. */
#define PP_NCCL_UNLIMITED 5000.0

/* Bandwidth that NCCL gives a link: GB/s. @speed_mts -1 and @width 0 are unknown to it. */
double pp_nccl_link(int speed_mts, unsigned int width);
/* Bandwidth of a network port, or of one whose speed is not told (0). */
double pp_nccl_net(uint64_t speed_mbps);

/* An empty graph. */
void pp_nccl_graph_init(struct pp_nccl_graph *g);
void pp_nccl_graph_done(struct pp_nccl_graph *g);
/*
 * Adds a copy of @node; parents come before their children. Index, or -E2BIG (PP_NCCL_MAX_NODES),
 * -ENOMEM.
 */
int pp_nccl_graph_add(struct pp_nccl_graph *g, const struct pp_nccl_node *node);
/*
 * After the last vertex: flattens and lists. -E2BIG when there are more than PP_NCCL_MAX_PAIRS
 * pairs or a branch is deeper than PP_NCCL_MAX_DEPTH, -ENOMEM.
 */
int pp_nccl_graph_finish(struct pp_nccl_graph *g);

/* Paths from a GPU (an index of .gpu) to every NIC: @ret has n_nics places. */
void pp_nccl_paths(const struct pp_nccl_graph *g, unsigned int gpu, struct pp_nccl_path *ret);

/* At NCCL's default level, of a pair that is able to: 2.29 and later, NCCL_NET_GDR_C2C=1. */
static inline bool pp_nccl_gdr_near(enum pp_nccl_type flat)
{
	return flat <= PP_NCCL_P2C;
}

/*
 * "yes", "no: distance", "no: not able", or "if able" when the distance allows it and nobody says
 * what GPU or NIC are able to: @gpu and @nic as in pp_nccl_node.gdr.
 */
const char *pp_nccl_gdr_text(enum pp_nccl_type flat, int gpu, int nic);

const char *pp_nccl_type_name(enum pp_nccl_type t);

#endif
