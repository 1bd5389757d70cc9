/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_result: what one document says, as a fleet keeps it: which nodes, their verdicts and
 * software, what was measured of each rail, what the direct path gained.
 *
 * Documents come from anywhere: each list has a maximum, each text is cut and holds no control
 * bytes, and what decides (simulated, verdict) must be there. Pure: no file but the bundle, no
 * database.
 */
#ifndef PP_STORE_RESULT_H
#define PP_STORE_RESULT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/words.h"
#include "judge/gate.h"

struct pp_bundle;

enum {
	PP_RESULT_BYTES = 32 << 20, /* of a document */
	PP_RESULT_NODES = 1024,
	PP_RESULT_PARTS = 256, /* of a node */
	PP_RESULT_FACTS = 128, /* of a node */
	PP_RESULT_FIGURES = 8192,
	PP_RESULT_GAINS = 4096,
	PP_RESULT_TEXT = 512,
};

struct pp_result_fact {
	const char *key, *value;
};

struct pp_result_node {
	const char *host; /* as it calls itself; NULL: not known */
	/* What it is made of: "gpu GPU-71c5...", "hca b8ce:f603:00d1:4a2e". It is known by these.
	 */
	const char *part[PP_RESULT_PARTS];
	size_t n_parts;
	const char *topology, *software, *flavour;   /* NULL: not told */
	struct pp_result_fact fact[PP_RESULT_FACTS]; /* by key; what makes a class, and what its
							machines have in common */
	size_t n_facts;
	bool whole; /* the facts are of this document: they replace what was known of the node */
};

/* One measured figure, of a node's rail or of the node. */
struct pp_result_figure {
	size_t node;
	int rail;	       /* -1: of no rail */
	const char *hca, *gpu; /* NULL: not known, none */
	const char *what, *unit;
	int64_t size_bytes; /* -1: of no size */
	double value;
};

/* The direct path beside something else. */
struct pp_result_gain {
	const char *what, *unit;
	const char *way;	     /* "dmabuf" */
	const char *against;	     /* "host-staged", "host", "GDR off", "before" */
	int64_t size_bytes;	     /* -1: of no size */
	double with, without, ratio; /* NaN: not told */
	bool higher_is_better, proven;
};

struct pp_result {
	struct pp_arena arena; /* everything below */
	const char *kind;      /* "prove", "capture", "bench", "nccl_run", "canary", "comparison" */
	char digest[65];       /* of the document, or the bundle */
	const char *when;      /* "2026-11-29T15:20:01Z"; NULL: its kind has none */
	const char *judged_at; /* the same, of the judgement; NULL: not told */
	bool simulated;	       /* or measured on a device that is no hardware */
	enum pp_verdict verdict;
	bool judged;			/* false: the document has no verdict */
	enum pp_verdict gate[PP_GATES]; /* of a prove */
	bool asked[PP_GATES];
	const char *sentence; /* NULL: none */
	struct pp_result_node *node;
	size_t n_nodes;
	struct pp_result_figure *figure;
	size_t n_figures;
	struct pp_result_gain *gain;
	size_t n_gains;
	const char *picture; /* of node 0, SVG; NULL: none */
};

/*
 * A JSON document. -EBADMSG: it is none, or none of peerpath's; -EPROTONOSUPPORT: a newer one, or a
 * kind that is not kept; -ENODATA: it does not name its node; -ENOMEM.
 */
int pp_result_read(const char *text, size_t len, struct pp_result **ret, struct pp_error *err);
/* A bundle that was opened, and so verified. */
int pp_result_of_bundle(struct pp_bundle *b, struct pp_result **ret, struct pp_error *err);
struct pp_result *pp_result_free(struct pp_result *r); /* returns NULL */

#endif
