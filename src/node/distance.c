/* SPDX-License-Identifier: Apache-2.0 */
#include "node/distance.h"

#include "base/banned.h"

enum { NEAR = 2 }; /* PIX: this many functions below the common bridge */

static const char *const names[] = {
	[PP_DISTANCE_X] = "X",
	[PP_DISTANCE_PIX] = "PIX",
	[PP_DISTANCE_PXB] = "PXB",
	[PP_DISTANCE_PHB] = "PHB",
	[PP_DISTANCE_NODE] = "NODE",
	[PP_DISTANCE_SYS] = "SYS",
	[PP_DISTANCE_UNKNOWN] = "unknown",
};

const char *pp_distance_name(enum pp_distance d)
{
	return names[d];
}

int pp_pci_common(const struct pp_pci *pci, int a, int b)
{
	while (a >= 0 && b >= 0 && a != b) {
		if (pci->dev[a].depth >= pci->dev[b].depth)
			a = pci->dev[a].parent;
		else
			b = pci->dev[b].parent;
	}
	return a >= 0 && b >= 0 ? a : -1;
}

static int numa_of(const struct pp_pci *pci, int i)
{
	return pci->online_nodes == 1 ? 0 : pci->dev[i].numa;
}

static bool placed(const struct pp_pci *pci, int i)
{
	return i >= 0 && (unsigned int)i < pci->n && pci->dev[i].host_bridge >= 0;
}

/* NULL: known. */
static const char *obstacle(const struct pp_pci *pci, int a, int b)
{
	int na, nb;

	if (!placed(pci, a) || !placed(pci, b))
		return "the place of one of them in the PCI tree is not known";
	if (pci->dev[a].host_bridge == pci->dev[b].host_bridge)
		return NULL;
	na = numa_of(pci, a);
	nb = numa_of(pci, b);
	if (na == PP_UNREADABLE || nb == PP_UNREADABLE)
		return "other host bridges, and numa_node of one of them could not be read";
	/* -1 is also what a machine with one node says: both readings stay possible. */
	if (pci->online_nodes < 0 && (na < 0 || nb < 0))
		return "other host bridges, no numa_node, and the number of NUMA nodes could not "
		       "be read";
	return NULL;
}

enum pp_distance pp_distance(const struct pp_pci *pci, int a, int b)
{
	int common, na, deepest;

	if (a == b && a >= 0)
		return PP_DISTANCE_X;
	if (obstacle(pci, a, b))
		return PP_DISTANCE_UNKNOWN;
	if (pci->dev[a].host_bridge != pci->dev[b].host_bridge) {
		na = numa_of(pci, a);
		return na >= 0 && na == numa_of(pci, b) ? PP_DISTANCE_NODE : PP_DISTANCE_SYS;
	}
	common = pp_pci_common(pci, a, b);
	if (common < 0)
		return PP_DISTANCE_PHB;
	deepest = pci->dev[a].depth > pci->dev[b].depth ? pci->dev[a].depth : pci->dev[b].depth;
	return deepest - pci->dev[common].depth <= NEAR ? PP_DISTANCE_PIX : PP_DISTANCE_PXB;
}

const char *pp_distance_why(const struct pp_pci *pci, int a, int b)
{
	const char *why = a == b && a >= 0 ? NULL : obstacle(pci, a, b);

	return why ? why : "";
}
