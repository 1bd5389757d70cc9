/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_gate: a listening socket and those who stand before it and have not yet shown that
 * they know the token.
 *
 * Never waits, so that its owner can watch other things too: add what pp_gate_watch() names to a
 * poll(2) of yours, then call pp_gate_step() until it has nobody more. Each that comes has 5 s;
 * when too many wait, the oldest from the host that has sent most has to go, so that a crowd of
 * silent ones keeps nobody out who speaks at once.
 */
#ifndef PP_RDMA_GATE_H
#define PP_RDMA_GATE_H

#include <poll.h>

#include "rdma/channel.h"

enum { PP_GATE_WAITING = 32, PP_GATE_WATCHED = PP_GATE_WAITING + 1 };

struct pp_gate;

struct pp_gate_options {
	const char *token;
	const char *introduction; /* what those who know the token are told; NULL */
	/* Who was turned away and why; may be NULL. */
	void (*refused)(void *arg, const char *peer, const char *why);
	void *arg;
};

/* Takes the listening @fd, also when it fails; copies the texts. */
int pp_gate_new(int fd, const struct pp_gate_options *options, struct pp_gate **ret,
		struct pp_error *err);
struct pp_gate *pp_gate_free(struct pp_gate *g);

/* Fills at most PP_GATE_WATCHED entries; returns how many. */
unsigned int pp_gate_watch(const struct pp_gate *g, struct pollfd *ret);
/* The next who knows the token. -EAGAIN: nobody yet. */
int pp_gate_step(struct pp_gate *g, struct pp_channel **ret, struct pp_error *err);
/* Waits for the next. -ETIMEDOUT, -EINTR. */
int pp_gate_wait(struct pp_gate *g, pp_ns deadline, bool (*stopped)(void), struct pp_channel **ret,
		 struct pp_error *err);

#endif
