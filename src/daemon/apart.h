/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_apart: a watcher that looks in a process of its own, since what it reads may never
 * answer: a file of a server that is gone keeps whoever asks for it, and SIGKILL does not help.
 *
 * The process begins at the first look and stays: a look costs two messages and no fork. Its answer
 * is one piece, looks and what the watcher remembers together: it is taken whole or not at all, so
 * a process that is stuck, killed or started anew loses no event and doubles none. One that is
 * stuck is neither waited for nor replaced: it goes on where it was when its file answers. It holds
 * no descriptor of the monitor's but its end of a socket.
 */
#ifndef PP_DAEMON_APART_H
#define PP_DAEMON_APART_H

#include "daemon/look.h"

struct pp_apart; /* opaque */

/*
 * A look of @w, whose apart() gave @name. Adds to @into what the watcher saw, and a HUNG_CALL of
 * @name. *ret_looked false: there is no answer yet, nor has it been due long enough to say so; then
 * nothing was added. *a is made at the first call.
 */
int pp_apart_look(struct pp_apart **a, const struct pp_watcher *w, const char *name,
		  struct pp_watch_context *at, struct pp_looks *into, bool *ret_looked,
		  struct pp_error *err);
/* Does not wait for a process that is stuck. Returns NULL. */
struct pp_apart *pp_apart_free(struct pp_apart *a);

/* In such a process: the call that it is about to make, so that silence can be blamed on it. */
void pp_apart_doing(const char *call, const char *path);

#endif
