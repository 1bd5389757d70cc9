/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A verbs client built with the installed header and linked like any other: at run time the
 * software device's library takes the place of the installed one.
 */
#ifndef PP_TESTS_SOFT_ABI_CLIENT_H
#define PP_TESTS_SOFT_ABI_CLIENT_H

#include "unit.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>

struct client {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	union ibv_gid gid;
	struct ibv_port_attr port;
};

/* Opens soft_lo; fails the test when it cannot. */
void client_open(struct client *c);
void client_close(struct client *c);

/* RC, on c->cq; @srq may be NULL. */
struct ibv_qp *client_qp(struct client *c, enum ibv_qp_type type, struct ibv_srq *srq);
void client_to_init(struct ibv_qp *qp);
/* To RTR and RTS towards @peer, which may be @qp itself. */
void client_connect(struct client *c, struct ibv_qp *qp, uint32_t peer);
void client_ud_ready(struct ibv_qp *qp);

/* One completion, waited for at most 10 s; the status is the caller's to look at. */
struct ibv_wc client_wait(struct ibv_cq *cq);
/* No completion now or for a moment. */
void client_quiet(struct ibv_cq *cq);

#endif
