/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_disk: files below a root (of this machine, or of an image), for reading and for
 * changes that survive a crash.
 *
 * No path leads out of the root, whatever links are in it: directories are resolved by the kernel
 * as if the root were "/", or, where it cannot do that, without following any link. Every change is
 * one step, asked of @step before it: tests fail or end the process there.
 */
#ifndef PP_PROFILE_DISK_H
#define PP_PROFILE_DISK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"

enum { PP_DISK_FILE_MAX = 256 << 10, PP_DISK_PATH = 256 };

struct pp_disk {
	int root;	  /* owned directory */
	const char *name; /* borrowed: what the user calls it */
	bool plain;	  /* resolve without the kernel's help */
	size_t chunk;	  /* bytes of one write; 0: all at once */
	/* 0, or a negative errno in place of the step; NULL: no one asks. */
	int (*step)(void *arg, const char *what, const char *path);
	void *arg;
};

/* What a file is, its content apart (which the digest stands for). */
struct pp_disk_state {
	bool exists;
	unsigned int mode;
	uid_t uid;
	gid_t gid;
	int64_t mtime_s, mtime_ns;
	uint64_t bytes;
	char sha256[65];
};

int pp_disk_open(const char *root, struct pp_disk *ret, struct pp_error *err);
void pp_disk_close(struct pp_disk *d);

/*
 * Reads a regular file whole into @ret (an empty buffer; may be NULL) and says what it is. That it
 * does not exist, or its directory, is a state. Refused, with a line that says why: a link, another
 * kind of file, hard links, attributes that a copy would lose, more than PP_DISK_FILE_MAX.
 */
int pp_disk_read(const struct pp_disk *d, const char *path, struct pp_buf *ret,
		 struct pp_disk_state *ret_state, struct pp_error *err);
/* Does a directory exist there? 1, 0, negative errno. */
int pp_disk_has_dir(const struct pp_disk *d, const char *path);

/*
 * A new file, with owner, mode and time of @state, on the disk when this returns; one that a crash
 * has left is replaced. @uid and @gid of -1 leave the process's.
 */
int pp_disk_create(const struct pp_disk *d, const char *path, const char *bytes, size_t len,
		   const struct pp_disk_state *state, struct pp_error *err);
/* 0755 below /etc, else 0700; and its directory on the disk. -EEXIST is 0. */
int pp_disk_mkdir(const struct pp_disk *d, const char *path, unsigned int mode,
		  struct pp_error *err);
/* Both in one directory. */
int pp_disk_rename(const struct pp_disk *d, const char *from, const char *to, struct pp_error *err);
int pp_disk_link(const struct pp_disk *d, const char *from, const char *to, struct pp_error *err);
/* That it is gone already is 0. */
int pp_disk_unlink(const struct pp_disk *d, const char *path, struct pp_error *err);
/* That it is gone, or holds something, is 0. */
int pp_disk_rmdir(const struct pp_disk *d, const char *path, struct pp_error *err);
/* The directory that holds @path: names in it survive a crash from now on. */
int pp_disk_sync(const struct pp_disk *d, const char *path, struct pp_error *err);

/* An exclusive lock, held as long as the descriptor: *ret. -EAGAIN: another process has it. */
int pp_disk_lock(const struct pp_disk *d, const char *path, int *ret, struct pp_error *err);

/* Same content, mode and owner (or both absent). */
bool pp_disk_same(const struct pp_disk_state *a, const struct pp_disk_state *b);
/* Of text; the digest and the length. */
void pp_disk_digest(const char *bytes, size_t len, struct pp_disk_state *state);

#endif
