/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which old documents stay when a fleet is pruned: private to store/fleet_prune.c.
 *
 * A node is after it what it was before: the newest of it, what its state began with and what was
 * there before that, and what tells which class a gain is of.
 */
#ifndef PP_STORE_FLEET_RETAIN_H
#define PP_STORE_FLEET_RETAIN_H

#include "store/fleet_parts.h"

enum pp_retain_flag {
	PP_RETAIN_OLD = 1 << 0,	    /* before the time asked for */
	PP_RETAIN_NEEDED = 1 << 1,  /* for what is now */
	PP_RETAIN_GAINS = 1 << 2,   /* has some */
	PP_RETAIN_FIGURES = 1 << 3, /* has some */
};

struct pp_retain {
	int64_t first, last; /* of the documents' ids; what came in later is not looked at */
	unsigned char *flag; /* of each */
};

/* @with_gains: old gains do not stay for their own sake. pp_retain_done() also after a failure. */
int pp_retain(struct pp_sql *sql, const char *before, bool with_gains, struct pp_retain *ret,
	      struct pp_error *err);
void pp_retain_done(struct pp_retain *r);

#endif
