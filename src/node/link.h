/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_link: one PCI Express link, between a port and the function below it.
 *
 * What a link can do is what both ends can do. What it does now is judged against that, with two
 * exceptions that are no faults: a GPU lowers its speed when idle, and the ports of a hypervisor
 * show numbers that mean nothing. For the same reason a link allows what it does now, only that of
 * a GPU's own link the speed is the possible one.
 */
#ifndef PP_NODE_LINK_H
#define PP_NODE_LINK_H

#include "node/pci.h"

struct pp_link {
	int lower, upper;			/* indexes: the function, and the port above it */
	int speed_mts, width;			/* now; -1 unknown */
	int possible_speed_mts, possible_width; /* both ends; -1 unknown */
	int8_t narrow, slow, slot_limited;	/* 1, 0, -1 unknown */
	int allowed_speed_mts, allowed_width;	/* now; the speed of a GPU: possible; -1 unknown */
	double gb_per_s;			/* allowed, one way, after coding; 0 unknown */
	const char *why;			/* static; why numbers are unknown, else NULL */
	const char *slow_why;			/* static; why slow is unknown, else NULL */
};

/*
 * What a bridge is: its port type, or what follows from its place where config space could not
 * be read (root port, upstream, downstream alternate downwards). PP_PORT_*.
 */
int pp_pci_port_kind(const struct pp_pci *pci, int i);

/* True when a PCI Express link, not the inside of a switch or a shared bus, leads up from @i. */
bool pp_link_above(const struct pp_pci *pci, int i);

/* @lower must have a link above it. */
struct pp_link pp_link_of(const struct pp_pci *pci, int lower);

#endif
