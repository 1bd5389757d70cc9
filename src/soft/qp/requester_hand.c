/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of a work request is at hand: bytes of regions that are far take their time, or are
 * lent.
 */
#include "soft/qp/requester.h"

#include "base/banned.h"

uint32_t soft_requester_at_hand(struct soft_qp *qp, struct soft_send_wr *wr, uint32_t index)
{
	uint32_t offset = soft_send_wr_offset(qp, wr, index);
	uint32_t ready = soft_outgoing_ready(&qp->req.outgoing, wr, offset);

	return ready >= wr->length - offset ? wr->rc.num_psn - index : ready / qp->attr.mtu;
}

uint32_t soft_requester_whole(struct soft_qp *qp, const struct soft_send_wr *wr, uint32_t index,
			      uint32_t left)
{
	uint32_t most = qp->jumbo / qp->attr.mtu;
	struct soft_direct direct;

	if (!left || !soft_outgoing_direct(&qp->req.outgoing, wr,
					   soft_send_wr_offset(qp, wr, index), &direct))
		return 1;
	return most < left ? most : left;
}
