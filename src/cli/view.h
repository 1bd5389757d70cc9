/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts as people and programs read them: known values, or "unknown" with the reasons gathered
 * and said once below.
 */
#ifndef PP_CLI_VIEW_H
#define PP_CLI_VIEW_H

#include "base/out.h"
#include "node/node.h"

/* Reasons seen so far, each once, with the facts that share it. */
struct pp_view {
	struct pp_out *out;		 /* borrowed */
	const struct pp_node *node;	 /* borrowed */
	const struct pp_fact *open[256]; /* unknown facts shown, in order */
	const struct pp_object *open_of[256];
	unsigned int n_open;
};

#define PP_VIEW(o, n) ((struct pp_view){.out = (o), .node = (n)})

/* A labelled field; key is the fact's key behind the first dot. */
void pp_view_field(struct pp_view *v, const struct pp_object *o, enum pp_fact_id id,
		   const char *label);
/* A table cell. */
void pp_view_cell(struct pp_view *v, const struct pp_object *o, enum pp_fact_id id);
/* A table cell of bytes as "256 GiB". */
void pp_view_cell_bytes(struct pp_view *v, const struct pp_object *o, enum pp_fact_id id);
/* Below this width a table of many columns becomes two. */
enum { PP_VIEW_NARROW = 100 };

struct pp_view_table {
	const char *key;
	const struct pp_out_column *columns;
	unsigned int n;
	unsigned int names;  /* bits of the columns that say which row it is: in both tables */
	unsigned int second; /* bits of the columns that go into the second table */
	void (*rows)(struct pp_view *v, const void *arg); /* adds all cells; may run twice */
};

/* One table, or two one below the other where the terminal is narrow. */
void pp_view_table(struct pp_view *v, const struct pp_view_table *t, const void *arg);

/* Text: the paragraphs "unknown: ..."; JSON: array "unknown" of {fact, of, why, how}. */
void pp_view_unknown(struct pp_view *v);

#endif
