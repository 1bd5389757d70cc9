/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SEND and WRITE, packet by packet: bytes are placed in ascending order, and a completion is
 * pushed after the last of its message. What was refused for want of a receive request changed
 * nothing.
 */
#include "soft/qp/responder.h"

#include "base/banned.h"

static struct soft_cqe completion(const struct soft_qp *qp, const struct soft_packet *p,
				  uint32_t opcode)
{
	const struct soft_responder *r = &qp->resp;
	struct soft_cqe rest = {
		.wr_id = r->wr->id,
		.opcode = opcode,
		.byte_len = r->received,
		.src_qp = qp->attr.remote_qpn,
		.solicited = p->solicited,
	};

	if (soft_opcode_find(p->opcode)->flags & SOFT_HAS_IMM) {
		rest.flags = SOFT_WC_WITH_IMM;
		rest.imm_be = p->imm_be;
	} else if (soft_opcode_find(p->opcode)->flags & SOFT_HAS_IETH) {
		rest.flags = SOFT_WC_WITH_INV;
		rest.imm_be = p->invalidate_rkey;
	}
	return rest;
}

/* The message is whole. @completes: the receive request that was taken. */
static struct soft_refusal finish(struct soft_qp *qp, const struct soft_packet *p, bool completes,
				  uint32_t opcode)
{
	struct soft_responder *r = &qp->resp;
	struct soft_landed end = {.completes = completes};

	if (completes)
		end.cqe = completion(qp, p, opcode);
	if (soft_landing_busy(&r->landing)) {
		end.psn = soft_psn_add(p->psn, soft_packet_count(p) - 1);
		end.msn = r->msn;
		if (soft_landing_end(&r->landing, &end) < 0)
			return SOFT_REFUSED_OPERATION;
		r->has_wr = r->has_wr && !completes;
		return SOFT_EXECUTED;
	}
	if (completes) {
		r->has_wr = false;
		soft_completion_push(qp, qp->recv_cq, &end.cqe);
	}
	return SOFT_EXECUTED;
}

struct soft_refusal soft_message_send(struct soft_qp *qp, const struct soft_packet *p)
{
	uint16_t flags = soft_opcode_find(p->opcode)->flags;
	struct soft_responder *r = &qp->resp;
	unsigned int status;

	if (flags & SOFT_IS_FIRST) {
		if (!r->has_wr && !soft_recv_queue_take(r->rq, r->wr))
			return SOFT_REFUSED_NOT_READY;
		r->has_wr = true;
		r->received = 0;
	}
	if (p->payload_bytes > r->wr->length - r->received)
		return (struct soft_refusal){SOFT_AETH_NAK_INVALID, SOFT_WC_LOC_LEN_ERR};
	status = soft_local_scatter(qp, r->wr, r->received, soft_packet_bytes(p), p->payload_bytes);
	if (status == SOFT_LOCAL_LOST)
		return SOFT_REFUSED_LOST;
	if (status == SOFT_LOCAL_LATER)
		return SOFT_REFUSED_LATER;
	if (flags & SOFT_IS_FIRST)
		qp->counters->rx_sends++;
	if (status)
		return (struct soft_refusal){SOFT_AETH_NAK_OPERATION, (uint8_t)status};
	r->received += p->payload_bytes;
	/* Windows of type 2 that are bound through this queue pair only (10.6.5, 10.6.7). */
	if (flags & SOFT_HAS_IETH &&
	    !soft_mw_invalidate(qp->regions, &qp->windows, p->invalidate_rkey))
		return SOFT_REFUSED_UNSAID;
	return flags & SOFT_IS_LAST ? finish(qp, p, /* completes= */ true, SOFT_WC_RECV)
				    : SOFT_EXECUTED;
}

/* The whole WRITE is checked before its first byte is placed. */
static struct soft_refusal write_begins(struct soft_qp *qp, const struct soft_packet *p, bool last)
{
	struct soft_responder *r = &qp->resp;
	uint64_t va = p->va;

	if (p->length > SOFT_MESSAGE_MAX ||
	    (last ? p->length != p->payload_bytes : p->length <= p->payload_bytes))
		return SOFT_REFUSED_INVALID;
	if (p->length &&
	    !soft_responder_reach(qp, p->rkey, &va, p->length, SOFT_ACCESS_REMOTE_WRITE))
		return SOFT_REFUSED_ACCESS;
	r->write_va = p->va;
	r->write_rkey = p->rkey;
	r->write_left = p->length;
	r->received = 0;
	return SOFT_EXECUTED;
}

/* The region is looked for again: it may have gone since the message began. */
static struct soft_refusal place(struct soft_qp *qp, const struct soft_packet *p)
{
	struct soft_responder *r = &qp->resp;
	uint64_t va = r->write_va;
	struct soft_region *region = soft_responder_reach(qp, r->write_rkey, &va, p->payload_bytes,
							  SOFT_ACCESS_REMOTE_WRITE);
	int rc;

	if (!region)
		return SOFT_REFUSED_ACCESS;
	rc = soft_landing_store(&r->landing, soft_packet_bytes(p), region, va, p->payload_bytes,
				r->write_left);
	if (rc == SOFT_BYTES_LOST)
		return SOFT_REFUSED_LOST;
	if (rc == SOFT_BYTES_LATER)
		return SOFT_REFUSED_LATER;
	return rc < 0 ? SOFT_REFUSED_OPERATION : SOFT_EXECUTED;
}

/* Checks and places one packet. */
static struct soft_refusal write_one(struct soft_qp *qp, const struct soft_packet *p,
				     uint16_t flags)
{
	struct soft_responder *r = &qp->resp;
	struct soft_refusal why = SOFT_EXECUTED;
	bool last = flags & SOFT_IS_LAST;

	if (flags & SOFT_IS_FIRST)
		why = write_begins(qp, p, last);
	else if (last ? p->payload_bytes != r->write_left : p->payload_bytes >= r->write_left)
		why = SOFT_REFUSED_INVALID;
	if (why.syndrome)
		return why;
	/* Before anything is placed: the packet will come once more. */
	if (flags & SOFT_HAS_IMM && !r->has_wr && !soft_recv_queue_head(r->rq))
		return SOFT_REFUSED_NOT_READY;
	return p->payload_bytes ? place(qp, p) : SOFT_EXECUTED;
}

struct soft_refusal soft_message_write(struct soft_qp *qp, const struct soft_packet *p)
{
	uint16_t flags = soft_opcode_find(p->opcode)->flags;
	struct soft_responder *r = &qp->resp;
	struct soft_refusal why = write_one(qp, p, flags);

	/* With immediate: the receive request tells, also of what was refused (11.6.2, "local
	 * access error"). */
	if (flags & SOFT_HAS_IMM && (!why.syndrome || why.syndrome == SOFT_AETH_NAK_ACCESS))
		r->has_wr = r->has_wr || soft_recv_queue_take(r->rq, r->wr);
	if (why.syndrome == SOFT_AETH_NAK_ACCESS && flags & SOFT_HAS_IMM)
		why.status = SOFT_WC_LOC_ACCESS_ERR;
	if (why.syndrome)
		return why;
	if (flags & SOFT_IS_FIRST)
		qp->counters->rx_write_requests++;
	r->write_va += p->payload_bytes;
	r->write_left -= p->payload_bytes;
	r->received += p->payload_bytes;
	if (!(flags & SOFT_IS_LAST))
		return SOFT_EXECUTED;
	return finish(qp, p, flags & SOFT_HAS_IMM && r->has_wr, SOFT_WC_RECV_WRITE_IMM);
}
