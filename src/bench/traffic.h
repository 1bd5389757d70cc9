/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timed loops: messages of one size between two endpoints, from and to memory slots.
 *
 * A message goes from a local slot to the remote slot of the same number; slots are taken round
 * robin, and queue pairs too. Work requests are made before the clock starts; the loop posts,
 * polls, counts. Latency is half of the round trip of one message at a time, carried by WRITE with
 * immediate or SEND (the target takes a completion: the same rule for memory that a processor can
 * poll and memory that it cannot), or the time of one READ.
 */
#ifndef PP_BENCH_TRAFFIC_H
#define PP_BENCH_TRAFFIC_H

#include "base/clock.h"
#include "base/error.h"
#include "rdma/endpoint.h"

enum pp_operation { PP_WRITE, PP_READ, PP_SEND, PP_OPERATIONS };

struct pp_slot {
	uint64_t local, remote; /* addresses for work requests */
	uint32_t lkey, rkey;
};

struct pp_traffic {
	struct pp_endpoint *endpoint; /* connected */
	const struct pp_slot *slots;  /* borrowed; SEND: the receiver's local ones count */
	/* _exchange(): local slots that the peer's messages go to, n_slots too; borrowed. */
	const struct pp_slot *into;
	unsigned int n_slots;
	enum pp_operation op;
	uint32_t size;
	/* Outstanding a queue pair; not above the endpoint's. 0: the endpoint's. */
	unsigned int depth;
	/* How many; 0: as @duration says. SEND and ping-pong are counted, at both ends alike. */
	uint64_t messages;
	pp_ns duration;
	/* -ETIMEDOUT when nothing completes for so long; 0 = 3 s, and 1 s for 64 MiB of size. */
	pp_ns silence;
	/*
	 * The processor can read the slots (host memory), so that what is short may travel in the
	 * request itself. Never for memory of a GPU: posting would read it.
	 */
	bool by_processor;
	bool (*stopped)(void); /* asked now and then; NULL never */
};

/* Where a run failed; all 0 when it did not. */
struct pp_traffic_failure {
	int status; /* IBV_WC_*, 0 none */
	uint32_t vendor;
	unsigned int qp;
	uint64_t message; /* its number */
};

struct pp_traffic_done {
	uint64_t messages, bytes;
	pp_ns took;	/* first post to last completion */
	pp_ns cpu;	/* of this process, user and system, meanwhile */
	pp_ns *latency; /* owned: one a message, or a sample of them; NULL for bandwidth */
	size_t n_latency;
	struct pp_traffic_failure failure;
};

/*
 * The end that posts. -EIO: a completion with an error (@err names it); -ETIMEDOUT; -EINTR. After
 * each of these requests may be outstanding: reset or close the endpoint. @ret is written then too.
 */
int pp_traffic_send(const struct pp_traffic *t, struct pp_traffic_done *ret, struct pp_error *err);
/*
 * SEND: the end that receives @messages, with the @depth of the sender. _ready() posts the first
 * receives, up to twice the depth; the sender is told by short messages when more were posted, so
 * that it never meets a receiver that is not ready.
 */
int pp_traffic_receive_ready(const struct pp_traffic *t, struct pp_error *err);
int pp_traffic_receive(const struct pp_traffic *t, struct pp_traffic_done *ret,
		       struct pp_error *err);
/*
 * Both directions at once by one end (bidirectional): WRITE and READ by pp_traffic_send() at each
 * end. SEND by this at each end: _receive_ready() at both, with @into, before either begins.
 * @ret counts what this end sent.
 */
int pp_traffic_exchange(const struct pp_traffic *t, struct pp_traffic_done *ret,
			struct pp_error *err);

/*
 * Ping-pong of @messages; the two ends differ by @first. _ready() at both before either begins.
 * Latencies are the first end's; READ: the other end has nothing to do.
 */
int pp_traffic_ping_ready(const struct pp_traffic *t, struct pp_error *err);
int pp_traffic_ping(const struct pp_traffic *t, bool first, struct pp_traffic_done *ret,
		    struct pp_error *err);
void pp_traffic_done_free(struct pp_traffic_done *d);

const char *pp_operation_name(enum pp_operation op); /* "write", ... */
int pp_operation_parse(const char *text, enum pp_operation *ret);

#endif
