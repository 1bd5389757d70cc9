/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of one thread -> registrations. A registration ends when its region is added; what the
 * thread did before and gave up (a descriptor refused, memory that could not be pinned) is not
 * part of it: the last success counts.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/table_parts.h"
#include "base/banned.h"

static int by_thread(const void *a, const void *b)
{
	const struct pp_event *x = *(const struct pp_event *const *)a,
			      *y = *(const struct pp_event *const *)b;

	/* Not by process: most events name only their thread, and its number is the machine's own.
	 */
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x < y ? -1 : x > y; /* as they came */
}

static bool good(struct pp_episode *e, const struct pp_event *v)
{
	e->doubt |= !v->has_result;
	return v->has_result && v->result == 0;
}

/* What was acquired before is another attempt's. */
static void acquired(struct pp_episode *e, const struct pp_event *v, bool ok)
{
	e->umem = ok ? v : NULL;
	if (v->kind != PP_EVENT_DMABUF || !ok)
		e->attach = NULL;
	if (v->kind != PP_EVENT_PEER || !ok)
		e->p2p = e->peer = NULL;
}

/* Nothing of this kind follows inside one registration: the one before came to nothing. */
static void again(struct pp_episode *e)
{
	if (e->umem)
		*e = (struct pp_episode){.library = e->library, .doubt = e->doubt};
}

static void peer(struct pp_episode *e, const struct pp_event *v)
{
	bool ok = good(e, v);

	if (e->umem && e->umem != e->peer)
		again(e);

	/* The inner call succeeds for peer memory only; the outer one for all memory. */
	if (strstr(v->symbol, "ib_peer_umem_get"))
		e->peer = ok ? v : NULL;
	else
		acquired(e, v, ok);
	if (ok)
		e->umem = v;
}

static bool same_key(const struct pp_event *a, const struct pp_event *b)
{
	return !a->has_lkey || !b->has_lkey || a->lkey == b->lkey;
}

/*
 * At its beginning a new registration starts; one told at its end is of the last one. One call may
 * be made of another: both end with the same key.
 */
static void library(struct pp_episode *e, struct pp_episode *last, const struct pp_event *v,
		    struct pp_episodes *out)
{
	if (!v->has_result) {
		*e = (struct pp_episode){.library = v};
		return;
	}
	*e = (struct pp_episode){0};
	if (v->result)
		return;
	if (last && same_key(last->added, v))
		last->library = last->library ? last->library : v;
	else if (v->has_lkey)
		out->call[out->n_calls++] = v;
}

static void step(struct pp_episode *e, struct pp_episode *last, const struct pp_event *v,
		 struct pp_episodes *out)
{
	switch (v->kind) {
	case PP_EVENT_DMABUF:
	case PP_EVENT_HOST:
		acquired(e, v, good(e, v));
		break;
	case PP_EVENT_ATTACH:
		again(e);
		/* One whose return is not watched: the region says whether it came to something. */
		e->attach = good(e, v) || !v->has_result ? v : NULL;
		break;
	case PP_EVENT_PEER:
		peer(e, v);
		break;
	case PP_EVENT_P2P:
		again(e);
		if (good(e, v))
			e->p2p = v;
		break;
	case PP_EVENT_REGISTER:
		library(e, last, v, out);
		break;
	default:
		break;
	}
}

static void walk(const struct pp_event **v, size_t n, struct pp_episodes *out)
{
	struct pp_episode now = {0}, *last = NULL;
	pid_t pid = 0; /* of the thread, once an event says it */

	for (size_t i = 0; i < n; i++) {
		bool other = i && v[i]->tid != v[i - 1]->tid;

		/* A number that a later process's thread has again is another thread. */
		if (other || (pid && v[i]->pid && v[i]->pid != pid)) {
			now = (struct pp_episode){0};
			last = NULL;
			pid = 0;
		}
		pid = v[i]->pid ? v[i]->pid : pid;
		if (v[i]->kind != PP_EVENT_ADDED) {
			step(&now, last, v[i], out);
			continue;
		}
		now.added = v[i];
		last = &out->item[out->n++];
		*last = now;
		now = (struct pp_episode){0};
	}
}

int pp_episodes_find(const struct pp_events *events, struct pp_episodes *ret)
{
	const struct pp_event **PP_AUTO_FREE v = calloc(events->n + 1, sizeof(const void *));
	struct pp_episodes out = {.n = 0};
	size_t n = 0, added = 0, calls = 0;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < events->n; i++) {
		if (events->item[i].kind == PP_EVENT_REGION ||
		    events->item[i].kind == PP_EVENT_REMOVED)
			continue;
		added += events->item[i].kind == PP_EVENT_ADDED;
		calls += events->item[i].kind == PP_EVENT_REGISTER;
		v[n++] = &events->item[i];
	}
	out.item = calloc(added + 1, sizeof(*out.item));
	out.call = calloc(calls + 1, sizeof(const void *));
	if (!out.item || !out.call) {
		pp_episodes_done(&out);
		return -ENOMEM;
	}
	qsort(v, n, sizeof(const void *), by_thread);
	walk(v, n, &out);
	*ret = out;
	return 0;
}

void pp_episodes_done(struct pp_episodes *e)
{
	free(e->item);
	free(e->call);
	*e = (struct pp_episodes){0};
}
