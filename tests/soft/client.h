/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The least of a verbs client: the first device, one queue pair, one block of registered memory.
 * What goes wrong ends the process with a reason.
 */
#ifndef PP_TESTS_SOFT_CLIENT_H
#define PP_TESTS_SOFT_CLIENT_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { CLIENT_DEPTH = 16, CLIENT_WAIT_S = 30 };

struct client {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	union ibv_gid gid;
	unsigned char *memory;
};

/* How the other end is reached. */
struct client_peer {
	union ibv_gid gid;
	uint32_t qpn, rkey;
	uint64_t memory;
};

extern FILE *client_report; /* NULL: standard error */
void client_fault(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* The queue pair is in INIT. Exits with 77 where the port is another user's. */
void client_open(struct client *c, size_t bytes);
/* The same of the last device. */
void client_open_last(struct client *c, size_t bytes);
struct ibv_qp *client_qp(struct client *c, struct ibv_cq *cq);
struct client_peer client_self(const struct client *c);
void client_connect(struct ibv_qp *qp, const struct client_peer *peer, uint8_t timeout,
		    uint8_t retry_cnt);
void client_close(struct client *c);

/* 0 or an errno, as ibv_post_send(). */
int client_write(struct client *c, struct ibv_qp *qp, uint64_t id, size_t from, size_t len,
		 const struct client_peer *to, size_t at);
int64_t client_now_ns(void); /* the clock that nobody sets */
/*
 * CLIENT_WAIT_S of time in which this machine ran: one that was paused as a whole has not given
 * anybody the chance to answer.
 */
struct client_patience {
	int64_t last, left;
};
struct client_patience client_patience(void);
bool client_patience_ends(struct client_patience *p);
/* The next completion, within CLIENT_WAIT_S. */
struct ibv_wc client_wait(struct ibv_cq *cq);

#endif
