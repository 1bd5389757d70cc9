/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the responder says: acknowledges and NAKs, each behind what it acknowledges, and the last
 * word of a queue pair that goes to ERR.
 */
#include "soft/qp/responder.h"

#include "base/banned.h"

static void send_acknowledge(struct soft_qp *qp, uint8_t syndrome, uint32_t psn, uint32_t msn)
{
	struct soft_packet p = {
		.opcode = SOFT_RC | SOFT_ACKNOWLEDGE,
		.migrated = true,
		.pkey = qp->attr.pkey,
		.dest_qp = qp->attr.remote_qpn,
		.psn = psn,
		.syndrome = syndrome,
		.msn = msn,
	};

	qp->ops->send(qp, &qp->path, &p, NULL, 0);
}

void soft_responder_close(struct soft_qp *qp)
{
	struct soft_responder *r = &qp->resp;
	bool event = r->close_event;

	send_acknowledge(qp, r->nak, r->nak_psn, r->msn);
	r->nak = 0;
	r->close_event = false;
	soft_qp_to_error(qp);
	if (event)
		qp->ops->event(qp, r->close_with);
}

/* All before the last packet of the first message that has no effect yet, and before the first
 * whose bytes the requester still lends. */
static void acknowledge(struct soft_qp *qp)
{
	const struct soft_responder *r = &qp->resp;
	const struct soft_landed *end = soft_landing_end_of_first(&r->landing);
	uint32_t next = end ? end->psn : r->expected_psn, msn = end ? end->msn : r->msn;
	uint32_t lent_psn, lent_msn;

	if (soft_landing_first_lent(&r->landing, &lent_psn, &lent_msn) &&
	    soft_psn_diff(lent_psn, next) < 0) {
		next = lent_psn;
		msn = lent_msn;
	}
	if (r->num_answers > 0 && soft_psn_diff(r->answers[0].psn, next) < 0) {
		next = r->answers[0].psn;
		msn = soft_psn_add(r->answers[0].msn, SOFT_PSN_MASK);
	}
	send_acknowledge(qp, SOFT_AETH_ACK, soft_psn_add(next, SOFT_PSN_MASK), msn);
}

bool soft_responder_pump(struct soft_qp *qp, size_t *budget)
{
	struct soft_responder *r = &qp->resp;

	if (soft_answer_pump(qp, budget))
		return true;
	if (r->landing.starved && soft_landing_hungry(&r->landing) && r->silent && !r->nak) {
		r->nak = SOFT_AETH_NAK_SEQUENCE;
		r->nak_psn = r->expected_psn;
	}
	if (r->num_answers > 0) { /* they wait for copies */
		if (r->alive)
			acknowledge(qp);
		r->alive = false;
		return false;
	}
	if (r->closing) {
		if (r->nak && !soft_landing_busy(&r->landing))
			soft_responder_close(qp);
		return false;
	}
	if (r->nak)
		soft_landing_return(&r->landing);
	/* A NAK acknowledges all before it. */
	if (r->nak && !soft_landing_end_of_first(&r->landing) && !r->landing.lent) {
		send_acknowledge(qp, r->nak, r->nak_psn, r->msn);
		r->nak = 0;
		r->ack_pending = false;
	} else if (r->ack_pending) {
		acknowledge(qp);
		r->ack_pending = false;
	}
	r->alive = false;
	return false;
}

bool soft_responder_only_acknowledges(const struct soft_qp *qp)
{
	const struct soft_responder *r = &qp->resp;

	return r->ack_pending && !r->nak && !r->closing && r->num_answers == 0 &&
	       r->num_replays == 0;
}
