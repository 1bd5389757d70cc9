/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the attributes of PCI functions whose places are known.
 */
#ifndef PP_NODE_PCI_ATTRIBUTES_H
#define PP_NODE_PCI_ATTRIBUTES_H

#include "base/arena.h"
#include "node/pci.h"
#include "node/source.h"

/*
 * Few reads each, since thousands of functions are possible: config space and the NUMA node for
 * all; link files, CPUs and regions only for functions that a path can end at or pass.
 */
void pp_pci_attributes(struct pp_source *src, struct pp_arena *a, struct pp_pci *pci);

/* Groups and their types; iommu_groups_known. */
void pp_pci_iommu(struct pp_source *src, struct pp_arena *a, struct pp_pci *pci);

/* Largest prefetchable memory region among the six BARs of a "resource" file; 0 none. */
uint64_t pp_pci_largest_bar(const char *text);

#endif
