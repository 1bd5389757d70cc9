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

#include "soft/copy/shelf.h"
#include "soft/qp/landing_parts.h"
#include "soft/qp/parts.h"

#include "base/banned.h"

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

bool soft_landing_first_lent(const struct soft_landing *l, uint32_t *ret_psn, uint32_t *ret_msn)
{
	const struct soft_effect *e = l->first;

	if (!l->lent)
		return false;
	while (!e->num_loans)
		e = e->next;
	*ret_psn = e->psn;
	*ret_msn = e->msn;
	return true;
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

struct soft_effect *soft_effect_new(struct soft_landing *l, enum soft_effect_kind kind,
				    size_t extra)
{
	struct soft_effect *e = calloc(1, sizeof(*e) + extra);

	if (!e)
		return NULL;
	e->kind = kind;
	e->landing = l;
	e->mover = l->qp->mover;
	return e;
}

void soft_effect_push(struct soft_landing *l, struct soft_effect *e)
{
	if (l->last)
		l->last->next = e;
	else
		l->first = e;
	l->last = e;
	l->added++;
	if (e->kind == SOFT_EFFECT_END && !l->first_end)
		l->first_end = e;
	if (e->kind == SOFT_EFFECT_GATHERS)
		open_add(l);
}

static void effect_free(struct soft_effect *e)
{
	if (e->num_loans && e->loans[0].import)
		soft_import_put(e->loans[0].import);
	else if (e->num_loans)
		soft_shelf_view_put(e->loans[0].view);
	if (e->staged)
		soft_staging_put(&e->mover->in, (uint8_t *)(uintptr_t)e->at, e->room);
	free(e);
}

/* It is in no list any more. */
static void abandon(struct soft_effect *e)
{
	e->landing = NULL;
	/* The copy reads staging until it is done. */
	if (e->kind != SOFT_EFFECT_COPY)
		effect_free(e);
}

static struct soft_effect *pop(struct soft_landing *l)
{
	struct soft_effect *e = l->first;

	l->first = e->next;
	if (!l->first)
		l->last = NULL;
	l->passed++;
	l->lent -= e->num_loans != 0;
	if (e->kind == SOFT_EFFECT_KEPT)
		l->kept -= e->len;
	if (e == l->first_end)
		for (l->first_end = e->next; l->first_end && l->first_end->kind != SOFT_EFFECT_END;
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

		if (flush && e->kind == SOFT_EFFECT_END)
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

void soft_landing_drop(struct soft_landing *l)
{
	const struct soft_effect *end = l->first_end;

	while (l->first_end == end && end) {
		struct soft_effect *e = pop(l);

		abandon(e);
	}
}

static void broken(struct soft_landing *l)
{
	const struct soft_effect *end = l->first_end;
	struct soft_landed copy;

	l->failed = true;
	if (end)
		copy = end->end;
	soft_landing_drop(l);
	l->ops->broken(l->qp, end ? &copy : NULL);
}

void soft_landing_advance(struct soft_landing *l)
{
	while (l->first && !l->failed) {
		struct soft_effect *e = l->first;

		if (e->kind == SOFT_EFFECT_GATHERS || e->kind == SOFT_EFFECT_COPY)
			return;
		if (e->stale) {
			l->failed = true;
			l->ops->stale(l->qp);
			return;
		}
		if ((e->kind == SOFT_EFFECT_COPIED && e->copy.rc) ||
		    ((e->kind == SOFT_EFFECT_KEPT || e->brought) && !carry_out(l, e))) {
			broken(l);
			return;
		}
		(void)pop(l);
		if (e->kind == SOFT_EFFECT_END)
			l->ops->landed(l->qp, &e->end);
		else if (e->num_loans)
			l->ops->returned(l->qp);
		effect_free(e);
	}
}

static bool loans_good(const struct soft_effect *e)
{
	for (unsigned int i = 0; i < e->num_loans; i++)
		if (!soft_loan_good(&e->loans[i]))
			return false;
	return true;
}

void soft_effect_copied(struct soft_copy *copy)
{
	struct soft_effect *e = (struct soft_effect *)copy;
	struct soft_landing *l = e->landing;

	e->kind = SOFT_EFFECT_COPIED;
	e->stale = !loans_good(e);
	if (copy->rc)
		e->mover->failed++;
	if (!l) {
		effect_free(e);
		return;
	}
	soft_landing_advance(l);
	l->qp->ops->ready(l->qp);
}

void soft_landing_cut(struct soft_landing *l)
{
	struct soft_effect *e = l->last;
	struct soft_region *region;

	if (!l->gathers)
		return;
	open_remove(l);
	if (e->len < e->room && e->staged) {
		soft_staging_trim(&e->mover->in, (uint8_t *)(uintptr_t)e->at, e->room, e->len);
		e->room = e->len;
	}
	region = soft_regions_find(l->qp->regions, e->key);
	e->kind = SOFT_EFFECT_COPIED;
	if (!region || !region->copier || region->length < e->len ||
	    e->va - region->iova > region->length - e->len) {
		e->copy.rc = -EFAULT;
		soft_landing_advance(l);
		return;
	}
	e->stale = !loans_good(e);
	if (e->stale) {
		soft_landing_advance(l);
		return;
	}
	e->kind = SOFT_EFFECT_COPY;
	e->mover->lent += e->num_loans != 0;
	e->mover->lent_bytes += e->num_loans ? e->len : 0;
	/* A copy to the device only reads there. */
	if (e->num_loans && e->loans[0].import) {
		e->copy.from = (uintptr_t)e->at;
		e->copy.by_kernel = e->loans[0].import->allocated;
		e->mover->direct++;
		e->mover->direct_bytes += e->len;
	} else {
		e->copy.host = (void *)(uintptr_t)e->at;
	}
	e->copy.len = e->len;
	e->copy.chain = l->qp->num;
	e->copy.to_device = true;
	e->copy.done = soft_effect_copied;
	soft_copy_start(e->mover, &e->copy, region, e->va);
}

void soft_landing_fetch(struct soft_landing *l)
{
	struct soft_effect *e = l->last;
	const struct soft_loan *loan = &e->loans[0];

	open_remove(l);
	e->kind = SOFT_EFFECT_COPY;
	e->mover->lent++;
	e->mover->lent_bytes += e->len;
	e->mover->direct++;
	e->mover->direct_bytes += e->len;
	e->copy.host = (void *)(uintptr_t)e->at;
	e->copy.by_kernel = loan->import->allocated;
	e->copy.len = e->len;
	e->copy.done = soft_effect_copied;
	soft_copy_bring(e->mover, &e->copy, loan->import->copier, (uintptr_t)loan->at);
}

void soft_landing_return(struct soft_landing *l)
{
	if (l->gathers && l->last->num_loans)
		soft_landing_cut(l);
}

int soft_landing_end(struct soft_landing *l, const struct soft_landed *end)
{
	struct soft_effect *e = soft_effect_new(l, SOFT_EFFECT_END, 0);

	if (!e)
		return -ENOMEM;
	soft_landing_cut(l);
	e->end = *end;
	soft_effect_push(l, e);
	soft_landing_advance(l);
	return 0;
}
