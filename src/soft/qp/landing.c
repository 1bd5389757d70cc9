/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Effects that wait. A region is found again by its key when its turn comes: it may have gone.
 *
 * Invariants: only the last effect gathers bytes; the first is always one that waits for a copy,
 * or gathers; what was carried out is gone.
 */
#include "soft/qp/landing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft/qp/parts.h"

#include "base/banned.h"

enum effect_kind {
	EFFECT_GATHERS, /* staging that is being filled */
	EFFECT_COPY,	/* its copy is under way */
	EFFECT_COPIED,
	EFFECT_KEPT, /* bytes for host memory */
	EFFECT_END,
};

struct soft_effect {
	struct soft_copy copy; /* first */
	struct soft_effect *next;
	struct soft_landing *landing; /* NULL: nobody waits for the copy any more */
	struct soft_mover *mover;
	enum effect_kind kind;
	uint32_t key;	    /* the region's own */
	uint64_t va;	    /* there */
	uint32_t len, room; /* bytes; of staging */
	uint8_t *at;
	struct soft_landed end;
};

static void wake(struct soft_staging_waiter *waiter)
{
	struct soft_landing *l =
		(struct soft_landing *)((char *)waiter - offsetof(struct soft_landing, waiter));

	l->qp->ops->ready(l->qp);
}

void soft_landing_init(struct soft_landing *l, struct soft_qp *qp,
		       const struct soft_landing_ops *ops)
{
	memset(l, 0, sizeof(*l));
	l->qp = qp;
	l->ops = ops;
	l->waiter.wake = wake;
}

const struct soft_landed *soft_landing_end_of_first(const struct soft_landing *l)
{
	return __builtin_expect(l->first_end != NULL, 0) ? &l->first_end->end : NULL;
}

bool soft_landing_hungry(struct soft_landing *l)
{
	if (!l->starved || l->waiter.waits || l->kept > SOFT_LANDING_KEPT / 2)
		return false;
	l->starved = false;
	return true;
}

/* The list of those that gather. */

static void open_add(struct soft_landing *l)
{
	l->gathers = true;
	l->open_next = l->qp->mover->open;
	l->qp->mover->open = l;
}

static void open_remove(struct soft_landing *l)
{
	struct soft_landing **at;

	if (!l->gathers)
		return;
	l->gathers = false;
	for (at = &l->qp->mover->open; *at; at = &(*at)->open_next) {
		if (*at == l) {
			*at = l->open_next;
			break;
		}
	}
}

static struct soft_effect *effect_new(struct soft_landing *l, enum effect_kind kind, size_t extra)
{
	struct soft_effect *e = calloc(1, sizeof(*e) + extra);

	if (!e)
		return NULL;
	e->kind = kind;
	e->landing = l;
	e->mover = l->qp->mover;
	return e;
}

static void push(struct soft_landing *l, struct soft_effect *e)
{
	if (l->last)
		l->last->next = e;
	else
		l->first = e;
	l->last = e;
	l->added++;
	if (e->kind == EFFECT_END && !l->first_end)
		l->first_end = e;
}

static void effect_free(struct soft_effect *e)
{
	if (e->kind <= EFFECT_COPIED)
		soft_staging_put(&e->mover->in, e->at, e->room);
	free(e);
}

/* It is in no list any more. */
static void abandon(struct soft_effect *e)
{
	e->landing = NULL;
	/* The copy reads staging until it is done. */
	if (e->kind != EFFECT_COPY)
		effect_free(e);
}

static struct soft_effect *pop(struct soft_landing *l)
{
	struct soft_effect *e = l->first;

	l->first = e->next;
	if (!l->first)
		l->last = NULL;
	l->passed++;
	if (e->kind == EFFECT_KEPT)
		l->kept -= e->len;
	if (e == l->first_end)
		for (l->first_end = e->next; l->first_end && l->first_end->kind != EFFECT_END;
		     l->first_end = l->first_end->next)
			;
	return e;
}

void soft_landing_clear(struct soft_landing *l,
			void (*flush)(struct soft_qp *qp, const struct soft_landed *end))
{
	if (l->qp->mover) {
		open_remove(l);
		soft_staging_forget(&l->qp->mover->in, &l->waiter);
	}
	l->starved = l->failed = false;
	while (l->first) {
		struct soft_effect *e = pop(l);

		if (flush && e->kind == EFFECT_END)
			flush(l->qp, &e->end);
		abandon(e);
	}
}

/* Bytes kept back go where they belong. false: there is no such place any more. */
static bool carry_out(struct soft_landing *l, struct soft_effect *e)
{
	struct soft_region *region = soft_regions_find(l->qp->regions, e->key);
	struct soft_bytes from = {.at = e->at};

	if (!region || region->window || region->length < e->len ||
	    e->va - region->iova > region->length - e->len)
		return false;
	return soft_bytes_store(from, region, e->va, e->len) == 0;
}

static void broken(struct soft_landing *l)
{
	struct soft_effect *end = l->first_end;
	struct soft_landed copy;

	l->failed = true;
	if (end)
		copy = end->end;
	/* That message is over. */
	while (l->first_end == end && end) {
		struct soft_effect *e = pop(l);

		abandon(e);
	}
	l->ops->broken(l->qp, end ? &copy : NULL);
}

/* Whatever can have its effect now has it. */
static void advance(struct soft_landing *l)
{
	while (l->first && !l->failed) {
		struct soft_effect *e = l->first;

		if (e->kind == EFFECT_GATHERS || e->kind == EFFECT_COPY)
			return;
		if ((e->kind == EFFECT_COPIED && e->copy.rc) ||
		    (e->kind == EFFECT_KEPT && !carry_out(l, e))) {
			broken(l);
			return;
		}
		(void)pop(l);
		if (e->kind == EFFECT_END)
			l->ops->landed(l->qp, &e->end);
		effect_free(e);
	}
}

static void copied(struct soft_copy *copy)
{
	struct soft_effect *e = (struct soft_effect *)copy;
	struct soft_landing *l = e->landing;

	e->kind = EFFECT_COPIED;
	if (copy->rc)
		e->mover->failed++;
	if (!l) {
		effect_free(e);
		return;
	}
	advance(l);
	l->qp->ops->ready(l->qp);
}

void soft_landing_cut(struct soft_landing *l)
{
	struct soft_effect *e = l->last;
	struct soft_region *region;

	if (!l->gathers)
		return;
	open_remove(l);
	if (e->len < e->room) {
		soft_staging_trim(&e->mover->in, e->at, e->room, e->len);
		e->room = e->len;
	}
	region = soft_regions_find(l->qp->regions, e->key);
	e->kind = EFFECT_COPIED;
	if (!region || !region->copier || region->length < e->len ||
	    e->va - region->iova > region->length - e->len) {
		e->copy.rc = -EFAULT;
		advance(l);
		return;
	}
	e->kind = EFFECT_COPY;
	e->copy.host = e->at;
	e->copy.len = e->len;
	e->copy.to_device = true;
	e->copy.done = copied;
	soft_copy_start(e->mover, &e->copy, region, e->va);
}

/* Staging for bytes of @region from @va on. Others that gather are in the way? Their copies begin
 * before they are as long as they should be: the one case of a short piece. */
static struct soft_effect *gather(struct soft_landing *l, const struct soft_region *region,
				  uint64_t va, uint32_t room)
{
	struct soft_staging *in = &l->qp->mover->in;
	struct soft_effect *e = effect_new(l, EFFECT_GATHERS, 0);

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
	e->key = region->key;
	e->va = va;
	e->room = room;
	push(l, e);
	open_add(l);
	return e;
}

/* The effect that takes the bytes at @va: the one that gathers, if they follow it, or come once
 * more. */
static struct soft_effect *gatherer(struct soft_landing *l, const struct soft_region *region,
				    uint64_t va, uint64_t expect)
{
	struct soft_effect *e = l->gathers ? l->last : NULL;
	uint32_t most = expect > SOFT_WR_MESSAGE_MAX ? SOFT_WR_MESSAGE_MAX : (uint32_t)expect;

	if (e && e->key == region->key && va - e->va <= e->len && va - e->va < e->room) {
		e->len = (uint32_t)(va - e->va);
		return e;
	}
	soft_landing_cut(l);
	return gather(l, region, va, soft_copy_piece(most));
}

static int store_far(struct soft_landing *l, struct soft_bytes from, struct soft_region *region,
		     uint64_t va, uint32_t len, uint64_t expect)
{
	while (len && !l->failed) {
		struct soft_effect *e = gatherer(l, region, va, expect > len ? expect : len);
		uint32_t part;

		if (!e) {
			l->starved = true;
			return SOFT_BYTES_LATER;
		}
		part = e->room - e->len < len ? e->room - e->len : len;
		if (!from.source)
			memcpy(e->at + e->len, from.at, part);
		else if (from.source->fetch(from.source, from.offset, e->at + e->len, part))
			return SOFT_BYTES_LOST;
		e->len += part;
		if (e->len == e->room)
			soft_landing_cut(l);
		from = soft_bytes_behind(from, part);
		va += part;
		len -= part;
		expect -= part < expect ? part : expect;
	}
	return l->failed ? -EIO : 0;
}

/* Host memory behind what waits. */
static int keep(struct soft_landing *l, struct soft_bytes from, const struct soft_region *region,
		uint64_t va, uint32_t len)
{
	struct soft_effect *e;

	if (l->kept + len > SOFT_LANDING_KEPT) {
		l->starved = true;
		return SOFT_BYTES_LATER;
	}
	e = effect_new(l, EFFECT_KEPT, len);
	if (!e)
		return -ENOMEM;
	e->at = (uint8_t *)(e + 1);
	if (!from.source)
		memcpy(e->at, from.at, len);
	else if (from.source->fetch(from.source, from.offset, e->at, len)) {
		free(e);
		return SOFT_BYTES_LOST;
	}
	e->key = region->key;
	e->va = va;
	e->len = len;
	l->kept += len;
	soft_landing_cut(l);
	push(l, e);
	advance(l);
	return l->failed ? -EIO : 0;
}

int soft_landing_store_far(struct soft_landing *l, struct soft_bytes from,
			   struct soft_region *region, uint64_t va, uint32_t len, uint64_t expect)
{
	if (l->failed || !l->qp->mover)
		return -EIO;
	if (!len)
		return 0;
	return region->copier ? store_far(l, from, region, va, len, expect)
			      : keep(l, from, region, va, len);
}

int soft_landing_end(struct soft_landing *l, const struct soft_landed *end)
{
	struct soft_effect *e = effect_new(l, EFFECT_END, 0);

	if (!e)
		return -ENOMEM;
	soft_landing_cut(l);
	e->end = *end;
	push(l, e);
	advance(l);
	return 0;
}
