/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unreliable connections, both ways (InfiniBand Architecture Specification, volume 1, 9.8): a
 * message is done when its last packet was handed to the wire, and nobody answers. The responder
 * takes whole messages only: one that lost a packet, or is wrong in any way that the requester
 * caused, is dropped without a word, and so is all that comes before the next FIRST or ONLY packet.
 *
 * A receive request that a broken message had taken serves the next one (9.9.3, class D).
 */
#include "soft/qp/requester.h"
#include "soft/qp/responder.h"

#include "base/banned.h"

static const pp_ns FULL_WAIT = 100000;

/* ── out ── */

static uint8_t operation(const struct soft_send_wr *wr, bool first, bool last)
{
	bool write = wr->opcode == SOFT_WR_WRITE || wr->opcode == SOFT_WR_WRITE_IMM;
	bool imm = wr->opcode == SOFT_WR_WRITE_IMM || wr->opcode == SOFT_WR_SEND_IMM;
	uint8_t base = write ? SOFT_WRITE_FIRST : SOFT_SEND_FIRST;

	/* FIRST, MIDDLE, LAST, LAST_IMM, ONLY, ONLY_IMM: of either one after the other. */
	if (!last)
		return (uint8_t)(base + !first);
	return (uint8_t)(base + (first ? 4 : 2) + imm);
}

static unsigned int local_error(struct soft_qp *qp, struct soft_send_wr *wr)
{
	if (wr->opcode > SOFT_WR_SEND_IMM)
		return SOFT_WC_LOC_QP_OP_ERR;
	if (wr->length > SOFT_WR_MESSAGE_MAX)
		return SOFT_WC_LOC_LEN_ERR;
	return soft_local_check(qp, wr, /* access= */ 0);
}

/* The work request that the next packet is of; NULL: none, or none may begin. */
static struct soft_send_wr *current(struct soft_qp *qp)
{
	struct soft_requester *req = &qp->req;
	struct soft_send_wr *wr = soft_requester_head(qp);

	if (wr)
		return wr;
	if (req->sq.started == req->sq.posted || qp->state != SOFT_QP_RTS)
		return NULL;
	wr = soft_send_queue_at(&req->sq, req->sq.started++);
	if (soft_send_wr_is_local(wr)) {
		wr->error = soft_requester_local(qp, wr);
		return wr;
	}
	wr->error = local_error(qp, wr);
	wr->rc.first_psn = req->wr_psn;
	wr->rc.unread = 0;
	wr->rc.num_psn = wr->length ? (wr->length - 1) / qp->attr.mtu + 1 : 1;
	if (!wr->error)
		req->wr_psn = soft_psn_add(req->wr_psn, wr->rc.num_psn);
	return wr;
}

static void count_sent(struct soft_requester *req)
{
	req->next_psn = soft_psn_add(req->next_psn, 1);
	req->una_psn = req->send_psn = req->next_psn;
}

/* The next packet of @wr; true: the last. */
static bool send_one(struct soft_qp *qp, struct soft_send_wr *wr, uint64_t *ret_cost)
{
	struct soft_requester *req = &qp->req;
	uint32_t index = (req->next_psn - wr->rc.first_psn) & SOFT_PSN_MASK;
	uint32_t offset = soft_send_wr_offset(qp, wr, index);
	bool first = index == 0, last = index + 1 == wr->rc.num_psn;
	struct soft_packet p = {
		.opcode = (uint8_t)(SOFT_UC | operation(wr, first, last)),
		.migrated = true,
		.solicited = last && wr->flags & SOFT_WR_SOLICITED && wr->opcode != SOFT_WR_WRITE,
		.pkey = qp->attr.pkey,
		.dest_qp = qp->attr.remote_qpn,
		.psn = req->next_psn,
		.va = wr->rc.remote_addr,
		.rkey = wr->rc.rkey,
		.length = wr->length,
		.imm_be = wr->imm_be,
		.payload_bytes = soft_send_wr_offset(qp, wr, index + 1) - offset,
	};
	struct soft_pieces pieces;

	*ret_cost = soft_send_wr_cost(qp, wr, index, index + 1);
	wr->error = soft_local_gather(qp, wr, offset, p.payload_bytes, &pieces);
	if (wr->error)
		return false;
	qp->ops->send(qp, &qp->path, &p, pieces.at, pieces.num);
	qp->counters->sent_data_bytes += p.payload_bytes;
	count_sent(req);
	if (soft_qp_may_be_far(qp))
		soft_outgoing_release(&req->outgoing, wr, offset + p.payload_bytes);
	return last;
}

/* Are the bytes of the next packet? */
static bool at_hand(struct soft_qp *qp, struct soft_send_wr *wr)
{
	struct soft_requester *req = &qp->req;
	uint32_t index = (req->next_psn - wr->rc.first_psn) & SOFT_PSN_MASK;
	uint32_t offset = soft_send_wr_offset(qp, wr, index);

	return soft_outgoing_ready(&req->outgoing, wr, offset) >=
	       soft_send_wr_offset(qp, wr, index + 1) - offset;
}

/* Nothing leaves any more until the client has seen it (10.3.1, SQ error state). */
static void stop(struct soft_qp *qp, unsigned int status)
{
	struct soft_send_wr *wr = soft_requester_head(qp);

	qp->req.sq.retired++;
	qp->state = SOFT_QP_SQE;
	soft_complete_send(qp, wr, status);
	soft_requester_flush(qp);
}

bool soft_unreliable_pump(struct soft_qp *qp, size_t *budget, pp_ns now)
{
	struct soft_requester *req = &qp->req;

	if (qp->state == SOFT_QP_SQE)
		soft_requester_flush(qp);
	if (soft_qp_may_be_far(qp))
		soft_outgoing_ahead(&req->outgoing);
	if (now < req->rnr_until)
		return false;
	req->rnr_until = 0;
	while (soft_requester_live(qp)) {
		struct soft_send_wr *wr = current(qp);
		uint64_t cost = 0;

		if (!wr)
			return false;
		if (soft_send_wr_is_local(wr) && !wr->error) {
			soft_requester_retire(qp);
		} else if (!wr->error) {
			if (soft_qp_may_be_far(qp) && !at_hand(qp, wr))
				return false;
			req->rnr_until =
				qp->full ? now + FULL_WAIT : soft_window_pace(qp->window, now);
			if (req->rnr_until)
				return false;
			if (*budget == 0)
				return true;
			if (send_one(qp, wr, &cost))
				soft_requester_retire(qp);
			soft_window_paced(qp->window, cost, now);
			*budget -= cost < *budget ? (size_t)cost : *budget;
		}
		if (wr->error)
			stop(qp, wr->error);
	}
	return false;
}

/* ── in ── */

/* Does the packet stand where its opcode says, with the payload that such a one has? */
static bool fits(const struct soft_qp *qp, const struct soft_packet *p, uint16_t flags)
{
	const struct soft_responder *r = &qp->resp;
	bool first = flags & SOFT_IS_FIRST;

	if (!first && (!r->in_message || !(flags & r->message_kind)))
		return false;
	if (!(flags & SOFT_IS_LAST))
		return p->payload_bytes == qp->attr.mtu;
	return p->payload_bytes <= qp->attr.mtu && (first || p->payload_bytes > 0);
}

static bool execute(struct soft_qp *qp, const struct soft_packet *p, uint16_t flags)
{
	struct soft_responder *r = &qp->resp;
	struct soft_refusal why;

	if (!fits(qp, p, flags) ||
	    (flags & SOFT_IS_WRITE && !(qp->attr.access & SOFT_ACCESS_REMOTE_WRITE)))
		return false;
	r->message_kind = flags & (SOFT_IS_SEND | SOFT_IS_WRITE);
	why = flags & SOFT_IS_SEND ? soft_message_send(qp, p) : soft_message_write(qp, p);
	if (why.syndrome == SOFT_AETH_RNR)
		qp->counters->out_of_buffer++;
	else if (why.syndrome == SOFT_AETH_NAK_ACCESS)
		qp->counters->resp_remote_access_errors++;
	/* What is wrong on this side, the client is told. */
	if (why.syndrome == SOFT_AETH_NAK_OPERATION) {
		if (r->has_wr) {
			r->has_wr = false;
			soft_complete_recv(qp, r->wr, why.status, NULL);
		}
		soft_qp_to_error(qp);
	}
	return !why.syndrome;
}

void soft_unreliable_request(struct soft_qp *qp, const struct soft_packet *p)
{
	struct soft_responder *r = &qp->resp;
	uint16_t flags = soft_opcode_find(p->opcode)->flags;

	if (!qp->attr.mtu)
		return;
	soft_responder_arrived(qp);
	if (p->psn != r->expected_psn) {
		qp->counters->out_of_sequence++;
		r->in_message = false;
	}
	r->expected_psn = soft_psn_add(p->psn, 1);
	if (execute(qp, p, flags)) {
		r->in_message = !(flags & SOFT_IS_LAST);
		qp->counters->received_data_bytes += p->payload_bytes;
	} else {
		r->in_message = false;
	}
}
