/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding the PCI functions of a source: the links of /sys/bus/pci/devices, or where the bus is
 * not shown, the directories below /sys/devices. Private to pci_tree.c.
 */
#ifndef PP_NODE_PCI_WALK_H
#define PP_NODE_PCI_WALK_H

#include "base/arena.h"
#include "base/bdf.h"
#include "node/source.h"

struct pp_pci_seen {
	struct pp_bdf bdf;
	const char *path; /* canonical directory, in the arena */
};

struct pp_pci_list {
	struct pp_pci_seen *seen; /* owned */
	size_t n, cap;
};

void pp_pci_list_done(struct pp_pci_list *l);
/* -ENOMEM, -EFBIG above the limit. */
int pp_pci_list_add(struct pp_pci_list *l, const struct pp_bdf *bdf, const char *path);

/* *ret_why: nothing could be looked at, and why; else NULL. -ENOMEM; -EFBIG. */
int pp_pci_walk(struct pp_source *src, struct pp_arena *a, struct pp_pci_list *l,
		const char **ret_why);

#endif
