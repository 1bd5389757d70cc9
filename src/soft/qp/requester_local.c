/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work requests that are carried out here: binding and invalidating memory windows. They are when
 * their turn to begin comes, so that what is posted behind them meets their effect, and complete in
 * their place among the others (InfiniBand Architecture Specification, volume 1, 10.8.3).
 */
#include "soft/qp/requester.h"

#include "base/banned.h"

static unsigned int bind(struct soft_qp *qp, const struct soft_send_wr *wr)
{
	/* By key: either may have gone since it was posted. */
	struct soft_mw *mw = soft_mw_find(qp->regions, wr->bind.window);
	struct soft_mw_bind how = {
		.lkey = wr->bind.lkey,
		.access = wr->bind.access,
		.start = wr->bind.start,
		.length = wr->bind.length,
		.key = wr->bind.key,
	};

	if (!mw || !soft_mw_bind(qp->regions, mw, &qp->windows, qp->pd, &how))
		return SOFT_WC_MW_BIND_ERR;
	return SOFT_WC_SUCCESS;
}

unsigned int soft_requester_local(struct soft_qp *qp, const struct soft_send_wr *wr)
{
	if (wr->opcode == SOFT_WR_BIND_WINDOW)
		return bind(qp, wr);
	return soft_mw_invalidate(qp->regions, &qp->windows, wr->imm_be) ? SOFT_WC_SUCCESS
									 : SOFT_WC_MW_BIND_ERR;
}
