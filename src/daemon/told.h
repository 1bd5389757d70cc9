/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_told: what a line of a log means, in the words of `explain`'s rules: "xid-79: the GPU
 * has fallen off the bus". Equal problems give equal words, whatever the line says besides.
 */
#ifndef PP_DAEMON_TOLD_H
#define PP_DAEMON_TOLD_H

#include <stddef.h>

#include "judge/known.h"

struct pp_told {
	struct pp_known_set *known; /* owned; loaded at the first line */
	int error;		    /* they cannot be loaded: not tried again */
};

/*
 * -ENOENT: no rule knows it, or it is harmless. When rules cannot be loaded the line itself is the
 * answer: an event is not lost for want of an explanation. -ENOMEM.
 */
int pp_told_line(struct pp_told *t, const char *line, char *ret, size_t size);
void pp_told_done(struct pp_told *t);

#endif
