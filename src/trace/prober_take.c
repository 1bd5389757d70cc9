/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines become events: the entry and the return of one call of one thread are one event, told when
 * it returns; a region's event is the one of the probe that knows its driver.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/prober_parts.h"
#include "base/banned.h"

enum { LOOK_BACK = 256 };

/* Kernel pointers that are errors (IS_ERR): the last page of addresses. */
static const int64_t MAX_ERRNO = 4095;

static int keep(struct pp_prober *p, const struct pp_event *e)
{
	size_t cap = p->cap ? p->cap * 2 : 1024;
	struct pp_event *more;

	if (p->n == PP_EVENTS_MAX) {
		p->lost++;
		return 0;
	}
	if (p->n == p->cap) {
		more = reallocarray(p->event, cap, sizeof(*more));
		if (!more)
			return -ENOMEM;
		p->event = more;
		p->cap = cap;
	}
	p->event[p->n++] = *e;
	return 0;
}

/* 0 or a negative errno, of a pointer or an int. */
static int64_t result_of(const struct pp_event_line *l)
{
	int64_t value = (int64_t)l->returned;

	if (l->probe->by == PP_SURFACE_LIBRARY)
		return value ? 0 : -ENODATA; /* refused: its errno is not seen */
	return value < 0 && value >= -MAX_ERRNO ? value : 0;
}

/* The entry of the call that returns now, taken out; NULL: it was not seen. */
static bool take_entry(struct pp_prober *p, const struct pp_event_line *back, struct pp_event *ret)
{
	for (unsigned int i = p->n_pending; i-- > 0;) {
		const struct pp_event_line *l = &p->pending[i];

		if (l->event.tid != back->event.tid || l->probe->user != back->probe->user ||
		    strcmp(l->probe->symbol, back->probe->symbol) != 0)
			continue;
		*ret = l->event;
		memmove(&p->pending[i], &p->pending[i + 1],
			(p->n_pending - i - 1) * sizeof(p->pending[0]));
		p->n_pending--;
		return true;
	}
	return false;
}

static int take_return(struct pp_prober *p, const struct pp_event_line *l)
{
	struct pp_event e = l->event;

	if (take_entry(p, l, &e)) {
		e.at = l->event.at;
		if (l->event.has_lkey && !result_of(l)) {
			e.lkey = l->event.lkey;
			e.has_lkey = true;
		}
	}
	e.has_result = l->has_return;
	e.result = l->has_return ? result_of(l) : 0;
	if (e.result)
		e.has_lkey = false;
	return keep(p, &e);
}

/* Has this probe a twin at the function's return? */
static bool is_returned(const struct pp_prober *p, const struct pp_kprobe *probe)
{
	for (unsigned int i = 0; i < p->kprobes.n; i++)
		if (p->kprobes.item[i].returns && p->kprobes.item[i].user == probe->user &&
		    !strcmp(p->kprobes.item[i].symbol, probe->symbol))
			return true;
	return false;
}

static void take_start(struct pp_prober *p, const struct pp_event_line *l)
{
	if (p->n_pending == PP_PROBER_PENDING) {
		/* a thread that was killed inside never returns */
		memmove(p->pending, p->pending + 1,
			(PP_PROBER_PENDING - 1) * sizeof(p->pending[0]));
		p->n_pending--;
	}
	p->pending[p->n_pending++] = *l;
}

/*
 * Memory that is not there leaves what was in the ring buffer before: what hangs on a pointer
 * counts only where the pointer is one.
 */
static void forget_unsaid(struct pp_event *e)
{
	if (e->has_umem != PP_YES)
		e->is_dmabuf = e->is_odp = e->is_peer = PP_UNSAID;
	if (e->is_dmabuf == PP_YES)
		return;
	e->mapped = PP_UNSAID;
	e->size = e->inode = 0;
	e->exporter[0] = e->device[0] = '\0';
}

/* mlx5's data-direct: the region has no memory, the one inside it has. */
static void look_inside(struct pp_event *e, const struct pp_event *inner)
{
	if (e->has_umem != PP_NO || inner->has_umem != PP_YES)
		return;
	e->data_direct = e->has_umem = PP_YES;
	e->is_dmabuf = inner->is_dmabuf;
	e->is_peer = inner->is_peer;
	e->is_odp = inner->is_odp;
	e->mapped = inner->mapped;
	e->size = inner->size;
	e->inode = inner->inode;
	memcpy(e->exporter, inner->exporter, sizeof(e->exporter));
	memcpy(e->device, inner->device, sizeof(e->device));
}

static bool same_region(const struct pp_event *a, const struct pp_event *b)
{
	return a->kind == b->kind && a->tid == b->tid && a->object == b->object && a->mrn == b->mrn;
}

/* What another probe of the function has told of this call; other threads' events lie between. */
static struct pp_event *told(struct pp_prober *p, const struct pp_event *e)
{
	for (size_t i = p->n; i-- > 0 && p->n - i <= LOOK_BACK;)
		if (p->event[i].tid == e->tid)
			return same_region(&p->event[i], e) ? &p->event[i] : NULL;
	return NULL;
}

/* One event a driver, and one of them is right: the one of the driver that owns the region. */
static int take_region(struct pp_prober *p, const struct pp_event_line *l)
{
	struct pp_event e = l->event, *before;
	bool knows = *l->probe->module && !strcmp(l->probe->module, l->owner);

	if (knows)
		look_inside(&e, &l->inner);
	else
		e.has_umem = PP_UNSAID; /* another driver's structure: only that it is there */
	forget_unsaid(&e);
	before = told(p, &e);
	if (!before)
		return keep(p, &e);
	if (knows)
		*before = e;
	return 0;
}

int pp_prober_take(struct pp_prober *p, const char *line, size_t len)
{
	struct pp_event_line l;
	uint64_t lost = 0;

	switch (pp_event_line_parse(&p->kprobes, line, len, &l, &lost)) {
	case PP_LINE_LOST:
		p->lost += lost;
		return 0;
	case PP_LINE_BAD:
		p->lost++;
		return 0;
	case PP_LINE_OTHER:
		return 0;
	case PP_LINE_EVENT:
		break;
	}
	if (l.probe->kind == PP_EVENT_REGION || *l.probe->module)
		return take_region(p, &l);
	if (l.probe->returns)
		return take_return(p, &l);
	if (l.probe->point || !is_returned(p, l.probe))
		return keep(p, &l.event);
	take_start(p, &l);
	return 0;
}
