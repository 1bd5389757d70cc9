/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_plan: the members of a bundle in the making, in the order in which they are written:
 * the manifest first, then the others sorted by path.
 *
 * A record may name one file by several paths (through a class link, and canonically). The plan
 * puts each under its canonical path, so that the raw tree has the shape of the real one.
 */
#ifndef PP_BUNDLE_PLAN_H
#define PP_BUNDLE_PLAN_H

#include "bundle/bundle.h"

struct pp_plan {
	struct pp_arena arena;
	struct pp_record *raw; /* owned: canonical paths, all directories */
	struct pp_buf errors;  /* raw.errors */
	struct pp_buf text;    /* manifest.json */
	struct pp_manifest *manifest;
	struct pp_member *members;
	size_t n, cap;
	size_t n_errors, dropped;
};

/* @content is borrowed as long as the plan lives. */
int pp_plan_make(const struct pp_bundle_content *content, const struct pp_bundle_options *options,
		 struct pp_plan **ret, struct pp_error *err);
struct pp_plan *pp_plan_free(struct pp_plan *p); /* returns NULL */

/*
 * The record with canonical paths and a DIR for each directory on the way; *ret_dropped counts
 * entries that no archive can hold (names that are not UTF-8, loops of links).
 */
int pp_plan_canonical(struct pp_record *record, struct pp_record **ret, size_t *ret_dropped,
		      struct pp_error *err);

#endif
