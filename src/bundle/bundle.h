/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_bundle: the evidence of one node, as a directory or a .tar.zst with the same members.
 *
 *   manifest.json          what follows, with sizes and digests
 *   result.json            the verdict (prove only)
 *   facts.json             every fact with its source
 *   answers/<name>.json    recorded answers of what is no file
 *   raw/<path>             files, links and directories as they were read
 *   raw.errors             what could not be read: "EACCES\t/path" lines
 *
 * A bundle appears whole under its name or not at all. It may hold names, so it belongs to its
 * owner only (0600, 0700).
 */
#ifndef PP_BUNDLE_BUNDLE_H
#define PP_BUNDLE_BUNDLE_H

#include <stdbool.h>

#include "base/clock.h"
#include "bundle/manifest.h"
#include "node/record.h"

struct pp_bundle_file {
	const char *path; /* "result.json", "nodes/a/facts.json" */
	const char *data;
	size_t len;
};

struct pp_bundle_content {
	struct pp_record *record;	    /* borrowed; NULL none */
	const struct pp_bundle_file *files; /* borrowed: whatever is no record */
	size_t n_files;
	size_t lost; /* that could not be had: the manifest says that it is not complete */
};

struct pp_bundle_options {
	const char *host; /* label of the node; NULL "node" */
	bool scrubbed;	  /* said in the manifest; scrubbing itself is bundle/scrub.h */
	bool force;	  /* replace a file, or a directory that is a bundle */
	pp_ns created;	  /* when the node was seen (wall clock); 0 unknown */
	/* Asked between files: true ends the writing with -EINTR. NULL: never. */
	bool (*stopped)(void);
};

struct pp_bundle_written {
	char id[17];
	size_t files, links, directories; /* the manifest apart */
	uint64_t bytes;			  /* of the files */
	size_t errors;			  /* paths that could not be read */
	size_t dropped;			  /* entries whose path no archive can hold */
};

/*
 * @path: a directory unless it ends in ".tar.zst". -EEXIST for an existing one without force;
 * otherwise the errno of what failed, and nothing is left.
 */
int pp_bundle_write(const char *path, const struct pp_bundle_content *content,
		    const struct pp_bundle_options *options, struct pp_bundle_written *ret,
		    struct pp_error *err);

/*
 * May a bundle be written there? As pp_bundle_write() would find it now, for asking before a long
 * run: -EEXIST, -EINVAL for no name, the errno of its directory.
 */
int pp_bundle_check(const char *path, bool force, struct pp_error *err);

struct pp_bundle; /* opaque: read and verified */

/*
 * Reads a directory or an archive whole and verifies it: -EBADMSG tampered, cut, or no bundle;
 * -EPROTONOSUPPORT newer; -EFBIG over a limit; -ENOENT... as open(2). @err names the file.
 */
int pp_bundle_open(const char *path, struct pp_bundle **ret, struct pp_error *err);
/* An archive that is a file of another bundle; @name is used in messages. */
int pp_bundle_open_bytes(const char *name, const char *bytes, size_t len, struct pp_bundle **ret,
			 struct pp_error *err);
struct pp_bundle *pp_bundle_free(struct pp_bundle *b); /* returns NULL */

const struct pp_manifest *pp_bundle_manifest(const struct pp_bundle *b);
/* A file that is neither raw nor an answer; NULL if absent. Borrowed. */
const struct pp_bundle_file *pp_bundle_file(const struct pp_bundle *b, const char *path);
/* The recording. Borrowed; pp_bundle_take_record() gives it away, once. */
struct pp_record *pp_bundle_record(struct pp_bundle *b);
struct pp_record *pp_bundle_take_record(struct pp_bundle *b);

/* True when the name says archive. */
bool pp_bundle_is_archive(const char *path);

#endif
