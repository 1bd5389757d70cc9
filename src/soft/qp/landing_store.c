/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that arrive: for a region that is far they gather in staging or, where their sender lends
 * them, where they are; for host memory behind such they are kept back.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft/copy/shelf.h"
#include "soft/qp/landing_parts.h"
#include "soft/qp/parts.h"

#include "base/banned.h"

/* Staging for bytes of @region from @va on. Others that gather are in the way? Their copies begin
 * before they are as long as they should be: the one case of a short piece. */
static struct soft_effect *gather(struct soft_landing *l, const struct soft_region *region,
				  uint64_t va, uint32_t room)
{
	struct soft_staging *in = &l->qp->mover->in;
	struct soft_effect *e = soft_effect_new(l, SOFT_EFFECT_GATHERS, 0);

	if (!e)
		return NULL;
	e->at = soft_staging_get(in, room);
	if (!e->at) {
		while (l->qp->mover->open)
			soft_landing_cut(l->qp->mover->open);
		soft_staging_wait(in, &l->waiter);
		free(e);
		return NULL;
	}
	e->staged = true;
	e->key = region->key;
	e->va = va;
	e->room = room;
	soft_effect_push(l, e);
	return e;
}

/* The effect that takes the bytes at @va: the one that gathers, if they follow it, or come once
 * more. */
static struct soft_effect *gatherer(struct soft_landing *l, const struct soft_region *region,
				    uint64_t va, uint64_t expect)
{
	struct soft_effect *e = l->gathers ? l->last : NULL;
	uint32_t most = expect > SOFT_WR_MESSAGE_MAX ? SOFT_WR_MESSAGE_MAX : (uint32_t)expect;

	if (e && !e->num_loans && e->key == region->key && va - e->va <= e->len &&
	    va - e->va < e->room) {
		e->len = (uint32_t)(va - e->va);
		return e;
	}
	soft_landing_cut(l);
	return gather(l, region, va, soft_copy_piece(most));
}

/* Bytes to staging, up to @len of them. */
static int store_staged(struct soft_landing *l, struct soft_bytes from, struct soft_region *region,
			uint64_t va, uint32_t len, uint64_t expect, uint32_t *ret)
{
	struct soft_effect *e = gatherer(l, region, va, expect);
	uint32_t part;
	uint8_t *to;

	if (!e) {
		l->starved = true;
		return SOFT_BYTES_LATER;
	}
	/* Staging is our own. */
	to = (uint8_t *)(uintptr_t)e->at + e->len;
	part = e->room - e->len < len ? e->room - e->len : len;
	if (!from.source)
		memcpy(to, from.at, part);
	else if (from.source->fetch(from.source, from.offset, to, part))
		return SOFT_BYTES_LOST;
	e->len += part;
	if (e->len == e->room)
		soft_landing_cut(l);
	*ret = part;
	return 0;
}

/* Is it one loan? */
static bool same(const struct soft_loan *a, const struct soft_loan *b)
{
	return a->unit == b->unit && a->generation == b->generation;
}

/* Do lent bytes for @va go on where those of @e end, there and here? */
static bool goes_on(const struct soft_effect *e, const struct soft_region *region, uint64_t va,
		    const struct soft_loan *loan)
{
	return e->num_loans && !e->brought && e->key == region->key && e->va + e->len == va &&
	       e->at + e->len == loan->at && e->loans[0].view == loan->view &&
	       e->loans[0].import == loan->import && e->loans[0].segment == loan->segment &&
	       (e->num_loans < SOFT_LOANS_MAX || same(&e->loans[e->num_loans - 1], loan));
}

/* Holds what the bytes of @loan lie in, for an effect; those that it began with tell whose. */
static void hold(struct soft_landing *l, struct soft_effect *e, const struct soft_loan *loan)
{
	if (loan->import)
		soft_import_get(loan->import);
	else
		soft_shelf_view_get(loan->view);
	e->psn = l->qp->resp.expected_psn;
	e->msn = l->qp->resp.msn;
	l->lent++;
}

/* Takes up to @len bytes that are lent; returns how many. 0: no memory. */
static uint32_t borrow(struct soft_landing *l, const struct soft_region *region, uint64_t va,
		       uint32_t len, uint64_t expect, const struct soft_loan *loan)
{
	struct soft_effect *e = l->gathers ? l->last : NULL;
	uint32_t most = expect > SOFT_WR_MESSAGE_MAX ? SOFT_WR_MESSAGE_MAX : (uint32_t)expect;
	uint32_t part;

	if (!e || !goes_on(e, region, va, loan)) {
		soft_landing_cut(l);
		e = soft_effect_new(l, SOFT_EFFECT_GATHERS, 0);
		if (!e)
			return 0;
		hold(l, e, loan);
		e->key = region->key;
		e->va = va;
		e->room = soft_copy_piece(most);
		e->at = loan->at;
		soft_effect_push(l, e);
	}
	if (!e->num_loans || !same(&e->loans[e->num_loans - 1], loan))
		e->loans[e->num_loans++] = *loan;
	part = e->room - e->len < len ? e->room - e->len : len;
	e->len += part;
	if (e->len == e->room)
		soft_landing_cut(l);
	return part;
}

static uint32_t lent(struct soft_landing *l, struct soft_bytes from, struct soft_region *region,
		     uint64_t va, uint32_t len, uint64_t expect)
{
	const struct soft_effect *e = l->gathers ? l->last : NULL;
	struct soft_loan loan;
	uint32_t part = 0;

	/* What began in staging ends there: one copy. */
	if (e && !e->num_loans && !(from.source && from.source->far) && e->key == region->key &&
	    e->va + e->len == va)
		return 0;
	if (from.source && from.source->lend)
		part = from.source->lend(from.source, from.offset, len, region->copier, &loan);
	return part ? borrow(l, region, va, part, expect, &loan) : 0;
}

static int store_far(struct soft_landing *l, struct soft_bytes from, struct soft_region *region,
		     uint64_t va, uint32_t len, uint64_t expect)
{
	while (len && !l->failed) {
		uint64_t most = expect > len ? expect : len;
		uint32_t part = lent(l, from, region, va, len, most);
		int rc = part ? 0
			 : from.source && from.source->far
				 ? SOFT_BYTES_LOST
				 : store_staged(l, from, region, va, len, most, &part);

		if (rc)
			return rc;
		from = soft_bytes_behind(from, part);
		va += part;
		len -= part;
		expect -= part < expect ? part : expect;
	}
	return l->failed ? -EIO : 0;
}

/* From the memory of the sender's GPU to host memory: through staging, whose copy is begun here. */
static int bring(struct soft_landing *l, struct soft_bytes from, const struct soft_region *region,
		 uint64_t va, uint32_t len)
{
	struct soft_loan loan;
	struct soft_effect *e;

	if (!from.source->lend ||
	    !from.source->lend(from.source, from.offset, len, /* copier= */ NULL, &loan))
		return SOFT_BYTES_LOST;
	soft_landing_cut(l);
	e = gather(l, region, va, len);
	if (!e) {
		l->starved = true;
		return SOFT_BYTES_LATER;
	}
	hold(l, e, &loan);
	e->len = len;
	e->loans[e->num_loans++] = loan;
	e->brought = true;
	soft_landing_fetch(l);
	return 0;
}

/* Pieces of what is brought, no longer than staging is wide. */
static int bring_all(struct soft_landing *l, struct soft_bytes from,
		     const struct soft_region *region, uint64_t va, uint32_t len)
{
	while (len && !l->failed) {
		uint32_t part = soft_copy_piece(len);
		int rc = bring(l, from, region, va, part);

		if (rc)
			return rc;
		from = soft_bytes_behind(from, part);
		va += part;
		len -= part;
	}
	return l->failed ? -EIO : 0;
}

/* Host memory behind what waits. */
static int keep(struct soft_landing *l, struct soft_bytes from, const struct soft_region *region,
		uint64_t va, uint32_t len)
{
	struct soft_effect *e;
	uint8_t *to;

	if (l->kept + len > SOFT_LANDING_KEPT) {
		l->starved = true;
		return SOFT_BYTES_LATER;
	}
	e = soft_effect_new(l, SOFT_EFFECT_KEPT, len);
	if (!e)
		return -ENOMEM;
	to = (uint8_t *)(e + 1);
	e->at = to;
	if (!from.source)
		memcpy(to, from.at, len);
	else if (from.source->fetch(from.source, from.offset, to, len)) {
		free(e);
		return SOFT_BYTES_LOST;
	}
	e->key = region->key;
	e->va = va;
	e->len = len;
	l->kept += len;
	soft_landing_cut(l);
	soft_effect_push(l, e);
	soft_landing_advance(l);
	return l->failed ? -EIO : 0;
}

int soft_landing_store_far(struct soft_landing *l, struct soft_bytes from,
			   struct soft_region *region, uint64_t va, uint32_t len, uint64_t expect)
{
	if (l->failed || !l->qp->mover)
		return -EIO;
	if (!len)
		return 0;
	if (region->copier)
		return store_far(l, from, region, va, len, expect);
	return from.source && from.source->far ? bring_all(l, from, region, va, len)
					       : keep(l, from, region, va, len);
}
