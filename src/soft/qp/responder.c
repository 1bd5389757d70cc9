/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The responder of a reliable connection: which packet is the expected one, what is said about the
 * others (InfiniBand Architecture Specification, volume 1, 9.7.4 and 9.9.3).
 *
 *   ahead of expected_psn   one NAK of sequence, then silence until the expected one comes
 *   behind                  SEND, WRITE: acknowledged again; READ, atomic: answered again
 *   expected                executed, or refused: RNR NAK (once more later), NAK and ERR
 *
 * Nothing is executed twice, and nothing that is said overtakes the answer of an earlier READ.
 */
#include "soft/qp/responder.h"

#include <string.h>

#include "base/banned.h"

void soft_responder_reset(struct soft_qp *qp)
{
	struct soft_responder *r = &qp->resp;

	r->has_wr = r->established = r->told_last = false;
	r->expected_psn = r->msn = 0;
	r->in_message = false;
	r->ack_pending = r->silent = r->closing = r->close_event = false;
	r->nak = 0;
	soft_landing_clear(&r->landing, /* flush= */ NULL);
	soft_answers_clear(qp);
	memset(r->atomics, 0, sizeof(r->atomics));
	r->next_atomic = 0;
}

void soft_responder_start(struct soft_qp *qp)
{
	qp->resp.expected_psn = qp->attr.rq_psn & SOFT_PSN_MASK;
}

static void flush_landed(struct soft_qp *qp, const struct soft_landed *end)
{
	struct soft_cqe cqe = end->cqe;

	cqe.status = SOFT_WC_WR_FLUSH_ERR;
	if (end->completes)
		soft_completion_push(qp, qp->recv_cq, &cqe);
}

/* Behind the messages before it. */
static void refused(struct soft_qp *qp, unsigned int status)
{
	struct soft_responder *r = &qp->resp;
	struct soft_landed end = {
		.psn = r->expected_psn,
		.msn = r->msn,
		.completes = true,
		.cqe = {.opcode = SOFT_WC_RECV, .wr_id = r->wr->id, .status = status},
	};

	if (!soft_landing_busy(&r->landing) || soft_landing_end(&r->landing, &end) < 0)
		soft_complete_recv(qp, r->wr, status, NULL);
}

void soft_responder_refuse(struct soft_qp *qp, struct soft_refusal why, uint32_t psn)
{
	struct soft_responder *r = &qp->resp;

	if (why.syndrome == SOFT_AETH_NAK_ACCESS)
		qp->counters->resp_remote_access_errors++;
	soft_landing_cut(&r->landing);
	if (why.syndrome == SOFT_AETH_NOTHING) {
		soft_landing_clear(&r->landing, flush_landed);
		r->has_wr = false;
		soft_complete_recv(qp, r->wr, why.status, NULL);
		soft_qp_to_error(qp);
		return;
	}
	r->closing = true;
	r->nak = why.syndrome;
	r->nak_psn = psn;
	/* Class A: the receive request tells. Class C: there is none that could, an event does. */
	if (r->has_wr) {
		r->has_wr = false;
		refused(qp, why.status);
	} else if (why.syndrome == SOFT_AETH_NAK_OPERATION) {
		r->close_event = true;
		r->close_with = SOFT_QP_EVENT_FATAL;
	} else {
		r->close_event = true;
		r->close_with = why.syndrome == SOFT_AETH_NAK_ACCESS ? SOFT_QP_EVENT_ACCESS
								     : SOFT_QP_EVENT_REQUEST;
	}
	if (r->num_answers == 0 && !soft_landing_busy(&r->landing))
		soft_responder_close(qp);
}

static void landed(struct soft_qp *qp, const struct soft_landed *end)
{
	if (end->completes)
		soft_completion_push(qp, qp->recv_cq, &end->cqe);
	qp->resp.ack_pending = true;
}

/* The receive request tells, or an event: as of any fault of this side. The packets of the message
 * are accepted, but for the last, of which the requester hears now. */
static void broken(struct soft_qp *qp, const struct soft_landed *end)
{
	struct soft_responder *r = &qp->resp;
	struct soft_cqe cqe;

	/* Of a message whose end is still to come the next packet is refused. */
	if (!end)
		return;
	if (end->completes) {
		cqe = end->cqe;
		cqe.status = SOFT_WC_LOC_QP_OP_ERR;
		soft_completion_push(qp, qp->recv_cq, &cqe);
	}
	if (qp->transport != SOFT_RC) {
		soft_qp_to_error(qp);
		return;
	}
	r->closing = true;
	r->nak = SOFT_AETH_NAK_OPERATION;
	r->nak_psn = end->psn;
	r->close_event = !end->completes;
	r->close_with = SOFT_QP_EVENT_FATAL;
	soft_responder_close(qp);
}

/* He waits for it, perhaps to send more. */
static void returned(struct soft_qp *qp)
{
	qp->resp.ack_pending = true;
}

/* Its sender's queue pair has ended: nothing that could follow is right, and nothing is said. */
static void stale(struct soft_qp *qp)
{
	struct soft_responder *r = &qp->resp;

	r->closing = true;
	r->nak = 0;
	r->ack_pending = false;
}

const struct soft_landing_ops soft_responder_landing = {landed, broken, returned, stale};

/* Does the packet stand where its opcode says, with the payload that such a one has? */
static bool fits(const struct soft_qp *qp, const struct soft_packet *p, uint16_t flags)
{
	const struct soft_responder *r = &qp->resp;
	bool first = flags & SOFT_IS_FIRST, last = flags & SOFT_IS_LAST;
	uint32_t count = soft_packet_count(p);

	if (r->in_message ? first || !(flags & r->message_kind) : !first)
		return false;
	if (!last)
		return p->payload_bytes == (uint64_t)count * qp->attr.mtu;
	return soft_answer_packets(qp, p->payload_bytes) == count &&
	       (first || p->payload_bytes > 0);
}

/* What the QP lets its peer do at all. */
static bool enabled(const struct soft_qp *qp, uint16_t flags)
{
	uint32_t needed = 0;

	if (flags & SOFT_IS_WRITE)
		needed = SOFT_ACCESS_REMOTE_WRITE;
	else if (flags & SOFT_IS_READ)
		needed = SOFT_ACCESS_REMOTE_READ;
	else if (flags & SOFT_HAS_ATOMIC)
		needed = SOFT_ACCESS_REMOTE_ATOMIC;
	return (qp->attr.access & needed) == needed;
}

static struct soft_refusal execute(struct soft_qp *qp, const struct soft_packet *p, uint16_t flags)
{
	struct soft_responder *r = &qp->resp;
	struct soft_refusal why;

	if (!fits(qp, p, flags) || !enabled(qp, flags))
		return SOFT_REFUSED_INVALID;
	if (flags & SOFT_IS_READ)
		return soft_answer_read(qp, p);
	if (flags & SOFT_HAS_ATOMIC)
		return soft_answer_atomic(qp, p);
	why = flags & SOFT_IS_SEND ? soft_message_send(qp, p) : soft_message_write(qp, p);
	if (why.syndrome)
		return why;
	r->message_kind = flags & (SOFT_IS_SEND | SOFT_IS_WRITE);
	r->in_message = !(flags & SOFT_IS_LAST);
	/* Behind what has no effect yet an acknowledge says nothing, but that it will come. */
	if (p->ack_request && !soft_landing_end_of_first(&r->landing) && !r->landing.lent)
		r->ack_pending = true;
	r->expected_psn = soft_psn_add(r->expected_psn, soft_packet_count(p));
	if (!r->in_message)
		r->msn = soft_psn_add(r->msn, 1);
	qp->counters->received_data_bytes += p->payload_bytes;
	/* Nothing more need come before that is acknowledged. */
	if (p->ack_request)
		soft_landing_return(&r->landing);
	return SOFT_EXECUTED;
}

static void establish(struct soft_qp *qp)
{
	if (qp->resp.established)
		return;
	qp->resp.established = true;
	if (qp->state == SOFT_QP_RTR)
		qp->ops->event(qp, SOFT_QP_EVENT_ESTABLISHED);
}

void soft_responder_arrived(struct soft_qp *qp)
{
	establish(qp);
}

static void ahead(struct soft_qp *qp)
{
	struct soft_responder *r = &qp->resp;

	qp->counters->out_of_sequence++;
	if (r->silent)
		return;
	r->silent = true;
	r->nak = SOFT_AETH_NAK_SEQUENCE;
	r->nak_psn = r->expected_psn;
}

static void behind(struct soft_qp *qp, const struct soft_packet *p, uint16_t flags)
{
	qp->counters->duplicate_request++;
	if (flags & (SOFT_IS_SEND | SOFT_IS_WRITE)) {
		qp->resp.ack_pending = true;
		/* He has nothing more to send until he hears of it. */
		soft_landing_return(&qp->resp.landing);
	} else if (!enabled(qp, flags)) {
		return;
	} else if (flags & SOFT_IS_READ) {
		soft_answer_read_again(qp, p);
	} else {
		soft_answer_atomic_again(qp, p);
	}
	qp->resp.alive = qp->resp.num_answers > 0;
}

static void expected(struct soft_qp *qp, const struct soft_packet *p, uint16_t flags)
{
	struct soft_responder *r = &qp->resp;
	struct soft_refusal why;

	r->silent = false;
	r->nak = 0;
	establish(qp);
	why = execute(qp, p, flags);
	if (why.syndrome == SOFT_AETH_RNR) {
		qp->counters->out_of_buffer++;
		r->silent = true;
		r->nak = SOFT_AETH_RNR | (qp->attr.min_rnr_timer & 0x1f);
		r->nak_psn = p->psn;
	} else if (why.syndrome == SOFT_AETH_NAK_SEQUENCE) {
		ahead(qp);
	} else if (why.syndrome == SOFT_AETH_LATER) {
		/* Asked for again when there is room. */
		r->silent = true;
	} else if (why.syndrome) {
		soft_responder_refuse(qp, why, p->psn);
	}
}

void soft_responder_request(struct soft_qp *qp, const struct soft_packet *p)
{
	struct soft_responder *r = &qp->resp;
	uint16_t flags = soft_opcode_find(p->opcode)->flags;
	int32_t distance;

	/* Neither a request of this transport, nor anything of a QP that is on its way out. */
	if ((p->opcode & 0xe0) != SOFT_RC || !flags || flags & SOFT_IS_RESPONSE || r->closing ||
	    !qp->attr.mtu)
		return;
	distance = soft_psn_diff(p->psn, r->expected_psn);
	if (distance > 0)
		ahead(qp);
	else if (distance < 0)
		behind(qp, p, flags);
	else
		expected(qp, p, flags);
}

void soft_responder_flush(struct soft_qp *qp)
{
	struct soft_responder *r = &qp->resp;
	struct soft_recv_wr *wr;

	soft_landing_clear(&r->landing, flush_landed);
	soft_answers_clear(qp);
	r->nak = 0;
	r->ack_pending = r->in_message = false;
	if (r->has_wr) {
		r->has_wr = false;
		soft_complete_recv(qp, r->wr, SOFT_WC_WR_FLUSH_ERR, NULL);
	}
	if (r->rq != &r->own_rq) {
		if (!r->told_last)
			qp->ops->event(qp, SOFT_QP_EVENT_LAST_WQE);
		r->told_last = true;
		return;
	}
	while ((wr = soft_recv_queue_head(r->rq)) != NULL) {
		soft_complete_recv(qp, wr, SOFT_WC_WR_FLUSH_ERR, NULL);
		r->rq->taken++;
	}
}
