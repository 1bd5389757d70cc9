/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/run_watch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "nccl/run_look.h"
#include "base/banned.h"

static const pp_ns TURN = 50 * PP_MILLISECOND, PATIENCE = 5 * PP_SECOND;

struct watch {
	const struct pp_nccl_watch_options *o;
	struct pp_nccl_run_node *n;
	struct pp_nccl_command c;
	struct pp_nccl_looker *looker;
	pp_ns deadline, kill_at; /* 0: none */
	bool told;		 /* to end */
};

/* As a shell does with a job: what has stopped it stops us, and who continues us continues it. */
static void stop_with(struct watch *w)
{
	struct pp_nccl_command *c = &w->c;

	if (!c->stopped)
		return;
	c->stopped = false;
	if (c->terminal < 0)
		return;
	(void)raise(SIGSTOP);
	if (tcgetpgrp(c->terminal) == getpgrp())
		(void)tcsetpgrp(c->terminal, c->pid);
	pp_nccl_command_signal(c, SIGCONT);
}

static void end_it(struct watch *w)
{
	pp_ns now = pp_clock_monotonic();

	if (!w->told && !w->c.ended) {
		w->n->interrupted = w->o->stopped();
		w->n->timed_out = !w->n->interrupted && w->deadline && now >= w->deadline;
		w->told = w->n->interrupted || w->n->timed_out;
		/* Ctrl-C has reached who is in our group already. */
		if (w->told && !(w->o->command.same_group && w->n->interrupted))
			pp_nccl_command_signal(&w->c, SIGTERM);
		w->kill_at = w->told ? now + PATIENCE : 0;
	}
	/* What a command that was told to end leaves behind has had its time. */
	if (w->told && w->c.ended)
		w->kill_at = w->kill_at < now ? w->kill_at : now;
	if (w->kill_at && now >= w->kill_at) {
		pp_nccl_command_kill(&w->c);
		w->kill_at = now + PATIENCE;
	}
}

static void run(struct watch *w)
{
	while (!w->c.over) {
		pp_nccl_command_step(&w->c, pp_clock_monotonic() + TURN);
		stop_with(w);
		end_it(w);
		if (!w->c.ended)
			pp_nccl_looker_look(w->looker, w->c.guard, w->n);
	}
}

static void add_text(struct pp_nccl_run_node *n, const char *text)
{
	size_t len = strlen(n->died);

	(void)snprintf(n->died + len, sizeof(n->died) - len, "%s%s", len ? "; " : "", text);
}

static void tell_end(const struct watch *w)
{
	struct pp_nccl_run_node *n = w->n;
	int status = w->c.status;
	char text[128];

	n->cpu_seconds = w->c.cpu_seconds;
	n->status = status;
	if (n->timed_out) {
		(void)snprintf(text, sizeof(text), "did not end within %.0f s",
			       (double)w->o->timeout / 1e9);
		add_text(n, text);
	}
	if (n->interrupted)
		add_text(n, "was interrupted");
	if (WIFSIGNALED(status)) {
		const char *name = sigabbrev_np(WTERMSIG(status));

		(void)snprintf(text, sizeof(text), "was killed by signal %d (%s)", WTERMSIG(status),
			       name ? name : "?");
		add_text(n, text);
	} else if (status) {
		(void)snprintf(text, sizeof(text), "ended with status %d", WEXITSTATUS(status));
		add_text(n, text);
	}
	if (w->c.killed && !n->timed_out && !n->interrupted) {
		(void)snprintf(text, sizeof(text),
			       "%u of its processes went on after it and were killed", w->c.killed);
		add_text(n, text);
	}
	if (w->c.left) {
		(void)snprintf(text, sizeof(text), "%u of its processes do not die", w->c.left);
		add_text(n, text);
	}
	/* Ctrl-C at the terminal reaches the command alone. */
	if (w->c.terminal >= 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGINT)
		n->interrupted = true;
}

/* Counters begin before the command and end after it. */
static int with_traffic(struct watch *w, struct pp_error *err)
{
	struct pp_traffic_span *span = NULL;
	int r = 0;

	if (w->o->node_wide && pp_traffic_begin(w->o->src, w->o->module_absent, &span))
		return pp_error_set(err, -ENOMEM, "out of memory");
	r = pp_nccl_command_start(&w->o->command, &w->c, err);
	if (!r) {
		w->deadline = w->o->timeout ? pp_clock_monotonic() + w->o->timeout : 0;
		run(w);
		tell_end(w);
		pp_nccl_command_done(&w->c);
	}
	if (span && pp_traffic_end(w->o->src, span, &w->n->traffic) && !r)
		r = pp_error_set(err, -ENOMEM, "out of memory");
	for (unsigned int i = 0; i < w->n->traffic.n_ports; i++)
		w->n->simulated |= w->n->traffic.port[i].simulated;
	return r;
}

int pp_nccl_watch(const struct pp_nccl_watch_options *o, struct pp_nccl_run *r,
		  struct pp_nccl_run_node *n, struct pp_error *err)
{
	struct watch w = {.o = o, .n = n};
	int e;

	w.looker = pp_nccl_looker_new(o);
	if (!w.looker)
		return pp_error_set(err, -ENOMEM, "out of memory");
	if (o->blind)
		(void)snprintf(n->library.why, sizeof(n->library.why), "%s", o->blind);
	r->started = pp_clock_wall();
	e = with_traffic(&w, err);
	r->took = pp_clock_wall() - r->started;
	if (!e)
		pp_nccl_looker_tell(w.looker, r, n);
	free(w.looker);
	return e;
}
