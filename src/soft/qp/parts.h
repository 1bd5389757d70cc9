/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a queue pair among themselves: requester, responder, datagrams, local memory.
 */
#ifndef SOFT_QP_PARTS_H
#define SOFT_QP_PARTS_H

#include "soft/copy/source.h"
#include "soft/link/link.h"
#include "soft/qp/qp.h"
#include "soft/qp/status.h"

/* requester.c: work requests out, acknowledges in */
void soft_requester_reset(struct soft_qp *qp);
void soft_requester_start(struct soft_qp *qp); /* to RTS */
bool soft_requester_pump(struct soft_qp *qp, size_t *budget, pp_ns now);
void soft_requester_response(struct soft_qp *qp, const struct soft_packet *p, pp_ns now);
bool soft_requester_has_packets(const struct soft_qp *qp); /* to send, now or when it may */
void soft_requester_flush(struct soft_qp *qp); /* completes what is open with WR_FLUSH_ERR */
pp_ns soft_requester_deadline(const struct soft_qp *qp);
void soft_requester_tick(struct soft_qp *qp, pp_ns now);

/* responder.c: requests in, acknowledges and responses out */
void soft_responder_reset(struct soft_qp *qp);
void soft_responder_start(struct soft_qp *qp); /* to RTR */
void soft_responder_request(struct soft_qp *qp, const struct soft_packet *p);
/* Read responses and the pending acknowledge: one acknowledge a turn of the engine, not one a
 * packet. */
bool soft_responder_pump(struct soft_qp *qp, size_t *budget);
/* Only an acknowledge, which may go behind anything else. */
bool soft_responder_only_acknowledges(const struct soft_qp *qp);
void soft_responder_flush(struct soft_qp *qp);

/* Its landing: what follows when a message has had its effect, or cannot. */
extern const struct soft_landing_ops soft_responder_landing;
extern const struct soft_landing_ops soft_requester_landing;
void soft_answers_clear(struct soft_qp *qp);
/* Is a region of the process far? Then requests may have to wait for their bytes. */
static inline bool soft_qp_may_be_far(const struct soft_qp *qp)
{
	return __builtin_expect(qp->mover && qp->mover->regions, 0);
}

/* May the peer's GPU copy from where @region, which is far, has its bytes? */
static inline bool soft_qp_shows(struct soft_qp *qp, const struct soft_region *region)
{
	if (!region->export) {
		qp->not_direct = region->not_direct;
		return false;
	}
	return qp->ops->shows(qp, region);
}

/* Before bytes that were sent may change or go away: the link may not have read them yet. */
static inline void soft_qp_await_read(struct soft_qp *qp, uint64_t mark)
{
	if (mark)
		qp->ops->await_read(qp, mark);
}

static inline void soft_qp_await_all_read(struct soft_qp *qp)
{
	soft_qp_await_read(qp, qp->unread);
	qp->unread = 0;
}

/* What a request of a connection does by arriving. @tc: the traffic class that it came with. */
void soft_responder_arrived(struct soft_qp *qp);

/* unreliable.c: UC both ways */
bool soft_unreliable_pump(struct soft_qp *qp, size_t *budget, pp_ns now);
void soft_unreliable_request(struct soft_qp *qp, const struct soft_packet *p);

/* datagram.c: UD both ways */
bool soft_datagram_pump(struct soft_qp *qp, size_t *budget);
void soft_datagram_request(struct soft_qp *qp, const struct soft_packet *p,
			   const struct soft_path *from, uint8_t tc);

/* local.c: the pieces of a work request in local memory. All return an enum soft_wc_status; a piece
 * of no bytes needs no key. */

/* The payload of a packet, ready for ops->send. Keys were checked when it was made. */
struct soft_pieces {
	struct iovec at[SOFT_PIECES_MAX];
	unsigned int num;
	bool bounced;
	uint8_t bounce[SOFT_MTU_MAX]; /* of memory that the processor cannot address */
};

/* Would every piece of @wr be allowed now, with @access (0: to be read)? */
unsigned int soft_local_check(struct soft_qp *qp, struct soft_send_wr *wr, uint32_t access);
/* Bytes [offset, offset+len) of a send request. Inline bytes are the queue's and stay until
 * retired. SOFT_WC_LOC_LEN_ERR: more than SOFT_MTU_MAX of memory that the processor cannot address.
 */
unsigned int soft_local_gather(struct soft_qp *qp, struct soft_send_wr *wr, uint32_t offset,
			       uint32_t len, struct soft_pieces *ret);
/* Scatters @len bytes at @offset of the message into the pieces of @wr, in ascending order. */
unsigned int soft_local_scatter(struct soft_qp *qp, struct soft_recv_wr *wr, uint32_t offset,
				struct soft_bytes from, uint32_t len);
/* The same into the pieces of a send request: READ responses and atomic results. */
unsigned int soft_local_land(struct soft_qp *qp, struct soft_send_wr *wr, uint32_t offset,
			     struct soft_bytes from, uint32_t len);
/* In the place of a status: the bytes could not be fetched, as if the packet had never come; they
 * are not at hand yet, or there is no room for them. */
enum { SOFT_LOCAL_LOST = 0x100, SOFT_LOCAL_LATER };

static inline struct soft_bytes soft_packet_bytes(const struct soft_packet *p)
{
	return (struct soft_bytes){.at = p->payload, .source = p->source};
}

/* complete.c: completions of either queue, with the fields that every one has. A success of a send
 * request that asked for no signal gives none. @rest: what the message brought (opcode, byte_len,
 * imm_be, flags, src_qp, solicited), or NULL. */
bool soft_completion_of_send(const struct soft_qp *qp, const struct soft_send_wr *wr,
			     unsigned int status, struct soft_cqe *ret); /* false: it gives none */
/* One that was put off. */
void soft_completion_push(struct soft_qp *qp, struct soft_cq *cq, const struct soft_cqe *cqe);
void soft_complete_send(struct soft_qp *qp, const struct soft_send_wr *wr, unsigned int status);
void soft_complete_recv(struct soft_qp *qp, const struct soft_recv_wr *wr, unsigned int status,
			const struct soft_cqe *rest);

#endif
