/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child that ends when its parent does, for a parent that has something to put away after it.
 * While there is one, SIGINT, SIGTERM and SIGHUP do not end the parent: it passes them on.
 */
#ifndef PP_CLI_WARD_H
#define PP_CLI_WARD_H

#include <signal.h>
#include <sys/types.h>

struct pp_ward {
	pid_t pid;
	sigset_t before; /* mask of signals of who started it */
};

/* fork(). In the child @ret->pid is 0, and the signals are still blocked. Negative errno. */
int pp_ward_start(struct pp_ward *ret);
/* In the child, when it can cope with them: also in what it has executed, where @w is NULL. */
void pp_ward_admit(const struct pp_ward *w);
/* Waits for its end; @pass_on is what it gets for each signal of ours. Returns its wait status. */
int pp_ward_wait(const struct pp_ward *w, int pass_on);

#endif
