/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of asking matters: regions first, then who owns them, then buffers and peers. A region
 * that goes in between loses a witness; none wins one.
 */
#include "trace/trace.h"

#include <errno.h>

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
	int r = pp_trace_hcas_read(s, &t->hcas);

	if (!r)
		r = resources(s, t);
	if (!r)
		r = processes(s, o->pid, t);
	if (!r)
		r = buffers(s, t);
	if (r)
		return r;
	pp_peermem_read(s, &t->peermem);
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
	*t = (struct pp_trace){0};
}
