/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_teller: signals as JSON Lines in a file that others follow.
 *
 * A line is in the file as a whole or not at all: what a kill or a full disk cut short is taken
 * back before the next one. Each has an id, so that one which comes twice after a restart is
 * known.
 *
 * logrotate(8) need not tell anybody: a file that was renamed or removed is noticed before the next
 * line, which goes into a new one of the old name. A symbolic link is not followed where root
 * writes, since who may write into the folder could choose the file; /dev/stdout, /dev/stderr and
 * /dev/fd/N are links by their nature and are taken by their names.
 */
#ifndef PP_DAEMON_TELLER_H
#define PP_DAEMON_TELLER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct pp_teller {
	const char *path; /* borrowed */
	int fd;		  /* -1: not open */
	bool given;	  /* by a descriptor of ours: nobody renames it */
};

/* Appends to @path, mode 0640. -errno; -ELOOP: a link, and we are root. */
int pp_teller_open(const char *path, struct pp_teller *ret, struct pp_error *err);
void pp_teller_close(struct pp_teller *t);

/* The line and its end, and for a regular file onto the disk. -errno: nothing of it is there. */
int pp_teller_write(struct pp_teller *t, const char *line, struct pp_error *err);
/* The file that has the name now. */
int pp_teller_reopen(struct pp_teller *t, struct pp_error *err);

#endif
