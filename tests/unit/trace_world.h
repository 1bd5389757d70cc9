/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine as its collectors would tell it, made by hand: each list may be changed, cut or taken
 * away before it is joined and judged.
 */
#ifndef PP_TESTS_TRACE_WORLD_H
#define PP_TESTS_TRACE_WORLD_H

#include "unit.h"

#include "trace/verdict.h"

enum { WORLD_MANY = 32 };

struct world {
	struct pp_resource_device device[4];
	struct pp_resource resource[WORLD_MANY];
	struct pp_process process[4];
	struct pp_process_buffer fd[4][WORLD_MANY];
	pid_t thread[4][WORLD_MANY];
	struct pp_buffer buffer[WORLD_MANY];
	char attached[WORLD_MANY][48];
	struct pp_event event[WORLD_MANY];
	struct pp_trace_hca hca[4];
	struct pp_resources resources;
	struct pp_processes processes;
	struct pp_buffers buffers;
	struct pp_peermem peermem;
	struct pp_events events;
	struct pp_trace_input in;
	struct pp_trace_table t;
	bool judged;
};

static inline void world_done(struct world *w)
{
	if (w->judged)
		pp_trace_table_done(&w->t);
	w->judged = false;
}

/* @w is zero, or was one before. */
static inline void world_init(struct world *w)
{
	world_done(w);
	memset(w, 0, sizeof(*w));
	w->resources = (struct pp_resources){.device = w->device, .item = w->resource};
	w->resources.resources.state = w->resources.keys.state = PP_SURFACE_READ;
	w->processes = (struct pp_processes){.item = w->process, .host_pid_ns = true};
	w->processes.processes.state = w->processes.fdinfo.state = PP_SURFACE_READ;
	w->buffers = (struct pp_buffers){.item = w->buffer, .attached = w->attached};
	w->buffers.report.state = PP_SURFACE_READ;
	w->peermem = (struct pp_peermem){.references = -1};
	w->peermem.report.state = PP_SURFACE_ABSENT;
	w->events = (struct pp_events){.item = w->event};
	w->in = (struct pp_trace_input){.resources = &w->resources,
					.processes = &w->processes,
					.buffers = &w->buffers,
					.peermem = &w->peermem,
					.events = &w->events,
					.hca = w->hca};
}

static inline void world_hca(struct world *w, const char *name, const char *bdf, const char *driver)
{
	size_t n = w->in.n_hcas++;

	w->hca[n] = (struct pp_trace_hca){.name = name,
					  .bdf = bdf,
					  .driver = driver,
					  .data_direct = "",
					  .parent = "",
					  .uverbs = ""};
	w->device[n].index = (uint32_t)n;
	(void)snprintf(w->device[n].name, sizeof(w->device[n].name), "%s", name);
	w->resources.n_devices++;
}

/* A process, its only thread, and its context, domain and that domain's number on hca 0. */
static inline struct pp_process *world_process(struct world *w, pid_t pid, int64_t pinned_kb)
{
	size_t n = w->processes.n++;
	struct pp_process *p = &w->process[n];

	*p = (struct pp_process){.pid = pid,
				 .started = 1000 + (uint64_t)pid,
				 .pinned_kb = pinned_kb,
				 .descriptors_read = true,
				 .buffer = w->fd[n],
				 .thread = w->thread[n]};
	(void)snprintf(p->comm, sizeof(p->comm), "job%d", pid);
	w->thread[n][p->n_threads++] = pid;
	return p;
}

static inline struct pp_resource *world_add(struct world *w, const struct pp_resource *r)
{
	struct pp_resource *at;
	size_t i = w->resources.n++;

	/* by device, kind, id, as netlink's reader gives them */
	for (; i && (w->resource[i - 1].device > r->device ||
		     (w->resource[i - 1].device == r->device &&
		      (w->resource[i - 1].kind > r->kind ||
		       (w->resource[i - 1].kind == r->kind && w->resource[i - 1].id > r->id))));
	     i--)
		w->resource[i] = w->resource[i - 1];
	at = &w->resource[i];
	*at = *r;
	return at;
}

static inline struct pp_resource *world_mr(struct world *w, uint32_t mrn, pid_t tid,
					   uint64_t length)
{
	const struct pp_resource r = {.kind = PP_RESOURCE_MR,
				      .id = mrn,
				      .tid = (uint32_t)tid,
				      .has_length = true,
				      .length = length,
				      .has_keys = true,
				      .lkey = 0x1000 + mrn,
				      .rkey = 0x1000 + mrn,
				      .has_parent = true,
				      .parent = 1};

	return world_add(w, &r);
}

static inline struct pp_buffer *world_buffer(struct world *w, const char *exporter, uint64_t inode,
					     uint64_t size, const char *device, unsigned int times)
{
	struct pp_buffer *b = &w->buffer[w->buffers.n++];

	*b = (struct pp_buffer){
		.size = size, .inode = inode, .count = 1, .first = (uint32_t)w->buffers.n_attached};
	(void)snprintf(b->exporter, sizeof(b->exporter), "%s", exporter);
	for (unsigned int i = 0; i < times; i++, b->n_attached++)
		(void)snprintf(w->attached[w->buffers.n_attached++], 48, "%s", device);
	return b;
}

static inline struct pp_event *world_event(struct world *w, enum pp_event_kind kind, pid_t pid,
					   const char *symbol)
{
	struct pp_event *e = &w->event[w->events.n];

	*e = (struct pp_event){.kind = kind,
			       .by = kind == PP_EVENT_REGION	 ? PP_SURFACE_SELF_PROBE
				     : kind == PP_EVENT_REGISTER ? PP_SURFACE_LIBRARY
								 : PP_SURFACE_LIVE_PROBE,
			       .at = 1000 + (pp_ns)w->events.n,
			       .tid = pid,
			       .pid = pid,
			       .has_result = kind != PP_EVENT_REGISTER,
			       .fd = INT64_MIN};
	w->events.n++;
	w->events.report[e->by].state = PP_SURFACE_READ;
	(void)snprintf(e->symbol, sizeof(e->symbol), "%s", symbol);
	(void)snprintf(e->comm, sizeof(e->comm), "job%d", pid);
	return e;
}

static inline void event_buffer(struct pp_event *e, const char *exporter, const char *device,
				uint64_t inode, uint64_t size)
{
	(void)snprintf(e->exporter, sizeof(e->exporter), "%s", exporter);
	(void)snprintf(e->device, sizeof(e->device), "%s", device);
	e->inode = inode;
	e->size = size;
}

static inline struct pp_event *world_region(struct world *w, pid_t pid, const char *hca,
					    uint32_t mrn, enum pp_tristate dmabuf,
					    enum pp_tristate peer)
{
	struct pp_event *e = world_event(w, PP_EVENT_REGION, pid, "fill_res_mr_entry");

	(void)snprintf(e->hca, sizeof(e->hca), "%s", hca);
	e->mrn = mrn;
	e->has_mrn = true;
	e->object = 0xffff888000000000ULL + mrn * 256;
	e->has_umem = PP_YES;
	e->is_dmabuf = dmabuf;
	e->is_peer = peer;
	return e;
}

static inline struct pp_event *world_added(struct world *w, enum pp_event_kind kind, pid_t pid,
					   const char *hca, uint32_t mrn)
{
	struct pp_event *e = world_event(w, kind, pid, "rdma_restrack_add");

	(void)snprintf(e->hca, sizeof(e->hca), "%s", hca);
	e->mrn = mrn;
	e->has_mrn = true;
	e->object = 0xffff888000000000ULL + mrn * 256;
	return e;
}

static inline void world_judge(struct world *w)
{
	world_done(w);
	assert_int_equal(pp_trace_join(&w->in, &w->t), 0);
	w->judged = true;
	assert_int_equal(pp_trace_judge(&w->in, &w->t), 0);
}

static inline const struct pp_region *world_row(const struct world *w, uint32_t mrn)
{
	static const struct pp_region none;

	for (size_t i = 0; i < w->t.n; i++)
		if (w->t.region[i].has_mrn && w->t.region[i].mrn == mrn)
			return &w->t.region[i];
	fail_msg("region %u has no row", mrn);
	return &none;
}

static inline int world_setup(void **state)
{
	*state = calloc(1, sizeof(struct world));
	return *state ? 0 : -1;
}

static inline int world_teardown(void **state)
{
	world_done(*state);
	free(*state);
	return 0;
}

#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

#endif
