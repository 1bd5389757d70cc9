/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The join: rows of netlink's regions first, then what probes saw of them, then what follows from
 * numbers. Everything is sorted or searched by halves: a machine has 10^5 regions.
 */
#include "trace/table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/table_parts.h"
#include "base/banned.h"

static const size_t TABLE_LIMIT = (size_t)512 << 20;

static const char *const claims[] = {
	[PP_PROVEN] = "proven",
	[PP_UNPROVEN] = "unproven",
	[PP_REFUTED] = "refuted",
};

const char *pp_claim_name(enum pp_claim c)
{
	return claims[c];
}

void pp_region_saw(struct pp_region *r, const struct pp_sighting *s)
{
	if (r->n_sightings < PP_SIGHTINGS) {
		r->sighting[r->n_sightings++] = *s;
		return;
	}
	for (unsigned int i = 0; s->sufficient && i < PP_SIGHTINGS; i++)
		if (!r->sighting[i].sufficient) {
			r->sighting[i] = *s;
			return;
		}
}

const struct pp_trace_hca *pp_join_hca(const struct pp_trace_input *in, const char *name)
{
	for (size_t i = 0; *name && i < in->n_hcas; i++)
		if (!strcmp(in->hca[i].name, name))
			return &in->hca[i];
	return NULL;
}

bool pp_join_importer(const struct pp_trace_hca *h, const char *device, bool *ret_direct)
{
	*ret_direct = h && *device && *h->data_direct && !strcmp(h->data_direct, device);
	if (*ret_direct)
		return true;
	return h && *device && (!strcmp(h->bdf, device) || !strcmp(h->parent, device));
}

bool pp_join_no_peers(const struct pp_trace_input *in)
{
	const struct pp_peermem *p = in->peermem;

	return p && (p->report.state == PP_SURFACE_READ || p->report.state == PP_SURFACE_ABSENT) &&
	       ((!p->n && !p->loaded) || pp_peermem_live(p) == 0);
}

struct pp_region *pp_join_row(struct pp_join *j, const char *hca)
{
	struct pp_trace_table *t = j->t;
	struct pp_region *r;

	if (t->n >= j->cap)
		return NULL;
	r = &t->region[t->n++];
	r->of = pp_join_hca(j->in, hca);
	r->hca = r->of ? r->of->name : pp_arena_str(t->arena, hca);
	r->bdf = r->of ? r->of->bdf : "";
	r->comm = r->why_process = r->why = "";
	return r;
}

static bool is_row(const struct pp_resource *r)
{
	return r->kind == PP_RESOURCE_MR && !*r->kernel_user;
}

static size_t rows_wanted(const struct pp_trace_input *in)
{
	size_t n = in->n_software;

	for (size_t i = 0; in->resources && i < in->resources->n; i++)
		n += is_row(&in->resources->item[i]);
	for (size_t i = 0; in->events && i < in->events->n; i++)
		n += in->events->item[i].kind == PP_EVENT_ADDED ||
		     in->events->item[i].kind == PP_EVENT_REGION ||
		     in->events->item[i].kind == PP_EVENT_REGISTER;
	return n;
}

static void add_resource(struct pp_join *j, const struct pp_resource *m)
{
	const struct pp_resources *all = j->in->resources;
	struct pp_region *r;

	r = pp_join_row(j, m->device < all->n_devices ? all->device[m->device].name : "");
	if (!r)
		return;
	r->resource = m;
	r->mrn = m->id;
	r->has_mrn = true;
	r->has_keys = m->has_keys;
	r->lkey = m->lkey;
	r->rkey = m->rkey;
	r->length = m->has_length ? m->length : 0;
	pp_join_own(j, r);
}

static void add_software(struct pp_join *j, const struct pp_trace_software *s)
{
	const struct pp_sighting saw = {
		.by = PP_SURFACE_SOFTWARE,
		.says = s->dmabuf ? PP_REGISTERED_DMABUF : PP_REGISTERED_HOST,
		.sufficient = true,
		.gpu = s->gpu,
		.raw = "the software device's registry",
	};
	struct pp_region *r = pp_join_row(j, s->hca);

	if (!r)
		return;
	r->simulated = true;
	r->of = NULL;
	r->bdf = "";
	r->lkey = s->lkey;
	r->has_keys = true;
	r->length = s->length;
	r->address = s->address;
	r->pid = s->pid;
	r->comm = pp_arena_str(j->t->arena, s->program);
	pp_region_saw(r, &saw);
}

static int row_order(const void *a, const void *b)
{
	const struct pp_region *x = a, *y = b;
	int r;

	if (x->simulated != y->simulated)
		return x->simulated - y->simulated;
	if (x->pid != y->pid && x->pid && y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->pid != y->pid) /* those without an owner come last */
		return x->pid ? -1 : 1;
	r = strcmp(x->hca, y->hca);
	if (r)
		return r;
	if (x->mrn != y->mrn)
		return x->mrn < y->mrn ? -1 : 1;
	if (x->lkey != y->lkey)
		return x->lkey < y->lkey ? -1 : 1;
	return x->added < y->added ? -1 : x->added > y->added;
}

static bool same_process(const struct pp_region *a, const struct pp_region *b)
{
	return a->pid == b->pid && a->simulated == b->simulated;
}

static void add_process(struct pp_trace_table *t, const struct pp_region *r)
{
	struct pp_trace_process *p = &t->process[t->n_processes++];

	p->process = r->process;
	p->pid = r->pid;
	p->comm = r->comm;
	p->simulated = r->simulated;
	p->why = "";
}

static int make_processes(struct pp_join *j)
{
	struct pp_trace_table *t = j->t;
	const struct pp_process *wanted = NULL;
	bool found = false;

	t->process = pp_arena_array(t->arena, t->n + 1, sizeof(*t->process));
	if (!t->process)
		return -ENOMEM;
	for (size_t i = 0; i < t->n; i++) {
		if (!i || !same_process(&t->region[i - 1], &t->region[i]))
			add_process(t, &t->region[i]);
		if (!*t->process[t->n_processes - 1].comm)
			t->process[t->n_processes - 1].comm = t->region[i].comm;
	}
	/* A process that was asked for has a row, though it has no region. */
	for (size_t i = 0; i < t->n_processes && j->in->only; i++)
		found |= t->process[i].pid == j->in->only;
	if (j->in->only && !found && j->in->processes)
		wanted = pp_process_find(j->in->processes, j->in->only);
	if (wanted) {
		const struct pp_region of = {
			.process = wanted, .pid = wanted->pid, .comm = wanted->comm};

		add_process(t, &of);
	}
	return 0;
}

static void take_report(struct pp_trace_table *t, enum pp_surface s,
			const struct pp_surface_report *report)
{
	if (report)
		t->surface[s] = *report;
}

static void take_reports(const struct pp_trace_input *in, struct pp_trace_table *t)
{
	static const enum pp_surface of_events[] = {
		PP_SURFACE_SYMBOLS,    PP_SURFACE_BTF,	       PP_SURFACE_SELF_PROBE,
		PP_SURFACE_LIVE_PROBE, PP_SURFACE_TRACEPOINTS, PP_SURFACE_LIBRARY,
	};

	take_report(t, PP_SURFACE_RESOURCES, in->resources ? &in->resources->resources : NULL);
	take_report(t, PP_SURFACE_KEYS, in->resources ? &in->resources->keys : NULL);
	take_report(t, PP_SURFACE_PROCESSES, in->processes ? &in->processes->processes : NULL);
	take_report(t, PP_SURFACE_FDINFO, in->processes ? &in->processes->fdinfo : NULL);
	take_report(t, PP_SURFACE_BUFINFO, in->buffers ? &in->buffers->report : NULL);
	take_report(t, PP_SURFACE_PEERMEM, in->peermem ? &in->peermem->report : NULL);
	for (size_t i = 0; in->events && i < PP_ARRAY_LEN(of_events); i++)
		take_report(t, of_events[i], &in->events->report[of_events[i]]);
}

static void cut(struct pp_trace_table *t, size_t n)
{
	struct pp_surface_report *r = &t->surface[PP_SURFACE_RESOURCES];

	r->state = PP_SURFACE_CUT;
	(void)snprintf(r->why, sizeof(r->why), "%zu regions and events; %d rows are kept", n,
		       PP_TRACE_ROWS);
}

static int fill(struct pp_join *j)
{
	const struct pp_trace_input *in = j->in;
	struct pp_trace_table *t = j->t;
	size_t wanted = rows_wanted(in);
	int r;

	take_reports(in, t);
	if (wanted > PP_TRACE_ROWS)
		cut(t, wanted);
	j->cap = wanted > PP_TRACE_ROWS ? PP_TRACE_ROWS : wanted;
	t->region = pp_arena_array(t->arena, j->cap + 1, sizeof(*t->region));
	if (!t->region || pp_join_threads(j))
		return -ENOMEM;
	for (size_t i = 0; in->resources && i < in->resources->n; i++)
		if (is_row(&in->resources->item[i]))
			add_resource(j, &in->resources->item[i]);
		else
			t->kernel += in->resources->item[i].kind == PP_RESOURCE_MR;
	r = pp_join_events(j);
	if (!r)
		r = pp_join_count(j);
	for (size_t i = 0; i < in->n_software; i++)
		add_software(j, &in->software[i]);
	for (size_t i = 0; i < t->n; i++)
		t->unowned += !t->region[i].pid && !t->region[i].gone;
	if (r)
		return r;
	qsort(t->region, t->n, sizeof(*t->region), row_order);
	return make_processes(j);
}

int pp_trace_join(const struct pp_trace_input *in, struct pp_trace_table *ret)
{
	struct pp_arena *arena = malloc(sizeof(*arena));
	struct pp_trace_table t = {.arena = arena, .attachments = -1, .peers = -1};
	struct pp_join j = {.in = in, .t = &t};
	int r;

	if (!arena)
		return -ENOMEM;
	*arena = PP_ARENA(TABLE_LIMIT);
	/* Events count process ids as the machine's first namespace does. */
	j.same_pids = in->processes && in->processes->host_pid_ns;
	r = fill(&j);
	if (r || arena->failed) {
		pp_trace_table_done(&t);
		return -ENOMEM;
	}
	*ret = t;
	return 0;
}

void pp_trace_table_done(struct pp_trace_table *t)
{
	if (t->arena)
		pp_arena_done(t->arena);
	free(t->arena);
	*t = (struct pp_trace_table){0};
}
