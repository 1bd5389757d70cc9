/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_child: an agent as the node's process sees it.
 *
 * It has a process group and a channel of its own and nothing else of ours: other descriptors are
 * closed, standard input and output lead nowhere, and of what it writes to standard error the end
 * is kept. It dies with the node's process. Its life ends in steps once its channel has ended:
 * a step (rdma/silence.h: 1.5 s, less where time is short) to end by itself, SIGTERM, a step,
 * SIGKILL to its group, a step, then it is left alone: stuck in a driver it takes no signal.
 */
#ifndef PP_RDMA_CHILD_H
#define PP_RDMA_CHILD_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "rdma/channel.h"

enum { PP_CHILD_SAID = 400 };

enum pp_child_stage {
	PP_CHILD_RUNS,
	PP_CHILD_ENDS,	     /* its channel has ended */
	PP_CHILD_TERMINATED, /* SIGTERM sent */
	PP_CHILD_KILLED,     /* SIGKILL sent */
	PP_CHILD_OVER,	     /* reaped */
	PP_CHILD_LEFT,	     /* does not end, whatever one does */
};

struct pp_child {
	pid_t pid;
	uint64_t number;
	enum pp_child_stage stage;
	pp_ns since;		      /* of the stage */
	pp_ns step;		      /* what each stage of its end may take */
	int watch;		      /* its end of the channel, to see when it ends */
	int from;		      /* its standard error; -1: closed */
	int status;		      /* as waitpid(2), once it is over */
	char said[PP_CHILD_SAID + 1]; /* the end of what it wrote to standard error */
	size_t said_len;
};

/* Forks: the child runs @run on @c and exits with what it returns. @c stays the caller's. */
int pp_child_start(struct pp_channel *c, int (*run)(struct pp_channel *c, const void *arg),
		   const void *arg, struct pp_child *ret);
/* Two entries to poll for. */
void pp_child_watch(const struct pp_child *child, struct pollfd ret[2]);
/* After a poll, or when time has passed: sees what happened and takes the next step. */
void pp_child_step(struct pp_child *child);
/* Its channel is to be taken as ended; @step: what each stage of its end may take at most. */
void pp_child_end(struct pp_child *child, pp_ns step);
bool pp_child_is_over(const struct pp_child *child);
/* "was killed by signal 9 (KILL)", with its last words; "" when it ended as it should. */
void pp_child_fate(const struct pp_child *child, char *ret, size_t size);
/* Closes what is open; the process, if there is one still, is left. */
void pp_child_done(struct pp_child *child);

/* In a child just forked: leads a process group, dies with @parent, default signals. */
void pp_child_settle(pid_t parent);
/* Standard input and output lead nowhere. */
void pp_child_mute(void);
/* Closes every descriptor from 3 on but these, in rising order. */
void pp_child_keep_only(const int *fds, unsigned int n);

#endif
