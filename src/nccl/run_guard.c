/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard of a command. It calls nothing but the kernel, allocates little, and answers within
 * milliseconds whatever its parent does meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nccl/run_command.h"
#include "nccl/run_tree.h"
#include "base/banned.h"

static const pp_ns PATIENCE = 5 * PP_SECOND, TURN = 20 * PP_MILLISECOND;

struct guard {
	const struct pp_nccl_command_options *o;
	pid_t parent, pid;
	int events, orders, signals;
	bool ended, alone;	     /* alone: nothing descends from us any more */
	pp_ns kill_from, kill_until; /* 0: not yet */
	uint64_t cpu_us;
	uint32_t killed;
};

static void tell(const struct guard *g, enum pp_nccl_news what, int value)
{
	const struct pp_nccl_event_of_guard e = {.what = (int32_t)what,
						 .value = value,
						 .cpu_us = (int64_t)g->cpu_us,
						 .killed = g->killed};

	(void)!write(g->events, &e, sizeof(e));
}

static PP_NORETURN void become(const struct guard *g, pid_t guard, const int out[2], int told)
{
	int e;

	if (!g->o->same_group)
		(void)setpgid(0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != guard)
		_exit(1);
	if (dup2(out[0], STDOUT_FILENO) < 0 || (out[1] >= 0 && dup2(out[1], STDERR_FILENO) < 0))
		_exit(1);
	/* SIGTTOU is blocked still: who is not in the foreground may take the terminal so. */
	if (g->o->terminal >= 0)
		(void)tcsetpgrp(g->o->terminal, getpgrp());
	for (int i = 1; i < NSIG; i++)
		if (i != SIGPIPE)
			(void)signal(i, SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, g->o->mask, NULL);
	(void)execvpe(g->o->argv[0], g->o->argv, g->o->environment);
	e = errno;
	(void)!write(told, &e, sizeof(e));
	_exit(127);
}

static int start(struct guard *g, const int out[2])
{
	int told[2], e = 0;
	pid_t guard = getpid();

	if (pipe2(told, O_CLOEXEC))
		return errno;
	g->pid = fork();
	if (!g->pid)
		become(g, guard, out, told[1]);
	if (g->pid < 0)
		e = errno;
	(void)close(out[0]);
	if (out[1] >= 0)
		(void)close(out[1]);
	(void)close(told[1]);
	if (g->pid > 0) {
		if (!g->o->same_group)
			(void)setpgid(g->pid, g->pid);
		while (read(told[0], &e, sizeof(e)) < 0 && errno == EINTR)
			;
	}
	(void)close(told[0]);
	return e;
}

static void reap(struct guard *g)
{
	struct rusage used;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG | WUNTRACED, &used)) > 0) {
		if (WIFSTOPPED(status)) {
			if (pid == g->pid)
				tell(g, PP_NCCL_NEWS_STOPPED, WSTOPSIG(status));
			continue;
		}
		g->cpu_us += (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
			     (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
		if (pid != g->pid)
			continue;
		g->ended = true;
		tell(g, PP_NCCL_NEWS_ENDED, status);
		/* What it leaves behind has time to end by itself. */
		if (!g->kill_from)
			g->kill_from = pp_clock_monotonic() + PATIENCE;
	}
	g->alone = pid < 0 && errno == ECHILD;
}

static void kill_now(struct guard *g)
{
	pp_ns now = pp_clock_monotonic();

	if (!g->kill_from || g->kill_from > now)
		g->kill_from = now;
}

static void obey(struct guard *g)
{
	int32_t order;
	ssize_t n = read(g->orders, &order, sizeof(order));

	if (n < 0 && errno == EINTR)
		return;
	if (n != (ssize_t)sizeof(order)) { /* nobody is there any more */
		g->orders = -1;
		kill_now(g);
	} else if (order == PP_NCCL_ORDER_KILL) {
		kill_now(g);
	} else if (!g->ended) {
		pid_t whom = g->o->same_group ? g->pid : -g->pid;

		(void)kill(whom, order);
		/* who is stopped hears of it, too */
		if (order == SIGTERM || order == SIGINT)
			(void)kill(whom, SIGCONT);
	}
}

/* Again and again: what is killed may have had children a moment ago. */
static void kill_tree(struct guard *g)
{
	static pid_t pid[PP_NCCL_TREE];
	size_t n = pp_nccl_tree(getpid(), pid, PP_NCCL_TREE);

	if (g->ended && !g->kill_until)
		g->killed = (uint32_t)n;
	if (!g->kill_until)
		g->kill_until = pp_clock_monotonic() + PATIENCE;
	for (size_t i = 0; i < n; i++)
		(void)kill(pid[i], SIGKILL);
}

static void hear(struct guard *g)
{
	struct signalfd_siginfo s;

	while (read(g->signals, &s, sizeof(s)) == (ssize_t)sizeof(s))
		;
	/* A signal to our whole group says nothing: our parent has heard of it, too. */
	if (getppid() != g->parent)
		kill_now(g);
}

static void settle(struct guard *g)
{
	sigset_t all, heard;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	(void)sigemptyset(&heard);
	(void)sigaddset(&heard, SIGCHLD);
	(void)sigaddset(&heard, SIGTERM);
	g->signals = signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK);
	if (g->signals < 0 || getppid() != g->parent)
		_exit(1);
	(void)signal(SIGCHLD, SIG_DFL);
}

/* What is left, once there is no more to wait for. */
static int watch(struct guard *g)
{
	static pid_t pid[PP_NCCL_TREE];
	pp_ns now;

	while (!g->alone) {
		struct pollfd p[2] = {{.fd = g->signals, .events = POLLIN},
				      {.fd = g->orders, .events = POLLIN}};
		int ms = -1;

		now = pp_clock_monotonic();
		if (g->kill_from)
			ms = (int)((g->kill_from > now ? g->kill_from - now : TURN) /
				   PP_MILLISECOND) +
			     1;
		(void)poll(p, 2, ms);
		hear(g);
		if (p[1].revents)
			obey(g);
		reap(g);
		now = pp_clock_monotonic();
		if (g->kill_until && now > g->kill_until)
			return (int)pp_nccl_tree(getpid(), pid, PP_NCCL_TREE);
		if (!g->alone && g->kill_from && now >= g->kill_from)
			kill_tree(g);
	}
	return 0;
}

PP_NORETURN void pp_nccl_guard_run(const struct pp_nccl_command_options *o, pid_t parent,
				   const int out[2], int events, int orders)
{
	struct guard g = {.o = o, .parent = parent, .events = events, .orders = orders};
	int e;

	settle(&g);
	e = start(&g, out);
	tell(&g, e ? PP_NCCL_NEWS_FAILED : PP_NCCL_NEWS_STARTED, e ? e : g.pid);
	if (e)
		_exit(1);
	e = watch(&g);
	tell(&g, PP_NCCL_NEWS_OVER, e);
	_exit(0);
}
