/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rails: for each gpu the hca that its traffic should use.
 *
 *   out:    no RDMA device, no ACTIVE port, not openable while another is
 *   then:   link layer and rate of the majority, by the sum of its rates
 *   then:   nearest class; fewest functions on the way; a PF before a VF; most bandwidth, which is
 *           the lesser of port and PCI path
 *   equal:  spread over the gpus in order of address, and never shared while an equal one is free
 *
 * What is not known drops nobody, and is said in the reason.
 */
#ifndef PP_NODE_RAIL_H
#define PP_NODE_RAIL_H

#include "node/distance.h"
#include "node/node.h"

struct pp_rail_nic {
	struct pp_object *o; /* borrowed */
	int pci;
	const char *dropped; /* static text, NULL: a candidate */
	const char *lacks; /* static text, "has no ACTIVE port": would be a candidate but for it */
	const char *unknown;	      /* static text: what of it was not known, NULL nothing */
	const char *layer;	      /* "InfiniBand", "Ethernet", NULL unknown */
	int64_t rate_mbps;	      /* fastest port that counts, -1 unknown */
	const struct pp_object *port; /* that port, NULL none */
	unsigned int gpus;	      /* whose rail it is */
};

/* How one hca looks from one gpu; smaller is better, except usable_mbytes. */
struct pp_rail_rank {
	enum pp_distance distance;
	int functions; /* on the way, both ends left out */
	bool is_virtual;
	int64_t usable_mbytes; /* 0 unknown */
};

struct pp_rails {
	struct pp_object **gpu;	   /* n_gpus of them, in order of address */
	struct pp_rail_nic *nic;   /* n_nics */
	struct pp_rail_rank *rank; /* [gpu * n_nics + nic] */
	int *choice;		   /* per gpu: index of its nic, -1 none */
	unsigned int n_gpus, n_nics;
	const char *majority_layer; /* NULL: nothing was dropped for it */
	int64_t majority_mbps;
};

/* More is no machine, and would make the work grow without limit. */
enum { PP_RAIL_NICS = 2048, PP_RAIL_PAIRS = 16384 };

/*
 * Lists gpus and hcas that are PCI functions. The caller fills rank for each pair and then calls
 * pp_rails_choose(). -ENOMEM, -EFBIG (more than the limits above).
 */
int pp_rails_list(struct pp_node *n, struct pp_rails *ret);
void pp_rails_done(struct pp_rails *r);
int pp_rails_choose(struct pp_rails *r);

/* True when @port, and not @best (NULL: none yet), speaks for their hca. */
bool pp_rail_port_speaks(const struct pp_object *port, const struct pp_object *best);

/* The ranking part that the PCI tree gives; @ceiling_mbytes -1 unknown. */
struct pp_rail_rank pp_rail_rank_of(const struct pp_pci *pci, int gpu,
				    const struct pp_rail_nic *nic, enum pp_distance distance,
				    int64_t ceiling_mbytes);
/* < 0 when @a is better, 0 equal. */
int pp_rail_compare(const struct pp_rail_rank *a, const struct pp_rail_rank *b);

/* Why this hca is the gpu's rail, or why it is not; one line. Returns @text. */
const char *pp_rail_why(const struct pp_rails *r, unsigned int gpu, unsigned int nic, char *text,
			size_t size);

#endif
