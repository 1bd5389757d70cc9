/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes back: acknowledges, NAKs, READ responses, results of atomics (InfiniBand Architecture
 * Specification, volume 1, 9.7.5 and 9.7.6).
 *
 * Every byte is hostile. What answers nothing that is open is a ghost and changes nothing; data
 * lands by its PSN alone, with exactly the length that PSN must have, through the work request's
 * own keys.
 */
#include "soft/qp/requester.h"

#include <string.h>

#include "base/banned.h"

/* What one packet acknowledged. */
struct gain {
	uint64_t bytes;
	pp_ns rtt;
	bool moved;	/* anything at all */
	bool confirmed; /* nothing that was sent before going back */
};

/* una_psn to @psn, which lies in @wr or ends it. */
static void move_una(struct soft_qp *qp, const struct soft_send_wr *wr, uint32_t psn,
		     struct gain *gain, pp_ns now)
{
	struct soft_requester *req = &qp->req;
	uint32_t from = (req->una_psn - wr->rc.first_psn) & SOFT_PSN_MASK;
	uint32_t to = from + ((psn - req->una_psn) & SOFT_PSN_MASK);
	int32_t under_way = soft_psn_diff(req->send_psn, req->una_psn);
	uint32_t counted = to - from < (uint32_t)under_way ? to : from + (uint32_t)under_way;
	uint64_t cost = soft_send_wr_cost(qp, wr, from, counted);

	cost = cost < req->bytes_out ? cost : req->bytes_out;
	req->bytes_out -= cost;
	gain->bytes += cost;
	gain->moved = true;
	gain->confirmed = to - from <= (uint32_t)under_way;
	if (req->rtt_sent && soft_psn_diff(psn, req->rtt_psn) > 0) {
		gain->rtt = now - req->rtt_sent;
		req->rtt_sent = 0;
	}
	if (wr->opcode == SOFT_WR_READ) {
		uint32_t bytes =
			soft_send_wr_offset(qp, wr, counted) - soft_send_wr_offset(qp, wr, from);

		req->read_bytes -= bytes < req->read_bytes ? bytes : req->read_bytes;
	}
	if (soft_send_wr_asks(wr) && counted == to && req->reads_open &&
	    (to % req->read_chunk == 0 || to == wr->rc.num_psn))
		req->reads_open--;
	req->una_psn = psn;
	if (soft_qp_may_be_far(qp))
		soft_outgoing_release(&req->outgoing, wr, soft_send_wr_offset(qp, wr, to));
	if (soft_psn_diff(req->send_psn, psn) < 0)
		req->send_psn = psn;
	if (to == wr->rc.num_psn)
		soft_requester_retire(qp);
	/* An answer from before going back: what it ends need not be sent again. */
	if (soft_requester_live(qp) && (int32_t)(req->send_wr - req->sq.retired) < 0)
		req->send_wr = req->sq.retired;
}

/*
 * Acknowledges all before @psn, which was sent. false: a READ or an atomic without its answer lies
 * before, and una_psn in it.
 */
static bool acknowledge(struct soft_qp *qp, uint32_t psn, struct gain *gain, pp_ns now)
{
	struct soft_requester *req = &qp->req;

	while (soft_requester_live(qp) && req->una_psn != psn) {
		struct soft_send_wr *wr = soft_requester_head(qp);
		uint32_t end, left;

		if (!wr || soft_send_wr_asks(wr))
			return false;
		end = soft_psn_add(wr->rc.first_psn, wr->rc.num_psn);
		left = (end - req->una_psn) & SOFT_PSN_MASK;
		if (((psn - req->una_psn) & SOFT_PSN_MASK) < left)
			end = psn;
		move_una(qp, wr, end, gain, now);
	}
	return true;
}

/* Something arrived: the peer lives, and counts of failure begin again. */
static void progress(struct soft_qp *qp, const struct gain *gain, pp_ns now)
{
	struct soft_requester *req = &qp->req;

	if (!gain->moved)
		return;
	soft_window_acked(qp->window, gain->bytes, gain->rtt);
	if (!soft_requester_live(qp))
		return;
	/* What was sent after silence was needed: so that before was lost. */
	if (req->backoff && gain->confirmed)
		soft_window_lost(qp->window, now);
	req->probing = false;
	req->gap_asked = false;
	req->backoff = 0;
	req->rnr_until = 0;
	req->retries_left = qp->attr.retry_cnt;
	req->rnr_left = qp->attr.rnr_retry;
	soft_requester_arm(qp, now);
}

/* An answer beyond una_psn, where a READ or an atomic waits for its own: that one was lost
 * (9.7.5.1.4, implied NAK). Asked for once; from there on silence has its timers. */
static void ask_again(struct soft_qp *qp, pp_ns now)
{
	qp->counters->implied_nak_seq_err++;
	if (qp->req.gap_asked)
		return;
	soft_requester_go_back(qp);
	qp->req.gap_asked = true;
	qp->req.probing = false;
	soft_window_lost(qp->window, now);
	soft_requester_arm(qp, now);
}

static void sequence_nak(struct soft_qp *qp, pp_ns now)
{
	struct soft_requester *req = &qp->req;

	qp->counters->packet_seq_err++;
	/* Nothing was sent since going back: the same NAK again, or an old one. */
	if (req->send_psn == req->una_psn)
		return;
	if (!req->retries_left) {
		soft_requester_fail(qp, SOFT_WC_RETRY_EXC_ERR);
		return;
	}
	req->retries_left--;
	soft_requester_go_back(qp);
	req->probing = false;
	soft_window_lost(qp->window, now);
	soft_requester_arm(qp, now);
}

static void rnr_nak(struct soft_qp *qp, unsigned int timer, pp_ns now)
{
	struct soft_requester *req = &qp->req;

	qp->counters->rnr_nak_retry_err++;
	/* A second one for what was sent once. */
	if (req->send_psn == req->una_psn)
		return;
	if (qp->attr.rnr_retry != 7) {
		if (!req->rnr_left) {
			soft_requester_fail(qp, SOFT_WC_RNR_RETRY_EXC_ERR);
			return;
		}
		req->rnr_left--;
	}
	soft_requester_go_back(qp);
	/* One packet asks whether it is ready now: all of them could be refused again. */
	req->probing = true;
	req->backoff = 0;
	/* The peer lives: silence begins anew after the wait. */
	req->retries_left = qp->attr.retry_cnt;
	soft_requester_wait_rnr(qp, timer, now);
}

static void nak(struct soft_qp *qp, const struct soft_packet *p, pp_ns now)
{
	switch (p->syndrome) {
	case SOFT_AETH_NAK_SEQUENCE:
		sequence_nak(qp, now);
		break;
	case SOFT_AETH_NAK_INVALID:
		soft_requester_fail(qp, SOFT_WC_REM_INV_REQ_ERR);
		break;
	case SOFT_AETH_NAK_ACCESS:
		qp->counters->req_remote_access_errors++;
		soft_requester_fail(qp, SOFT_WC_REM_ACCESS_ERR);
		break;
	case SOFT_AETH_NAK_OPERATION:
		soft_requester_fail(qp, SOFT_WC_REM_OP_ERR);
		break;
	default: /* reserved */
		qp->counters->ghost_responses++;
		break;
	}
}

static void acknowledged(struct soft_qp *qp, const struct soft_packet *p, struct gain *gain,
			 pp_ns now)
{
	unsigned int kind = p->syndrome & 0xe0;
	bool ack = kind == 0, through;

	if (!ack && kind != SOFT_AETH_RNR && kind != SOFT_AETH_KIND) {
		qp->counters->ghost_responses++;
		return;
	}
	through = acknowledge(qp, ack ? soft_psn_add(p->psn, 1) : p->psn, gain, now);
	progress(qp, gain, now);
	if (!soft_requester_live(qp))
		return;
	if (!through)
		ask_again(qp, now);
	else if (kind == SOFT_AETH_RNR)
		rnr_nak(qp, p->syndrome & 0x1f, now);
	else if (!ack)
		nak(qp, p, now);
}

/* Is the response what packet @index of a READ must bring? */
static bool read_response_fits(const struct soft_qp *qp, const struct soft_send_wr *wr,
			       const struct soft_packet *p, uint32_t index)
{
	uint32_t chunk = qp->req.read_chunk, end = index + soft_packet_count(p);
	uint32_t bytes = soft_send_wr_offset(qp, wr, end) - soft_send_wr_offset(qp, wr, index);
	unsigned int flags = soft_opcode_find(p->opcode)->flags;
	bool ends = end % chunk == 0 || end == wr->rc.num_psn;

	/* A READ asked for again may begin anywhere in its chunk. */
	if (index % chunk == 0 && !(flags & SOFT_IS_FIRST))
		return false;
	if (end > wr->rc.num_psn || (end - 1) / chunk != index / chunk)
		return false;
	return ends == !!(flags & SOFT_IS_LAST) && p->payload_bytes == bytes;
}

static unsigned int land(struct soft_qp *qp, struct soft_send_wr *wr, const struct soft_packet *p)
{
	uint32_t index = (p->psn - wr->rc.first_psn) & SOFT_PSN_MASK;

	if (p->opcode == SOFT_ATOMIC_ACKNOWLEDGE) {
		uint8_t bytes[8];

		if (wr->opcode == SOFT_WR_READ)
			return SOFT_WC_BAD_RESP_ERR;
		memcpy(bytes, &p->original, sizeof(bytes));
		return soft_local_land(qp, wr, 0, (struct soft_bytes){.at = bytes}, sizeof(bytes));
	}
	if (wr->opcode != SOFT_WR_READ || !read_response_fits(qp, wr, p, index))
		return SOFT_WC_BAD_RESP_ERR;
	qp->counters->received_data_bytes += p->payload_bytes;
	return soft_local_land(qp, wr, soft_send_wr_offset(qp, wr, index), soft_packet_bytes(p),
			       p->payload_bytes);
}

static void answered(struct soft_qp *qp, const struct soft_packet *p, struct gain *gain, pp_ns now)
{
	struct soft_send_wr *wr;
	unsigned int status;
	bool through;

	if ((soft_opcode_find(p->opcode)->flags & SOFT_HAS_AETH) && (p->syndrome & 0xe0)) {
		qp->counters->ghost_responses++;
		return;
	}
	through = acknowledge(qp, p->psn, gain, now);
	wr = soft_requester_live(qp) ? soft_requester_head(qp) : NULL;
	if (!through || !wr) {
		progress(qp, gain, now);
		if (!through && soft_requester_live(qp))
			ask_again(qp, now);
		return;
	}
	status = soft_send_wr_asks(wr) ? land(qp, wr, p) : SOFT_WC_BAD_RESP_ERR;
	if (status == SOFT_LOCAL_LOST || status == SOFT_LOCAL_LATER) {
		progress(qp, gain, now);
		if (soft_requester_live(qp))
			ask_again(qp, now);
		return;
	}
	if (status != SOFT_WC_SUCCESS) {
		progress(qp, gain, now);
		soft_requester_fail(qp, status);
		return;
	}
	move_una(qp, wr, soft_psn_add(p->psn, soft_packet_count(p)), gain, now);
	progress(qp, gain, now);
}

/*
 * What was acknowledged is acknowledged again, and no more: the peer has what follows, and has not
 * done with it. It lives, so that silence counts anew; a device that copies may take its time.
 */
static bool lives(struct soft_qp *qp, const struct soft_packet *p, pp_ns now)
{
	struct soft_requester *req = &qp->req;

	if (p->opcode != SOFT_ACKNOWLEDGE || p->syndrome & 0xe0 ||
	    soft_psn_add(p->psn, 1) != req->una_psn || req->una_psn == req->next_psn)
		return false;
	req->retries_left = qp->attr.retry_cnt;
	soft_requester_arm_retry(qp, now);
	return true;
}

void soft_requester_response(struct soft_qp *qp, const struct soft_packet *p, pp_ns now)
{
	struct soft_requester *req = &qp->req;
	struct gain gain = {0};
	uint32_t sent = (req->next_psn - req->una_psn) & SOFT_PSN_MASK;
	uint32_t end = ((p->psn - req->una_psn) & SOFT_PSN_MASK) + soft_packet_count(p);

	if (soft_requester_live(qp) && end > sent && lives(qp, p, now))
		return;
	if (!soft_requester_live(qp) || end > sent) {
		qp->counters->ghost_responses++;
		return;
	}
	if (p->opcode == SOFT_ACKNOWLEDGE)
		acknowledged(qp, p, &gain, now);
	else
		answered(qp, p, &gain, now);
	soft_requester_settle(qp);
}
