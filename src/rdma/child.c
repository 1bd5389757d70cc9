/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/parse.h"
#include "rdma/silence.h"
#include "base/banned.h"

enum { DESCRIPTORS = 65536 };

void pp_child_settle(pid_t parent)
{
	static const int plain[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD, SIGALRM};
	sigset_t none;

	(void)setpgid(0, 0);
	for (unsigned int i = 0; i < PP_ARRAY_LEN(plain); i++)
		(void)signal(plain[i], SIG_DFL);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* It may have died before the kernel was told. */
	if (getppid() != parent)
		_exit(0);
}

static void close_from_to(unsigned int first, unsigned int last)
{
	struct rlimit limit = {.rlim_cur = DESCRIPTORS};

	if (first > last || close_range(first, last, 0) == 0)
		return;
	/* An old kernel, or valgrind. */
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur > DESCRIPTORS)
		limit.rlim_cur = DESCRIPTORS;
	for (unsigned int fd = first; fd <= last && fd < limit.rlim_cur; fd++)
		(void)close((int)fd);
}

void pp_child_keep_only(const int *fds, unsigned int n)
{
	unsigned int first = STDERR_FILENO + 1;

	for (unsigned int i = 0; i < n; i++) {
		if (fds[i] < (int)first)
			continue;
		close_from_to(first, (unsigned int)fds[i] - 1);
		first = (unsigned int)fds[i] + 1;
	}
	close_from_to(first, ~0U);
}

void pp_child_mute(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		return;
	(void)dup2(null, STDIN_FILENO);
	(void)dup2(null, STDOUT_FILENO);
	if (null > STDERR_FILENO)
		(void)close(null);
}

static PP_NORETURN void child(struct pp_channel *c, int out, pid_t parent,
			      int (*run)(struct pp_channel *c, const void *arg), const void *arg)
{
	int keep = pp_channel_fd(c);

	pp_child_settle(parent);
	pp_child_mute();
	(void)dup2(out, STDERR_FILENO);
	pp_child_keep_only(&keep, 1);
	_exit(run(c, arg));
}

int pp_child_start(struct pp_channel *c, int (*run)(struct pp_channel *c, const void *arg),
		   const void *arg, struct pp_child *ret)
{
	struct pp_child new = {.since = pp_clock_monotonic(), .step = pp_ending_step(0)};
	pid_t parent = getpid();
	int said[2], r;

	/* Neither end waits: a child that says much loses it, and is not held up. */
	if (pipe2(said, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	new.watch = fcntl(pp_channel_fd(c), F_DUPFD_CLOEXEC, 3);
	r = new.watch < 0 ? -errno : 0;
	if (!r) {
		(void)fflush(NULL);
		new.pid = fork();
		if (new.pid == 0)
			child(c, said[1], parent, run, arg);
		r = new.pid < 0 ? -errno : 0;
	}
	(void)close(said[1]);
	if (r) {
		(void)close(said[0]);
		if (new.watch >= 0)
			(void)close(new.watch);
		return r;
	}
	/* Both sides do it, so that it is done whoever runs first. */
	(void)setpgid(new.pid, new.pid);
	new.from = said[0];
	*ret = new;
	return 0;
}

void pp_child_watch(const struct pp_child *child, struct pollfd ret[2])
{
	ret[0] = (struct pollfd){.fd = child->stage == PP_CHILD_RUNS ? child->watch : -1,
				 .events = POLLRDHUP};
	ret[1] = (struct pollfd){.fd = child->from, .events = POLLIN};
}

/* Keeps the end of what it says. */
static void hear(struct pp_child *child)
{
	char part[512];
	size_t len, over;
	ssize_t n;

	for (int i = 0; i < 64 && child->from >= 0; i++) {
		n = read(child->from, part, sizeof(part));
		if (n < 0)
			return;
		if (n == 0) {
			(void)close(child->from);
			child->from = -1;
			return;
		}
		len = (size_t)n < PP_CHILD_SAID ? (size_t)n : PP_CHILD_SAID;
		over = child->said_len + len > PP_CHILD_SAID ? child->said_len + len - PP_CHILD_SAID
							     : 0;
		memmove(child->said, child->said + over, child->said_len - over);
		child->said_len -= over;
		memcpy(child->said + child->said_len, part + (size_t)n - len, len);
		child->said_len += len;
	}
}

static void enter(struct pp_child *child, enum pp_child_stage stage)
{
	child->stage = stage;
	child->since = pp_clock_monotonic();
}

void pp_child_end(struct pp_child *child, pp_ns step)
{
	if (step < child->step)
		child->step = step;
	if (child->stage != PP_CHILD_RUNS)
		return;
	/* The peer, and the child itself, shall see it too. */
	(void)shutdown(child->watch, SHUT_RDWR);
	enter(child, PP_CHILD_ENDS);
}

static bool has_ended(const struct pp_child *child)
{
	struct pollfd p = {.fd = child->watch, .events = POLLRDHUP};

	return poll(&p, 1, 0) > 0;
}

/* Its group goes with it, as long as its number is its own. */
static bool reap(struct pp_child *child)
{
	siginfo_t info = {0};

	if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
		return false;
	(void)kill(-child->pid, SIGKILL);
	(void)waitpid(child->pid, &child->status, 0);
	hear(child);
	/* Our copy of the channel's end would keep the peer waiting. */
	(void)shutdown(child->watch, SHUT_RDWR);
	enter(child, PP_CHILD_OVER);
	return true;
}

void pp_child_step(struct pp_child *child)
{
	if (pp_child_is_over(child))
		return;
	hear(child);
	if (reap(child))
		return;
	if (child->stage == PP_CHILD_RUNS && has_ended(child))
		enter(child, PP_CHILD_ENDS);
	if (child->stage == PP_CHILD_RUNS || pp_clock_monotonic() - child->since < child->step)
		return;
	switch (child->stage) {
	case PP_CHILD_ENDS:
		(void)kill(-child->pid, SIGTERM);
		enter(child, PP_CHILD_TERMINATED);
		break;
	case PP_CHILD_TERMINATED:
		(void)kill(-child->pid, SIGKILL);
		enter(child, PP_CHILD_KILLED);
		break;
	default:
		(void)shutdown(child->watch, SHUT_RDWR);
		enter(child, PP_CHILD_LEFT);
		break;
	}
}

bool pp_child_is_over(const struct pp_child *child)
{
	return child->stage == PP_CHILD_OVER || child->stage == PP_CHILD_LEFT;
}

/* The last line that says something. */
static void last_words(const struct pp_child *child, char *ret, size_t size)
{
	char text[PP_CHILD_SAID + 1], *line;

	memcpy(text, child->said, child->said_len);
	text[child->said_len] = '\0';
	line = pp_trim(text);
	line = strrchr(line, '\n') ? strrchr(line, '\n') + 1 : line;
	pp_sanitize(line, false);
	(void)snprintf(ret, size, "%s", line);
}

void pp_child_fate(const struct pp_child *child, char *ret, size_t size)
{
	char words[PP_CHILD_SAID + 1], how[96] = "";

	last_words(child, words, sizeof(words));
	if (child->stage == PP_CHILD_LEFT)
		(void)snprintf(how, sizeof(how),
			       "does not end (pid %d, stuck in a driver), and is left behind",
			       (int)child->pid);
	else if (child->stage == PP_CHILD_OVER && WIFSIGNALED(child->status))
		(void)snprintf(how, sizeof(how), "was killed by signal %d (%s)",
			       WTERMSIG(child->status), sigabbrev_np(WTERMSIG(child->status)));
	else if (child->stage == PP_CHILD_OVER && WEXITSTATUS(child->status))
		(void)snprintf(how, sizeof(how), "ended with status %d",
			       WEXITSTATUS(child->status));
	if (how[0] && words[0])
		(void)snprintf(ret, size, "%s; its last words: %s", how, words);
	else
		(void)snprintf(ret, size, "%s", how);
}

void pp_child_done(struct pp_child *child)
{
	if (child->watch >= 0)
		(void)close(child->watch);
	if (child->from >= 0)
		(void)close(child->from);
	child->watch = child->from = -1;
}
