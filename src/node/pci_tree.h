/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which PCI functions exist and where each one sits: the shape of struct pp_pci, without
 * attributes.
 *
 * The shape comes from canonical paths alone ("pci0000:00/0000:00:01.0/0000:01:00.0"). A bridge
 * that a path names but the bus does not list is added from the path. A function whose path
 * contradicts that of its bridge, repeats an address, or names no host bridge stays in the list
 * without a place (host_bridge -1): its distances are unknown. Parents are therefore always
 * proper prefixes of their children's paths, and walks upward end.
 */
#ifndef PP_NODE_PCI_TREE_H
#define PP_NODE_PCI_TREE_H

#include "base/arena.h"
#include "node/pci.h"
#include "node/source.h"

enum { PP_PCI_DEPTH = 32 }; /* bridges above a function; deeper is no machine */

/*
 * Fills dev (bdf, path, parent, host_bridge, depth; the rest unknown), n, bridges, n_bridges, and
 * why. Memory comes from @a, whose `failed` tells of exhaustion. -ENOMEM.
 */
int pp_pci_tree(struct pp_source *src, struct pp_arena *a, struct pp_pci *ret);

/* Are the bytes an address that ends a path, "0000:3b:00.0"? For walkers of sysfs paths. */
bool pp_pci_parse_name(const char *name, size_t len, struct pp_bdf *ret);

#endif
