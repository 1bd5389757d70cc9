/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two processes, each one end of a pair on whatever libibverbs they are started on: endpoints and
 * the loops of src/bench, with every byte looked at.
 *
 * Memory of an end: slots of `out`, then slots of `in`, each slot between guards that must not
 * change. What goes wrong ends the process with a line that names the case.
 */
#ifndef PP_TESTS_SOFT_ENDS_H
#define PP_TESTS_SOFT_ENDS_H

#include "bench/traffic.h"
#include "rdma/cm.h"

enum { ENDS_SLOTS = 7, ENDS_SLOT_MOST = 1 << 20, ENDS_GUARD = 64 };

struct end {
	int wire; /* to the other process */
	bool first;
	bool by_cm;    /* connects by librdmacm */
	bool brief;    /* where each byte is dear */
	bool refusals; /* nothing but what must fail */
	const char *doing;
	struct pp_verbs verbs;
	struct pp_cm *connections;
	struct pp_endpoint endpoint;
	unsigned char *memory;
	struct ibv_mr *mr;
	struct pp_slot out[ENDS_SLOTS], in[ENDS_SLOTS]; /* remote: the peer's in, for out and in */
	struct pp_slot from[ENDS_SLOTS];		/* READ: local in, remote the peer's out */
};

/* Where the first end listens for connections of librdmacm. */
struct ends_place {
	char address[PP_CM_ADDRESS];
	uint16_t port;
};

void ends_fault(const struct end *e, const char *format, ...)
	__attribute__((format(printf, 2, 3), noreturn));
#define ends_check(e, what) ((what) ? (void)0 : ends_fault(e, "not so: %s", #what))

/* Connected at both sides when it returns; the peer does the same. */
void ends_open(struct end *e, const struct pp_endpoint_options *options, int access);
void ends_connect(struct end *e);
void ends_reset(struct end *e);
void ends_close(struct end *e);
void ends_meet(const struct end *e);
void ends_tell(const struct end *e, void *bytes, size_t len);
size_t ends_hear(const struct end *e, void *bytes, size_t size);

/* The pattern of @seed into `out`, zeros into `in`; guards everywhere. */
void ends_fill(struct end *e, uint32_t size, unsigned int seed);
/* `in` holds what the peer's `out` held: the first @slots of them, zeros in the others. */
void ends_verify(struct end *e, uint32_t size, unsigned int seed, unsigned int slots);

#endif
