/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/guarded.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/words.h"
#include "cli/interrupt.h"
#include "cli/session.h"
#include "base/banned.h"

enum { MAX_OUT = 64 << 20, MAX_ERR = 64 << 10, ROUND_MS = 100, REAP_TRIES = 50 };

static PP_NORETURN void child(const struct pp_verb *verb, const struct pp_args *args, pid_t parent,
			      const int out[2], const int err[2])
{
	int code;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* It may have died before the kernel was told. */
	if (getppid() != parent)
		_exit(PP_EXIT_INTERNAL);
	pp_session_show_on(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
	if (dup2(out[1], STDOUT_FILENO) < 0 || dup2(err[1], STDERR_FILENO) < 0)
		_exit(PP_EXIT_INTERNAL);
	code = verb->run(args);
	(void)fflush(NULL);
	_exit(pp_interrupted() ? PP_EXIT_INTERRUPTED : code);
}

/* One read; a pipe at its end is taken out of the set. */
static void take(struct pollfd *p, struct pp_buf *to)
{
	char part[16 << 10];
	ssize_t n;

	if (!p->revents)
		return;
	n = read(p->fd, part, sizeof(part));
	if (n > 0)
		pp_buf_add(to, part, (size_t)n);
	else if (n == 0 || errno != EINTR)
		p->fd = -1;
}

/* Until both pipes are at their end (true) or the limit is reached. */
static bool collect(pid_t pid, int out, int err, pp_ns end, struct pp_guarded *g)
{
	struct pollfd p[2] = {{.fd = out, .events = POLLIN}, {.fd = err, .events = POLLIN}};
	bool told = false;
	pp_ns left;
	int ms;

	while (p[0].fd >= 0 || p[1].fd >= 0) {
		left = end ? end - pp_clock_monotonic() : ROUND_MS * PP_MILLISECOND;
		if (left <= 0)
			return false;
		/* In rounds: a signal between a look at it and poll() would go unseen. */
		ms = left > ROUND_MS * PP_MILLISECOND ? ROUND_MS : (int)(left / PP_MILLISECOND) + 1;
		if (pp_interrupted() && !told) {
			(void)kill(pid, SIGTERM);
			told = true;
		}
		p[0].revents = p[1].revents = 0;
		if (poll(p, 2, ms) <= 0)
			continue;
		take(&p[0], &g->out);
		take(&p[1], &g->err);
	}
	return true;
}

/* -1: it does not end. */
static int reap(pid_t pid, pp_ns end)
{
	const struct timespec pause = {.tv_nsec = PP_MILLISECOND};
	int status;
	pid_t r;

	for (int i = 0; !end || i < REAP_TRIES || pp_clock_monotonic() < end; i++) {
		r = waitpid(pid, &status, end ? WNOHANG : 0);
		if (r == pid)
			return status;
		if (r < 0 && errno != EINTR)
			return -1;
		if (r == 0)
			(void)nanosleep(&pause, NULL);
	}
	return -1;
}

static void leave(pid_t pid, pp_ns limit, struct pp_guarded *g)
{
	const struct timespec pause = {.tv_nsec = PP_MILLISECOND};

	(void)snprintf(g->why, sizeof(g->why),
		       "the run did not end in %lld ms: a call into the system does not return",
		       (long long)(limit / PP_MILLISECOND));
	(void)kill(pid, SIGKILL);
	for (int i = 0; i < REAP_TRIES && waitpid(pid, NULL, WNOHANG) == 0; i++)
		(void)nanosleep(&pause, NULL);
}

static void judge(int status, struct pp_guarded *g)
{
	if (status == -1)
		(void)snprintf(g->why, sizeof(g->why), "the run's process does not end");
	else if (WIFSIGNALED(status))
		(void)snprintf(g->why, sizeof(g->why), "the run was ended by signal %d (%s)",
			       WTERMSIG(status), sigabbrev_np(WTERMSIG(status)));
	else
		g->code = WEXITSTATUS(status);
	if (!g->why[0] && (g->out.failed || g->err.failed))
		(void)snprintf(g->why, sizeof(g->why), "the run printed more than can be kept");
}

static int pipes(int out[2], int err[2])
{
	int r = pipe2(out, O_CLOEXEC) ? -errno : 0;

	if (!r && pipe2(err, O_CLOEXEC)) {
		r = -errno;
		(void)close(out[0]);
		(void)close(out[1]);
	}
	return r;
}

int pp_guarded_run(const struct pp_verb *verb, const struct pp_args *args, pp_ns limit,
		   struct pp_guarded *ret)
{
	pp_ns start = pp_clock_monotonic(), end = limit ? start + limit : 0;
	struct pp_guarded g = {.out = PP_BUF(MAX_OUT), .err = PP_BUF(MAX_ERR)};
	pid_t parent = getpid(), pid;
	int out[2], err[2], r = pipes(out, err);

	if (r)
		return r;
	(void)fflush(NULL);
	pid = fork();
	if (pid == 0)
		child(verb, args, parent, out, err);
	r = pid < 0 ? -errno : 0;
	(void)close(out[1]);
	(void)close(err[1]);
	if (!r && collect(pid, out[0], err[0], end, &g))
		judge(reap(pid, end), &g);
	else if (!r)
		leave(pid, limit, &g);
	(void)close(out[0]);
	(void)close(err[0]);
	if (r)
		return r;
	g.took = pp_clock_monotonic() - start;
	*ret = g;
	return 0;
}

void pp_guarded_done(struct pp_guarded *g)
{
	pp_buf_done(&g->out);
	pp_buf_done(&g->err);
}
