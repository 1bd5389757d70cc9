/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a collected node and the record of what was read to a bundle: names it, adds facts.json,
 * scrubs when asked. Capture and prove write by this one call.
 */
#ifndef PP_BUNDLE_CAPTURE_H
#define PP_BUNDLE_CAPTURE_H

#include "bundle/bundle.h"
#include "bundle/scrub.h"
#include "node/node.h"

struct pp_capture_options {
	const char *path; /* NULL: "peerpath-HOST-TIME.tar.zst" in the working directory */
	bool scrub, force;
	bool (*stopped)(void);		    /* as in struct pp_bundle_options */
	const struct pp_bundle_file *files; /* beside facts.json: result.json...; scrubbed too */
	size_t n_files;
	size_t lost; /* files that should be there, too, and could not be had */
};

struct pp_captured {
	char path[4096];
	char host[128];
	struct pp_bundle_written written;
	struct pp_scrub_counts scrubbed; /* all zero without scrub */
	size_t left_out; /* entries, for size or shape, as far as is known, and what was lost; not
			    0: incomplete */
};

/*
 * Reads what nobody else reads and a bundle needs (the host's name). Call it while @record is
 * still attached to the source, after the collection.
 */
void pp_capture_names(struct pp_source *src);

/* Before the collection: may the bundle be written? As pp_bundle_check(). */
int pp_capture_check(const struct pp_capture_options *options, struct pp_error *err);

/* @record: what was read while @node was collected. Both borrowed. */
int pp_capture_write(const struct pp_node *node, struct pp_record *record,
		     const struct pp_capture_options *options, struct pp_captured *ret,
		     struct pp_error *err);

#endif
