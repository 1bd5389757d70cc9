/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_teller: signals as JSON Lines in a file that others follow.
 *
 * A line is in the file as a whole or not at all: what a kill or a full disk cut short is taken
 * back before the next one. Each has an id, so that one which comes twice after a restart is
 * known.
 */
#ifndef PP_DAEMON_TELLER_H
#define PP_DAEMON_TELLER_H

#include <stddef.h>

#include "base/error.h"

struct pp_teller {
	const char *path; /* borrowed */
	int fd;		  /* -1: not open */
};

/* Appends to @path, mode 0640. -errno. */
int pp_teller_open(const char *path, struct pp_teller *ret, struct pp_error *err);
void pp_teller_close(struct pp_teller *t);

/* The line and its end, and for a regular file onto the disk. -errno: nothing of it is there. */
int pp_teller_write(struct pp_teller *t, const char *line, struct pp_error *err);
/* A file that was renamed away: a new one of the same name. */
int pp_teller_reopen(struct pp_teller *t, struct pp_error *err);

#endif
