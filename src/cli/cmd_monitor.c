/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service that keeps a proven path proven: looks, compares, tells. --show only reads what it
 * has written.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/parse.h"
#include "cli/monitor.h"
#include "cli/monitor_export.h"
#include "cli/session.h"
#include "daemon/loop.h"
#include "daemon/slo.h"
#include "base/banned.h"

enum { LOGS_MOST = 64, STATE_BYTES = 64 << 20 };

struct run {
	const struct pp_args *args;
	struct pp_session s;
	struct pp_notify notify;
	struct pp_monitor *monitor;
	struct pp_monitor_export export;
	const char *logs[LOGS_MOST + 1];
	char where[4096], slo[PP_SLO_TEXT]; /* slo "": none */
	pp_ns period, duration;
	bool quiet; /* the document at the end says it all */
};

static void say(void *ctx, const char *text)
{
	const struct run *v = ctx;

	(void)pp_complain(v->args, 0, "%s", text);
}

static void alive(void *ctx)
{
	struct run *v = ctx;

	pp_notify_alive(&v->notify, pp_clock_monotonic());
}

/* One line on standard output; a journal takes the number in front as its severity. */
static void tell(void *ctx, const struct pp_telling *t)
{
	static const char *const severity[] = {"<6>", "<5>", "<3>"};
	const struct run *v = ctx;
	char when[32];

	if (v->quiet)
		return;
	if (pp_out_is_json(v->s.out))
		(void)printf("%s\n", t->line);
	else
		(void)printf("%s%s %-5s %s\n", v->notify.fd >= 0 ? severity[t->level] : "",
			     pp_clock_format(t->wall_ns, when, sizeof(when)),
			     pp_level_name(t->level), t->text);
	/* A reader that went away does not end the watch. */
	(void)fflush(stdout);
	clearerr(stdout);
}

/* systemd names the directory that it made; else the system's. Of a recording nothing is kept. */
static int find_where(struct run *v)
{
	const char *given = pp_args_get(v->args, "state"), *dir = getenv("STATE_DIRECTORY");
	int n;

	if (given)
		n = snprintf(v->where, sizeof(v->where), "%s", given);
	else if (pp_args_has(v->args, "replay"))
		n = snprintf(v->where, sizeof(v->where), ":memory:");
	else if (dir && *dir == '/')
		n = snprintf(v->where, sizeof(v->where), "%.*s/monitor.db", (int)strcspn(dir, ":"),
			     dir);
	else
		n = snprintf(v->where, sizeof(v->where), "/var/lib/peerpath/monitor.db");
	return n > 0 && n < (int)sizeof(v->where)
		       ? 0
		       : pp_complain(v->args, PP_EXIT_USAGE, "--state is too long");
}

static int read_time(const struct run *v, const char *name, pp_ns most, pp_ns *ret)
{
	const char *text = pp_args_get(v->args, name);

	if (!text || (!pp_parse_duration(text, most, ret) && *ret > 0))
		return 0;
	return pp_complain(v->args, PP_EXIT_USAGE,
			   "--%s does not take '%s': a time such as 20ms, 5s or 10m", name, text);
}

/* What would be for nothing, since the database alone is read. */
static int check_show(const struct pp_args *args)
{
	static const char *const not_with[] = {"once",	   "for",    "period", "baseline",
					       "simulate", "events", "log",    "slo",
					       "policy",   "replay", "root"};

	for (size_t i = 0; pp_args_has(args, "show") && i < PP_ARRAY_LEN(not_with); i++)
		if (pp_args_has(args, not_with[i]))
			return pp_complain(args, PP_EXIT_USAGE,
					   "--show looks at nothing: it takes no --%s",
					   not_with[i]);
	return 0;
}

static int read_slo(struct run *v)
{
	const char *given = pp_args_get(v->args, "slo");
	bool live = !pp_args_has(v->args, "replay") && !pp_args_has(v->args, "root");
	struct pp_error err = {0};

	return given && pp_slo_resolve(given, live, v->slo, &err)
		       ? pp_complain(v->args, PP_EXIT_USAGE, "--slo: %s", err.text)
		       : 0;
}

static int read_options(struct run *v)
{
	size_t n = pp_args_count(v->args, "log");
	int r = check_show(v->args);

	if (!r)
		r = read_slo(v);
	if (!r)
		r = read_time(v, "period", 24 * 3600 * PP_SECOND, &v->period);

	if (!r)
		r = read_time(v, "for", 366 * 24 * 3600 * PP_SECOND, &v->duration);
	if (!r && n > LOGS_MOST)
		r = pp_complain(v->args, PP_EXIT_USAGE, "more than %d --log", LOGS_MOST);
	for (size_t i = 0; !r && i < n; i++)
		v->logs[i] = pp_args_nth(v->args, "log", i);
	v->quiet = pp_args_has(v->args, "once");
	if (!r && v->quiet && v->duration)
		r = pp_complain(v->args, PP_EXIT_USAGE, "--once and --for exclude each other");
	return r ? r : find_where(v);
}

/* Early is bad unless the user asks for alarms only; with nothing seen there is no verdict. */
static int exit_of(const struct pp_args *args, const struct pp_state *s)
{
	const char *on = pp_args_get(args, "fail-on");
	enum pp_signal_level least = on && !strcmp(on, "alarm") ? PP_LEVEL_ALARM : PP_LEVEL_EARLY;
	size_t known = 0;

	for (size_t i = 0; i < s->n_signals; i++)
		if (!s->signals[i].ended_ns && s->signals[i].level >= least)
			return PP_EXIT_BAD;
	for (size_t i = 0; i < s->n_looks; i++)
		known += !s->looks[i].unknown;
	return known ? PP_EXIT_PASS : PP_EXIT_UNKNOWN;
}

static int show(struct run *v)
{
	struct pp_arena arena = PP_ARENA(STATE_BYTES);
	struct pp_error err = {0};
	struct pp_state state;
	int code, r = pp_state_load(v->where, &arena, &state, &err);

	if (r) {
		code = pp_complain(v->args, r == -ENOMEM ? PP_EXIT_INTERNAL : PP_EXIT_INPUT, "%s",
				   err.text);
	} else {
		pp_monitor_show(v->s.out, &state, pp_monitor_at_work(v->where));
		code = exit_of(v->args, &state);
	}
	pp_arena_done(&arena);
	return code;
}

static int finish(struct run *v)
{
	struct pp_arena arena = PP_ARENA(STATE_BYTES);
	struct pp_state state;
	int code;

	if (pp_monitor_state(v->monitor, &arena, &state)) {
		pp_arena_done(&arena);
		return pp_complain(v->args, PP_EXIT_INTERNAL, "out of memory");
	}
	if (v->quiet)
		pp_monitor_show(v->s.out, &state, false);
	/* Who was told to stop has stopped: that is no verdict. */
	code = pp_loop_stopped() && !v->duration ? PP_EXIT_PASS : exit_of(v->args, &state);
	pp_arena_done(&arena);
	return code;
}

static void after(void *ctx, const struct pp_monitor *m)
{
	struct run *v = ctx;

	(void)m;
	pp_monitor_export_round(&v->export, v->quiet);
}

static int code_of(int error)
{
	switch (error) {
	case -ENOMEM:
	case -EIO:
	case -ENOSPC:
	case -EBUSY:
		return PP_EXIT_INTERNAL;
	default:
		return PP_EXIT_INPUT;
	}
}

static int watch(struct run *v)
{
	const struct pp_monitor_options options = {
		.source = v->s.src,
		.watchers = pp_watchers,
		.where = v->where,
		.policy = pp_args_get(v->args, "policy"),
		.baseline = pp_args_get(v->args, "baseline"),
		.events = pp_args_get(v->args, "events"),
		.logs = v->logs[0] ? v->logs : NULL,
		.slo = *v->slo ? v->slo : NULL,
		.simulate = pp_args_has(v->args, "simulate"),
		.any_node = pp_args_has(v->args, "any-node"),
		.period_ns = v->period,
		.say = say,
		.tell = tell,
		.alive = alive,
		.ctx = v,
	};
	struct pp_loop loop = {.notify = &v->notify,
			       .exporter = v->export.exporter,
			       .after = after,
			       .once = v->quiet,
			       .for_ns = v->duration,
			       .say = say,
			       .ctx = v};
	struct pp_error err = {0};
	int code, r = pp_monitor_open(&options, &v->monitor, &err);

	if (r)
		return pp_complain(v->args, code_of(r), "%s", err.text);
	loop.monitor = v->monitor;
	v->export.monitor = v->monitor;
	r = pp_loop_run(&loop, &err);
	code = r ? pp_complain(v->args, PP_EXIT_INTERNAL, "%s", err.text) : finish(v);
	/* Who asked for one round wanted its file. */
	if (v->quiet && v->export.failed)
		code = PP_EXIT_INTERNAL;
	v->export.monitor = NULL;
	v->monitor = pp_monitor_close(v->monitor);
	return code;
}

int pp_cmd_monitor(const struct pp_args *args)
{
	struct run v = {.args = args, .notify = {.fd = -1}};
	int code = read_options(&v);

	if (!code)
		code = pp_monitor_export_open(&v.export, args);
	if (code)
		return code;
	if (pp_args_has(args, "show")) {
		code = pp_session_open_output(args, &v.s);
		return pp_session_close(&v.s, code ? code : show(&v));
	}
	pp_loop_catch();
	pp_notify_open(&v.notify);
	code = pp_session_open_source(args, &v.s);
	if (!code)
		code = watch(&v);
	pp_monitor_export_close(&v.export);
	pp_notify_close(&v.notify);
	/* What was told has been written as it came. */
	if (!v.quiet)
		v.s.out = pp_out_free(v.s.out);
	return pp_session_close(&v.s, code);
}
