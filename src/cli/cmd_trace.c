/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerpath trace: who registered what memory, by which path, from the kernel.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "cli/interrupt.h"
#include "cli/trace_show.h"
#include "base/banned.h"

enum { PID_MOST = 1 << 22 }; /* PID_MAX_LIMIT of the kernel's threads.h */
static const pp_ns PERIOD = PP_SECOND, PERIOD_LEAST = 100 * PP_MILLISECOND;

void pp_tracing_probe(struct pp_tracing *t, bool live)
{
	const struct pp_prober_options options = {
		.self = true,
		.live = live,
		.pid = live ? getpid() : 0,
		.library = live && *t->library ? t->library : NULL,
	};
	struct pp_error err = {0};
	unsigned int swept;
	int r;

	if (pp_source_mode(t->session.src) != PP_SOURCE_LIVE ||
	    !pp_source_exists(t->session.src, "/sys/class/infiniband"))
		return;
	if (pp_args_has(t->args, "no-probes")) {
		(void)snprintf(t->no_prober.why, sizeof(t->no_prober.why), "--no-probes");
		return;
	}
	/* What a killed one has left. */
	(void)pp_prober_sweep(&swept, &err);
	err = (struct pp_error){0};
	r = pp_prober_open(&options, &t->prober, &err);
	if (!r)
		return;
	t->no_prober.state = r == -EPERM || r == -EACCES ? PP_SURFACE_REFUSED : PP_SURFACE_ABSENT;
	(void)snprintf(t->no_prober.why, sizeof(t->no_prober.why), "%.190s",
		       *err.text ? err.text : pp_errno_name(r));
}

void pp_tracing_unprobe(struct pp_tracing *t)
{
	struct pp_error err = {0};

	if (t->prober && pp_prober_close(t->prober, &err))
		(void)pp_complain(t->args, 0, "probes are left in the kernel: %s", err.text);
	t->prober = NULL;
}

int pp_tracing_look(struct pp_tracing *t)
{
	struct pp_trace_options options = {
		.pid = t->pid,
		.prober = t->prober,
		.no_prober = *t->no_prober.why ? &t->no_prober : NULL,
	};
	bool live = pp_source_mode(t->session.src) == PP_SOURCE_LIVE;
	int r;

	if (t->looked)
		pp_trace_done(&t->look);
	t->looked = false;
	pp_trace_soft_done(&t->soft);
	r = live ? pp_trace_soft_ask(&t->soft) : 0;
	options.software = t->soft.item;
	options.n_software = t->soft.n;
	if (!r)
		r = pp_trace_look(t->session.src, &options, &t->look);
	if (r)
		return pp_complain(t->args, PP_EXIT_INTERNAL, "out of memory");
	t->looked = true;
	return 0;
}

enum pp_verdict pp_tracing_judge(const struct pp_tracing *t)
{
	if (pp_trace_logs_refuted(&t->logs))
		return PP_FAIL;
	/* A region of its may be among those without an owner; or have lived between two looks. */
	if ((t->pid && t->look.table.unowned) || t->sampled)
		return PP_UNKNOWN;
	return pp_trace_verdict(&t->look.table);
}

int pp_tracing_verdict(const struct pp_tracing *t)
{
	return pp_exit_of(t->args, pp_tracing_judge(t));
}

/* Options that exclude each other, and numbers. */
static int check(struct pp_tracing *t)
{
	static const char *const pairs[][2] = {
		{"watch", "log"}, {"watch", "replay"}, {"watch", "root"}, {"watch", "traffic"}};
	const char *pid = pp_args_get(t->args, "pid"), *watch = pp_args_get(t->args, "watch");
	static const char *const live[] = {"pid", "watch", "root", "replay", "traffic"};
	uint64_t n = 0;

	for (size_t i = 0; i < PP_ARRAY_LEN(pairs); i++)
		if (pp_args_has(t->args, pairs[i][0]) && pp_args_has(t->args, pairs[i][1]))
			return pp_complain(t->args, PP_EXIT_USAGE, "--%s excludes --%s",
					   pairs[i][0], pairs[i][1]);
	for (size_t i = 0; pp_args_operands(t->args) && i < PP_ARRAY_LEN(live); i++)
		if (pp_args_has(t->args, live[i]))
			return pp_complain(t->args, PP_EXIT_USAGE, "a command excludes --%s",
					   live[i]);
	if (pid && pp_parse_u64(pid, 1, PID_MOST, &n))
		return pp_complain(t->args, PP_EXIT_USAGE,
				   "--pid does not take '%s': a number of "
				   "a process",
				   pid);
	t->pid = (pid_t)n;
	t->period = PERIOD;
	if (watch &&
	    (pp_parse_duration(watch, 3600 * PP_SECOND, &t->period) || t->period < PERIOD_LEAST))
		return pp_complain(t->args, PP_EXIT_USAGE,
				   "--watch does not take '%s': a time from 100ms to an hour",
				   watch);
	t->command = pp_args_operands(t->args) > 0;
	return pp_trace_traffic_check(t->args, &t->window);
}

/* Is there such a process, where that can be known? */
static int check_process(const struct pp_tracing *t)
{
	char path[64];
	int r;

	if (!t->pid)
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/%d", t->pid);
	r = pp_source_mode(t->session.src) == PP_SOURCE_REPLAY
		    ? 1
		    : pp_source_probe(t->session.src, path);
	return r ? 0 : pp_complain(t->args, PP_EXIT_UNKNOWN, "there is no process %d", t->pid);
}

/* A window of traffic, behind the look: its helpers are no part of it. */
static int watch_traffic(struct pp_tracing *t)
{
	bool absent = pp_source_probe(t->session.src, "/sys/module/nvidia") == 0;

	t->traffic = calloc(1, sizeof(*t->traffic));
	if (!t->traffic || pp_traffic_watch(t->session.src, t->window, absent, t->traffic))
		return pp_complain(t->args, PP_EXIT_INTERNAL, "out of memory");
	return 0;
}

static int one_look(struct pp_tracing *t)
{
	int code;

	pp_tracing_probe(t, /* live= */ false);
	code = pp_tracing_look(t);
	pp_tracing_unprobe(t);
	if (!code && t->window)
		code = watch_traffic(t);
	if (!code)
		code = pp_trace_logs_judge(t->args, &t->look.table, &t->logs);
	if (code)
		return code;
	pp_tracing_show(t);
	return pp_tracing_verdict(t);
}

int pp_cmd_trace(const struct pp_args *args)
{
	struct pp_tracing t = {.args = args};
	int code = check(&t);

	if (code)
		return code;
	code = pp_session_open_source(args, &t.session);
	if (!code)
		code = check_process(&t);
	if (!code)
		code = pp_trace_logs_read(args, &t.logs);
	if (!code)
		code = t.command		    ? pp_trace_command(&t)
		       : pp_args_has(args, "watch") ? pp_trace_watch(&t)
						    : one_look(&t);
	if (t.looked)
		pp_trace_done(&t.look);
	pp_trace_soft_done(&t.soft);
	pp_trace_logs_done(&t.logs);
	free(t.traffic);
	return pp_session_close(&t.session, code);
}
