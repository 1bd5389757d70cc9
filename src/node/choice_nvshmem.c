/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVSHMEM counts the components that lead to the GPU and are the same on the way to the hca. The
 * count is taken on the GPU's path only, so the rule is not symmetric, and two functions of one
 * card are PXB.
 */
#include "node/choice.h"

#include "base/banned.h"

/* Of the counts below: "/sys/devices" alone is shared; the host bridge is. */
enum { ROOT_ONLY = 3, HOST_BRIDGE = 4 };

/* Slashes of @gpu, and how many of them come before the first difference. */
static void count(const char *gpu, const char *hca, unsigned int *ret_depth,
		  unsigned int *ret_shared)
{
	unsigned int depth = 0, shared = 0;
	bool same = true;

	for (; *gpu; gpu++) {
		same = same && *gpu == *hca;
		hca += same;
		depth += *gpu == '/';
		shared += same && *gpu == '/';
	}
	*ret_depth = depth;
	*ret_shared = shared;
}

void pp_choice_nvshmem(struct pp_node *n, struct pp_object *pair)
{
	const struct pp_pci_dev *gpu = &n->pci.dev[pair->parent->pci];
	const struct pp_pci_dev *hca = &n->pci.dev[pair->peer->pci];
	unsigned int depth, shared;
	const char *class;

	count(gpu->path, hca->path, &depth, &shared);
	if (shared <= ROOT_ONLY) {
		if (gpu->numa == PP_UNREADABLE || hca->numa == PP_UNREADABLE)
			return pp_fact_unknown(&n->facts, pair, PP_F_PAIR_NVSHMEM, NULL,
					       "numa_node of one of them could not be read");
		class = gpu->numa == hca->numa ? "NODE" : "SYS";
	} else if (shared == HOST_BRIDGE) {
		class = "PHB";
	} else {
		class = shared == depth - 1 ? "PIX" : "PXB";
	}
	pp_fact_str(&n->facts, pair, PP_F_PAIR_NVSHMEM, class, NULL);
}
