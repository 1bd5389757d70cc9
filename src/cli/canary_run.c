/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of the command: its figures are read from the copy of its output while that grows, so
 * that nothing here can hold the command up.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/canary.h"
#include "cli/canary_scrape.h"
#include "cli/interrupt.h"
#include "cli/soft_program.h"
#include "nccl/run_command.h"
#include "base/banned.h"

extern char **environ;

enum { PART = 64 << 10, WHY = 512 };
#define COPY_MOST ((uint64_t)256 << 20)
static const pp_ns LOOK_EACH = 20 * PP_MILLISECOND, PATIENCE = 5 * PP_SECOND,
		   CLOCK_JUMP = PP_SECOND;

/* All of one run while it lasts. */
struct run {
	struct pp_canarying *c;
	struct pp_metric_reader *reader;
	struct pp_nccl_command command;
	struct pp_canary_gpus gpus;
	struct pp_canary_scrape scrape;
	struct pp_host_pressure before;
	pp_ns began, wall; /* monotonic, and beside it the wall clock */
	uint64_t seen;	   /* bytes of the copy */
	int copy, kmsg;
	bool late;
	int status; /* of the command's end, as waitpid(2) */
	double cpu_seconds;
};

static const char *why(struct run *r, const char *text)
{
	return pp_arena_str(&r->c->trial.arena, text);
}

static void read_copy(struct run *r)
{
	char part[PART];
	ssize_t n;

	while ((n = read(r->copy, part, sizeof(part))) > 0) {
		pp_metric_reader_push(r->reader, part, (size_t)n, pp_clock_monotonic() - r->began);
		r->seen += (uint64_t)n;
	}
}

/* Ends a command that is interrupted or late: asked first, then made to. */
static void end(struct run *r)
{
	pp_ns until = pp_clock_monotonic() + PATIENCE;

	pp_nccl_command_signal(&r->command, SIGTERM);
	while (!r->command.over && pp_clock_monotonic() < until)
		pp_nccl_command_step(&r->command, pp_clock_monotonic() + LOOK_EACH);
	if (!r->command.over)
		pp_nccl_command_kill(&r->command);
	while (!r->command.over && pp_clock_monotonic() < until + PATIENCE)
		pp_nccl_command_step(&r->command, pp_clock_monotonic() + LOOK_EACH);
}

static void follow(struct run *r)
{
	pp_ns until = r->began + r->c->trial.canary.timeout;

	while (!r->command.over && !pp_interrupted()) {
		pp_ns now = pp_clock_monotonic();

		if (now >= until) {
			r->late = true;
			break;
		}
		pp_nccl_command_step(&r->command, now + LOOK_EACH);
		pp_canary_scrape_step(&r->scrape, r->reader);
		read_copy(r);
	}
	if (!r->command.over)
		end(r);
}

static int start(struct run *r, const char *copy)
{
	struct pp_canarying *c = r->c;
	sigset_t mask;
	const struct pp_nccl_command_options o = {
		.argv = c->argv,
		.environment = environ,
		/* One document on standard output. */
		.out = pp_out_is_json(c->session->out) ? STDERR_FILENO : STDOUT_FILENO,
		.copy = copy,
		.copy_most = COPY_MOST,
		.terminal = -1,
		.mask = &mask};
	struct pp_error err = {0};
	char text[WHY];
	int e;

	(void)sigprocmask(SIG_SETMASK, NULL, &mask);
	e = pp_nccl_command_start(&o, &r->command, &err);

	if (!e)
		return 0;
	return pp_complain(c->args, PP_EXIT_USAGE, "'%s': %s", c->argv[0],
			   *err.text ? err.text
				     : pp_soft_program_why(c->argv[0], -e, text, sizeof(text)));
}

static void host(struct run *r, pp_ns took)
{
	struct pp_host_pressure now;

	pp_host_pressure_read(&now);
	pp_metric_reader_host(r->reader, PP_HOST_CPU_SECONDS, r->cpu_seconds);
	for (int i = PP_HOST_CPU_PRESSURE; i < PP_HOST_WORDS && took > 0; i++)
		pp_metric_reader_host(r->reader, (enum pp_host_word)i,
				      (now.seconds[i] - r->before.seconds[i]) /
					      ((double)took / PP_SECOND));
}

/* Why the run cannot count, by what became of the command; NULL. */
static const char *by_its_end(struct run *r)
{
	const struct pp_canary *c = &r->c->trial.canary;
	int s = r->status;
	char text[WHY];

	if (r->late)
		(void)snprintf(text, sizeof(text), "not done after %g s",
			       (double)c->timeout / PP_SECOND);
	else if (WIFSIGNALED(s))
		(void)snprintf(text, sizeof(text), "the command was killed by signal %d (%s)",
			       WTERMSIG(s), sigabbrev_np(WTERMSIG(s)));
	else if (WEXITSTATUS(s))
		(void)snprintf(text, sizeof(text), "the command ended with status %d",
			       WEXITSTATUS(s));
	else
		return NULL;
	return why(r, text);
}

/* By what went on beside it. The GPUs' and the kernel's answers are taken whatever else there is.
 */
static const char *by_the_node(struct run *r, pp_ns took)
{
	pp_ns jump = pp_clock_wall() - r->wall - took;
	char held[WHY], xid[WHY], text[2 * WHY];

	pp_canary_gpus_end(&r->gpus, held, sizeof(held));
	pp_canary_kmsg_end(r->kmsg, xid, sizeof(xid));
	if (*xid)
		(void)snprintf(text, sizeof(text), "the kernel logged %s", xid);
	else if (*held)
		(void)snprintf(text, sizeof(text), "%s", held);
	else if (jump > CLOCK_JUMP || jump < -CLOCK_JUMP)
		(void)snprintf(text, sizeof(text), "the wall clock jumped by %.1f s",
			       (double)jump / PP_SECOND);
	else if (r->seen >= COPY_MOST)
		(void)snprintf(text, sizeof(text), "it printed more than %d MiB",
			       (int)(COPY_MOST >> 20));
	else
		return NULL;
	return why(r, text);
}

/* A run that lacks a figure of the service level is another run than was declared. */
static const char *by_figures(struct run *r, const struct pp_metric_value *v,
			      struct pp_trial_run *ret)
{
	const struct pp_canary *c = &r->c->trial.canary;
	const char *first = NULL;
	char text[WHY];

	for (size_t i = 0; i < c->n_metrics; i++) {
		ret->value[i] = v[i].value;
		if (first || !isnan(v[i].value) || c->metric[i].is_host)
			continue;
		(void)snprintf(text, sizeof(text), "metric %s: %s", c->metric[i].name, v[i].why);
		first = why(r, text);
	}
	return first;
}

static void judge(struct run *r, struct pp_trial_run *ret)
{
	struct pp_metric_value v[PP_CANARY_METRICS];
	const char *ended, *beside, *figures;

	ret->took = pp_clock_monotonic() - r->began;
	host(r, ret->took);
	read_copy(r);
	pp_metric_reader_end(r->reader, ret->took, v);
	ended = by_its_end(r);
	beside = by_the_node(r, ret->took);
	figures = by_figures(r, v, ret);
	ret->void_why = ended ? ended : beside ? beside : figures;
}

static int run(struct run *r, const char *copy, struct pp_trial_run *ret)
{
	struct pp_canarying *c = r->c;
	int code;

	r->kmsg = pp_canary_kmsg_open();
	pp_canary_gpus_start(&r->gpus, c->session->node);
	pp_host_pressure_read(&r->before);
	r->began = pp_clock_monotonic();
	ret->started = r->wall = pp_clock_wall();
	code = start(r, copy);
	if (!code) {
		r->copy = open(copy, O_RDONLY | O_CLOEXEC | O_CREAT, 0600);
		pp_canary_scrape_open(&r->scrape, c->trial.canary.prometheus);
		follow(r);
		r->status = r->command.status;
		r->cpu_seconds = r->command.cpu_seconds;
		pp_nccl_command_done(&r->command);
		pp_canary_scrape_done(&r->scrape);
	}
	if (code || pp_interrupted()) {
		char unused[WHY];

		pp_canary_gpus_end(&r->gpus, unused, sizeof(unused));
		pp_canary_kmsg_end(r->kmsg, unused, sizeof(unused));
		return code ? code : PP_EXIT_INTERRUPTED;
	}
	judge(r, ret);
	return c->trial.arena.failed ? pp_complain(c->args, PP_EXIT_INTERNAL, "out of memory") : 0;
}

int pp_canary_run(struct pp_canarying *c, const char *label, struct pp_trial_run *ret)
{
	struct run r = {.c = c, .copy = -1, .kmsg = -1};
	char copy[PATH_MAX];
	int code;

	if (pp_metric_reader_new(&c->trial.canary, &r.reader))
		return pp_complain(c->args, PP_EXIT_INTERNAL, "out of memory");
	(void)snprintf(copy, sizeof(copy), "%s/%s", c->place.path, label);
	code = run(&r, copy, ret);
	if (r.copy >= 0)
		(void)close(r.copy);
	(void)unlink(copy);
	pp_metric_reader_free(r.reader);
	return code;
}
