/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NUMA nodes and the sockets (physical packages) they belong to.
 */
#ifndef PP_NODE_NUMA_H
#define PP_NODE_NUMA_H

#include "base/arena.h"
#include "node/pci.h"
#include "node/source.h"

enum { PP_NUMA_MAX = 1024 };

struct pp_range {
	unsigned int first, last;
};

/*
 * "0-3,8,10-11" into at most @max ranges. Returns their number; -EINVAL for another text, a
 * falling range, or more ranges.
 */
int pp_range_parse(const char *text, struct pp_range *ret, unsigned int max);

/* Fills online_nodes, node_package, n_node_package. */
void pp_numa_collect(struct pp_source *src, struct pp_arena *a, struct pp_pci *pci);

#endif
