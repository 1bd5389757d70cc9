/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_party from inside, and what differs by the way in which its nodes came together.
 */
#ifndef PP_RDMA_PARTY_STATE_H
#define PP_RDMA_PARTY_STATE_H

#include <sys/types.h>

#include "base/buf.h"
#include "rdma/keeper.h"

struct pp_party_member {
	struct pp_party_node node;
	struct pp_channel *control;
	/* Opens a channel to a new child of the node. */
	int (*open)(struct pp_party *p, struct pp_party_member *m, enum pp_keeper_kind kind,
		    struct pp_channel **ret, struct pp_error *err);
	pid_t keeper;	/* here: a child of ours */
	int hand;	/* here; else -1 */
	char *dialled;	/* its address, owned; NULL */
	char fate[512]; /* what it said last of something that went wrong; "" */
};

/* Strangers who knocked: the first few are told of, then fewer and fewer. */
struct pp_party_strangers {
	unsigned int n;
	void (*say)(const char *text);
};
void pp_party_refused(void *strangers, const char *peer, const char *why);

struct pp_party {
	struct pp_party_strangers strangers;
	char *token; /* owned; NULL: all nodes are here */
	struct pp_party_service service;
	bool (*stopped)(void);
	void (*say)(const char *text);
	char run[PP_KEEPER_RUN];
	uint64_t agents; /* started so far */
	struct pp_gate *gate;
	unsigned int n;
	struct pp_party_member *member;
};

/* One piece of news of @m, kept in its fate; false: none has come until @deadline. */
bool pp_party_hear(struct pp_party_member *m, pp_ns deadline, bool (*stopped)(void));

/* A member without anything but its way. */
struct pp_party_member *pp_party_add(struct pp_party *p);

/* Each adds its members to @p, in order. */
int pp_party_gather_here(struct pp_party *p, unsigned int n, struct pp_error *err);
int pp_party_gather_dialled(struct pp_party *p, const char *const *peers, unsigned int n,
			    pp_ns deadline, struct pp_error *err);
int pp_party_gather_launched(struct pp_party *p, const struct pp_party_options *options,
			     pp_ns deadline, struct pp_error *err);

/* {"for": WHAT, "run": RUN, "number": N, "rank": RANK, "size": SIZE, "host", "version"} */
struct pp_party_introduction {
	const char *what, *run;
	uint64_t number;
	unsigned int rank, size;
};
void pp_party_introduce(const struct pp_party_introduction *i, struct pp_buf *ret);
/* Host, version, address of @m by the introduction and peer of its control channel. */
void pp_party_meet(struct pp_party_member *m);
/* Ids by hosts; all members are there. */
void pp_party_name(struct pp_party *p);
/*
 * A node's part of a run: @way with the rest filled in from @o. @control is taken, and lives as
 * long as the run.
 */
int pp_party_keep(const struct pp_party_options *o, struct pp_channel *control,
		  const struct pp_keeper *way, struct pp_error *err);
/* This host's name. */
void pp_party_host(char *ret, size_t size);

#endif
