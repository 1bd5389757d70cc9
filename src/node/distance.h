/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distance between two PCI functions in nvidia-smi's words, from paths and NUMA nodes alone:
 *
 *   other host bridge: same NUMA node NODE, else SYS      same host bridge, no common bridge: PHB
 *   common bridge, both at most two below the last one: PIX          else: PXB
 *
 * On a machine with one NUMA node the kernel says -1 and the driver prints NODE. The class says
 * how far, not whether peer-to-peer works: see path.h.
 */
#ifndef PP_NODE_DISTANCE_H
#define PP_NODE_DISTANCE_H

#include "node/pci.h"

/* Nearest first. */
enum pp_distance {
	PP_DISTANCE_X,
	PP_DISTANCE_PIX,
	PP_DISTANCE_PXB,
	PP_DISTANCE_PHB,
	PP_DISTANCE_NODE,
	PP_DISTANCE_SYS,
	PP_DISTANCE_UNKNOWN,
};

/* @a, @b: indexes into the tree; -1 gives unknown. */
enum pp_distance pp_distance(const struct pp_pci *pci, int a, int b);
const char *pp_distance_name(enum pp_distance d);
/* Why it is unknown; "" when it is known. Static text. */
const char *pp_distance_why(const struct pp_pci *pci, int a, int b);

/* The last bridge on the ways of both, -1 none. One may be the other. */
int pp_pci_common(const struct pp_pci *pci, int a, int b);

#endif
