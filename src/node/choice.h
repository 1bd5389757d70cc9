/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What communication libraries would make of a pair of gpu and hca: each has a rule of its own on
 * the same PCI tree, and each is re-implemented here in a file of its own.
 *
 * Versions: NCCL 2.27 to 2.30, UCX 1.19 (sysfs provider), NVSHMEM 3 (src/host/topo). None of them
 * is asked; what cannot be read of the tree is unknown for them all.
 */
#ifndef PP_NODE_CHOICE_H
#define PP_NODE_CHOICE_H

#include "node/node.h"

/* Sets pair.nccl, pair.nccl_gdr, pair.ucx and pair.nvshmem of every pair. */
void pp_choice_facts(struct pp_node *n);

/* For pp_choice_facts(): all pairs by NCCL's rule; one pair by the others'. */
void pp_choice_nccl(struct pp_node *n);
void pp_choice_ucx(struct pp_node *n, struct pp_object *pair);
void pp_choice_nvshmem(struct pp_node *n, struct pp_object *pair);

/* Why a pair cannot be judged at all: its ends are not in the tree. NULL: it can. */
const char *pp_choice_obstacle(const struct pp_node *n, const struct pp_object *pair);

#endif
