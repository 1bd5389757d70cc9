/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/evidence.h"

#include <errno.h>
#include <stdio.h>

#include "trace/surface_report.h"
#include "base/banned.h"

static const pp_ns DEADLINE = 10 * PP_SECOND;

static bool is_one(pid_t pid, const pid_t *of, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (of[i] == pid)
			return true;
	return false;
}

static bool has_row(const struct pp_trace_table *t, pid_t pid)
{
	for (size_t i = 0; i < t->n_processes; i++)
		if (t->process[i].pid == pid)
			return true;
	return false;
}

static void keep_rows(struct pp_trace_table *t, const pid_t *pid, size_t n_pids,
		      size_t *ret_left_out)
{
	size_t n = 0, left_out = 0;

	for (size_t i = 0; i < t->n; i++) {
		if (!t->region[i].pid || !is_one(t->region[i].pid, pid, n_pids))
			continue;
		if (n == PP_EVIDENCE_REGIONS)
			left_out++;
		else
			t->region[n++] = t->region[i];
	}
	t->n = n;
	n = 0;
	for (size_t i = 0; i < t->n_processes; i++)
		if (t->process[i].pid && is_one(t->process[i].pid, pid, n_pids))
			t->process[n++] = t->process[i];
	t->n_processes = n;
	*ret_left_out = left_out;
}

/* Nothing seen is no absence: the row says what it is that shows nothing. */
static struct pp_trace_process row_of(struct pp_trace_table *t, pid_t pid, bool software)
{
	struct pp_trace_process p = {.pid = pid,
				     .comm = "",
				     .mix = PP_MIX_UNKNOWN,
				     .state = PP_UNPROVEN,
				     .simulated = software};
	enum pp_surface of = software ? PP_SURFACE_SOFTWARE : PP_SURFACE_RESOURCES;
	bool whole = t->surface[of].state == PP_SURFACE_READ;

	if (!whole)
		p.missing = 1U << (unsigned int)of;
	if (software)
		p.why = "The software device's registry shows no region of it.";
	else if (!whole)
		p.why = "What it registers is not known.";
	else if (t->unowned)
		p.why = pp_arena_printf(t->arena,
					"The kernel lists no region of it, and %zu of which the "
					"owner is not known.",
					t->unowned);
	else
		p.why = "Registers nothing that the kernel lists.";
	return p;
}

int pp_evidence_keep(struct pp_trace_table *t, const pid_t *pid, size_t n_pids, bool software,
		     size_t *ret_left_out)
{
	struct pp_trace_process *all;
	size_t left_out;

	keep_rows(t, pid, n_pids, &left_out);
	all = pp_arena_array(t->arena, t->n_processes + n_pids + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < t->n_processes; i++)
		all[i] = t->process[i];
	t->process = all;
	for (size_t i = 0; i < n_pids; i++)
		if (!has_row(t, pid[i]))
			all[t->n_processes++] = row_of(t, pid[i], software);
	*ret_left_out = left_out;
	return t->arena->failed ? -ENOMEM : 0;
}

/* Not where another has to say why there are none: that is the caller's prober's part. */
static void open_prober(struct pp_source *s, struct pp_prober **ret, struct pp_surface_report *why)
{
	const struct pp_prober_options options = {.self = true};
	struct pp_error err = {0};
	unsigned int swept;
	int r;

	*ret = NULL;
	if (pp_source_mode(s) != PP_SOURCE_LIVE || !pp_source_exists(s, "/sys/class/infiniband"))
		return;
	/* What a killed one has left. */
	(void)pp_prober_sweep(&swept, &err);
	err = (struct pp_error){0};
	r = pp_prober_open(&options, ret, &err);
	if (!r)
		return;
	*ret = NULL;
	why->state = r == -EPERM || r == -EACCES ? PP_SURFACE_REFUSED : PP_SURFACE_ABSENT;
	(void)snprintf(why->why, sizeof(why->why), "%.190s",
		       *err.text ? err.text : pp_errno_name(r));
}

static void report_registry(const struct pp_trace_registry *g, struct pp_surface_report *ret)
{
	ret->state = PP_SURFACE_READ;
	if (g->silent)
		pp_surface_cut(ret, "%u processes did not answer: %s", g->silent, g->why);
}

static int look(struct pp_source *s, const struct pp_evidence_options *o, struct pp_trace *ret)
{
	struct pp_surface_report no_prober = {.state = PP_SURFACE_UNASKED};
	struct pp_prober *own = NULL;
	struct pp_trace_options options = {
		.only_software = o->registry != NULL,
		.prober = o->prober,
		.software = o->registry ? o->registry->item : NULL,
		.n_software = o->registry ? o->registry->n : 0,
	};
	struct pp_error err = {0};
	int r;

	if (o->probe && !o->prober && !o->registry) {
		open_prober(s, &own, &no_prober);
		options.prober = own;
	}
	options.no_prober = *no_prober.why ? &no_prober : NULL;
	r = pp_trace_look(s, &options, ret);
	if (own && pp_prober_close(own, &err) && !r)
		pp_surface_set(&ret->table.surface[PP_SURFACE_SELF_PROBE], PP_SURFACE_CUT,
			       "probes are left in the kernel: %.150s", err.text);
	if (!r && o->registry)
		report_registry(o->registry, &ret->table.surface[PP_SURFACE_SOFTWARE]);
	return r;
}

int pp_evidence_look(struct pp_source *s, const struct pp_evidence_options *options,
		     struct pp_evidence *ret)
{
	size_t n = options->n_pids < PP_EVIDENCE_PIDS ? options->n_pids : PP_EVIDENCE_PIDS;
	struct pp_evidence e = {.at = pp_clock_wall()};
	pp_ns began = pp_clock_monotonic(), end = pp_source_deadline(s);
	int r;

	pp_source_set_deadline(s, began + (options->deadline ? options->deadline : DEADLINE));
	r = look(s, options, &e.look);
	pp_source_set_deadline(s, end);
	if (r)
		return r;
	r = pp_evidence_keep(&e.look.table, options->pid, n, options->registry != NULL,
			     &e.left_out);
	if (r) {
		pp_trace_done(&e.look);
		return r;
	}
	e.took = pp_clock_monotonic() - began;
	*ret = e;
	return 0;
}

void pp_evidence_done(struct pp_evidence *e)
{
	pp_trace_done(&e->look);
	*e = (struct pp_evidence){0};
}

void pp_evidence_write(struct pp_json *j, const struct pp_evidence *e)
{
	char time[32];

	pp_trace_write(j, "evidence", &e->look.table);
	pp_trace_write_surfaces(j, "surfaces", &e->look.table);
	pp_json_u64(j, "left_out", e->left_out);
	pp_json_str(j, "looked", pp_clock_format(e->at, time, sizeof(time)));
	pp_json_i64(j, "took_ns", e->took);
}
