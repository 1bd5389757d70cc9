/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of two processes with a queue pair to each other, and a block of memory of any kind each.
 */
#ifndef PP_TESTS_GPU_END_H
#define PP_TESTS_GPU_END_H

#include <infiniband/verbs.h>
#include <stdio.h>

#include "gpu.h"

enum {
	END_DEPTH = 64,
	END_PAGE = 4096,
	END_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
};

struct end_peer {
	union ibv_gid gid;
	uint32_t qpn, rkey, flag_rkey;
	uint64_t at, flag_at;
};

struct end {
	int talk;  /* to the other process */
	bool self; /* the queue pair is connected to itself */
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	enum ibv_qp_type type;
	struct gpu_memory memory;
	struct ibv_mr *mr;
	volatile uint64_t *flag; /* a page of host memory */
	struct ibv_mr *flag_mr;
	struct gpu_memory also; /* of a GPU, besides, if PP_GPU_ALSO is set */
	struct ibv_mr *also_mr;
	struct end_peer peer;
};

void end_fault(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
double end_seconds(void);

/* The first device, a queue pair of it. Exits with 77 where there is none. */
void end_open(struct end *e, int talk, enum ibv_qp_type type);
/* Registered as its kind is: by a descriptor, or by address. */
struct ibv_mr *end_register(struct end *e, const struct gpu_memory *m);
/* Memory, the exchange of addresses, RTS. */
void end_connect(struct end *e, enum gpu_kind kind, size_t len, size_t inside);
void end_close(struct end *e);

void end_say(struct end *e, const void *what, size_t len);
void end_hear(struct end *e, void *what, size_t len);
void end_meet(struct end *e); /* both are here */

void end_post(struct end *e, enum ibv_wr_opcode op, uint64_t id, size_t from, size_t len,
	      size_t to);
void end_receive(struct end *e, uint64_t id, size_t at, size_t len);
struct ibv_wc end_wait(struct end *e); /* a success */
struct ibv_wc end_wait_any(struct end *e);

#endif
