/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_helper: one process that asks a driver on our behalf.
 *
 * It writes into two pipes: the answer (one JSON object, a line break, one digit), and one line per
 * call it is about to make, so that silence can be blamed on a call. It is never waited for: a
 * process stuck in a driver cannot be reaped, and one that a driver knows leaves slowly. Who has
 * not left when its answer is there is reaped later; who has not when the source is freed is left
 * to init, which a container may not have: then it is seen there as defunct. Nothing is shared
 * after fork(), and the parent has one thread only.
 */
#ifndef PP_NODE_HELPER_H
#define PP_NODE_HELPER_H

#include <sys/types.h>

#include "base/buf.h"
#include "base/clock.h"

struct pp_question;

enum pp_outcome {
	PP_ANSWERED,
	PP_TIMEOUT,
	PP_CRASHED,
	PP_FAILED,
	PP_NOT_ASKED,
};

struct pp_reply {
	enum pp_outcome outcome;
	struct pp_buf data; /* the object's text; pp_buf_done() frees */
	char doing[128];    /* last call named */
	pp_ns since;	    /* when it was named */
	char detail[256];   /* why there is no answer */
};

struct pp_helper {
	const char *name; /* of the question; borrowed */
	pid_t pid;	  /* 0: reaped */
	int out, doing;	  /* read ends */
};

enum { PP_HELPERS_LEAVING = 64, PP_HELPERS_STUCK = 4 };

struct pp_helpers {
	struct pp_helper list[8]; /* started ahead */
	unsigned int n;
	pid_t leaving[PP_HELPERS_LEAVING]; /* let go, and not reaped yet */
	unsigned int n_leaving;
	char stuck[PP_HELPERS_STUCK][256]; /* calls that did not return, in words; the first ones */
	unsigned int n_stuck;
};

/*
 * A descriptor that helpers close first of all: one that is stuck in a driver would keep a
 * listening socket in use after its program has ended. At most PP_HELPERS_SHED, then nothing
 * happens.
 */
enum { PP_HELPERS_SHED = 4 };
void pp_helper_shed(int fd);
void pp_helper_shed_no_more(int fd);

/* Forks. Negative errno when there can be no helper. */
int pp_helper_start(const struct pp_question *q, struct pp_helper *ret);

/*
 * Collects the answer and lets the helper go. @limit holds for one named call (initialising eight
 * GPUs one after the other is slow, not stuck), or for everything when no call is named; @end
 * (monotonic) for the question. Fills @reply.
 */
void pp_helper_wait(struct pp_helper *h, pp_ns limit, pp_ns end, struct pp_reply *reply);

/* For a helper that is not waited for any more. */
void pp_helper_abandon(struct pp_helper *h);

/* Takes note of one that was let go or abandoned; reaps whoever has left by now. */
void pp_helpers_note(struct pp_helpers *all, const struct pp_helper *h);
/* Remembers that a call did not return: @detail says which. */
void pp_helpers_stuck(struct pp_helpers *all, const char *detail);
/* Abandons those started ahead; a moment for all to leave. */
void pp_helpers_done(struct pp_helpers *all);

#endif
