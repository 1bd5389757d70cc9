/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both ends of a connection in one process, driven by one thread: the library's own thread does
 * what a kernel does between them. What goes wrong ends the process with a reason.
 */
#ifndef PP_TESTS_SOFT_CM_H
#define PP_TESTS_SOFT_CM_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

enum { CM_WAIT_S = 30, CM_BYTES = 4096, CM_DEPTH = 16 };

/* One end: an id on a channel of its own, and what it needs to send and receive. */
struct cm_end {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	unsigned char memory[CM_BYTES];
};

void cm_fault(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
#define cm_true(condition)                                                                       \
	do {                                                                                     \
		if (!(condition))                                                                \
			cm_fault("%s:%d: not so: %s (errno %d)", __FILE__, __LINE__, #condition, \
				 errno);                                                         \
	} while (0)
/* @call answers -1 and @err. */
#define cm_fails(call, err)                                                                       \
	do {                                                                                      \
		errno = 0;                                                                        \
		if ((call) != -1 || errno != (err))                                               \
			cm_fault("%s:%d: %s: errno %d, not %d", __FILE__, __LINE__, #call, errno, \
				 (err));                                                          \
	} while (0)

/* The next event of the channel, which must be this one. The caller acknowledges it. */
struct rdma_cm_event *cm_expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type,
				int status);
/* The same, acknowledged. */
void cm_pass(struct rdma_event_channel *channel, enum rdma_cm_event_type type, int status);
bool cm_readable(int fd, int wait_ms);

struct sockaddr_in cm_address(uint16_t port); /* 127.0.0.1 */

/* A listener at a port of the system's choice; its port. */
uint16_t cm_listen(struct cm_end *end, enum rdma_port_space ps);
/* An id with its route resolved, and a queue pair if wanted. */
void cm_resolve(struct cm_end *end, enum rdma_port_space ps, uint16_t port, bool with_qp);
void cm_queue_pair(struct cm_end *end);
void cm_done(struct cm_end *end);

/* The listener's next request, with a queue pair of its own on a channel of its own. */
void cm_take(struct cm_end *listener, struct cm_end *ret, bool with_qp);
/* Connected, both ends told so. */
void cm_connect(struct cm_end *listener, uint16_t port, struct cm_end *client,
		struct cm_end *server);

void cm_send(struct cm_end *end, size_t len);
void cm_receive(struct cm_end *end);
/* The next completion's status. */
enum ibv_wc_status cm_completion(struct cm_end *end);
enum ibv_qp_state cm_state(const struct cm_end *end);

#endif
