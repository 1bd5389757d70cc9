/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue pair as a whole: its states, and who gets a packet, a turn, a tick.
 */
#include "soft/qp/parts.h"

#include <errno.h>
#include <stdlib.h>

#include "base/banned.h"

/* Traffic class of a packet that met congestion (RFC 3168). */
enum { ECN_MASK = 3, ECN_CE = 3 };

static const pp_ns CNP_GAP = 50000;

int soft_qp_init(struct soft_qp *qp, const struct soft_qp_caps *caps,
		 struct soft_recv_queue *shared_rq, bool signal_all)
{
	struct soft_responder *resp = &qp->resp;
	int r;

	r = soft_send_queue_init(&qp->req.sq, caps->max_send_wr, caps->max_send_sge,
				 caps->max_inline, signal_all);
	if (r < 0)
		return r;
	if (!shared_rq) {
		r = soft_recv_queue_init(&resp->own_rq, caps->max_recv_wr, caps->max_recv_sge);
		if (r < 0)
			goto err_send_queue;
	}
	resp->rq = shared_rq ? shared_rq : &resp->own_rq;
	resp->wr = calloc(1, soft_recv_queue_wr_bytes(resp->rq));
	if (!resp->wr) {
		r = -ENOMEM;
		goto err_recv_queue;
	}
	soft_outgoing_init(&qp->req.outgoing, qp);
	soft_landing_init(&qp->req.landing, qp, &soft_requester_landing);
	soft_landing_init(&qp->resp.landing, qp, &soft_responder_landing);
	soft_qp_reset(qp);
	return 0;

err_recv_queue:
	if (!shared_rq)
		soft_recv_queue_done(&resp->own_rq);
err_send_queue:
	soft_send_queue_done(&qp->req.sq);
	return r;
}

void soft_qp_done(struct soft_qp *qp)
{
	soft_qp_reset(qp);
	free(qp->resp.wr);
	qp->resp.wr = NULL;
	if (qp->resp.rq == &qp->resp.own_rq)
		soft_recv_queue_done(&qp->resp.own_rq);
	soft_send_queue_done(&qp->req.sq);
}

void soft_qp_reset(struct soft_qp *qp)
{
	qp->state = SOFT_QP_RESET;
	soft_mw_release(&qp->windows);
	soft_requester_reset(qp);
	soft_responder_reset(qp);
	if (qp->resp.rq == &qp->resp.own_rq)
		qp->resp.own_rq.posted = qp->resp.own_rq.taken = 0;
}

void soft_qp_to_rtr(struct soft_qp *qp)
{
	qp->state = SOFT_QP_RTR;
	soft_responder_start(qp);
}

void soft_qp_to_rts(struct soft_qp *qp)
{
	bool back = qp->state == SOFT_QP_SQD || qp->state == SOFT_QP_SQE;

	qp->state = SOFT_QP_RTS;
	if (!back)
		soft_requester_start(qp);
}

void soft_qp_to_sqd(struct soft_qp *qp, bool notify)
{
	qp->state = SOFT_QP_SQD;
	qp->req.tell_drained = notify && qp->req.sq.retired != qp->req.sq.started;
	if (notify && !qp->req.tell_drained)
		qp->ops->event(qp, SOFT_QP_EVENT_SQ_DRAINED);
}

static void flush(struct soft_qp *qp)
{
	soft_requester_flush(qp);
	soft_responder_flush(qp);
}

void soft_qp_to_error(struct soft_qp *qp)
{
	if (qp->state == SOFT_QP_ERR)
		return;
	qp->state = SOFT_QP_ERR;
	flush(qp);
}

static bool receives(const struct soft_qp *qp)
{
	return qp->state >= SOFT_QP_RTR && qp->state <= SOFT_QP_SQE;
}

/*
 * A packet that met congestion. Who sent it is told by a notification (annex A17.9.3), not more
 * often than a round trip or so lasts. One of a datagram would need an address handle.
 */
static __attribute__((noinline, cold)) void marked(struct soft_qp *qp, const struct soft_packet *p,
						   pp_ns now)
{
	const struct soft_packet cnp = {.opcode = SOFT_CNP,
					.migrated = true,
					.becn = true,
					.pkey = qp->attr.pkey,
					.dest_qp = qp->attr.remote_qpn};
	struct soft_path path = qp->path;

	qp->counters->np_ecn_marked_roce_packets++;
	if (qp->transport == SOFT_UD || p->opcode == (SOFT_RC | SOFT_ACKNOWLEDGE) ||
	    (qp->cnp_sent && now - qp->cnp_sent < CNP_GAP))
		return;
	qp->cnp_sent = now;
	qp->counters->np_cnp_sent++;
	path.traffic_class &= (uint8_t)~ECN_MASK;
	qp->ops->send(qp, &path, &cnp, NULL, 0);
}

void soft_qp_receive(struct soft_qp *qp, const struct soft_packet *p, const struct soft_path *from,
		     uint8_t tc, pp_ns now)
{
	qp->now = now;
	if (!receives(qp))
		return;
	if (p->opcode == SOFT_CNP) {
		qp->counters->rp_cnp_handled++;
		if (qp->window)
			soft_window_lost(qp->window, now);
		return;
	}
	if ((p->opcode & 0xe0) != (unsigned int)qp->transport)
		return;
	if ((tc & ECN_MASK) == ECN_CE)
		marked(qp, p, now);
	if (qp->transport == SOFT_UD)
		soft_datagram_request(qp, p, from, tc);
	else if (qp->transport == SOFT_UC)
		soft_unreliable_request(qp, p);
	else if (!(soft_opcode_find(p->opcode)->flags & SOFT_IS_RESPONSE))
		soft_responder_request(qp, p);
	else
		soft_requester_response(qp, p, now);
}

bool soft_qp_pump(struct soft_qp *qp, size_t budget, pp_ns now)
{
	bool more;

	qp->now = now;
	if (qp->state == SOFT_QP_ERR)
		flush(qp);
	if (!receives(qp))
		return false;
	if (qp->transport == SOFT_UD)
		return soft_datagram_pump(qp, &budget);
	if (qp->transport == SOFT_UC)
		return soft_unreliable_pump(qp, &budget, now);
	/* A short request and an acknowledge behind it leave as one train. */
	if (soft_responder_only_acknowledges(qp)) {
		more = soft_requester_pump(qp, &budget, now);
		return soft_responder_pump(qp, &budget) || more;
	}
	more = soft_responder_pump(qp, &budget);
	return soft_requester_pump(qp, &budget, now) || more;
}

bool soft_qp_only_acknowledges(const struct soft_qp *qp)
{
	return qp->transport == SOFT_RC && receives(qp) && soft_responder_only_acknowledges(qp) &&
	       !soft_requester_has_packets(qp);
}

pp_ns soft_qp_deadline(const struct soft_qp *qp)
{
	return qp->transport == SOFT_UD ? 0 : soft_requester_deadline(qp);
}

void soft_qp_tick(struct soft_qp *qp, pp_ns now)
{
	qp->now = now;
	if (qp->transport != SOFT_UD)
		soft_requester_tick(qp, now);
}
