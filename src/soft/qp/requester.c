/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requester's life: start, going back, work requests done and failed, flush.
 *
 * Completions and events may call back into whoever owns the queue pair: after each one
 * soft_requester_live() is asked before anything else is done.
 */
#include "soft/qp/requester.h"

#include "base/banned.h"

static void forget_under_way(struct soft_qp *qp)
{
	struct soft_requester *req = &qp->req;

	if (req->bytes_out)
		soft_window_dropped(qp->window, req->bytes_out);
	req->bytes_out = 0;
	req->reads_open = 0;
	req->read_bytes = 0;
	req->unasked = 0;
	req->rtt_sent = 0;
}

static void begin_at(struct soft_qp *qp, uint32_t psn)
{
	struct soft_requester *req = &qp->req;

	forget_under_way(qp);
	req->una_psn = req->send_psn = req->next_psn = req->wr_psn = psn;
	req->sq.started = req->sq.retired = req->send_wr = req->sq.posted;
	req->early_deadline = req->retry_deadline = req->rnr_until = 0;
	req->backoff = 0;
	req->probing = false;
	req->gap_asked = false;
	req->tell_drained = false;
}

void soft_requester_reset(struct soft_qp *qp)
{
	soft_qp_await_all_read(qp);
	qp->req.sq.posted = 0;
	begin_at(qp, 0);
	soft_landing_clear(&qp->req.landing, /* flush= */ NULL);
	soft_outgoing_clear(&qp->req.outgoing);
}

void soft_requester_start(struct soft_qp *qp)
{
	/* A lane may end, and the wire must do then. */
	const struct soft_window *w = qp->wire_window ? qp->wire_window : qp->window;
	struct soft_requester *req = &qp->req;
	uint32_t chunk;

	begin_at(qp, qp->attr.sq_psn & SOFT_PSN_MASK);
	req->retries_left = qp->attr.retry_cnt;
	req->rnr_left = qp->attr.rnr_retry;
	/*
	 * Responses come to our own socket, which other queue pairs share. Its size is not known
	 * here, but the window was made for a peer's like it.
	 */
	req->read_open = SOFT_READ_OPEN_MIN;
	/* Datagrams have no window, and ask for nothing. */
	if (w && w->limit_max / 8 > req->read_open)
		req->read_open = w->limit_max / 8 < SOFT_READ_OPEN_MAX
					 ? (uint32_t)(w->limit_max / 8)
					 : SOFT_READ_OPEN_MAX;
	/* One request may be open or several: then one is answered while the next travels. */
	chunk = qp->attr.max_rd_atomic > 1 ? req->read_open / 3 : req->read_open / 3 * 2;
	req->read_chunk = chunk > qp->attr.mtu ? chunk / qp->attr.mtu : 1;
}

void soft_requester_go_back(struct soft_qp *qp)
{
	struct soft_requester *req = &qp->req;

	forget_under_way(qp);
	req->send_psn = req->una_psn;
	req->send_wr = req->sq.retired;
}

static void tell_drained(struct soft_qp *qp)
{
	struct soft_requester *req = &qp->req;

	if (req->tell_drained && qp->state == SOFT_QP_SQD && req->sq.retired == req->sq.started &&
	    !soft_landing_busy(&req->landing)) {
		req->tell_drained = false;
		qp->ops->event(qp, SOFT_QP_EVENT_SQ_DRAINED);
	}
}

/* Behind the bytes that READs have brought. Without memory to remember it the bytes are lost too.
 */
static __attribute__((noinline, cold)) void complete_later(struct soft_qp *qp,
							   const struct soft_send_wr *wr)
{
	struct soft_landed end = {0};

	end.completes = soft_completion_of_send(qp, wr, SOFT_WC_SUCCESS, &end.cqe);
	soft_landing_cut(&qp->req.landing);
	if (soft_landing_end(&qp->req.landing, &end) < 0) {
		soft_complete_send(qp, wr, SOFT_WC_LOC_QP_OP_ERR);
		soft_qp_to_error(qp);
	}
}

static void landed(struct soft_qp *qp, const struct soft_landed *end)
{
	if (end->completes)
		soft_completion_push(qp, qp->send_cq, &end->cqe);
	tell_drained(qp);
}

static void broken(struct soft_qp *qp, const struct soft_landed *end)
{
	struct soft_cqe cqe;

	/* Of a READ whose end is still to come the next response tells. */
	if (!end)
		return;
	cqe = end->cqe;
	cqe.status = SOFT_WC_LOC_QP_OP_ERR;
	qp->counters->req_cqe_error++;
	soft_completion_push(qp, qp->send_cq, &cqe);
	soft_qp_to_error(qp);
}

static void returned(struct soft_qp *qp)
{
	(void)qp;
}

/* An answer that was taken back: its region has gone, as the next packet would find. */
static void stale(struct soft_qp *qp)
{
	const struct soft_landed *end = soft_landing_end_of_first(&qp->req.landing);
	struct soft_cqe cqe;

	qp->counters->req_cqe_error++;
	if (!end) {
		soft_requester_fail(qp, SOFT_WC_REM_ACCESS_ERR);
		return;
	}
	cqe = end->cqe;
	cqe.status = SOFT_WC_REM_ACCESS_ERR;
	soft_landing_drop(&qp->req.landing);
	soft_completion_push(qp, qp->send_cq, &cqe);
	soft_qp_to_error(qp);
}

const struct soft_landing_ops soft_requester_landing = {landed, broken, returned, stale};

static void retire_one(struct soft_qp *qp, struct soft_send_wr *wr)
{
	struct soft_requester *req = &qp->req;

	/* What was acknowledged was read, unless the peer lies. */
	if (!soft_send_wr_is_local(wr))
		soft_qp_await_read(qp, wr->rc.unread);
	req->sq.retired++;
	if (soft_qp_may_be_far(qp))
		soft_outgoing_release(&req->outgoing, wr, UINT32_MAX);
	if (soft_landing_busy(&req->landing))
		complete_later(qp, wr);
	else
		soft_complete_send(qp, wr, SOFT_WC_SUCCESS);
	tell_drained(qp);
}

void soft_requester_retire(struct soft_qp *qp)
{
	struct soft_send_wr *wr = soft_requester_head(qp);

	do {
		retire_one(qp, wr);
		wr = soft_requester_live(qp) ? soft_requester_head(qp) : NULL;
	} while (wr && soft_send_wr_is_local(wr) && !wr->error);
}

static void flush_landed(struct soft_qp *qp, const struct soft_landed *end)
{
	struct soft_cqe cqe = end->cqe;

	cqe.status = SOFT_WC_WR_FLUSH_ERR;
	soft_completion_push(qp, qp->send_cq, &cqe);
}

void soft_requester_fail(struct soft_qp *qp, unsigned int status)
{
	struct soft_requester *req = &qp->req;
	struct soft_send_wr *wr = soft_requester_head(qp);

	soft_qp_await_all_read(qp);
	/* What came before it and waits for its bytes comes before it. */
	soft_landing_clear(&req->landing, flush_landed);
	if (wr) {
		req->sq.retired++;
		soft_complete_send(qp, wr, status);
	}
	soft_qp_to_error(qp);
}

void soft_requester_settle(struct soft_qp *qp)
{
	struct soft_send_wr *wr;

	if (!soft_requester_live(qp))
		return;
	wr = soft_requester_head(qp);
	if (wr && wr->error)
		soft_requester_fail(qp, wr->error);
}

void soft_requester_flush(struct soft_qp *qp)
{
	struct soft_send_queue *q = &qp->req.sq;

	soft_qp_await_all_read(qp);
	soft_landing_clear(&qp->req.landing, flush_landed);
	soft_outgoing_clear(&qp->req.outgoing);
	while (q->retired != q->posted) {
		struct soft_send_wr *wr = soft_send_queue_at(q, q->retired++);

		soft_complete_send(qp, wr, SOFT_WC_WR_FLUSH_ERR);
	}
	begin_at(qp, qp->req.wr_psn);
}
