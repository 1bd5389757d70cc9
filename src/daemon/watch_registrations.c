/* SPDX-License-Identifier: Apache-2.0 */
/*
 * By which path each process registered GPU memory, as the kernel shows it without probes: RDMA
 * netlink, descriptors of dma-bufs, bufinfo, nvidia_peermem's counters.
 *
 * A process is its id and its start: another one with the same id has no past. One that has no
 * GPU memory registered is told too, as long as it holds an hca: a job that stages through host
 * memory is what this kind is for.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/watch.h"
#include "trace/trace.h"
#include "base/banned.h"

enum { PROCESSES = 1024, VALUE = 160 };

static const enum pp_registration gpu_ways[] = {PP_REGISTERED_DMABUF, PP_REGISTERED_PEERMEM,
						PP_REGISTERED_DATA_DIRECT, PP_REGISTERED_EFA_P2P};

/* "dmabuf", "mixed: dmabuf, peermem", "host-staged", "host-only"; counts would change for ever. */
static void words(const struct pp_trace_process *p, char ret[VALUE])
{
	size_t at = 0;
	bool first = true;

	if (p->mix == PP_MIX_ONE) {
		(void)snprintf(ret, VALUE, "%s", pp_registration_name(p->gpu_by));
		return;
	}
	if (p->mix == PP_MIX_NONE) {
		(void)snprintf(ret, VALUE, "%s", p->host_staged ? "host-staged" : "host-only");
		return;
	}
	at = (size_t)snprintf(ret, VALUE, "mixed:");
	for (size_t i = 0; i < PP_ARRAY_LEN(gpu_ways) && at < VALUE; i++) {
		if (!p->count[gpu_ways[i]])
			continue;
		at += (size_t)snprintf(ret + at, VALUE - at, "%s %s", first ? "" : ",",
				       pp_registration_name(gpu_ways[i]));
		first = false;
	}
}

static int tell(const struct pp_trace_process *p, struct pp_looks *into)
{
	char object[96], value[VALUE], raw[256];

	(void)snprintf(object, sizeof(object), "pid %d started %llu", (int)p->pid,
		       (unsigned long long)(p->process ? p->process->started : 0));
	(void)snprintf(raw, sizeof(raw),
		       "%s: dmabuf %u, peermem %u, data-direct %u, efa-p2p %u, host %u, unknown %u",
		       p->comm ? p->comm : "", p->count[PP_REGISTERED_DMABUF],
		       p->count[PP_REGISTERED_PEERMEM], p->count[PP_REGISTERED_DATA_DIRECT],
		       p->count[PP_REGISTERED_EFA_P2P], p->count[PP_REGISTERED_HOST], p->unknown);
	if (p->mix == PP_MIX_UNKNOWN)
		return pp_look_unknown(into, PP_SIGNAL_REGISTRATION, object, "%s",
				       p->why && *p->why ? p->why : "not known");
	words(p, value);
	return pp_look_state(into, PP_SIGNAL_REGISTRATION, object, raw, "%s", value);
}

/* Without an RDMA device nothing can be registered with one, and nobody has to be looked at. */
static int any_device(struct pp_source *s, bool *ret)
{
	struct pp_trace_hcas hcas;
	int r = pp_trace_hcas_read(s, &hcas);

	if (r)
		return r;
	*ret = hcas.n > 0;
	pp_trace_hcas_done(&hcas);
	return 0;
}

static int look_now(struct pp_watch_context *at, struct pp_looks *into)
{
	const struct pp_trace_options options = {.pid = 0};
	struct pp_surface_report *resources;
	struct pp_trace t;
	int r = pp_trace_look(at->source, &options, &t);

	if (r)
		return r;
	resources = &t.table.surface[PP_SURFACE_RESOURCES];
	if (resources->state != PP_SURFACE_READ && resources->state != PP_SURFACE_CUT)
		r = pp_look_unknown(into, PP_SIGNAL_REGISTRATION, "node", "%s",
				    *resources->why ? resources->why : "not seen");
	for (size_t i = 0; !r && i < t.table.n_processes && i < PROCESSES; i++)
		if (t.table.process[i].pid)
			r = tell(&t.table.process[i], into);
	pp_trace_done(&t);
	return r;
}

static int look(struct pp_watch_context *at, void **state, struct pp_looks *into,
		struct pp_error *err)
{
	bool any = false;
	int r = any_device(at->source, &any);

	(void)state;
	if (!r && any)
		r = look_now(at, into);
	return r ? pp_error_set(err, r, "watching registrations: %s", pp_source_why(r)) : 0;
}

const struct pp_watcher pp_watch_registrations = {
	.name = "registrations", .period_ms = 300000, .look = look};
