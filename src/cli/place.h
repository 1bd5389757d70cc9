/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_place: a directory below $TMPDIR (else /tmp) for what lasts as long as a run.
 *
 * Who makes one holds a lock on it, and so do the programs that it executes. The kernel ends a lock
 * with the last of them, however they end: a place of ours without a lock is what a killed run left
 * behind, and whoever comes next removes it. There is no moment at which a place that is in use can
 * be taken for such a one; another user's is never touched.
 */
#ifndef PP_CLI_PLACE_H
#define PP_CLI_PLACE_H

#include <limits.h>
#include <stdbool.h>

#include "base/error.h"

enum pp_place_kind {
	PP_PLACE_SIMULATION, /* a made /sys */
	PP_PLACE_NODES,	     /* bundles of nodes, until they are in that of prove */
	PP_PLACE_RECORD,     /* a node's own bundle, until it was sent */
	PP_PLACE_LOGS,	     /* what an observed job writes about itself */
};

struct pp_place {
	char path[PATH_MAX - 64]; /* "": none; there is room for a name below it */
	int fd;			  /* holds the lock; -1 where the file system has none */
};

/* Also sweeps. Negative errno and a line that names the directory. */
int pp_place_make(enum pp_place_kind kind, struct pp_place *ret, struct pp_error *err);
/* Removes it whole; nothing when there is none. */
void pp_place_done(struct pp_place *p);

/* Is @path what pp_place_make() would make here? It may come from anybody. */
bool pp_place_is(enum pp_place_kind kind, const char *path);

/* Removes what killed runs of this user have left. */
void pp_place_sweep(void);

#endif
