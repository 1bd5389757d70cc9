/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the requester among themselves: what is sent, what comes back, silence.
 */
#ifndef SOFT_QP_REQUESTER_H
#define SOFT_QP_REQUESTER_H

#include "soft/qp/parts.h"
#include "soft/wire/psn.h"

enum {
	/* What a packet costs a receiving socket beyond its payload: headers, and a share of what
	 * the kernel charges for keeping it. */
	SOFT_PACKET_COST = 256,
	SOFT_ACK_EVERY = 128 * 1024, /* most bytes of a train between acknowledges */
	SOFT_ACK_EVERY_REFERRED = 1 << 20,
	SOFT_REFERRED_EFFORT = 8 * 1024,
	SOFT_READ_OPEN_MIN = 96 * 1024,
	SOFT_READ_OPEN_MAX = 512 * 1024,
	SOFT_BACKOFF_MAX = 7, /* doublings of the early interval */
};

static inline bool soft_requester_live(const struct soft_qp *qp)
{
	return qp->state == SOFT_QP_RTS || qp->state == SOFT_QP_SQD;
}

/* A READ or an atomic: acknowledged by what it asked for, never by an acknowledge. */
static inline bool soft_send_wr_asks(const struct soft_send_wr *wr)
{
	return wr->opcode == SOFT_WR_READ || wr->opcode == SOFT_WR_COMPARE_SWAP ||
	       wr->opcode == SOFT_WR_FETCH_ADD;
}

/* The oldest work request that is not retired; una_psn lies in it. NULL: nothing is begun. */
static inline struct soft_send_wr *soft_requester_head(const struct soft_qp *qp)
{
	const struct soft_send_queue *q = &qp->req.sq;

	return q->retired == q->started ? NULL : soft_send_queue_at(q, q->retired);
}

/* Where packet @index of @wr begins in its message. */
static inline uint32_t soft_send_wr_offset(const struct soft_qp *qp, const struct soft_send_wr *wr,
					   uint32_t index)
{
	uint64_t offset = (uint64_t)index * qp->attr.mtu;

	return offset < wr->length ? (uint32_t)offset : wr->length;
}

/* Bytes of packets [from, to) of @wr as the window counts them. */
static inline uint64_t soft_send_wr_cost(const struct soft_qp *qp, const struct soft_send_wr *wr,
					 uint32_t from, uint32_t to)
{
	return soft_send_wr_offset(qp, wr, to) - soft_send_wr_offset(qp, wr, from) +
	       (uint64_t)(to - from) * SOFT_PACKET_COST;
}

/* requester.c */
/* Everything not acknowledged is to be sent again. */
void soft_requester_go_back(struct soft_qp *qp);
/* The oldest work request is through, and those behind it that need no packet: completes them,
 * frees their places. */
void soft_requester_retire(struct soft_qp *qp);
/* The oldest work request has failed with @status: it completes, the QP goes to ERR. */
void soft_requester_fail(struct soft_qp *qp, unsigned int status);
/* Fails when the oldest work request was found to be wrong on this side. */
void soft_requester_settle(struct soft_qp *qp);

/* requester_hand.c */
/* Packets of @wr from @index on whose bytes are at hand. */
uint32_t soft_requester_at_hand(struct soft_qp *qp, struct soft_send_wr *wr, uint32_t index);
/* Packets that wait for room together, where @left are at hand: what is lent is one copy for the
 * peer's GPU, and not to be cut for want of room. */
uint32_t soft_requester_whole(struct soft_qp *qp, const struct soft_send_wr *wr, uint32_t index,
			      uint32_t left);

/* requester_local.c: carries out a request that needs no packet; an enum soft_wc_status. */
unsigned int soft_requester_local(struct soft_qp *qp, const struct soft_send_wr *wr);

/* requester_timer.c */
void soft_requester_arm(struct soft_qp *qp, pp_ns now); /* from now on, by what is under way */
void soft_requester_arm_retry(struct soft_qp *qp, pp_ns now); /* the standard's alone */
void soft_requester_wait_rnr(struct soft_qp *qp, unsigned int timer, pp_ns now);

#endif
