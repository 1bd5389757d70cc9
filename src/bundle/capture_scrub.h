/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run's files in their scrubbed form, captures of other nodes within them included: one map for
 * all of them and for the node's own record. Private to bundle/capture*.c.
 */
#ifndef PP_BUNDLE_CAPTURE_SCRUB_H
#define PP_BUNDLE_CAPTURE_SCRUB_H

#include "bundle/scrub.h"

/* Writes a bundle of @record (scrubbed; taken) to @path: the facts are collected from it. */
typedef int pp_capture_write_fn(struct pp_record *record, pp_ns seen, const char *path,
				struct pp_error *err);

struct pp_capture_scrubbed {
	struct pp_record *record;    /* owned until it is taken */
	struct pp_bundle_file *file; /* in the arena, n_files */
	size_t n_files, lost;	     /* lost: could not be scrubbed, and are left out */
	struct pp_scrub_counts counts;
	struct pp_arena arena;
};

/* -ENOMEM, -EFBIG, or what @write returns. pp_capture_scrubbed_done() frees. */
int pp_capture_scrub(struct pp_record *record, const struct pp_bundle_file *files, size_t n,
		     pp_capture_write_fn *write, struct pp_capture_scrubbed *ret,
		     struct pp_error *err);
void pp_capture_scrubbed_done(struct pp_capture_scrubbed *s);

#endif
