/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_party: the nodes of one run as their coordinator sees them, and a fresh agent process
 * on each whenever one is asked for.
 *
 *   coordinator ── channel ── node ─ fork ─ agent       one agent an end of a pair under test
 *        └────────────────── channel ────────┘
 *
 * Three ways to come together, one interface after it:
 *   here      @local nodes, all on this machine: agents are children of the coordinator
 *   dialled   the coordinator connects to `bench --listen` on each peer
 *   launched  ranks of Slurm, Open MPI, PMI: rank 0 coordinates and listens, the others come
 *
 * A node's process never calls a driver: only its agents do, so that a stuck one can be abandoned.
 * An agent ends when its channel does, and is killed 5 s later at the latest; a node ends with its
 * coordinator. Nobody leaves a process behind.
 */
#ifndef PP_RDMA_PARTY_H
#define PP_RDMA_PARTY_H

#include "rdma/channel.h"
#include "rdma/launch.h"

enum {
	PP_PARTY_NODES = 1024,
	PP_PARTY_RECORD = 32 << 20, /* bytes of a node's record */
};

/* What a node does besides forking agents; both run in a child of the node's process. */
struct pp_party_service {
	/* Serves commands until the channel ends. The return value is the child's exit status. */
	int (*agent)(struct pp_channel *c, const void *arg);
	/* What this node has to say of itself, malloc'ed: a bundle's bytes. NULL: nothing. */
	int (*record)(char **ret, size_t *ret_len, const void *arg);
	const void *arg;
};

struct pp_party_options {
	const char *const *peers; /* addresses to dial; n_peers of them */
	unsigned int n_peers;
	unsigned int local;		/* nodes here, this process's included: at least 1 */
	const struct pp_launch *launch; /* NULL: not launched; with it no peers and local 1 */
	const char *listen; /* launched rank 0, --listen: as pp_channel_listen(); NULL */
	const char *token;
	pp_ns deadline; /* to come together, from now; 0 = 30 s */
	struct pp_party_service service;
	bool (*stopped)(void);
	/* Progress for people: "waiting for 3 of 4 nodes"; may be NULL. */
	void (*say)(const char *text);
};

struct pp_party_node {
	char id[64]; /* unique in the party: the host's short name, with "-2" where needed */
	char host[256];
	char address[256]; /* of its end of the channel; "local" */
	char version[32];  /* peerpath's */
};

struct pp_party;

/*
 * For the coordinator: all nodes are there. -ETIMEDOUT names who is missing.
 */
int pp_party_gather(const struct pp_party_options *options, struct pp_party **ret,
		    struct pp_error *err);
unsigned int pp_party_size(const struct pp_party *p);
const struct pp_party_node *pp_party_node(const struct pp_party *p, unsigned int i);
/* A new agent on node @i. The channel is the caller's. */
int pp_party_agent(struct pp_party *p, unsigned int i, struct pp_channel **ret,
		   struct pp_error *err);
/*
 * Bytes of node @i's record; free(*ret). -EFBIG: more than PP_PARTY_RECORD. -EREMOTEIO: the node
 * could not, and @err says why.
 */
int pp_party_record(struct pp_party *p, unsigned int i, char **ret, size_t *ret_len,
		    struct pp_error *err);
/*
 * After a channel to an agent of node @i has ended unasked: what the node says of it, for a
 * person: "agent was killed by signal 9 (KILL)", "node was interrupted", "node has ended its
 * connection"; "" when nothing is known a second later. Each is told once.
 */
void pp_party_fate(struct pp_party *p, unsigned int i, char *ret, size_t size);
/*
 * Is a node gone, whether or not it has an agent now? Does not wait. In @ret what it says of it, as
 * above, each time it is asked.
 */
bool pp_party_lost(struct pp_party *p, unsigned int *ret_i, char *ret, size_t size);
/* Ends all nodes and their agents, 6 s at the most; returns NULL. */
struct pp_party *pp_party_free(struct pp_party *p);

/*
 * For a node that is not the coordinator: dialled (--listen: serves runs until @stopped, or one
 * with @once) or launched (connects to rank 0 and serves the one run). 0 when the run ended well;
 * -ECONNRESET: the coordinator is gone; -ECANCELED: it was interrupted; -EINTR: @stopped. Agents
 * have ended by then.
 */
int pp_party_serve_listen(const struct pp_party_options *options, bool once, struct pp_error *err);
int pp_party_serve_rank(const struct pp_party_options *options, struct pp_error *err);

#endif
