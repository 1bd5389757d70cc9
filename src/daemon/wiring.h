/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_wiring: the few words that can send the bytes of a running node another way, and where
 * each lies: access control (ACS) of the bridges above gpus and hcas, the types of their IOMMU
 * groups. Anyone with setpci changes the first, and no file that pp_glance reads tells it.
 *
 * What a whole collection saw is learned; later each word is read alone: four bytes of config space
 * are one transaction where the whole is a thousand. A word that is another is reason for a new
 * collection, and tells nothing by itself.
 */
#ifndef PP_DAEMON_WIRING_H
#define PP_DAEMON_WIRING_H

#include "node/node.h"

struct pp_wire {
	const char *path; /* of the device */
	unsigned int at;  /* of the word in its config space; 0: its IOMMU group's type */
	uint32_t word;
	const char *type;
};

struct pp_wiring {
	struct pp_wire *wire; /* of the arena that it was learned into */
	size_t n;
};

/* Everything is @arena's. -ENOMEM: nothing is known. */
int pp_wiring_learn(const struct pp_node *n, struct pp_arena *arena, struct pp_wiring *ret);
/* A device that sleeps is not woken: it is taken for unchanged. */
bool pp_wiring_changed(const struct pp_wiring *w, struct pp_source *s);

/* Marks the bridges above all gpus and hcas; n->pci.n long. NULL: no memory. */
bool *pp_wiring_bridges(const struct pp_node *n, struct pp_arena *arena);

#endif
