/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_keeper: the monitor's database as a file: one monitor at a time, put aside when it is
 * damaged, opened again when it was lost.
 *
 * A node is watched even where nothing can be kept: a disk that is full or cannot be written at the
 * start is no error. What it holds is read as it lies there, the rest waits in memory, and is
 * written when it can be.
 */
#ifndef PP_DAEMON_KEEPER_H
#define PP_DAEMON_KEEPER_H

#include "daemon/keep.h"

struct pp_keeper {
	const char *where;  /* borrowed */
	struct pp_sql *sql; /* NULL: lost, tried again at the next save */
	int lock;	    /* -1: none (a server, memory) */
	char aside[4200];   /* where a damaged one went; "": none */
	char why[512];	    /* what is known is not kept, and why; "": it is */
};

/*
 * -EBUSY: another monitor has it; -EPROTONOSUPPORT: a newer program wrote it. A damaged one goes
 * aside, and the ledger is empty. @ret_odd: rows left out.
 */
int pp_keeper_open(const char *where, const char *node, struct pp_keeper *ret,
		   struct pp_ledger **ret_ledger, size_t *ret_odd, struct pp_error *err);
/* As pp_keep_save(), and into a new one when it turns out to be damaged. */
int pp_keeper_save(struct pp_keeper *keeper, struct pp_ledger *k, int64_t wall_ns,
		   struct pp_error *err);
/* Is what is known kept? Adds that look; none where it is not meant to be. -ENOMEM. */
int pp_keeper_look(const struct pp_keeper *keeper, struct pp_looks *into);
void pp_keeper_close(struct pp_keeper *keeper);

#endif
