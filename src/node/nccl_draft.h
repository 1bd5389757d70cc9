/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vertex of an NCCL topology file as it is written, before it is known what it is: private to
 * nccl_xml.c.
 */
#ifndef PP_NODE_NCCL_DRAFT_H
#define PP_NODE_NCCL_DRAFT_H

#include "node/nccl_xml.h"

struct pp_nccl_draft {
	struct pp_nccl_node
		node; /* .parent is an index of drafts; .kind is final for a CPU and its NIC */
	unsigned int class_code; /* 0xCCSSPP, 0 none */
	bool has_gpu, has_nic, has_pci;
	bool is_pci;
	const char *speed; /* as it is written; NULL no such attribute */
	int width;	   /* -1 no such attribute, 0 also for nonsense */
};

/* Counts an oddity; @whom is kept if it is the first. */
void pp_nccl_odd_add(struct pp_nccl_xml *x, enum pp_nccl_odd o, const char *whom);

/*
 * Decides kinds and links, drops what hangs below a GPU or a NIC, and fills x->graph. -E2BIG (see
 * pp_nccl_graph_finish()), -ENOMEM.
 */
int pp_nccl_drafts_build(struct pp_nccl_xml *x, struct pp_nccl_draft *d, unsigned int n);

#endif
