/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A planned layout: how a machine is meant to be wired, written by hand or taken from a machine
 * known to be good, and compared with what is there now. docs/layout.md describes the file.
 *
 * A fact that is unknown makes its row unknown, never equal and never different.
 */
#ifndef PP_NODE_LAYOUT_H
#define PP_NODE_LAYOUT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/words.h"
#include "node/node.h"

enum { PP_LAYOUT_MAX = 1024 }; /* rails, links */

struct pp_layout_rail {
	const char *name;
	const char *gpu, *hca; /* as written; NULL: not planned */
	const char *distance;  /* NULL: not planned */
	unsigned int line;
};

struct pp_layout_link {
	const char *name;
	struct pp_bdf bdf;
	int width, speed_mts; /* -1 not planned */
};

struct pp_layout {
	struct pp_arena arena;
	int64_t gpus, hcas, numa_nodes; /* -1 not planned */
	struct pp_layout_rail *rails;
	struct pp_layout_link *links;
	unsigned int n_rails, n_links;
	const char *iommu_type; /* NULL not planned */
	int acs_redirect;	/* 1, 0; -1 not planned */
};

struct pp_layout_row {
	const char *what; /* "rail r0: distance" */
	const char *planned, *found;
	const char *note;	 /* why unknown, or what the difference means; NULL */
	enum pp_verdict verdict; /* pass, degraded, unknown */
};

struct pp_layout_rows {
	struct pp_layout_row *row;
	unsigned int n, cap;
};

/* @name is used in messages. -EINVAL for what is no layout, with file and line in @err; -ENOMEM. */
int pp_layout_parse(const char *name, const char *text, size_t len, struct pp_layout **ret,
		    struct pp_error *err);
struct pp_layout *pp_layout_free(struct pp_layout *l); /* returns NULL */

/* Rows live in @a. -ENOMEM when it is exhausted. */
int pp_layout_compare(const struct pp_layout *l, const struct pp_node *n, struct pp_arena *a,
		      struct pp_layout_rows *ret);

/* The present machine as a layout file; what is unknown becomes a comment. */
void pp_layout_write(const struct pp_node *n, struct pp_buf *out);

#endif
