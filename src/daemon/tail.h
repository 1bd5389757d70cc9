/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_tails: log files that grow, are rotated, truncated, copied and truncated, replaced; and
 * the lines that came since the last look.
 *
 * A file is its device and inode, whatever it is called now, and a short digest of its first bytes:
 * the same inode with another beginning is another file, and so is one that became shorter. It
 * stays open, so that what is written between the last look and a rotation is read too. A line is
 * handed on when its end was written; where the reading stands is the start of the first line that
 * was not. Bounded files, bytes a round, and bytes of a line.
 *
 * Only regular files, by whatever links they are found, and of none that the kernel makes up
 * (/proc, /sys, tracing): anything else is looked at without being opened, and refused once.
 */
#ifndef PP_DAEMON_TAIL_H
#define PP_DAEMON_TAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

enum {
	PP_TAIL_FILES = 256,
	PP_TAIL_LINE = 16384,
	PP_TAIL_ROUND = 1 << 20,   /* bytes of one file at one look */
	PP_TAIL_BEHIND = 64 << 20, /* more than this is left out, and told */
	PP_TAIL_HEAD = 256,	   /* bytes that tell a file from its successor */
	PP_TAIL_REFUSED = 64,	   /* remembered as told */
	PP_TAIL_REFUSALS = 8,	   /* told at one look */
};

struct pp_tail {
	char *path; /* owned: the name under which it was found last */
	int fd;
	dev_t dev;
	ino_t ino;
	uint64_t offset;    /* of the first byte that was not read */
	struct pp_buf part; /* a line whose end was not seen */
	uint64_t line_at;   /* where it begins */
	bool skipping;	    /* inside a line that is too long */
	unsigned int head_len;
	uint64_t head;
	bool seen; /* at this look, under some name */
};

/* What a name leads to and is no log. */
struct pp_tail_refusal {
	dev_t dev;
	ino_t ino;
	char path[256];
	const char *why; /* "a pipe"; static */
};

struct pp_tails {
	struct pp_tail file[PP_TAIL_FILES];
	size_t n;
	bool begun;	     /* files that appear from now on are read from their start */
	unsigned int unread; /* files beyond the most, at the last look */
	char why[256];	     /* the last that could not be opened, and why; "" none */
	struct {
		dev_t dev;
		ino_t ino;
	} refused[PP_TAIL_REFUSED];
	size_t n_refused;
	struct pp_tail_refusal refusal[PP_TAIL_REFUSALS]; /* new at the last look */
	size_t n_refusals;
};

/* One whole line, without its end; a NUL follows it, and others may be in it. */
struct pp_tail_line {
	const struct pp_tail *file;
	const char *text;
	size_t len;
	uint64_t offset; /* of its first byte */
};

/* Not 0 ends the reading and is returned. @skipped: so many bytes before it were left out. */
typedef int pp_tail_each(void *ctx, const struct pp_tail_line *line, uint64_t skipped);

/*
 * Reads what is new. @globs NULL-terminated, as glob(3) takes them. @recalled: what
 * pp_tails_write() gave before a restart, or NULL: then what files hold at the first look is not
 * new. -ENOMEM, or what @each returned.
 */
int pp_tails_read(struct pp_tails *t, const char *const *globs, const char *recalled,
		  pp_tail_each *each, void *ctx);
/* One line of text for a later pp_tails_read(). */
void pp_tails_write(const struct pp_tails *t, struct pp_buf *to);
void pp_tails_done(struct pp_tails *t);

#endif
