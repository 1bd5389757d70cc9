/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_cq: a completion queue: one producer (the engine, under its lock), consumers that
 * hold the queue's own lock, a ring with release/acquire between. Polling takes no engine lock.
 *
 * Nobody waits for cq->consumer while holding the engine's lock (a program may post between
 * start_poll and end_poll), nor takes the engine's lock in here.
 */
#ifndef SOFT_QP_CQ_H
#define SOFT_QP_CQ_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct soft_cq_late;

enum { SOFT_CQ_CAPACITY_MAX = 1 << 17 }; /* completions of one queue: what ibv_query_device says */

/* Numbers of verbs: enum ibv_wc_status, enum ibv_wc_opcode, enum ibv_wc_flags. */
struct soft_cqe {
	uint64_t wr_id;
	uint32_t status, opcode, vendor_err, byte_len;
	uint32_t imm_be; /* or the invalidated rkey */
	uint32_t qp_num, src_qp;
	uint32_t flags;
	uint64_t timestamp_ns; /* CLOCK_REALTIME is not used: monotonic */
	uint8_t sl;	       /* of a datagram: enum soft_packet_type */
	bool solicited;	       /* asks for a solicited event; not shown */
	_Atomic bool dead;     /* its QP was destroyed: skipped by consumers, never copied out */
};

struct soft_cq {
	struct soft_cqe *ring; /* capacity rounded up to a power of two */
	uint32_t mask;
	uint32_t capacity; /* as asked for */
	uint32_t room;	   /* capacity, or less where a fault makes it overflow */
	_Alignas(64) _Atomic uint32_t produced;
	_Alignas(64) _Atomic uint32_t consumed;
	pthread_mutex_t consumer; /* held by who polls */
	_Atomic int armed;	  /* enum soft_cq_armed */
	/* Running count just behind the last completion that wakes who waits for solicited ones:
	 * so asked for, or in error. */
	_Atomic uint32_t solicited;
	/* Running count of completions that an event has told of, one an event; may lag behind
	 * consumed. */
	_Atomic uint32_t told;
	/* Producer's: where completions wait before they are shown; NULL: nowhere. Borrowed. */
	struct soft_cq_late *late;
	/*
	 * Moderation: an event waits for so many completions since the first that it waits for, or
	 * for so long; at most 1, or 0 ns: none. Set under the engine's lock.
	 */
	uint32_t hold_count;
	int64_t hold_ns;
	bool holding;	    /* producer's */
	uint32_t hold_from; /* running count before the first of them */
	bool overrun;	    /* producer's */
	bool marked;	    /* producer's: dead completions may lie in the ring */
	/* Called by the producer when an armed queue gets what it waits for; disarmed already.
	 * Set before the first completion and then for good; NULL: the queue is never armed. */
	void (*notify)(struct soft_cq *cq);
	/* Called by the producer when an event begins to wait; soft_cq_release() ends that. */
	void (*held)(struct soft_cq *cq);
	/* Called for each completion that found no room. */
	void (*overflow)(struct soft_cq *cq);
	void *owner;
};

enum soft_cq_armed { SOFT_CQ_IDLE, SOFT_CQ_ARMED_SOLICITED, SOFT_CQ_ARMED_ANY };

/* -EINVAL: no capacity, or more than SOFT_CQ_CAPACITY_MAX; -ENOMEM. */
int soft_cq_init(struct soft_cq *cq, uint32_t capacity);
void soft_cq_done(struct soft_cq *cq);
/* cq->consumer, taken before the engine's lock, and that are held. -EINVAL: no such capacity, or
 * more lie there; -ENOMEM. */
int soft_cq_resize_locked(struct soft_cq *cq, uint32_t capacity);

/* Producer. false: no room; the completion is lost, cq->overrun is set, overflow() is called. */
bool soft_cq_push(struct soft_cq *cq, const struct soft_cqe *cqe);

/* Consumer: takes up to @n; returns how many. */
unsigned int soft_cq_pop(struct soft_cq *cq, struct soft_cqe *ret, unsigned int n);

/* Consumer side, one at a time, for extended polling: hold cq->consumer between peek and advance.
 */
struct soft_cqe *soft_cq_peek_locked(struct soft_cq *cq); /* NULL: empty */
void soft_cq_advance_locked(struct soft_cq *cq);

bool soft_cq_empty(const struct soft_cq *cq);

/*
 * Arms; true when something that it waits for lies there already and no event has told of it (the
 * caller decides on an event, and raises it only if soft_cq_disarm() agrees). Who takes one
 * completion for one event (perftest) then never gets an event for nothing. Whatever is pushed
 * after this returned false calls notify(). Armed for any completion stays so when armed for
 * solicited ones.
 */
bool soft_cq_arm(struct soft_cq *cq, bool solicited_only);
/* true for exactly one of those who would raise the event. */
bool soft_cq_disarm(struct soft_cq *cq);

/* Engine lock held: a queue overflows when so many lie in it; 0: when its capacity does. */
void soft_cq_set_room(struct soft_cq *cq, uint32_t room);
/* Engine lock held: the event that was held back is due. */
void soft_cq_release(struct soft_cq *cq);

/* Engine lock held: completions of a QP that goes away are not seen any more. */
void soft_cq_forget(struct soft_cq *cq, uint32_t qp_num);

/*
 * Slow completions: what is pushed becomes visible, in its order, so much later. cq_late.c; all of
 * it under the engine's lock.
 */
struct soft_cq_late_entry;
struct soft_cq_late {
	pp_ns delay;
	struct soft_cq_late_entry *first, *last;
};
/* false: it is to be shown at once. */
bool soft_cq_late_add(struct soft_cq *cq, const struct soft_cqe *cqe);
/* Shows what is due. When the next is; 0: none waits. */
pp_ns soft_cq_late_release(struct soft_cq_late *late, pp_ns now);
/* Of a QP that goes away, in @cq. */
void soft_cq_late_forget(struct soft_cq_late *late, const struct soft_cq *cq, uint32_t qp_num);
void soft_cq_late_drop(struct soft_cq_late *late);
/* Past the waiting: cq.c's. */
bool soft_cq_show(struct soft_cq *cq, const struct soft_cqe *cqe);

#endif
