/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What probes saw, given to the rows: by the region's number and hca, else by its key, else by its
 * kernel address. Regions that began and ended under a probe get rows of their own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/table_parts.h"
#include "base/banned.h"

enum by { BY_NONE, BY_OBJECT, BY_MRN, BY_LKEY };

/* Beginnings and ends of one region follow each other. */
struct span {
	enum by by;
	uint64_t key;
	const struct pp_event *event;
	size_t episode; /* of ADDED */
};

static void set_key(struct span *s)
{
	const struct pp_event *e = s->event;

	s->by = e->object ? BY_OBJECT : e->has_mrn ? BY_MRN : e->has_lkey ? BY_LKEY : BY_NONE;
	s->key = e->object ? e->object : e->has_mrn ? e->mrn : e->lkey;
}

static int by_key(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	int r;

	if (x->by != y->by)
		return x->by < y->by ? -1 : 1;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	r = x->by == BY_OBJECT ? 0 : strcmp(x->event->hca, y->event->hca);
	if (r)
		return r;
	if (x->event->at != y->event->at)
		return x->event->at < y->event->at ? -1 : 1;
	return x->event < y->event ? -1 : x->event > y->event;
}

static bool same_key(const struct span *x, const struct span *y)
{
	return x->by != BY_NONE && x->by == y->by && x->key == y->key &&
	       (x->by == BY_OBJECT || !strcmp(x->event->hca, y->event->hca));
}

static const char *device_text(const char *device)
{
	return *device ? device : "?";
}

static void keep_buffer(struct pp_join *j, struct pp_region *r, const struct pp_event *e)
{
	r->exporter = pp_arena_str(j->t->arena, e->exporter);
	r->importer = pp_arena_str(j->t->arena, e->device);
	r->buffer_inode = e->inode;
	r->buffer_size = e->size;
}

/* A: the umem came from a descriptor. */
static void saw_dmabuf(struct pp_join *j, struct pp_region *r, const struct pp_episode *e)
{
	const struct pp_event *at = e->attach, *u = e->umem;
	bool direct = false, ours = at && pp_join_importer(r->of, at->device, &direct);
	bool same = !u->length || !e->added->length || u->length == e->added->length;
	struct pp_sighting s = {
		.by = at ? at->by : u->by,
		.says = direct ? PP_REGISTERED_DATA_DIRECT : PP_REGISTERED_DMABUF,
		.sufficient = ours && same && !e->doubt && !j->in->events->lost && *at->exporter,
		.gpu = at && pp_exporter_is_nvidia(at->exporter),
	};

	s.raw = at ? pp_arena_printf(
			     j->t->arena, "%s()=0 exp_name=%s size=%llu ino=%llu dev=%s; %s()=0",
			     at->symbol, at->exporter, (unsigned long long)at->size,
			     (unsigned long long)at->inode, device_text(at->device), u->symbol)
		   : pp_arena_printf(j->t->arena, "%s()=0, no attach was seen", u->symbol);
	if (at && !r->exporter)
		keep_buffer(j, r, at);
	pp_region_saw(r, &s);
}

static bool peers_seen(const struct pp_events *events)
{
	for (size_t i = 0; i < events->n; i++)
		if (events->item[i].kind == PP_EVENT_PEER)
			return true;
	return false;
}

/* A: memory that a peer client or EFA's own code took from the GPU's driver. */
static void saw_p2p(struct pp_join *j, struct pp_region *r, const struct pp_episode *e)
{
	bool inside = e->peer || (e->library && e->library->at < e->p2p->at);
	struct pp_sighting s = {
		.by = e->p2p->by,
		.says = e->umem ? PP_REGISTERED_PEERMEM : PP_REGISTERED_EFA_P2P,
		.sufficient = inside && !e->doubt && !j->in->events->lost,
		.gpu = true,
	};

	if (!e->umem) {
		/* Only EFA's driver takes memory without a umem. */
		if (!r->of || strcmp(r->of->driver, "efa") != 0)
			return;
		s.sufficient = !e->doubt && !j->in->events->lost && !peers_seen(j->in->events);
	}
	s.raw = pp_arena_printf(j->t->arena, "%s()=0 inside %s()", e->p2p->symbol,
				e->peer	  ? e->peer->symbol
				: e->umem ? e->umem->symbol
					  : "efa's registration");
	pp_region_saw(r, &s);
}

static void saw_peer(struct pp_join *j, struct pp_region *r, const struct pp_episode *e)
{
	const struct pp_sighting s = {
		.by = e->peer->by,
		.says = PP_REGISTERED_PEERMEM,
		.gpu = true,
		.raw = pp_arena_printf(j->t->arena, "%s()=0, no p2p call was seen",
				       e->peer->symbol),
	};

	pp_region_saw(r, &s);
}

static void saw_host(struct pp_join *j, struct pp_region *r, const struct pp_episode *e)
{
	const struct pp_surface_report *live = &j->in->events->report[PP_SURFACE_LIVE_PROBE];
	const struct pp_sighting s = {
		.by = e->umem->by,
		.says = PP_REGISTERED_HOST,
		/* Its way is the absence of others: all of them have to be watched. */
		.sufficient = !e->doubt && !j->in->events->lost && live->state == PP_SURFACE_READ,
		.raw = pp_arena_printf(j->t->arena, "%s()=0, no attach, no p2p call",
				       e->umem->symbol),
	};

	pp_region_saw(r, &s);
}

/*
 * The kernel's own structure of the region, by B or when it was added. @buffer knows its buffer: of
 * B the same event, of A the attach before it in that thread; NULL none was seen.
 */
static void saw_umem(struct pp_join *j, struct pp_region *r, const struct pp_event *e,
		     const struct pp_event *buffer)
{
	struct pp_sighting s = {.by = e->by, .says = PP_REGISTERED_HOST};
	bool direct = false, whole = e->kind == PP_EVENT_REGION || !j->in->events->lost;

	if (e->is_dmabuf == PP_YES && e->is_peer != PP_YES) {
		bool ours = buffer && (pp_join_importer(r->of, buffer->device, &direct) ||
				       (e->data_direct == PP_YES && *buffer->device));

		direct |= e->data_direct == PP_YES;
		s.sufficient = ours && whole && *buffer->exporter;
		s.says = direct ? PP_REGISTERED_DATA_DIRECT : PP_REGISTERED_DMABUF;
		s.gpu = buffer && pp_exporter_is_nvidia(buffer->exporter);
		s.raw = buffer ? pp_arena_printf(j->t->arena,
						 "%sib_umem: is_dmabuf=1 exp_name=%s size=%llu "
						 "ino=%llu dev=%s",
						 e->data_direct == PP_YES ? "dd_crossed_mr: " : "",
						 buffer->exporter, (unsigned long long)buffer->size,
						 (unsigned long long)buffer->inode,
						 device_text(buffer->device))
			       : "ib_umem: is_dmabuf=1, no attach was seen";
		if (buffer)
			keep_buffer(j, r, buffer);
	} else if (e->is_peer == PP_YES && e->is_dmabuf != PP_YES) {
		s.says = PP_REGISTERED_PEERMEM;
		s.sufficient = whole;
		s.gpu = true;
		s.raw = "ib_umem: is_peer=1";
	} else if (e->has_umem == PP_YES && e->is_dmabuf == PP_NO && e->is_peer != PP_YES) {
		s.sufficient = whole && (e->is_peer == PP_NO || pp_join_no_peers(j->in));
		s.raw = e->is_peer == PP_NO ? "ib_umem: is_dmabuf=0 is_peer=0"
					    : "ib_umem: is_dmabuf=0, no member is_peer";
	} else {
		return;
	}
	pp_region_saw(r, &s);
}

static void saw_episode(struct pp_join *j, struct pp_region *r, const struct pp_episode *e)
{
	if (e->added->has_umem == PP_YES)
		saw_umem(j, r, e->added, e->attach);
	else if (e->umem && e->umem->kind == PP_EVENT_DMABUF)
		saw_dmabuf(j, r, e);
	else if (e->p2p)
		saw_p2p(j, r, e);
	else if (e->peer)
		saw_peer(j, r, e);
	else if (e->umem)
		saw_host(j, r, e);
	if (!e->library)
		return;
	r->called = e->library->symbol;
	if (!r->address)
		r->address = e->library->address;
}

static void take(struct pp_join *j, struct pp_region *r, const struct pp_event *e)
{
	if (!r->has_mrn && e->has_mrn) {
		r->mrn = e->mrn;
		r->has_mrn = true;
	}
	if (!r->has_keys && e->has_lkey) {
		r->lkey = e->lkey;
		r->has_keys = true;
	}
	if (!r->length)
		r->length = e->length;
	if (!r->address)
		r->address = e->address;
	if (!r->pid && e->pid)
		pp_join_own_pid(j, r, e->pid);
	if (!r->tid)
		r->tid = e->tid;
	if (!*r->comm)
		r->comm = pp_arena_str(j->t->arena, e->comm);
}

/* Another region may have had that number before: what both say has to be the same. */
static bool agree(const struct pp_join *j, const struct pp_region *r, const struct pp_event *e)
{
	return (!e->has_mrn || !r->has_mrn || e->mrn == r->mrn) &&
	       (!e->has_lkey || !r->has_keys || e->lkey == r->lkey) &&
	       (!*e->hca || !strcmp(e->hca, r->hca)) &&
	       (!e->length || !r->length || e->length == r->length) &&
	       (!j->same_pids || !e->pid || !r->pid || e->pid == r->pid);
}

static struct pp_region *row_of(const struct pp_join *j, const struct pp_event *e)
{
	struct pp_region *r = NULL;

	if (e->has_mrn)
		r = pp_join_by_mrn(j, e->hca, e->mrn);
	else if (e->has_lkey)
		r = pp_join_by_lkey(j, e->hca, e->lkey);
	return r && agree(j, r, e) ? r : NULL;
}

static bool listed(const struct pp_join *j)
{
	return j->in->resources && j->in->resources->resources.state == PP_SURFACE_READ;
}

/* One life of a region: from its beginning to the next end, or on. */
static void one(struct pp_join *j, const struct pp_episode *e, const struct pp_event *removed,
		const struct pp_event *region)
{
	const struct pp_event *named = region && !e->added->has_mrn ? region : e->added;
	struct pp_region *r = removed ? NULL : row_of(j, named);

	if (!r) {
		r = pp_join_row(j, *named->hca ? named->hca : removed ? removed->hca : "");
		if (!r)
			return;
		r->why_process = "";
		r->gone = removed != NULL;
	} else if (!agree(j, r, e->added)) {
		return;
	}
	r->added = e->added->at;
	r->removed = removed ? removed->at : 0;
	take(j, r, e->added);
	if (removed)
		take(j, r, removed);
	saw_episode(j, r, e);
}

static void lives(struct pp_join *j, const struct pp_episode *all, const struct span *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct pp_event *removed = NULL, *region = NULL;

		if (s[i].event->kind != PP_EVENT_ADDED)
			continue;
		for (size_t k = i + 1; k < n && same_key(&s[i], &s[k]); k++) {
			if (s[k].event->kind == PP_EVENT_ADDED)
				break;
			if (s[k].event->kind == PP_EVENT_REGION)
				region = s[k].event;
			else
				removed = removed ? removed : s[k].event;
			if (removed)
				break;
		}
		one(j, &all[s[i].episode], removed, region);
	}
}

static int by_region(const void *a, const void *b)
{
	const struct pp_event *x = *(const struct pp_event *const *)a,
			      *y = *(const struct pp_event *const *)b;
	int r = strcmp(x->hca, y->hca);

	if (r)
		return r;
	if (x->mrn != y->mrn)
		return x->mrn < y->mrn ? -1 : 1;
	if (x->at != y->at)
		return x->at > y->at ? -1 : 1;
	return x > y ? -1 : x < y;
}

/* The newest of each region; those of regions that are no more listed are of the past. */
static int regions(struct pp_join *j)
{
	const struct pp_events *events = j->in->events;
	const struct pp_event **PP_AUTO_FREE v = calloc(events->n + 1, sizeof(const void *));
	size_t n = 0;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < events->n; i++)
		if (events->item[i].kind == PP_EVENT_REGION)
			v[n++] = &events->item[i];
	qsort(v, n, sizeof(const void *), by_region);
	for (size_t i = 0; i < n; i++) {
		struct pp_region *r;

		if (i && v[i]->mrn == v[i - 1]->mrn && !strcmp(v[i]->hca, v[i - 1]->hca))
			continue;
		r = row_of(j, v[i]);
		if (!r && !listed(j) && v[i]->has_mrn)
			r = pp_join_row(j, v[i]->hca);
		if (!r)
			continue;
		take(j, r, v[i]);
		saw_umem(j, r, v[i], v[i]);
	}
	return 0;
}

static void spans(const struct pp_events *events, const struct pp_episodes *e, struct span *s,
		  size_t *ret_n)
{
	size_t n = 0;

	for (size_t i = 0; i < e->n; i++)
		s[n++] = (struct span){.event = e->item[i].added, .episode = i};
	for (size_t i = 0; i < events->n; i++)
		if (events->item[i].kind == PP_EVENT_REMOVED ||
		    events->item[i].kind == PP_EVENT_REGION)
			s[n++] = (struct span){.event = &events->item[i]};
	for (size_t i = 0; i < n; i++)
		set_key(&s[i]);
	qsort(s, n, sizeof(*s), by_key);
	*ret_n = n;
}

int pp_join_events(struct pp_join *j)
{
	const struct pp_events *events = j->in->events;
	struct pp_episodes e = {.n = 0};
	struct span *PP_AUTO_FREE s = NULL;
	size_t n = 0;
	int r;

	if (!events || !events->n)
		return 0;
	s = calloc(events->n, sizeof(*s));
	if (!s || pp_join_index(j) || pp_episodes_find(events, &e))
		return -ENOMEM;
	spans(events, &e, s, &n);
	lives(j, e.item, s, n);
	r = pp_join_index(j);
	if (!r)
		pp_join_calls(j, &e);
	if (!r)
		r = regions(j);
	pp_episodes_done(&e);
	return r ? -ENOMEM : 0;
}
