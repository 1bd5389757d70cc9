/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_staged: GPU memory through page-locked host memory, as programs do it that have no
 * GPUDirect: copies and RDMA overlap, a ring of bounce buffers at each end.
 *
 *   memory ─ copy out ─> bounce ─ WRITE with immediate, or SEND ─> bounce ─ copy in ─> memory
 *                          ^──────────── credit: the place is free ────────┘
 *
 * With READ the owner's message is empty and says that the chunk is there; the peer reads it:
 *
 *   memory ─ copy out ─> bounce ─ SEND, empty ─> READ of that place ─> bounce ─ copy in ─> memory
 *
 * A message goes in chunks of 1 MiB, or whole when it is smaller. The immediate says which chunk,
 * or, with its top bit, how many places came free. Both directions may run at once. One queue
 * pair; its receives are posted for both data and credits. Not thread-safe.
 */
#ifndef PP_BENCH_STAGED_H
#define PP_BENCH_STAGED_H

#include "bench/slots.h"
#include "bench/traffic.h"
#include "mem/memory.h"

enum {
	PP_STAGED_CHUNK = 1 << 20,
	PP_STAGED_RING = 8, /* places of each direction */
	/* requests at once: messages, READs, a credit */
	PP_STAGED_DEPTH = 3 * PP_STAGED_RING,
};

struct pp_staged;

/* @endpoint and @memory are borrowed; the bounce buffers are registered with the endpoint. */
int pp_staged_new(struct pp_endpoint *endpoint, struct pp_memory *memory, struct pp_staged **ret,
		  struct pp_error *err);
struct pp_staged *pp_staged_free(struct pp_staged *s); /* returns NULL */

/* What the peer writes into, and reads from: address and rkey for the peer. */
void pp_staged_place(const struct pp_staged *s, uint64_t *ret_address, uint32_t *ret_key);
void pp_staged_set_peer(struct pp_staged *s, uint64_t address, uint32_t key);

struct pp_staged_run {
	const uint64_t *out, *in; /* offsets of slots in the memory */
	unsigned int n_slots;
	enum pp_operation op; /* WRITE goes with an immediate */
	uint64_t size, out_messages, in_messages;
	bool ping, first; /* latency: one message at a time, @first begins */
	pp_ns silence;
	bool (*stopped)(void);
};

/* Receives are posted: before either end begins. */
int pp_staged_ready(struct pp_staged *s, const struct pp_staged_run *t, struct pp_error *err);
/* Ends when what was sent was taken out of the peer's bounce buffers, and what came is in place. */
int pp_staged_go(struct pp_staged *s, const struct pp_staged_run *t, struct pp_traffic_done *ret,
		 uint64_t *ret_copies, struct pp_error *err);

#endif
