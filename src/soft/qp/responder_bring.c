/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers to READs of a region that is far: what came before the request has its effect first,
 * then the bytes are fetched into staging, a piece at a time, and those of the next answers beside.
 */
#include "soft/qp/responder.h"

#include <stddef.h>

#include "soft/copy/shelf.h"

#include "base/banned.h"

enum { AHEAD = 4 }; /* answers whose bytes are fetched at a time */

static void here(struct soft_parcel *parcel)
{
	struct soft_qp *qp = parcel->owner;

	qp->ops->ready(qp);
}

static void wake(struct soft_staging_waiter *waiter)
{
	struct soft_qp *qp =
		(struct soft_qp *)((char *)waiter - offsetof(struct soft_qp, resp.waiter));

	qp->ops->ready(qp);
}

/* The loan is the region's, until it goes: nobody says when an answer was copied. */
bool soft_responder_shows(struct soft_qp *qp, struct soft_region *region)
{
	if (!soft_qp_shows(qp, region))
		return false;
	if (!region->loan && qp->mover->shelf)
		region->loan = soft_shelf_loan_take(qp->mover->shelf);
	return region->loan;
}

/* Sees to it that the next bytes of @a are in staging, where they must be. */
static struct soft_refusal bring(struct soft_qp *qp, struct soft_answer *a)
{
	struct soft_region *region;
	uint64_t va = a->va;

	if (a->atomic || !a->left_bytes || a->parcel)
		return SOFT_EXECUTED;
	region = soft_responder_reach(qp, a->rkey, &va, a->left_bytes, SOFT_ACCESS_REMOTE_READ);
	if (!region || !region->copier)
		return SOFT_EXECUTED;
	/* The requester's GPU copies from where it is. */
	if (soft_responder_shows(qp, region))
		return SOFT_EXECUTED;
	qp->is_direct = false;
	a->parcel = soft_parcel_new(qp->mover, soft_copy_piece(a->left_bytes));
	if (!a->parcel) {
		qp->resp.waiter.wake = wake;
		soft_staging_wait(&qp->mover->out, &qp->resp.waiter);
		return SOFT_REFUSED_LATER;
	}
	a->parcel->offset = a->va;
	a->parcel->owner = qp;
	a->parcel->here = here;
	a->parcel->rc = soft_parcel_fetch(a->parcel, region, va, 0, a->parcel->len);
	return SOFT_EXECUTED;
}

bool soft_answer_is_here(struct soft_qp *qp)
{
	struct soft_responder *r = &qp->resp;
	bool waits;

	if (!soft_landing_passed(&r->landing, r->answers[0].after))
		return false;
	waits = bring(qp, &r->answers[0]).syndrome != 0;
	for (uint32_t i = 1; i < r->num_answers && i < AHEAD && !waits; i++)
		if (!soft_landing_passed(&r->landing, r->answers[i].after) ||
		    bring(qp, &r->answers[i]).syndrome)
			break;
	if (waits)
		return false;
	return !r->answers[0].parcel || !r->answers[0].parcel->pending;
}
