/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/run_command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/banned.h"

/* What was written when the command ended passes on; a reader that does not read is not awaited. */
static const pp_ns DRAIN = 5 * PP_SECOND;

/* @out: of standard output, of standard error. */
struct pipes {
	int out[2][2], events[2], orders[2];
};

static void close_all(struct pipes *p)
{
	for (int i = 0; i < 2; i++) {
		pp_cleanup_close(&p->out[0][i]);
		pp_cleanup_close(&p->out[1][i]);
		pp_cleanup_close(&p->events[i]);
		pp_cleanup_close(&p->orders[i]);
	}
}

static void close_one(int *fd)
{
	pp_cleanup_close(fd);
	*fd = -1;
}

static int open_pipes(const struct pp_nccl_command_options *o, struct pipes *p)
{
	*p = (struct pipes){{{-1, -1}, {-1, -1}}, {-1, -1}, {-1, -1}};
	if (!pipe2(p->out[0], O_CLOEXEC) && (!o->error_copy || !pipe2(p->out[1], O_CLOEXEC)) &&
	    !pipe2(p->events, O_CLOEXEC) && !pipe2(p->orders, O_CLOEXEC))
		return 0;
	return -errno;
}

/* One of the two streams; it keeps none of the pipes but its own end. */
static pid_t fork_tee(const struct pp_nccl_command_options *o, struct pipes *p, unsigned int which,
		      pid_t parent)
{
	struct pp_nccl_tee t = {.in = p->out[which][0],
				.out = which ? STDERR_FILENO : o->out,
				.copy = which ? o->error_copy : o->copy,
				.most = o->copy_most};
	pid_t pid = fork();

	if (pid)
		return pid;
	p->out[which][0] = -1;
	close_all(p);
	pp_nccl_tee_run(&t, parent);
}

static int fork_all(const struct pp_nccl_command_options *o, struct pipes *p,
		    struct pp_nccl_command *c)
{
	pid_t parent = getpid();

	/* Who started us may have had children ignored: then none could be waited for. */
	(void)signal(SIGCHLD, SIG_DFL);
	(void)fflush(NULL);
	c->tee[0] = fork_tee(o, p, 0, parent);
	if (c->tee[0] > 0 && o->error_copy)
		c->tee[1] = fork_tee(o, p, 1, parent);
	c->guard = c->tee[0] < 0 || c->tee[1] < 0 ? -1 : fork();
	if (!c->guard) {
		const int out[2] = {p->out[0][1], p->out[1][1]};

		close_one(&p->out[0][0]);
		close_one(&p->out[1][0]);
		close_one(&p->events[0]);
		close_one(&p->orders[1]);
		pp_nccl_guard_run(o, parent, out, p->events[1], p->orders[0]);
	}
	return c->guard < 0 ? -errno : 0;
}

static void take_terminal(const struct pp_nccl_command *c)
{
	sigset_t block, before;

	if (c->terminal < 0)
		return;
	/* From the background that would stop us. */
	(void)sigemptyset(&block);
	(void)sigaddset(&block, SIGTTOU);
	(void)sigprocmask(SIG_BLOCK, &block, &before);
	(void)tcsetpgrp(c->terminal, getpgrp());
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
}

static void lose_guard(struct pp_nccl_command *c)
{
	/* It was killed: CMD dies with it, by the kernel. */
	close_one(&c->events);
	if (!c->ended)
		c->status = SIGKILL;
	c->ended = c->over = true;
}

static bool take(struct pp_nccl_command *c, struct pp_nccl_event_of_guard *e)
{
	ssize_t n = read(c->events, e, sizeof(*e));

	if (n < 0 && errno == EINTR)
		return false;
	if (n != (ssize_t)sizeof(*e)) {
		lose_guard(c);
		return false;
	}
	c->cpu_seconds = (double)e->cpu_us / 1e6;
	c->killed = e->killed;
	switch ((enum pp_nccl_news)e->what) {
	case PP_NCCL_NEWS_STARTED:
		c->pid = e->value;
		break;
	case PP_NCCL_NEWS_STOPPED:
		c->stopped = true;
		take_terminal(c);
		break;
	case PP_NCCL_NEWS_ENDED:
		c->ended = true;
		c->status = e->value;
		take_terminal(c);
		break;
	case PP_NCCL_NEWS_OVER:
		c->over = true;
		c->left = (uint32_t)e->value;
		break;
	default:
		break;
	}
	return true;
}

int pp_nccl_command_start(const struct pp_nccl_command_options *o, struct pp_nccl_command *ret,
			  struct pp_error *err)
{
	struct pp_nccl_command c = {.events = -1, .orders = -1, .terminal = o->terminal};
	struct pp_nccl_event_of_guard e = {0};
	struct pipes p;
	int r = open_pipes(o, &p);

	if (!r)
		r = fork_all(o, &p, &c);
	if (!r) {
		c.events = p.events[0];
		c.orders = p.orders[1];
		p.events[0] = p.orders[1] = -1;
	}
	close_all(&p);
	if (r) {
		pp_nccl_command_done(&c);
		return pp_error_set(err, r, "cannot start a process: %s", strerror(-r));
	}
	while (!c.over && !take(&c, &e))
		;
	if (c.over || e.what == PP_NCCL_NEWS_FAILED) {
		r = c.over ? -ECHILD : -e.value;
		take_terminal(&c);
		pp_nccl_command_done(&c);
		return pp_error_set(err, r, "%s", strerror(-r));
	}
	*ret = c;
	return 0;
}

void pp_nccl_command_step(struct pp_nccl_command *c, pp_ns until)
{
	struct pollfd p = {.fd = c->events, .events = POLLIN};
	pp_ns left = until - pp_clock_monotonic();
	struct pp_nccl_event_of_guard e;

	if (poll(&p, 1, left > 0 ? (int)(left / PP_MILLISECOND) + 1 : 0) > 0)
		(void)take(c, &e);
}

static void order(const struct pp_nccl_command *c, int32_t what)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, before;

	/* It may have gone a moment ago. */
	(void)sigaction(SIGPIPE, &ignore, &before);
	if (c->orders >= 0)
		(void)!write(c->orders, &what, sizeof(what));
	(void)sigaction(SIGPIPE, &before, NULL);
}

void pp_nccl_command_signal(const struct pp_nccl_command *c, int number)
{
	order(c, number);
}

void pp_nccl_command_kill(const struct pp_nccl_command *c)
{
	order(c, PP_NCCL_ORDER_KILL);
}

/* The tee ends with the last writer. */
static void drain(pid_t tee)
{
	pp_ns until = pp_clock_monotonic() + DRAIN;

	while (waitpid(tee, NULL, WNOHANG) == 0) {
		if (pp_clock_monotonic() > until) {
			(void)kill(tee, SIGKILL);
			(void)waitpid(tee, NULL, 0);
			return;
		}
		(void)poll(NULL, 0, 5);
	}
}

void pp_nccl_command_done(struct pp_nccl_command *c)
{
	close_one(&c->orders); /* the guard kills what is left, and ends */
	close_one(&c->events);
	if (c->guard > 0)
		while (waitpid(c->guard, NULL, 0) < 0 && errno == EINTR)
			;
	for (size_t i = 0; i < PP_ARRAY_LEN(c->tee); i++)
		if (c->tee[i] > 0)
			drain(c->tee[i]);
	take_terminal(c);
	*c = (struct pp_nccl_command){.events = -1, .orders = -1, .terminal = -1};
}
