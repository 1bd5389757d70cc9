/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_keeper: the monitor's database as a file or a server: one monitor at a time, put aside
 * when it is damaged, opened again when it was lost.
 */
#ifndef PP_DAEMON_KEEPER_H
#define PP_DAEMON_KEEPER_H

#include "daemon/keep.h"

struct pp_keeper {
	const char *where;  /* borrowed */
	struct pp_sql *sql; /* NULL: lost, tried again at the next save */
	int lock;	    /* -1: none (a server, memory) */
	char aside[4200];   /* where a damaged one went; "": none */
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
void pp_keeper_close(struct pp_keeper *keeper);

#endif
