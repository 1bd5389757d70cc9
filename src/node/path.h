/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_path: what the bytes cross between two PCI functions.
 *
 * The class of distance.h says how far two functions are. The route says whether a transfer
 * between them stays in a switch: ACS bits of the ports below the common bridge may send it up to
 * the root complex although the class is PIX. Bits that could not be read make the route unknown,
 * never direct.
 */
#ifndef PP_NODE_PATH_H
#define PP_NODE_PATH_H

#include "node/distance.h"
#include "node/link.h"
#include "node/pci_tree.h"

enum pp_route {
	PP_ROUTE_SWITCH,
	PP_ROUTE_ROOT_COMPLEX,
	PP_ROUTE_CROSS_SOCKET,
	PP_ROUTE_C2C,
	PP_ROUTE_UNKNOWN,
};

struct pp_node;
struct pp_object;

/* What the PCI tree does not tell. */
struct pp_path_hints {
	bool c2c;     /* @a is a GPU with a coherent link to its CPU */
	int8_t guest; /* in a virtual machine, where the host's IOMMU does not show: 1, 0, -1 */
	const struct pp_object *port; /* of the NIC: the port whose rate bounds it; NULL none */
};

enum { PP_PATH_HOPS = 3 * PP_PCI_DEPTH };

struct pp_path {
	enum pp_distance distance;
	int common; /* last bridge on both ways, -1 none */

	enum pp_route route;
	char route_why[160]; /* unknown: the reason, else "" */

	int8_t translated; /* 1, 0, -1 unknown */
	char translated_why[160];

	int8_t acs_redirect; /* a port on the way has RR, CR or EC set: 1, 0, -1 unknown */
	int8_t acs_dt;	     /* every redirecting port has DT set (1 when none redirects) */
	char acs_why[160];
	int redirect[2 * PP_PCI_DEPTH]; /* the ports that redirect */
	unsigned int n_redirect;

	int hops[PP_PATH_HOPS]; /* lower ends of the links on the way: a's, then b's */
	unsigned int n_hops;
	int64_t ceiling_mbytes; /* per second, one way, of the narrowest hop now; -1 unknown */
	char ceiling_at[128];	/* the hop: a link, or the port; "" unknown */
	char ceiling_why[160];
};

/* @gpu NULL: no gpu. The port is left to the caller. */
struct pp_path_hints pp_path_hints_of(const struct pp_node *n, const struct pp_object *gpu);

/* @a, @b: indexes, not equal. */
void pp_path_find(const struct pp_pci *pci, int a, int b, const struct pp_path_hints *hints,
		  struct pp_path *ret);

const char *pp_route_name(enum pp_route r);
/*
 * The link above @lower: "0000:3b:00.0, 16 GT/s x8", of an idle GPU "possible 32 GT/s x16"; returns
 * @text.
 */
const char *pp_hop_text(const struct pp_pci *pci, int lower, char *text, size_t size);

#endif
