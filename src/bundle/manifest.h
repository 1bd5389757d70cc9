/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_manifest: what a bundle holds. manifest.json, "peerpath.manifest/1", lists every other
 * file with its size and SHA-256, every symbolic link with its target and every directory, sorted
 * by path; its own digest is its last member, taken over the text with zeros in its place.
 *
 * It guards against damage and loss, not against somebody who writes a new one.
 */
#ifndef PP_BUNDLE_MANIFEST_H
#define PP_BUNDLE_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "bundle/ustar.h"

enum { PP_MANIFEST_SCHEMA = 1, PP_SHA256_BYTES = 32, PP_MANIFEST_BYTES_MAX = 16 << 20 };

#define PP_MANIFEST_NAME "manifest.json"

struct pp_manifest_item {
	enum pp_member_kind kind;
	const char *path;
	const char *target; /* of a link */
	uint64_t bytes;	    /* of a file */
	uint8_t sha256[PP_SHA256_BYTES];
};

struct pp_manifest {
	struct pp_arena arena;
	const char *version; /* of the peerpath that wrote it */
	const char *id;	     /* random, hexadecimal */
	const char *created; /* when the node was seen: "2026-11-29T15:20:01Z", or "unknown" */
	const char *host;    /* label of the node */
	bool scrubbed;
	bool complete; /* nothing was left out for size or shape */
	struct pp_manifest_item *items;
	size_t n, cap;
};

/* An empty one, with this program's version. -ENOMEM. */
int pp_manifest_new(struct pp_manifest **ret);
struct pp_manifest *pp_manifest_free(struct pp_manifest *m); /* returns NULL */

/* Adds a member: hashes its content, copies its names. -ENOMEM, -EFBIG. */
int pp_manifest_add(struct pp_manifest *m, const struct pp_member *member, struct pp_error *err);
/* Sorts by path; -EBADMSG when a path is there twice. */
int pp_manifest_sort(struct pp_manifest *m, struct pp_error *err);

/* Writes a sorted one. -EFBIG when the text is over PP_MANIFEST_BYTES_MAX. */
int pp_manifest_write(const struct pp_manifest *m, struct pp_buf *out, struct pp_error *err);
/*
 * Strict: unknown and missing members, wrong types, duplicates, unsorted lists and a wrong digest
 * are -EBADMSG; a newer schema is -EPROTONOSUPPORT.
 */
int pp_manifest_parse(const char *text, size_t len, struct pp_manifest **ret, struct pp_error *err);

/*
 * @have: what was found, sorted. The first difference becomes one line that names the path:
 * missing, not in the manifest, other size, other content. -EBADMSG.
 */
int pp_manifest_compare(const struct pp_manifest *want, const struct pp_manifest *have,
			struct pp_error *err);

/* Lower-case hexadecimal of @n bytes, NUL-terminated; returns @text (2 * n + 1 bytes). */
const char *pp_hex(const uint8_t *bytes, size_t n, char *text);

#endif
