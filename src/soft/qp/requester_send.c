/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work requests out: which packet is next, whether it may go, and what it looks like (InfiniBand
 * Architecture Specification, volume 1, 9.7.2 and 9.7.3).
 *
 * No packet leaves while a response could overrun the peer's or our own socket: requests count
 * their payload, READs what they ask for.
 */
#include "soft/qp/requester.h"

#include "base/banned.h"

static const struct {
	uint8_t first, middle, last, only;
} operations[] = {
	[SOFT_WR_WRITE] = {SOFT_WRITE_FIRST, SOFT_WRITE_MIDDLE, SOFT_WRITE_LAST, SOFT_WRITE_ONLY},
	[SOFT_WR_WRITE_IMM] = {SOFT_WRITE_FIRST, SOFT_WRITE_MIDDLE, SOFT_WRITE_LAST_IMM,
			       SOFT_WRITE_ONLY_IMM},
	[SOFT_WR_SEND] = {SOFT_SEND_FIRST, SOFT_SEND_MIDDLE, SOFT_SEND_LAST, SOFT_SEND_ONLY},
	[SOFT_WR_SEND_IMM] = {SOFT_SEND_FIRST, SOFT_SEND_MIDDLE, SOFT_SEND_LAST_IMM,
			      SOFT_SEND_ONLY_IMM},
	[SOFT_WR_SEND_INVALIDATE] = {SOFT_SEND_FIRST, SOFT_SEND_MIDDLE, SOFT_SEND_LAST_INVALIDATE,
				     SOFT_SEND_ONLY_INVALIDATE},
};

static unsigned int local_error(struct soft_qp *qp, struct soft_send_wr *wr)
{
	switch (wr->opcode) {
	case SOFT_WR_WRITE:
	case SOFT_WR_WRITE_IMM:
	case SOFT_WR_SEND:
	case SOFT_WR_SEND_IMM:
	case SOFT_WR_SEND_INVALIDATE:
		if (wr->length > SOFT_WR_MESSAGE_MAX)
			return SOFT_WC_LOC_LEN_ERR;
		return soft_local_check(qp, wr, 0);
	case SOFT_WR_COMPARE_SWAP:
	case SOFT_WR_FETCH_ADD:
		if (wr->length != 8)
			return SOFT_WC_LOC_LEN_ERR;
		break;
	case SOFT_WR_READ:
		if (wr->length > SOFT_WR_MESSAGE_MAX)
			return SOFT_WC_LOC_LEN_ERR;
		break;
	default:
		return SOFT_WC_LOC_QP_OP_ERR;
	}
	/* Where the answer goes is looked at when it comes, as devices do: what was asked for is
	 * executed then. */
	if (!qp->attr.max_rd_atomic || (wr->flags & SOFT_WR_INLINE))
		return SOFT_WC_LOC_QP_OP_ERR;
	return SOFT_WC_SUCCESS;
}

/* Gives the next posted work request its PSNs. NULL: none may begin now. */
static struct soft_send_wr *begin(struct soft_qp *qp)
{
	struct soft_requester *req = &qp->req;
	struct soft_send_wr *wr;

	if (req->sq.started == req->sq.posted || qp->state != SOFT_QP_RTS)
		return NULL;
	wr = soft_send_queue_at(&req->sq, req->sq.started);
	if ((wr->flags & SOFT_WR_FENCE) && (req->reads_open || soft_landing_busy(&req->landing)))
		return NULL;
	if (soft_send_wr_is_local(wr)) {
		wr->error = soft_requester_local(qp, wr);
		req->sq.started++;
		return wr;
	}
	wr->error = local_error(qp, wr);
	wr->rc.first_psn = req->wr_psn;
	wr->rc.num_psn = 1;
	wr->rc.unread = 0;
	if (!wr->error && wr->length > qp->attr.mtu)
		wr->rc.num_psn = (wr->length - 1) / qp->attr.mtu + 1;
	if (!wr->error)
		req->wr_psn = soft_psn_add(req->wr_psn, wr->rc.num_psn);
	req->sq.started++;
	return wr;
}

/* The work request that the next packet is of; NULL: there is nothing to send. Those that need no
 * packet are behind it when it is asked for. */
static struct soft_send_wr *current(struct soft_qp *qp)
{
	struct soft_requester *req = &qp->req;

	for (;;) {
		struct soft_send_wr *wr = req->send_wr == req->sq.started
						  ? begin(qp)
						  : soft_send_queue_at(&req->sq, req->send_wr);

		if (!wr || wr->error || !soft_send_wr_is_local(wr))
			return wr;
		req->send_wr++;
		if (soft_requester_head(qp) == wr)
			soft_requester_retire(qp);
		if (!soft_requester_live(qp))
			return NULL;
	}
}

enum may { MAY_SEND, MAY_AFTER_ANSWER, MAY_AFTER_OTHERS, MAY_AFTER_COPY };

static enum may may_send(struct soft_qp *qp, struct soft_send_wr *wr, uint32_t index)
{
	const struct soft_requester *req = &qp->req;
	uint64_t cost = soft_send_wr_cost(qp, wr, index, index + 1);

	if (req->probing && req->send_psn != req->una_psn)
		return MAY_AFTER_ANSWER;
	if (soft_qp_may_be_far(qp)) {
		uint32_t left = soft_requester_at_hand(qp, wr, index);

		if (!left)
			return MAY_AFTER_COPY;
		cost = soft_send_wr_cost(qp, wr, index,
					 index + soft_requester_whole(qp, wr, index, left));
	}
	if (soft_send_wr_asks(wr) && req->reads_open >= qp->attr.max_rd_atomic)
		return MAY_AFTER_ANSWER;
	if (wr->opcode == SOFT_WR_READ && req->read_bytes) {
		uint32_t chunk = req->read_chunk * qp->attr.mtu;

		if (req->read_bytes + chunk > (qp->reads ? qp->reads : req->read_open))
			return MAY_AFTER_ANSWER;
	}
	/* Of a READ the first response counts: were all of them to fit, short packets of others
	 * could keep it waiting for ever. One READ request may so exceed the window. */
	if (qp->full || !soft_window_open(qp->window, cost))
		return req->bytes_out ? MAY_AFTER_ANSWER : MAY_AFTER_OTHERS;
	return MAY_SEND;
}

/* Counts @packets from send_psn on as under way. */
static void count_sent(struct soft_qp *qp, struct soft_send_wr *wr, uint32_t index,
		       uint32_t packets, pp_ns now)
{
	struct soft_requester *req = &qp->req;
	uint64_t cost = soft_send_wr_cost(qp, wr, index, index + packets);

	if (req->send_psn != req->next_psn)
		qp->counters->retransmitted_packets++;
	soft_window_sent(qp->window, cost);
	req->bytes_out += cost;
	req->send_psn = soft_psn_add(req->send_psn, packets);
	if (soft_psn_diff(req->send_psn, req->next_psn) > 0)
		req->next_psn = req->send_psn;
	if (index + packets == wr->rc.num_psn)
		req->send_wr++;
	if (!req->early_deadline)
		soft_requester_arm(qp, now);
}

/* A round trip is measured by packets that are answered at once and were sent once. */
static void measure(struct soft_requester *req, uint32_t psn, bool fresh, pp_ns now)
{
	if (req->rtt_sent || !fresh)
		return;
	req->rtt_psn = psn;
	req->rtt_sent = now;
}

static struct soft_packet blank(const struct soft_qp *qp, uint8_t operation)
{
	return (struct soft_packet){
		.opcode = (uint8_t)(SOFT_RC | operation),
		.migrated = true,
		.pkey = qp->attr.pkey,
		.dest_qp = qp->attr.remote_qpn,
		.psn = qp->req.send_psn,
	};
}

static void send_atomic(struct soft_qp *qp, struct soft_send_wr *wr, pp_ns now)
{
	bool add = wr->opcode == SOFT_WR_FETCH_ADD;
	struct soft_packet p = blank(qp, add ? SOFT_FETCH_ADD : SOFT_COMPARE_SWAP);

	p.ack_request = true;
	p.va = wr->rc.remote_addr;
	p.rkey = wr->rc.rkey;
	p.swap_add = add ? wr->rc.compare_add : wr->rc.swap;
	p.compare = add ? 0 : wr->rc.compare_add;
	measure(&qp->req, p.psn, p.psn == qp->req.next_psn, now);
	qp->ops->send(qp, &qp->path, &p, /* pieces= */ NULL, 0);
	qp->req.reads_open++;
	count_sent(qp, wr, 0, 1, now);
}

/* Requests end at multiples of the chunk, whatever they begin with: each response has one shape. */
static void send_read(struct soft_qp *qp, struct soft_send_wr *wr, uint32_t index, pp_ns now)
{
	struct soft_requester *req = &qp->req;
	struct soft_packet p = blank(qp, SOFT_READ_REQUEST);
	uint32_t offset = soft_send_wr_offset(qp, wr, index);
	uint32_t end = (index / req->read_chunk + 1) * req->read_chunk;

	if (end > wr->rc.num_psn)
		end = wr->rc.num_psn;
	p.ack_request = true;
	p.va = wr->rc.remote_addr + offset;
	p.rkey = wr->rc.rkey;
	p.length = soft_send_wr_offset(qp, wr, end) - offset;
	measure(req, p.psn, p.psn == req->next_psn, now);
	qp->ops->send(qp, &qp->path, &p, /* pieces= */ NULL, 0);
	req->reads_open++;
	req->read_bytes += p.length;
	count_sent(qp, wr, index, end - index, now);
}

/* Often enough that what the window holds is asked about several times. */
static uint64_t ack_every(const struct soft_qp *qp)
{
	uint64_t part = qp->window->limit / 8;

	/* Each wakes somebody, and there is no lack of room that it would have to tell of. */
	if (qp->reads)
		return part < SOFT_ACK_EVERY_REFERRED ? part : SOFT_ACK_EVERY_REFERRED;
	return part < SOFT_ACK_EVERY ? part : SOFT_ACK_EVERY;
}

/* Packets of @wr from @index on that go as one: on the wire always one. */
static uint32_t together(const struct soft_qp *qp, const struct soft_send_wr *wr, uint32_t index,
			 uint32_t left)
{
	uint32_t most = qp->jumbo / qp->attr.mtu;
	uint64_t room = soft_window_room(qp->window) / (qp->attr.mtu + SOFT_PACKET_COST);

	most = most < left ? most : left;
	most = most < room ? most : (uint32_t)room;
	return most ? most : 1;
}

static struct soft_packet data_packet(const struct soft_qp *qp, const struct soft_send_wr *wr,
				      uint32_t index, uint32_t count)
{
	bool first = index == 0, last = index + count == wr->rc.num_psn;
	struct soft_packet p = blank(
		qp, first ? (last ? operations[wr->opcode].only : operations[wr->opcode].first)
			  : (last ? operations[wr->opcode].last : operations[wr->opcode].middle));

	p.packets = count;
	p.payload_bytes =
		soft_send_wr_offset(qp, wr, index + count) - soft_send_wr_offset(qp, wr, index);
	if (first) {
		p.va = wr->rc.remote_addr;
		p.rkey = wr->rc.rkey;
		p.length = wr->length;
	}
	if (last) {
		p.solicited = (wr->flags & SOFT_WR_SOLICITED) && wr->opcode != SOFT_WR_WRITE;
		p.imm_be = wr->imm_be;
		p.invalidate_rkey = wr->imm_be;
	}
	return p;
}

static unsigned int gather(struct soft_qp *qp, struct soft_send_wr *wr, uint32_t index,
			   const struct soft_packet *p, struct soft_pieces *ret)
{
	return soft_local_gather(qp, wr, soft_send_wr_offset(qp, wr, index), p->payload_bytes, ret);
}

/* What a packet takes of a turn: one whose payload the peer fetches takes little. */
static uint64_t effort(const struct soft_qp *qp, const struct soft_packet *p, uint64_t cost)
{
	if (p->direct)
		return SOFT_REFERRED_EFFORT;
	if (!qp->reads || !p->stays || p->payload_bytes <= SOFT_REFERRED_EFFORT)
		return cost;
	return p->payload_bytes / 8 > SOFT_REFERRED_EFFORT ? p->payload_bytes / 8
							   : SOFT_REFERRED_EFFORT;
}

/* What the peer's device copies from where it is: is all that is left of the message at hand, and
 * less than a copy should be? It follows at once, and is not to be cut from what is before it, as
 * bytes are that somebody waits for. */
static bool has_tail(const struct soft_qp *qp, const struct soft_send_wr *wr, uint32_t next,
		     uint32_t left)
{
	return qp->reads && soft_qp_may_be_far(qp) && left && next + left == wr->rc.num_psn &&
	       (uint64_t)left * qp->attr.mtu < SOFT_COPY_PIECE;
}

/* Returns what it took of the turn. */
static uint64_t send_data(struct soft_qp *qp, struct soft_send_wr *wr, uint32_t index,
			  size_t budget, pp_ns now)
{
	struct soft_requester *req = &qp->req;
	bool fresh = req->send_psn == req->next_psn;
	uint32_t left = soft_qp_may_be_far(qp) ? soft_requester_at_hand(qp, wr, index)
					       : wr->rc.num_psn - index;
	uint32_t count = together(qp, wr, index, left);
	struct soft_packet p = data_packet(qp, wr, index, count);
	struct soft_pieces pieces;
	struct soft_direct direct;
	uint64_t cost;
	bool stops;

	if (soft_qp_may_be_far(qp) &&
	    soft_outgoing_direct(&req->outgoing, wr, soft_send_wr_offset(qp, wr, index), &direct)) {
		wr->error = soft_local_check(qp, wr, /* access= */ 0);
		p.direct = &direct;
		pieces.num = 0;
		pieces.bounced = false;
	} else {
		wr->error = gather(qp, wr, index, &p, &pieces);
	}
	if (wr->error == SOFT_WC_LOC_LEN_ERR && count > 1) {
		count = 1;
		p = data_packet(qp, wr, index, count);
		wr->error = gather(qp, wr, index, &p, &pieces);
	}
	if (wr->error)
		return 0;
	cost = soft_send_wr_cost(qp, wr, index, index + count);
	p.stays = !pieces.bounced && !(wr->flags & SOFT_WR_INLINE);
	/* Of what is sent again the first copy may be acknowledged before this one is read. */
	p.later = p.stays && fresh;
	if (fresh)
		qp->counters->sent_data_bytes += p.payload_bytes;
	count_sent(qp, wr, index, count, now);
	req->unasked += (uint32_t)cost;
	/* Whatever stops the train, its end asks: nothing under way waits for an acknowledge that
	 * nobody asked for. */
	stops = req->unasked >= ack_every(qp) || effort(qp, &p, cost) >= budget;
	p.ack_request = index + count == wr->rc.num_psn ||
			(stops && !has_tail(qp, wr, index + count, left - count)) || req->probing ||
			count == left ||
			!soft_window_open(qp->window, qp->attr.mtu + SOFT_PACKET_COST);
	if (p.ack_request) {
		req->unasked = 0;
		measure(req, p.psn, fresh, now);
	}
	qp->ops->send(qp, &qp->path, &p, pieces.at, pieces.num);
	/* 0: all that was sent has been read, as by memory it always is. */
	if (p.later && qp->unread) {
		wr->rc.unread = qp->unread;
		if (soft_qp_may_be_far(qp))
			soft_outgoing_sent(&req->outgoing, wr, soft_send_wr_offset(qp, wr, index));
	}
	return effort(qp, &p, cost);
}

static void charge(size_t *budget, uint64_t bytes)
{
	*budget -= bytes < *budget ? bytes : *budget;
}

bool soft_requester_pump(struct soft_qp *qp, size_t *budget, pp_ns now)
{
	struct soft_requester *req = &qp->req;

	if (!soft_requester_live(qp) || now < req->rnr_until)
		return false;
	req->rnr_until = 0;
	if (soft_qp_may_be_far(qp))
		soft_outgoing_ahead(&req->outgoing);
	while (*budget) {
		struct soft_send_wr *wr = current(qp);
		uint64_t cost = SOFT_PACKET_COST;
		uint32_t index;
		enum may may;

		if (!wr)
			return false;
		index = (req->send_psn - wr->rc.first_psn) & SOFT_PSN_MASK;
		may = wr->error ? MAY_AFTER_ANSWER : may_send(qp, wr, index);
		if (may == MAY_SEND) {
			if (wr->opcode == SOFT_WR_READ) {
				send_read(qp, wr, index, now);
			} else if (soft_send_wr_asks(wr)) {
				send_atomic(qp, wr, now);
			} else {
				cost = send_data(qp, wr, index, *budget, now);
			}
		}
		if (wr->error)
			soft_requester_settle(qp);
		if (wr->error || may != MAY_SEND)
			return may == MAY_AFTER_OTHERS;
		charge(budget, cost);
	}
	return req->send_wr != req->sq.posted;
}

bool soft_requester_has_packets(const struct soft_qp *qp)
{
	const struct soft_requester *req = &qp->req;

	return req->send_psn != req->next_psn || req->send_wr != req->sq.posted;
}
