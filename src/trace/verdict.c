/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A region's verdict: the table of docs/internals/trace.md. One witness that suffices and none that
 * says otherwise make it known; what must hold besides makes it proven.
 */
#include "trace/verdict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/verdict_parts.h"
#include "base/banned.h"

#define BIT(surface) (1U << (unsigned int)(surface))

static const char *says(const struct pp_sighting *s)
{
	return pp_registration_name(s->says);
}

/*
 * The strongest of those that suffice, else of those that do not; they come in order of strength.
 * *ret_against: one that says something else, NULL none.
 */
static const struct pp_sighting *pick(const struct pp_region *r, bool sufficient,
				      const struct pp_sighting **ret_against)
{
	static const enum pp_surface order[] = {
		PP_SURFACE_SELF_PROBE, PP_SURFACE_LIVE_PROBE, PP_SURFACE_TRACEPOINTS,
		PP_SURFACE_BUFINFO,    PP_SURFACE_PEERMEM,    PP_SURFACE_RESOURCES,
	};
	const struct pp_sighting *best = NULL;

	*ret_against = NULL;
	for (size_t k = 0; k < PP_ARRAY_LEN(order); k++)
		for (unsigned int i = 0; i < r->n_sightings; i++) {
			const struct pp_sighting *s = &r->sighting[i];

			if (s->by != order[k] || s->sufficient != sufficient)
				continue;
			if (!best)
				best = s;
			else if (s->says != best->says)
				*ret_against = s;
		}
	return best;
}

static int by_inode(const void *a, const void *b)
{
	const struct pp_buffer *x = *(const struct pp_buffer *const *)a,
			       *y = *(const struct pp_buffer *const *)b;

	return x->inode < y->inode ? -1 : x->inode > y->inode;
}

static const struct pp_buffer *buffer_of(const struct pp_judging *g, uint64_t inode)
{
	const struct pp_buffer wanted = {.inode = inode}, *key = &wanted;
	const struct pp_buffer *const *found;

	found = g->n_inodes ? bsearch(&key, g->by_inode, g->n_inodes, sizeof(key), by_inode) : NULL;
	return found ? *found : NULL;
}

static bool attached_to(const struct pp_judging *g, const struct pp_buffer *b, const char *device)
{
	for (uint32_t i = 0; i < b->n_attached; i++)
		if (!strcmp(g->in->buffers->attached[b->first + i], device))
			return true;
	return false;
}

/* Does bufinfo, where it can be asked for this buffer, show it as the witness does? */
static const char *against_bufinfo(const struct pp_judging *g, const struct pp_region *r)
{
	const struct pp_buffer *b;

	if (r->gone || !r->buffer_inode || !pp_surface_whole(g->t, PP_SURFACE_BUFINFO))
		return NULL;
	if (g->in->buffers->n && !g->n_inodes) /* this kernel shows none */
		return NULL;
	b = buffer_of(g, r->buffer_inode);
	if (!b)
		return "bufinfo has no buffer with this inode";
	if (r->importer && !attached_to(g, b, r->importer))
		return "bufinfo shows the buffer, but not attached to this device";
	return strcmp(b->exporter, r->exporter) != 0 ? "bufinfo names another exporter" : NULL;
}

static const char *dmabuf_holds(const struct pp_judging *g, const struct pp_run *run,
				struct pp_region *r)
{
	(void)run;
	return against_bufinfo(g, r);
}

static const char *peermem_holds(const struct pp_judging *g, const struct pp_run *run,
				 struct pp_region *r)
{
	if (r->gone)
		return "VmPin of its process was not looked at while it lived";
	if (!r->process || r->process->pinned_kb < 0) {
		r->missing |= BIT(PP_SURFACE_PROCESSES);
		return "VmPin of its process is not known";
	}
	if (g->t->peers == 0)
		return "no peer client has a live region";
	return (uint64_t)r->process->pinned_kb * 1024 < run->peer_bytes
		       ? "VmPin of its process is less than its regions of peer memory"
		       : NULL;
}

static const char *efa_holds(const struct pp_judging *g, const struct pp_run *run,
			     struct pp_region *r)
{
	(void)run;
	(void)r;
	if (g->in->efa_logged == PP_YES)
		return NULL;
	return pp_arena_printf(g->t->arena, "\"efa: Acquired peer memory using P2P\": %s",
			       g->in->why_efa ? g->in->why_efa : "the kernel log was not read");
}

static const char *host_holds(const struct pp_judging *g, const struct pp_run *run,
			      struct pp_region *r)
{
	(void)g;
	(void)run;
	(void)r;
	return NULL;
}

/* Of every registration: the kernel lists it, or has said that it began and ended; it has an owner.
 */
static const char *region_holds(const struct pp_judging *g, struct pp_region *r)
{
	if (!r->pid) {
		r->missing |= BIT(PP_SURFACE_PROCESSES);
		return *r->why_process ? r->why_process : "its process is not known";
	}
	if (r->resource || (r->gone && r->added && r->removed))
		return NULL;
	if (pp_surface_whole(g->t, PP_SURFACE_RESOURCES))
		return "RDMA netlink does not list it";
	r->missing |= BIT(PP_SURFACE_RESOURCES);
	return "RDMA netlink was not read";
}

typedef const char *holds(const struct pp_judging *g, const struct pp_run *run,
			  struct pp_region *r);

static holds *const must_hold[] = {
	[PP_REGISTERED_HOST] = host_holds,	 [PP_REGISTERED_DMABUF] = dmabuf_holds,
	[PP_REGISTERED_PEERMEM] = peermem_holds, [PP_REGISTERED_DATA_DIRECT] = dmabuf_holds,
	[PP_REGISTERED_EFA_P2P] = efa_holds,
};

/* Surfaces that would decide, and are not whole. */
static void name_missing(const struct pp_trace_table *t, struct pp_region *r)
{
	static const enum pp_surface deciding[] = {PP_SURFACE_SELF_PROBE, PP_SURFACE_LIVE_PROBE,
						   PP_SURFACE_BUFINFO};
	const struct pp_surface_report *btf = &t->surface[PP_SURFACE_BTF];

	for (size_t i = 0; i < PP_ARRAY_LEN(deciding); i++)
		if (!pp_surface_whole(t, deciding[i]))
			r->missing |= BIT(deciding[i]);
	if (btf->state != PP_SURFACE_READ && btf->state != PP_SURFACE_UNASKED)
		r->missing |= BIT(PP_SURFACE_BTF);
	if (!pp_surface_whole(t, PP_SURFACE_RESOURCES))
		r->missing |= BIT(PP_SURFACE_RESOURCES);
	/* Everything was read and tells nothing: only its beginning would. */
	if (!r->missing)
		r->missing = BIT(PP_SURFACE_LIVE_PROBE);
}

/*
 * VmPin has the bytes of all regions of the process, so none is by DMA-BUF; no peer client has any;
 * and this is not EFA. No line of the table: it is said, and is no proof.
 */
static bool host_by_exclusion(const struct pp_judging *g, const struct pp_run *run,
			      const struct pp_region *r)
{
	return r->resource && r->length && r->process && r->process->pinned_kb >= 0 && run->bytes &&
	       (uint64_t)r->process->pinned_kb * 1024 >= run->bytes && g->t->peers == 0 &&
	       pp_surface_whole(g->t, PP_SURFACE_RESOURCES) &&
	       pp_surface_whole(g->t, PP_SURFACE_PROCESSES) && !*r->why && r->of &&
	       *r->of->driver && strcmp(r->of->driver, "efa") != 0;
}

static void decide(const struct pp_judging *g, const struct pp_run *run, struct pp_region *r,
		   const struct pp_sighting *best)
{
	const char *why;

	r->known = true;
	r->registration = best->says;
	r->gpu_memory = best->gpu;
	why = region_holds(g, r);
	if (!why)
		why = must_hold[best->says](g, run, r);
	r->state = why ? PP_UNPROVEN : PP_PROVEN;
	r->why = why ? why : best->raw;
	if (why)
		name_missing(g->t, r);
}

static void guess(const struct pp_judging *g, const struct pp_run *run, struct pp_region *r)
{
	const struct pp_sighting *against, *best = pick(r, /* sufficient= */ false, &against);

	name_missing(g->t, r);
	if (best && !against) {
		r->known = true;
		r->registration = best->says;
		r->gpu_memory = best->gpu;
		r->why = best->raw;
	} else if (best) {
		r->why = pp_arena_printf(g->t->arena, "%s says %s, %s says %s",
					 pp_surface_name(best->by), says(best),
					 pp_surface_name(against->by), says(against));
	} else if (host_by_exclusion(g, run, r)) {
		r->known = true;
		r->registration = PP_REGISTERED_HOST;
		r->why = "by exclusion: VmPin has all its process's regions, and no peer client "
			 "has one";
	} else if (!*r->why && r->called) {
		r->why = pp_arena_printf(g->t->arena,
					 "the program called %s(), and no witness of the kernel "
					 "that is read shows how it is registered",
					 r->called);
	} else if (!*r->why) {
		r->why = "no witness that is read shows how it is registered";
	}
}

/* A program that asks for a DMA-BUF names a descriptor; what asks for an address is no DMA-BUF. */
static void judge_call(const struct pp_judging *g, struct pp_region *r)
{
	bool asked = strstr(r->called, "dmabuf") != NULL;
	bool is = r->registration == PP_REGISTERED_DMABUF ||
		  r->registration == PP_REGISTERED_DATA_DIRECT;

	r->called_state = PP_UNPROVEN;
	if (!r->known || r->state != PP_PROVEN)
		return;
	r->called_state = asked == is ? PP_PROVEN : PP_REFUTED;
	if (r->called_state == PP_REFUTED)
		r->why = pp_arena_printf(g->t->arena,
					 "%s; the program called %s(): the kernel says otherwise",
					 r->why, r->called);
}

void pp_region_judge(const struct pp_judging *g, const struct pp_run *run, struct pp_region *r)
{
	const struct pp_sighting *against, *best;

	r->state = PP_UNPROVEN;
	if (r->simulated) {
		r->known = r->n_sightings > 0;
		r->registration = r->known ? r->sighting[0].says : PP_REGISTERED_HOST;
		r->gpu_memory = r->known && r->sighting[0].gpu;
		r->why = "simulated: of the software device's registry";
		return;
	}
	best = pick(r, /* sufficient= */ true, &against);
	if (best && against) {
		r->why = pp_arena_printf(g->t->arena, "witnesses disagree: %s says %s, %s says %s",
					 pp_surface_name(best->by), says(best),
					 pp_surface_name(against->by), says(against));
		name_missing(g->t, r);
	} else if (best) {
		decide(g, run, r, best);
	} else {
		guess(g, run, r);
	}
	if (r->called)
		judge_call(g, r);
}

static int index_buffers(struct pp_judging *g)
{
	const struct pp_buffers *b = g->in->buffers;

	if (!b || !b->n)
		return 0;
	g->by_inode = calloc(b->n, sizeof(*g->by_inode));
	if (!g->by_inode)
		return -ENOMEM;
	for (size_t i = 0; i < b->n; i++)
		if (b->item[i].inode)
			g->by_inode[g->n_inodes++] = &b->item[i];
	if (g->n_inodes)
		qsort(g->by_inode, g->n_inodes, sizeof(*g->by_inode), by_inode);
	return 0;
}

static void measure(const struct pp_trace_table *t, struct pp_run *run)
{
	for (size_t i = run->first; i < run->end; i++) {
		const struct pp_region *r = &t->region[i];
		bool peer = false;

		for (unsigned int k = 0; k < r->n_sightings; k++)
			peer |= r->sighting[k].says == PP_REGISTERED_PEERMEM;
		if (r->gone)
			continue;
		run->bytes += r->length;
		run->peer_bytes += peer ? r->length : 0;
	}
}

/* Rows of one process follow each other. */
static struct pp_run next_run(const struct pp_trace_table *t, size_t first)
{
	struct pp_run run = {.first = first, .end = first};

	while (run.end < t->n && t->region[run.end].pid == t->region[first].pid &&
	       t->region[run.end].simulated == t->region[first].simulated)
		run.end++;
	return run;
}

/* Rows of others were rivals of this process's; now they go. */
static void keep_only(struct pp_trace_table *t, pid_t pid)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		if (t->region[i].pid == pid)
			t->region[n++] = t->region[i];
	t->n = n;
	n = 0;
	for (size_t i = 0; i < t->n_processes; i++)
		if (t->process[i].pid == pid)
			t->process[n++] = t->process[i];
	t->n_processes = n;
}

int pp_trace_judge(const struct pp_trace_input *in, struct pp_trace_table *t)
{
	struct pp_judging g = {.in = in, .t = t};
	struct pp_run run = {0};
	size_t k = 0;

	if (index_buffers(&g))
		return -ENOMEM;
	for (size_t i = 0; i < t->n; i = run.end) {
		run = next_run(t, i);
		measure(t, &run);
		for (size_t at = run.first; at < run.end; at++)
			pp_region_judge(&g, &run, &t->region[at]);
	}
	g.unlisted = pp_unlisted(t);
	for (size_t i = 0; i < t->n; i = run.end) {
		run = next_run(t, i);
		pp_process_judge(&g, &run, &t->process[k++]);
	}
	if (k < t->n_processes)
		pp_process_judge(&g, &(struct pp_run){t->n, t->n, 0, 0}, &t->process[k]);
	if (in->only)
		keep_only(t, in->only);
	free(g.by_inode);
	return t->arena->failed ? -ENOMEM : 0;
}
