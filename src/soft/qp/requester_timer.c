/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Silence. Two clocks run while something is under way:
 *
 * - our own, a few round trips: one packet is sent again, and more only after an answer. A peer
 *   that was merely slow costs one packet, a lost tail costs milliseconds. Charged to nothing.
 * - the standard's, 4.096 us * 2^timeout: charged to retry_cnt, and the QP fails after retry_cnt +
 * 1 of them without progress (InfiniBand Architecture Specification, volume 1, 9.7.6.1.3).
 */
#include "soft/qp/requester.h"

#include "base/banned.h"

/* Table "Encoding for RNR NAK Timer Field" (9.7.5.2.8), in units of 10 us. */
static const uint32_t rnr_10us[32] = {
	65536, 1,    2,	   3,	 4,    6,     8,     12,    16,	   24,	  32,
	48,    64,   96,   128,	 192,  256,   384,   512,   768,   1024,  1536,
	2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

static pp_ns interval(const struct soft_qp *qp)
{
	return qp->attr.timeout ? (pp_ns)4096 << (qp->attr.timeout & 31) : 0;
}

static pp_ns early(const struct soft_qp *qp)
{
	return soft_window_rto(qp->window) << qp->req.backoff;
}

void soft_requester_arm(struct soft_qp *qp, pp_ns now)
{
	struct soft_requester *req = &qp->req;
	bool waits = req->una_psn != req->next_psn;

	req->early_deadline = waits ? now + early(qp) : 0;
	req->retry_deadline = waits && interval(qp) ? now + interval(qp) : 0;
}

void soft_requester_arm_retry(struct soft_qp *qp, pp_ns now)
{
	if (qp->req.retry_deadline)
		qp->req.retry_deadline = now + interval(qp);
}

void soft_requester_wait_rnr(struct soft_qp *qp, unsigned int timer, pp_ns now)
{
	struct soft_requester *req = &qp->req;

	req->rnr_until = now + (pp_ns)rnr_10us[timer & 31] * 10000;
	req->early_deadline = req->retry_deadline = 0;
}

pp_ns soft_requester_deadline(const struct soft_qp *qp)
{
	const struct soft_requester *req = &qp->req;

	if (!soft_requester_live(qp))
		return 0;
	if (req->rnr_until)
		return req->rnr_until;
	if (!req->retry_deadline ||
	    (req->early_deadline && req->early_deadline < req->retry_deadline))
		return req->early_deadline;
	return req->retry_deadline;
}

static void silence(struct soft_qp *qp, pp_ns now)
{
	struct soft_requester *req = &qp->req;

	soft_requester_go_back(qp);
	req->probing = true;
	if (req->backoff < SOFT_BACKOFF_MAX)
		req->backoff++;
	req->early_deadline = now + early(qp);
}

void soft_requester_tick(struct soft_qp *qp, pp_ns now)
{
	struct soft_requester *req = &qp->req;

	if (!soft_requester_live(qp))
		return;
	if (req->rnr_until) {
		if (now >= req->rnr_until)
			req->rnr_until = 0;
		return;
	}
	if (req->retry_deadline && now >= req->retry_deadline) {
		qp->counters->local_ack_timeout_err++;
		if (!req->retries_left) {
			soft_requester_fail(qp, SOFT_WC_RETRY_EXC_ERR);
			return;
		}
		req->retries_left--;
		req->retry_deadline = now + interval(qp);
		silence(qp, now);
	} else if (req->early_deadline && now >= req->early_deadline) {
		qp->counters->early_retransmits++;
		silence(qp, now);
	}
}
