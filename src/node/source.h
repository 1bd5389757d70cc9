/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_source: where a node's files and answers come from.
 *
 *   live    this machine
 *   root    a live tree elsewhere (--root /host): files from there; drivers are asked only when
 *           the tree has this kernel's boot id, else the answers are unknown
 *   replay  a recording: files and recorded answers; no dlopen, no socket, no driver call
 *
 * Every read is bounded, never follows a link out of the root, refuses what is no regular file
 * (a FIFO would block), and can be recorded. Paths are absolute and as seen on the node.
 */
#ifndef PP_NODE_SOURCE_H
#define PP_NODE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/error.h"
#include "node/helper.h"
#include "node/record.h"

struct pp_source; /* opaque */

enum pp_source_mode { PP_SOURCE_LIVE, PP_SOURCE_ROOT, PP_SOURCE_REPLAY };

int pp_source_live(struct pp_source **ret, struct pp_error *err);
int pp_source_root(const char *dir, struct pp_source **ret, struct pp_error *err);
/*
 * @dir: a capture or bundle directory (has raw/), or a bare tree (has sys/ or proc/).
 * -ENOENT and -ENOTDIR when it is none.
 */
int pp_source_replay_dir(const char *dir, struct pp_source **ret, struct pp_error *err);
/* Takes @record. */
int pp_source_replay_record(struct pp_record *record, struct pp_source **ret, struct pp_error *err);
struct pp_source *pp_source_free(struct pp_source *s); /* returns NULL */

enum pp_source_mode pp_source_mode(const struct pp_source *s);
/* The descriptor below which its files are opened; -1: none, they are this machine's. Borrowed. */
int pp_source_root_fd(const struct pp_source *s);
/* May drivers, sockets and this process's environment be asked? */
bool pp_source_may_ask(const struct pp_source *s);
/* Where from, for people: "live", "root /host", "replay h200.tar.zst". Borrowed. */
const char *pp_source_name(const struct pp_source *s);
/* "replay" and the path of the archive that a record came from. -ENOMEM. */
int pp_source_set_name(struct pp_source *s, const char *what, const char *path);

/*
 * When the node was seen, for a recording that says it (wall clock); 0: not known, and for what
 * is live. Facts of a replay are of that time.
 */
void pp_source_set_time(struct pp_source *s, pp_ns wall);
pp_ns pp_source_time(const struct pp_source *s);

/*
 * No question to a driver goes on after @end (pp_clock_monotonic(); 0 = no such limit): what is
 * still open then is unknown, not waited for.
 */
void pp_source_set_deadline(struct pp_source *s, pp_ns end);
pp_ns pp_source_deadline(const struct pp_source *s);

/* Helpers started ahead and not yet waited for (node/ask.c); abandoned with the source. */
struct pp_helpers *pp_source_helpers(struct pp_source *s);

/* From now on everything read is also put into @r (borrowed; NULL stops). */
void pp_source_set_record(struct pp_source *s, struct pp_record *r);
struct pp_record *pp_source_record(const struct pp_source *s);

/*
 * Reads a whole file of at most @size bytes. *ret_len is written on success and with -EFBIG
 * (the file is longer; @buf holds its start). Other errors as open(2) and read(2); -ELOOP,
 * -EINVAL for what is no regular file, -ENAMETOOLONG.
 */
int pp_source_read(struct pp_source *s, const char *path, void *buf, size_t size, size_t *ret_len);

/*
 * @size bytes at @at of a file, less at its end. For who knows the whole already and looks whether
 * a part of it is as it was: never recorded. Errors as pp_source_read(), and of pread(2).
 */
int pp_source_piece(struct pp_source *s, const char *path, size_t at, void *buf, size_t size,
		    size_t *ret_len);

/*
 * A short text file: trimmed, NUL-terminated. -EFBIG when it does not fit, -EBADMSG when it holds
 * NUL or control bytes. An empty file gives "" and 0.
 */
int pp_source_text(struct pp_source *s, const char *path, char *buf, size_t size);

/*
 * Reads a file piece by piece, for what is too large to keep (kallsyms, strings in a library).
 * A recording holds only the pieces that the filter kept, each with its separator, so the same
 * scan of the recording sees the same pieces and must come to the same facts: a filter keeps
 * whatever its conclusions rest on, what proves that the file was whole included. The first scan
 * of a file is the one that is recorded.
 */
enum pp_scan_step {
	PP_SCAN_DROP,
	PP_SCAN_KEEP,
	PP_SCAN_LAST, /* keep this one and stop reading */
};

enum { PP_SCAN_PIECE = 4096 };

struct pp_scan {
	char separator;	     /* '\n', or '\0' for strings and environ */
	size_t max;	     /* bytes to read at most */
	const char *section; /* of an ELF file with this section read only that; NULL: all */
	/* @piece is NUL-terminated after @len bytes and cut to PP_SCAN_PIECE - 1 of them. */
	enum pp_scan_step (*filter)(void *arg, const char *piece, size_t len);
	void *arg;
};

/*
 * 0 when everything was read or the filter said PP_SCAN_LAST. On error what the filter saw is
 * void: -EFBIG (longer than max, or more kept than 1 MiB), others as pp_source_read().
 */
int pp_source_scan(struct pp_source *s, const char *path, const struct pp_scan *scan);

/* Names in a directory, sorted, without "." and "..", at most 65536. pp_names_done() frees. */
struct pp_names {
	char **name;
	size_t n;
	char *block; /* holds the strings */
};
int pp_source_list(struct pp_source *s, const char *path, struct pp_names *ret);
void pp_names_done(struct pp_names *names);

/* Target of a symbolic link, as it is written. -EINVAL when it is none. */
int pp_source_link(struct pp_source *s, const char *path, char *buf, size_t size);

/*
 * Canonical path of @path when its last component is a symbolic link ("/sys/class/net/eth0" ->
 * "/sys/devices/.../net/eth0"), @path itself when it is no link. Earlier components are taken as
 * they are. -ENOENT when it does not exist.
 */
int pp_source_real(struct pp_source *s, const char *path, char buf[PP_PATH_MAX]);

/*
 * Is there anything at @path? 1, 0, or -errno when that cannot be told (-EACCES: a directory above
 * refuses): then absence is not known. Recorded like a listed name, so that a replay knows it too.
 */
int pp_source_probe(struct pp_source *s, const char *path);
/* For where to look only, never for a "no": true when something is known to be there. */
bool pp_source_exists(struct pp_source *s, const char *path);

/* The recording is not whole: what it does not hold is -ENODATA, never -ENOENT. */
bool pp_source_cut(const struct pp_source *s);

/* Recorded JSON text of an answer (replay only), malloc'ed into *ret. -ENOENT when not recorded. */
int pp_source_answer(struct pp_source *s, const char *name, char **ret, size_t *ret_len);

/* One line for "why unknown": "absent", "permission denied", "longer than 4095 bytes", ... */
const char *pp_source_why(int error);

/* Joins and normalises: dir + "/" + relative link target with "..". -ENAMETOOLONG. */
int pp_path_join(const char *dir, const char *rest, char buf[PP_PATH_MAX]);

#endif
