/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a picture shows, between the node it is made from and the SVG it becomes. Three steps,
 * one file each: drawing.c chooses the items and names the faults, drawing_place.c gives them
 * coordinates, draw.c paints.
 *
 * A root port or a downstream port of a switch is no item of its own: it is the line to its child.
 */
#ifndef PP_BUNDLE_DRAWING_H
#define PP_BUNDLE_DRAWING_H

#include "base/arena.h"
#include "node/node.h"

enum pp_item_kind { PP_ITEM_HOST, PP_ITEM_SWITCH, PP_ITEM_GPU, PP_ITEM_HCA, PP_ITEM_GROUP };

enum { PP_ITEM_NOTES = 3 };

struct pp_item {
	enum pp_item_kind kind;
	int pci;    /* index into the PCI tree; -1 host bridge, group */
	int parent; /* item, -1 none */
	int port;   /* PCI index of the port above, whose line this is; -1 none */
	int block;  /* NUMA node it is drawn in */
	int rail;   /* number of the rail it belongs to, -1 none */
	int level;  /* bridges drawn above it */
	const struct pp_object *object; /* gpu or hca */
	const char *title, *subtitle;
	const char *notes[PP_ITEM_NOTES]; /* in red, inside the box */
	unsigned int n_notes;
	const char *link, *link_fault;	   /* "Gen5 x16"; "Gen5 x8 of x16" */
	const char *acs;		   /* "ACS RR+CR" of the port above, when it redirects */
	unsigned int count, down, without; /* of a group */
	const char *first, *last;
	int x, y, w, h;
	unsigned int order;
};

struct pp_block {
	int numa, package; /* -1 unknown or none */
	const char *cpus;
	int x, y, w, h;
	int levels;
	unsigned int items;
};

struct pp_rail_line {
	const struct pp_object *pair;
	int gpu, hca; /* items */
	const char *distance;
	bool near; /* PIX or PXB */
};

struct pp_drawing {
	const struct pp_node *node; /* borrowed */
	struct pp_arena arena;	    /* holds everything below */
	struct pp_item *items;
	unsigned int n, cap;
	struct pp_block *blocks;
	unsigned int n_blocks, cap_blocks;
	struct pp_rail_line *rails;
	unsigned int n_rails, cap_rails;
	const char **faults, **unknowns; /* whole sentences */
	unsigned int n_faults, n_unknowns, cap_sentences;
	unsigned int n_more_faults; /* beyond the capacity */
	int width, height;
};

/* -ENOMEM, -EFBIG. pp_drawing_done() frees, also after a failure. */
int pp_drawing_make(const struct pp_node *node, struct pp_drawing *ret);
void pp_drawing_place(struct pp_drawing *d);
void pp_drawing_done(struct pp_drawing *d);

#endif
