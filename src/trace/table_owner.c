/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Netlink names threads, and none when that thread has ended: then the region's domain's, then the
 * domain's context's thread stands for it, then whoever alone holds the hca's uverbs device.
 */
#include <stdlib.h>
#include <string.h>

#include "trace/table_parts.h"
#include "base/banned.h"

static int by_tid(const void *a, const void *b)
{
	const struct pp_join_thread *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

int pp_join_threads(struct pp_join *j)
{
	const struct pp_processes *p = j->in->processes;
	size_t n = 0;

	for (size_t i = 0; p && i < p->n; i++)
		n += p->item[i].n_threads + 1;
	j->thread = pp_arena_array(j->t->arena, n, sizeof(*j->thread));
	if (n && !j->thread)
		return -1;
	for (size_t i = 0; p && i < p->n; i++) {
		const struct pp_process *of = &p->item[i];

		j->thread[j->n_threads++] = (struct pp_join_thread){(uint32_t)of->pid, of};
		for (size_t k = 0; k < of->n_threads; k++)
			j->thread[j->n_threads++] =
				(struct pp_join_thread){(uint32_t)of->thread[k], of};
	}
	if (n)
		qsort(j->thread, j->n_threads, sizeof(*j->thread), by_tid);
	return 0;
}

static const struct pp_process *process_of(const struct pp_join *j, uint32_t tid)
{
	const struct pp_join_thread key = {.tid = tid}, *found;

	if (!tid || !j->n_threads)
		return NULL;
	found = bsearch(&key, j->thread, j->n_threads, sizeof(key), by_tid);
	return found ? found->process : NULL;
}

static void give(struct pp_region *r, const struct pp_process *p)
{
	r->process = p;
	r->pid = p->pid;
	r->comm = p->comm;
	r->why_process = "";
}

void pp_join_own_pid(struct pp_join *j, struct pp_region *r, pid_t pid)
{
	const struct pp_process *p = j->same_pids ? process_of(j, (uint32_t)pid) : NULL;

	if (p)
		give(r, p);
	else
		r->pid = j->same_pids || !j->in->processes ? pid : 0;
}

/* The one process with the hca's device open, if every process could be looked at. */
static const struct pp_process *only_holder(const struct pp_join *j, const struct pp_trace_hca *h)
{
	const struct pp_processes *p = j->in->processes;
	const struct pp_process *only = NULL;

	if (!p || p->processes.state != PP_SURFACE_READ || p->unreadable || !p->host_pid_ns || !h ||
	    !*h->uverbs)
		return NULL;
	for (size_t i = 0; i < p->n; i++)
		for (unsigned int k = 0; k < p->item[i].n_uverbs; k++) {
			if (strcmp(p->item[i].uverbs[k], h->uverbs) != 0)
				continue;
			if (only)
				return NULL;
			only = &p->item[i];
		}
	return only;
}

/* Rows of one hca follow each other. */
static const struct pp_process *holder(struct pp_join *j, const struct pp_trace_hca *h)
{
	if (!j->holder_asked || j->holder_of != h) {
		j->holder = only_holder(j, h);
		j->holder_of = h;
		j->holder_asked = true;
	}
	return j->holder;
}

void pp_join_own(struct pp_join *j, struct pp_region *r)
{
	static const enum pp_resource_kind above[] = {PP_RESOURCE_PD, PP_RESOURCE_CTX};
	const struct pp_resource *at = r->resource;
	const struct pp_process *p = NULL;
	bool named = false;

	r->tid = (pid_t)at->tid;
	for (size_t i = 0; at; i++) {
		named |= at->tid != 0;
		p = process_of(j, at->tid);
		if (p || i == PP_ARRAY_LEN(above) || !at->has_parent)
			break;
		at = pp_resource_find(j->in->resources, r->resource->device, above[i], at->parent);
	}
	if (!p)
		p = holder(j, r->of);
	if (p)
		give(r, p);
	else if (!j->in->processes || j->in->processes->processes.state == PP_SURFACE_REFUSED ||
		 j->in->processes->processes.state == PP_SURFACE_UNASKED)
		r->why_process = "/proc was not read";
	else if (!j->in->processes->host_pid_ns)
		r->why_process = "its process is outside of this PID namespace, or its threads "
				 "have ended";
	else
		r->why_process = named ? "the threads that netlink names have ended"
				       : "netlink names no thread that lives";
}
