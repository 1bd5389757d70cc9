/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/qp/outgoing.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "soft/qp/parts.h"

#include "base/banned.h"

static void wake(struct soft_staging_waiter *waiter)
{
	struct soft_outgoing *o =
		(struct soft_outgoing *)((char *)waiter - offsetof(struct soft_outgoing, waiter));

	o->qp->ops->ready(o->qp);
}

void soft_outgoing_init(struct soft_outgoing *o, struct soft_qp *qp)
{
	memset(o, 0, sizeof(*o));
	o->qp = qp;
	o->waiter.wake = wake;
}

static struct soft_region *region_of(const struct soft_qp *qp, const struct soft_sge *sge)
{
	return sge->length ? soft_regions_check(qp->regions, qp->pd, sge->lkey, sge->addr,
						sge->length, /* access= */ 0)
			   : NULL;
}

/* Does the message begin in a region that is far, any piece of it? */
static bool is_far(const struct soft_qp *qp, struct soft_send_wr *wr)
{
	const struct soft_sge *sges = soft_send_wr_sges(wr);

	if (wr->flags & SOFT_WR_INLINE || wr->opcode == SOFT_WR_READ || soft_send_wr_is_local(wr) ||
	    wr->opcode == SOFT_WR_COMPARE_SWAP || wr->opcode == SOFT_WR_FETCH_ADD)
		return false;
	for (uint32_t i = 0; i < wr->num_sge; i++) {
		const struct soft_region *region = region_of(qp, &sges[i]);

		if (region && region->copier)
			return true;
	}
	return false;
}

static void here(struct soft_parcel *parcel)
{
	struct soft_outgoing *o = parcel->owner;

	o->qp->ops->ready(o->qp);
}

/* One copy for each piece of the request that is far, within the parcel. */
static int fetch(struct soft_qp *qp, struct soft_parcel *p, struct soft_send_wr *wr)
{
	const struct soft_sge *sges = soft_send_wr_sges(wr);
	uint64_t at = 0, from = p->offset, to = from + p->len;

	for (uint32_t i = 0; i < wr->num_sge && at < to; at += sges[i++].length) {
		uint64_t end = at + sges[i].length;
		uint64_t first = at > from ? at : from, last = end < to ? end : to;
		struct soft_region *region = first < last ? region_of(qp, &sges[i]) : NULL;
		int rc = 0;

		if (region && region->copier)
			rc = soft_parcel_fetch(p, region, sges[i].addr + (first - at),
					       (uint32_t)(first - from), (uint32_t)(last - first));
		if (rc)
			return rc;
	}
	return 0;
}

/* The region of @wr, if all of its bytes are one piece in an allocation that the peer's GPU can
 * copy from; else NULL. */
static struct soft_region *shown(const struct soft_outgoing *o, struct soft_send_wr *wr,
				 uint64_t *ret_va)
{
	const struct soft_sge *sges = soft_send_wr_sges(wr), *only = NULL;
	struct soft_region *region;

	if (o->qp->transport != SOFT_RC)
		return NULL;
	for (uint32_t i = 0; i < wr->num_sge; i++) {
		if (!sges[i].length)
			continue;
		if (only)
			return NULL;
		only = &sges[i];
	}
	region = only ? region_of(o->qp, only) : NULL;
	if (!region || !region->copier || !soft_qp_shows(o->qp, region))
		return NULL;
	*ret_va = only->addr;
	return region;
}

/* A parcel of @len bytes at o->next_offset of @wr, and what fetches them if they must be. */
static struct soft_parcel *parcel(struct soft_outgoing *o, struct soft_send_wr *wr, uint32_t len)
{
	struct soft_qp *qp = o->qp;
	uint64_t va;
	struct soft_region *region = shown(o, wr, &va);
	struct soft_parcel *p =
		region ? soft_parcel_lend(qp->mover, region, va + o->next_offset, len) : NULL;

	if (p) {
		o->lent++;
		qp->direct_bytes += len;
		qp->is_direct = true;
		return p;
	}
	p = soft_parcel_new(qp->mover, len);
	if (!p)
		return NULL;
	o->bytes += len;
	qp->staged_bytes += len;
	qp->is_direct = false;
	return p;
}

/* The next parcel of @wr. false: not now. */
static bool take(struct soft_outgoing *o, struct soft_send_wr *wr)
{
	struct soft_qp *qp = o->qp;
	size_t share = soft_staging_room(&qp->mover->out) / 8;
	size_t most = share < SOFT_OUTGOING_LEAST ? SOFT_OUTGOING_LEAST : SOFT_OUTGOING_MAX;
	uint32_t len = soft_copy_piece(wr->length - o->next_offset);
	struct soft_parcel *p;

	/* An acknowledge makes room. */
	if (o->first && (o->bytes + len > most || o->lent >= SOFT_OUTGOING_LENT))
		return false;
	p = parcel(o, wr, len);
	if (!p) {
		soft_staging_wait(&qp->mover->out, &o->waiter);
		return false;
	}
	p->of = wr;
	p->offset = o->next_offset;
	p->owner = o;
	p->here = here;
	if (o->last)
		o->last->next = p;
	else
		o->first = p;
	o->last = p;
	o->next_offset += len;
	if (p->at)
		p->rc = fetch(qp, p, wr);
	return true;
}

/* May the bytes be read before the request's turn has come? */
static bool may_begin(const struct soft_outgoing *o, const struct soft_send_wr *wr)
{
	const struct soft_requester *req = &o->qp->req;

	/* It waits for what READs before it bring, into the same memory perhaps. */
	return !(wr->flags & SOFT_WR_FENCE) ||
	       ((int32_t)(req->sq.started - o->next_wr) >= 0 && !req->reads_open &&
		!soft_landing_busy(&req->landing));
}

void soft_outgoing_ahead(struct soft_outgoing *o)
{
	struct soft_requester *req = &o->qp->req;

	if ((int32_t)(o->next_wr - req->sq.retired) < 0) {
		o->next_wr = req->sq.retired;
		o->next_offset = 0;
	}
	while (o->next_wr != req->sq.posted && o->qp->state == SOFT_QP_RTS) {
		struct soft_send_wr *wr = soft_send_queue_at(&req->sq, o->next_wr);

		/* What is wrong with it is found when its turn comes. */
		if (is_far(o->qp, wr) && wr->length <= SOFT_WR_MESSAGE_MAX &&
		    soft_local_check(o->qp, wr, /* access= */ 0) == SOFT_WC_SUCCESS) {
			if (!may_begin(o, wr) || !take(o, wr))
				return;
			if (o->next_offset < wr->length)
				continue;
		}
		o->next_wr++;
		o->next_offset = 0;
	}
}

static bool holds(const struct soft_parcel *p, const struct soft_send_wr *wr, uint32_t offset)
{
	return p && p->of == wr && offset >= p->offset && offset - p->offset < p->len;
}

/* The parcel of that byte, or NULL. What is sent is asked for in ascending order. */
static struct soft_parcel *find(struct soft_outgoing *o, const struct soft_send_wr *wr,
				uint32_t offset)
{
	struct soft_parcel *p = o->found;

	if (holds(p, wr, offset))
		return p;
	if (p && holds(p->next, wr, offset))
		return o->found = p->next;
	for (p = o->first; p; p = p->next)
		if (holds(p, wr, offset))
			return o->found = p;
	return NULL;
}

/* The peer's GPU cannot copy what is lent any more. false: there is no room for it. */
static bool stage(struct soft_outgoing *o, struct soft_parcel *p, struct soft_send_wr *wr)
{
	if (!soft_parcel_stage(p)) {
		soft_staging_wait(&o->qp->mover->out, &o->waiter);
		return false;
	}
	o->lent--;
	o->bytes += p->len;
	o->qp->direct_bytes -= p->len;
	o->qp->staged_bytes += p->len;
	o->qp->is_direct = false;
	p->rc = fetch(o->qp, p, wr);
	return true;
}

bool soft_outgoing_direct(struct soft_outgoing *o, const struct soft_send_wr *wr, uint32_t offset,
			  struct soft_direct *ret)
{
	const struct soft_parcel *p = find(o, wr, offset);

	if (!p || p->at || p->rc)
		return false;
	*ret = soft_parcel_direct(p, (uint32_t)(offset - p->offset));
	return true;
}

void soft_outgoing_revoke(struct soft_outgoing *o, const struct soft_region *region)
{
	for (struct soft_parcel *p = o->first; p; p = p->next) {
		if (!p->unit || p->region != region)
			continue;
		soft_parcel_revoke(p);
		if (!p->at)
			p->rc = -EFAULT;
	}
}

uint32_t soft_outgoing_ready(struct soft_outgoing *o, struct soft_send_wr *wr, uint32_t offset)
{
	struct soft_parcel *p = find(o, wr, offset);
	uint64_t ready = 0, va;

	if (!p) {
		if (!is_far(o->qp, wr) || soft_local_check(o->qp, wr, /* access= */ 0))
			return UINT32_MAX;
		soft_outgoing_ahead(o);
		return 0;
	}
	/* One piece a packet. */
	if (!p->at && !p->rc && shown(o, wr, &va))
		return (uint32_t)(p->offset + p->len - offset);
	for (; p && p->of == wr && !p->pending; p = p->next) {
		if (!p->at && !p->rc && (shown(o, wr, &va) || !stage(o, p, wr)))
			break;
		if (p->pending)
			break;
		if (p->rc)
			return UINT32_MAX;
		ready = p->offset + p->len - offset;
	}
	return (uint32_t)ready;
}

uint8_t *soft_outgoing_at(struct soft_outgoing *o, const struct soft_send_wr *wr, uint32_t offset,
			  int64_t *ret_len)
{
	struct soft_parcel *p = find(o, wr, offset);

	*ret_len = p && !p->pending && p->rc ? p->rc : 0;
	if (!p || p->pending || p->rc)
		return NULL;
	*ret_len = (int64_t)(p->offset + p->len - offset);
	return p->at + (offset - p->offset);
}

void soft_outgoing_sent(struct soft_outgoing *o, const struct soft_send_wr *wr, uint32_t offset)
{
	struct soft_parcel *p = find(o, wr, offset);

	if (p)
		p->unread = o->qp->unread;
}

static void drop_first(struct soft_outgoing *o)
{
	struct soft_parcel *p = o->first;

	soft_qp_await_read(o->qp, p->unread);
	o->first = p->next;
	if (!o->first)
		o->last = NULL;
	if (o->found == p)
		o->found = o->first;
	if (p->at)
		o->bytes -= p->len;
	else
		o->lent--;
	soft_parcel_free(p);
}

void soft_outgoing_release(struct soft_outgoing *o, const struct soft_send_wr *wr, uint32_t offset)
{
	while (o->first && o->first->of == wr && o->first->offset + o->first->len <= offset)
		drop_first(o);
}

void soft_outgoing_clear(struct soft_outgoing *o)
{
	if (o->qp->mover)
		soft_staging_forget(&o->qp->mover->out, &o->waiter);
	if (o->first)
		o->qp->ops->withdraw(o->qp);
	while (o->first)
		drop_first(o);
	o->found = NULL;
	o->next_wr = o->qp->req.sq.posted;
	o->next_offset = 0;
}
