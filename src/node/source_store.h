/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a source's bytes lie: private to source*.c.
 */
#ifndef PP_NODE_SOURCE_STORE_H
#define PP_NODE_SOURCE_STORE_H

#include <sys/types.h>

#include "base/buf.h"
#include "node/source.h"

struct pp_store {
	int root_fd;		  /* disk: O_PATH directory that "/" means; -1: the real one */
	int answers_fd;		  /* disk: directory of recorded answers, -1 none */
	struct pp_record *errors; /* disk: recorded errors, NULL none */
	struct pp_record *tree;	  /* memory */
};

/* A file being scanned: a descriptor (disk) or bytes (memory, borrowed). */
struct pp_stream {
	int fd; /* -1: bytes */
	const char *bytes;
	size_t len, pos;
};

struct pp_store_ops {
	int (*read)(struct pp_store *st, const char *path, void *buf, size_t size, size_t *ret_len);
	/* Positioned at the start; the caller closes fd. */
	int (*open)(struct pp_store *st, const char *path, struct pp_stream *ret);
	int (*list)(struct pp_store *st, const char *path, struct pp_names *ret);
	int (*link)(struct pp_store *st, const char *path, char *buf, size_t size);
	/* 1, 0, -errno when that cannot be told. */
	int (*probe)(struct pp_store *st, const char *path);
	int (*answer)(struct pp_store *st, const char *name, char **ret, size_t *ret_len);
};

/* A directory, links kept inside it; root_fd -1 is this machine's "/". */
extern const struct pp_store_ops pp_store_disk;
extern const struct pp_store_ops pp_store_memory; /* a record */

struct pp_source {
	enum pp_source_mode mode;
	bool may_ask;
	char *name;
	const struct pp_store_ops *ops;
	struct pp_store store;
	struct pp_record *record; /* borrowed; filled while reading */
	pp_ns time, deadline;
	struct pp_helpers helpers;
};

/* Bytes read, 0 at the end, -errno. */
ssize_t pp_stream_read(struct pp_stream *in, void *buf, size_t size);
/* The scan proper; kept pieces are appended to @kept. */
int pp_stream_scan(struct pp_stream *in, const struct pp_scan *scan, struct pp_buf *kept);

/* Everything of a file descriptor, at most @max bytes (-EFBIG); malloc'ed, NUL-terminated. */
int pp_store_slurp(int fd, size_t max, char **ret, size_t *ret_len);
/* Text of raw.errors ("EACCES\t/path" lines) into ERROR entries. -EBADMSG. */
int pp_store_parse_errors(char *text, struct pp_record *ret);
/* Sorts and owns a list of names that were appended to @block, NUL-separated. */
int pp_store_names(char *block, size_t len, size_t n, struct pp_names *ret);

#endif
