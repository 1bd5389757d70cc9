/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A look as text of 80 columns, or as one document.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "cli/trace_show.h"
#include "base/banned.h"

enum { TEXT_WIDTH = 80 };

const char *pp_trace_next(const struct pp_trace_table *t, unsigned int missing)
{
	/* The easiest way to a proof first. */
	static const enum pp_surface order[] = {
		PP_SURFACE_RESOURCES, PP_SURFACE_SELF_PROBE, PP_SURFACE_BTF,
		PP_SURFACE_BUFINFO,   PP_SURFACE_LIVE_PROBE, PP_SURFACE_PROCESSES,
		PP_SURFACE_PEERMEM,   PP_SURFACE_FDINFO,
	};
	const char *last = NULL;

	for (size_t i = 0; i < PP_ARRAY_LEN(order); i++) {
		enum pp_surface_state state = t->surface[order[i]].state;

		if (!(missing >> (unsigned int)order[i] & 1) || state == PP_SURFACE_READ)
			continue;
		if (state != PP_SURFACE_ABSENT)
			return pp_surface_how(order[i], state);
		if (!last)
			last = pp_surface_how(order[i], state);
	}
	return last;
}

const char *pp_trace_sentence(const struct pp_trace_table *t, char *buf, size_t size)
{
	const struct pp_surface_report *netlink = &t->surface[PP_SURFACE_RESOURCES];
	size_t proven = 0, unproven = 0, unknown = 0, refuted = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct pp_region *r = &t->region[i];

		refuted += r->called && r->called_state == PP_REFUTED;

		if (r->simulated)
			continue;
		proven += r->known && r->state == PP_PROVEN;
		unproven += r->known && r->state != PP_PROVEN;
		unknown += !r->known;
	}
	if (netlink->state == PP_SURFACE_ABSENT)
		(void)snprintf(buf, size, "no RDMA device: %s", netlink->why);
	else if (netlink->state != PP_SURFACE_READ && !proven && !unproven && !unknown)
		(void)snprintf(buf, size, "which regions there are is not known: %s%s%s",
			       pp_surface_state_name(netlink->state), *netlink->why ? ", " : "",
			       netlink->why);
	else if (refuted)
		(void)snprintf(buf, size,
			       "the kernel says otherwise than the program's library of %zu memory "
			       "regions; %zu proven, %zu not proven, %zu unknown",
			       refuted, proven, unproven, unknown);
	else if (!proven && !unproven && !unknown)
		(void)snprintf(buf, size, "no process has a memory region");
	else
		(void)snprintf(buf, size,
			       "memory regions: %zu proven, %zu not proven, %zu unknown%s", proven,
			       unproven, unknown,
			       netlink->state == PP_SURFACE_READ ? "" : "; the list is not whole");
	return buf;
}

static void by_text(const struct pp_region *r, char *buf, size_t size)
{
	size_t len = 0;
	unsigned int seen = 0;

	buf[0] = '\0';
	for (unsigned int i = 0; i < r->n_sightings && len < size; i++) {
		const struct pp_sighting *s = &r->sighting[i];

		if (s->says != r->registration || (seen >> (unsigned int)s->by & 1) ||
		    (r->state == PP_PROVEN && !s->sufficient))
			continue;
		seen |= 1U << (unsigned int)s->by;
		len += (size_t)snprintf(buf + len, size - len, "%s%s", len ? ", " : "",
					pp_surface_name(s->by));
	}
	if (r->exporter && *r->exporter && len < size)
		(void)snprintf(buf + len, size - len, "; %s", r->exporter);
}

/* Who says so; and for what is not proven why, and what would prove it. */
static void by_cell(struct pp_out *o, const struct pp_trace_table *t, const struct pp_region *r)
{
	const char *next = pp_trace_next(t, r->missing);
	char by[160];

	by_text(r, by, sizeof(by));
	if (r->simulated)
		pp_out_cell(o, "the software device");
	else if (r->called && r->called_state == PP_REFUTED)
		pp_out_cellf(o, "%s; refuted: the program called %s()", by, r->called);
	else if (r->known && r->state == PP_PROVEN)
		pp_out_cell(o, by);
	else
		pp_out_cellf(o, "%s%s%s%s%s", by, *by ? "; " : "", r->why, next ? "; next: " : "",
			     next ? next : "");
}

static void region_row(struct pp_out *o, const struct pp_trace_table *t, const struct pp_region *r)
{
	pp_out_cell(o, r->hca && *r->hca ? r->hca : NULL);
	if (r->has_mrn)
		pp_out_cellf(o, "%" PRIu32, r->mrn);
	else
		pp_out_cell(o, NULL);
	if (r->has_keys)
		pp_out_cellf(o, "0x%" PRIx32, r->lkey);
	else
		pp_out_cell(o, NULL);
	if (r->length)
		pp_out_cellf(o, "%" PRIu64, r->length);
	else
		pp_out_cell(o, r->resource && r->resource->has_length ? "0" : NULL);
	pp_out_cellf(o, "%s%s%s%s", r->known ? pp_registration_name(r->registration) : "unknown",
		     r->known && !r->simulated && r->state != PP_PROVEN ? "?" : "",
		     r->gpu_memory ? ", GPU" : "", r->gone ? " (gone)" : "");
	by_cell(o, t, r);
}

static void process_table(struct pp_out *o, const struct pp_trace_table *t,
			  const struct pp_trace_process *p)
{
	static const struct pp_out_column columns[] = {
		{NULL, "HCA", true},	{NULL, "MRN", false},	      {NULL, "LKEY", false},
		{NULL, "MRLEN", false}, {NULL, "REGISTRATION", true}, {NULL, "BY", true},
	};
	char title[96];
	size_t rows = 0;

	for (size_t i = 0; i < PP_ARRAY_LEN(p->count); i++)
		rows += p->count[i];
	if (p->pid)
		(void)snprintf(title, sizeof(title), "%s, process %d%s",
			       *p->comm ? p->comm : "unknown program", p->pid,
			       p->simulated ? " (simulated)" : "");
	else
		(void)snprintf(title, sizeof(title), "Of a process that is not known");
	pp_out_heading(o, title);
	if (rows + p->unknown)
		pp_out_table(o, NULL, columns, PP_ARRAY_LEN(columns));
	for (size_t i = 0; i < t->n; i++)
		if (t->region[i].pid == p->pid && t->region[i].simulated == p->simulated)
			region_row(o, t, &t->region[i]);
	if (rows + p->unknown)
		pp_out_table_end(o);
	pp_out_para(o, 0, "%s", p->why);
}

/* What was not read, where that leaves something open. */
static void surfaces_table(struct pp_out *o, const struct pp_trace_table *t, bool sampled)
{
	static const struct pp_out_column columns[] = {
		{NULL, "NOT READ", false},
		{NULL, "WHY", true},
		{NULL, "NEXT", true},
	};
	unsigned int wanted = 0, rows = 0;

	for (size_t i = 0; i < t->n_processes; i++)
		wanted |= t->process[i].missing;
	if (sampled)
		wanted |= 1U << PP_SURFACE_LIVE_PROBE;
	if (t->surface[PP_SURFACE_RESOURCES].state != PP_SURFACE_READ)
		wanted |= 1U << PP_SURFACE_RESOURCES;
	for (unsigned int i = 0; i < PP_SURFACES; i++) {
		const struct pp_surface_report *r = &t->surface[i];

		if (!(wanted >> i & 1) || r->state == PP_SURFACE_READ)
			continue;
		if (!rows++) {
			pp_out_heading(o, "What would show it");
			pp_out_table(o, NULL, columns, PP_ARRAY_LEN(columns));
		}
		pp_out_cell(o, pp_surface_name((enum pp_surface)i));
		pp_out_cellf(o, "%s%s%s", pp_surface_state_name(r->state), *r->why ? ": " : "",
			     r->why);
		pp_out_cell(o, pp_surface_how((enum pp_surface)i, r->state));
	}
	if (rows)
		pp_out_table_end(o);
}

static void command_line(struct pp_out *o, const struct pp_tracing *t)
{
	char text[64];

	if (!t->command)
		return;
	if (pp_out_is_json(o)) {
		struct pp_json *j = pp_out_json(o);

		pp_json_object(j, "command");
		pp_json_array(j, "argv");
		for (size_t i = 0; i < pp_args_operands(t->args); i++)
			pp_json_str(j, NULL, pp_args_operand(t->args, i));
		pp_json_end_array(j);
		if (t->ended && WIFEXITED(t->status))
			pp_json_i64(j, "exit_status", WEXITSTATUS(t->status));
		else
			pp_json_null(j, "exit_status");
		if (t->ended && WIFSIGNALED(t->status))
			pp_json_i64(j, "signal", WTERMSIG(t->status));
		pp_json_end_object(j);
		return;
	}
	if (!t->ended)
		(void)snprintf(text, sizeof(text), "is still running");
	else if (WIFSIGNALED(t->status))
		(void)snprintf(text, sizeof(text), "ended by signal %d", WTERMSIG(t->status));
	else
		(void)snprintf(text, sizeof(text), "exit status %d", WEXITSTATUS(t->status));
	pp_out_str(o, NULL, pp_args_operand(t->args, 0), text);
}

static void show_text(struct pp_tracing *t, struct pp_out *o)
{
	const struct pp_trace_table *table = &t->look.table;

	for (size_t i = 0; i < table->n_processes; i++)
		process_table(o, table, &table->process[i]);
	pp_trace_buffers_show(o, t);
	if (t->traffic)
		pp_trace_traffic_show(o, t->traffic);
	pp_trace_logs_show(o, &t->logs);
	surfaces_table(o, table, t->sampled);
	if (table->kernel)
		pp_out_para(o, 0, "Kernel modules' own regions, which are not listed: %zu.",
			    table->kernel);
	if (t->pid && table->unowned)
		pp_out_para(o, 0, "Regions without a known owner, which may be its: %zu.",
			    table->unowned);
	if (t->soft.silent)
		pp_out_para(o, 0, "Processes on the software device that do not answer: %u (%s).",
			    t->soft.silent, t->soft.why);
}

static void show_json(struct pp_tracing *t, struct pp_json *j)
{
	const struct pp_trace_table *table = &t->look.table;

	pp_json_u64(j, "kernel_regions", table->kernel);
	pp_json_u64(j, "regions_without_owner", table->unowned);
	pp_trace_write(j, "evidence", table);
	pp_trace_buffers_write(j, "dma_bufs", t);
	if (t->traffic)
		pp_traffic_write(j, "traffic", t->traffic);
	pp_trace_logs_write(j, "logs", &t->logs);
	pp_trace_write_surfaces(j, "surfaces", table);
}

void pp_tracing_show(struct pp_tracing *t)
{
	struct pp_out *o = t->session.out;
	char why[320];

	pp_out_limit_width(o, TEXT_WIDTH);
	pp_out_document(o, "peerpath.trace/1");
	pp_out_str(o, "source", NULL, pp_source_name(t->session.src));
	if (t->pid)
		pp_out_i64(o, "pid", NULL, t->pid);
	command_line(o, t);
	pp_out_verdict(o, "verdict", "Registrations", pp_tracing_judge(t));
	pp_out_str(o, "why", "Why", pp_trace_sentence(&t->look.table, why, sizeof(why)));
	if (pp_out_is_json(o))
		show_json(t, pp_out_json(o));
	else
		show_text(t, o);
}
