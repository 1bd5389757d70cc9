/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of asking matters: regions first, then who owns them, then buffers and peers. A region
 * that goes in between loses a witness; none wins one.
 */
#include "trace/trace.h"

#include <errno.h>

#include "trace/efa.h"
#include "base/banned.h"

static int resources(struct pp_source *s, struct pp_trace *t)
{
	struct pp_answer a;
	int r = pp_resources_ask(s, &a);

	if (r)
		return r;
	r = pp_resources_read(&a, &t->resources);
	pp_answer_done(&a);
	return r;
}

static int never(struct pp_json *data, const void *arg, struct pp_error *err)
{
	(void)data;
	(void)arg;
	return pp_error_set(err, -ENODATA, "not recorded");
}

/* B, whose dump is the list of regions, too; *ret_done false: the dump has to be made plainly. */
static int probe(struct pp_source *s, struct pp_prober *p, struct pp_trace *t, bool *ret_done)
{
	struct pp_error err = {0};
	struct pp_answer a;
	int r = pp_prober_self(p, s, &t->resources, &err);

	if (r == -ENOMEM)
		return r;
	*ret_done = !r;
	r = pp_prober_answer(p, s, &a);
	if (r)
		return r == -ENOMEM ? r : 0;
	r = pp_events_read(&a, &t->events);
	pp_answer_done(&a);
	return r;
}

static int recorded_events(struct pp_source *s, struct pp_trace *t)
{
	const struct pp_question q = {.name = "trace-events", .run = never};
	struct pp_answer a;
	int r = pp_ask(s, &q, &a);

	if (r)
		return r;
	r = pp_events_read(&a, &t->events);
	pp_answer_done(&a);
	return r;
}

static int events(struct pp_source *s, const struct pp_trace_options *o, struct pp_trace *t,
		  bool *ret_listed)
{
	static const enum pp_surface of_probes[] = {PP_SURFACE_SELF_PROBE, PP_SURFACE_LIVE_PROBE};

	*ret_listed = false;
	if (pp_source_mode(s) == PP_SOURCE_REPLAY)
		return recorded_events(s, t);
	if (o->prober)
		return probe(s, o->prober, t, ret_listed);
	for (size_t i = 0; o->no_prober && i < PP_ARRAY_LEN(of_probes); i++)
		t->events.report[of_probes[i]] = *o->no_prober;
	return 0;
}

static int processes(struct pp_source *s, pid_t pid, struct pp_trace *t)
{
	struct pp_answer a;
	int r = pp_processes_ask(s, &t->resources, pid, &a);

	if (r)
		return r;
	r = pp_processes_read(&a, &t->processes);
	pp_answer_done(&a);
	return r;
}

static int buffers(struct pp_source *s, struct pp_trace *t)
{
	struct pp_answer a;
	int r = pp_buffers_ask(s, &a);

	if (r)
		return r;
	r = pp_buffers_read(&a, &t->buffers);
	pp_answer_done(&a);
	return r;
}

static int ask_kernel(struct pp_source *s, const struct pp_trace_options *o, struct pp_trace *t)
{
	bool listed = false;
	int r = pp_trace_hcas_read(s, &t->hcas);

	if (!r)
		r = events(s, o, t, &listed);
	if (!r && !listed)
		r = resources(s, t);
	if (!r)
		r = processes(s, o->pid, t);
	if (!r)
		r = buffers(s, t);
	if (!r)
		pp_peermem_read(s, &t->peermem);
	if (!r)
		r = pp_efa_ask(s, &t->hcas, &t->efa_logged, &t->why_efa);
	return r;
}

static int look(struct pp_source *s, const struct pp_trace_options *o, struct pp_trace *t)
{
	struct pp_trace_input in = {
		.resources = &t->resources,
		.processes = &t->processes,
		.buffers = &t->buffers,
		.peermem = &t->peermem,
		.events = &t->events,
		.software = o->software,
		.n_software = o->n_software,
		.only = o->pid,
	};
	int r = o->only_software ? 0 : ask_kernel(s, o, t);

	if (r)
		return r;
	in.efa_logged = t->efa_logged;
	in.why_efa = t->why_efa;
	in.hca = t->hcas.item;
	in.n_hcas = t->hcas.n;
	r = pp_trace_join(&in, &t->table);
	return r ? r : pp_trace_judge(&in, &t->table);
}

int pp_trace_look(struct pp_source *s, const struct pp_trace_options *options, struct pp_trace *ret)
{
	struct pp_trace t = {.peermem = {.references = -1}};
	int r = look(s, options, &t);

	if (r) {
		pp_trace_done(&t);
		return r;
	}
	*ret = t;
	return 0;
}

void pp_trace_done(struct pp_trace *t)
{
	pp_trace_table_done(&t->table);
	pp_trace_hcas_done(&t->hcas);
	pp_resources_done(&t->resources);
	pp_processes_done(&t->processes);
	pp_buffers_done(&t->buffers);
	pp_events_done(&t->events);
	*t = (struct pp_trace){0};
}
