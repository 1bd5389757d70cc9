/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_keeper: the process of a node while a run lasts. It forks agents as the coordinator
 * asks, and sees to it that they end: with their channel, with the run, with the coordinator.
 *
 * One thread, one poll(2). It calls no driver and waits for nobody.
 *
 * How an agent's channel comes:
 *   here       through @hand, a socket on which the coordinator passes one end of a pair
 *   dialled    through @gate, at which the coordinator knocks once more
 *   launched   the keeper dials @address when told to, since rank 0 alone listens
 */
#ifndef PP_RDMA_KEEPER_H
#define PP_RDMA_KEEPER_H

#include "rdma/child.h"
#include "rdma/gate.h"
#include "rdma/party.h"

enum { PP_KEEPER_CHILDREN = 256, PP_KEEPER_RUN = 33 };

enum pp_keeper_kind { PP_KEEPER_AGENT, PP_KEEPER_RECORD };

/* What passes by @hand together with the descriptor. */
struct pp_keeper_request {
	uint64_t number;
	uint64_t kind; /* enum pp_keeper_kind; as wide, so that there is no gap */
};

struct pp_keeper {
	const struct pp_party_service *service; /* borrowed, as all */
	struct pp_channel *control;		/* to the coordinator */
	int hand;				/* -1: none */
	struct pp_gate *gate;			/* NULL: none */
	const char *address, *token;		/* of rank 0; NULL */
	char run[PP_KEEPER_RUN];		/* what an agent's introduction must name */
	bool (*stopped)(void);
	void (*say)(const char *text);

	bool over;     /* the run, one way or the other */
	int code;      /* 0: the coordinator has said so */
	char why[256]; /* when not */
	unsigned int n;
	struct pp_child child[PP_KEEPER_CHILDREN];
};

/*
 * Until the run has ended and every agent with it. 0; -ECONNRESET: the coordinator is gone;
 * -ECANCELED: it was interrupted; -EINTR: @stopped.
 */
int pp_keeper_run(struct pp_keeper *k, struct pp_error *err);

/* Names of kinds in introductions; -EINVAL. */
const char *pp_keeper_kind_name(enum pp_keeper_kind kind);
int pp_keeper_kind_parse(const char *name, enum pp_keeper_kind *ret);

#endif
