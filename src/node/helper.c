/* SPDX-License-Identifier: Apache-2.0 */
#include "node/helper.h"

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

#include "base/fd.h"
#include "node/ask.h"
#include "base/banned.h"

enum { MAX_ANSWER = 16 << 20, READ_SIZE = 16384, REAP_TRIES = 20 };

/* In the helper only: where pp_ask_doing() reports. -1 in the parent. */
static int doing_fd = -1;

void pp_ask_doing(const char *call)
{
	char line[128] = "";

	if (doing_fd < 0)
		return;
	(void)snprintf(line, sizeof(line), "%s", call);
	(void)!write(doing_fd, line, sizeof(line));
}

static int shed[PP_HELPERS_SHED];
static unsigned int n_shed;

void pp_helper_shed(int fd)
{
	if (n_shed < PP_HELPERS_SHED)
		shed[n_shed++] = fd;
}

void pp_helper_shed_no_more(int fd)
{
	for (unsigned int i = 0; i < n_shed; i++)
		if (shed[i] == fd)
			shed[i--] = shed[--n_shed];
}

/*
 * Runs in the helper and does not return. The object is followed by a line break and one digit, 0
 * answered or 1 failed; then the pipe is closed by hand, since leaving a process that a driver
 * knows can take long (an H200 node: half a second), and the answer is whole already.
 */
static PP_NORETURN void helper(const struct pp_question *q, pid_t parent, int out, int doing)
{
	struct pp_buf buf = PP_BUF(MAX_ANSWER);
	struct pp_json j = PP_JSON(&buf, false);
	struct pp_error err = {0};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), r;

	for (unsigned int i = 0; i < n_shed; i++)
		(void)close(shed[i]);
	/* Libraries print; the parent's output is a document. */
	if (null >= 0) {
		(void)dup2(null, STDIN_FILENO);
		(void)dup2(null, STDOUT_FILENO);
		(void)dup2(null, STDERR_FILENO);
	}
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* It may have died before the kernel was told. */
	if (getppid() != parent)
		_exit(1);
	(void)signal(SIGPIPE, SIG_DFL);
	doing_fd = doing;
	pp_json_object(&j, NULL);
	r = q->run(&j, q->arg, &err);
	while (j.depth > 1)
		pp_json_end_object(&j);
	if (r && err.text[0])
		pp_json_str(&j, "failure", err.text);
	pp_json_end_object(&j);
	pp_buf_str(&buf, r ? "\n1" : "\n0");
	if (!buf.failed)
		(void)pp_fd_write(out, buf.data, buf.len);
	(void)close(out);
	_exit(0);
}

/* One poll round; true while more may come. */
static bool drain(struct pp_reply *reply, struct pollfd fds[2], pp_ns left)
{
	char part[READ_SIZE];
	ssize_t n;
	int ms = (int)((left + PP_MILLISECOND - 1) / PP_MILLISECOND);

	if (poll(fds, 2, ms) < 0)
		return errno == EINTR;
	if (fds[1].revents) {
		n = read(fds[1].fd, part, sizeof(reply->doing));
		if (n == (ssize_t)sizeof(reply->doing)) {
			memcpy(reply->doing, part, sizeof(reply->doing));
			reply->since = pp_clock_monotonic();
		} else {
			fds[1].fd = -1;
		}
		return true;
	}
	if (!fds[0].revents)
		return true;
	n = read(fds[0].fd, part, sizeof(part));
	if (n > 0)
		pp_buf_add(&reply->data, part, (size_t)n);
	return n > 0;
}

/* Takes the closing digit off the reply; false when it is not whole. */
static bool whole(struct pp_reply *reply)
{
	struct pp_buf *b = &reply->data;
	char digit;

	if (b->failed || b->len < 2 || b->data[b->len - 2] != '\n')
		return false;
	digit = b->data[b->len - 1];
	b->len -= 2;
	b->data[b->len] = '\0';
	reply->outcome = digit == '0' ? PP_ANSWERED : PP_FAILED;
	return digit == '0' || digit == '1';
}

/* Reaps a helper that has closed its pipe; -1: it does not die. */
static int reap(pid_t pid)
{
	const struct timespec pause = {.tv_nsec = PP_MILLISECOND};
	int status;

	for (int i = 0; i < REAP_TRIES; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return status;
		(void)nanosleep(&pause, NULL);
	}
	return -1;
}

static void blame(struct pp_reply *reply, const char *name, int status, pp_ns waited)
{
	const char *call = reply->doing[0] ? reply->doing : name;

	if (reply->outcome == PP_TIMEOUT)
		(void)snprintf(reply->detail, sizeof(reply->detail), "%s did not return in %lld ms",
			       call, (long long)(waited / PP_MILLISECOND));
	else if (status == -1)
		(void)snprintf(reply->detail, sizeof(reply->detail), "%s: its process does not end",
			       call);
	else if (WIFSIGNALED(status))
		(void)snprintf(reply->detail, sizeof(reply->detail),
			       "%s crashed with signal %d (%s)", call, WTERMSIG(status),
			       sigabbrev_np(WTERMSIG(status)));
	else
		(void)snprintf(reply->detail, sizeof(reply->detail),
			       "%s: the helper ended without a whole answer", call);
}

static int pipes(int out[2], int doing[2])
{
	if (pipe2(out, O_CLOEXEC))
		return -errno;
	if (pipe2(doing, O_CLOEXEC)) {
		int r = -errno;

		(void)close(out[0]);
		(void)close(out[1]);
		return r;
	}
	return 0;
}

int pp_helper_start(const struct pp_question *q, struct pp_helper *ret)
{
	int out[2], doing[2], r = pipes(out, doing);
	pid_t parent = getpid(), pid;

	if (r)
		return r;
	(void)fflush(NULL);
	pid = fork();
	if (pid == 0)
		helper(q, parent, out[1], doing[1]);
	r = pid < 0 ? -errno : 0;
	(void)close(out[1]);
	(void)close(doing[1]);
	if (r) {
		(void)close(out[0]);
		(void)close(doing[0]);
		return r;
	}
	*ret = (struct pp_helper){.name = q->name, .pid = pid, .out = out[0], .doing = doing[0]};
	return 0;
}

/* Gone, or never ours to reap: who started us may have children ignored. */
static bool has_left(pid_t pid)
{
	return waitpid(pid, NULL, WNOHANG) != 0;
}

static void let_go(struct pp_helper *h)
{
	(void)close(h->out);
	(void)close(h->doing);
	if (h->pid && has_left(h->pid))
		h->pid = 0;
}

void pp_helper_abandon(struct pp_helper *h)
{
	if (h->pid)
		(void)kill(h->pid, SIGKILL);
	let_go(h);
}

static void reap_left(struct pp_helpers *all)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < all->n_leaving; i++)
		if (!has_left(all->leaving[i]))
			all->leaving[kept++] = all->leaving[i];
	all->n_leaving = kept;
}

void pp_helpers_note(struct pp_helpers *all, const struct pp_helper *h)
{
	reap_left(all);
	if (h->pid && all->n_leaving < PP_HELPERS_LEAVING)
		all->leaving[all->n_leaving++] = h->pid;
}

void pp_helpers_stuck(struct pp_helpers *all, const char *detail)
{
	if (all->n_stuck < PP_HELPERS_STUCK)
		(void)snprintf(all->stuck[all->n_stuck++], sizeof(all->stuck[0]), "%s", detail);
}

void pp_helpers_done(struct pp_helpers *all)
{
	const struct timespec pause = {.tv_nsec = PP_MILLISECOND};

	for (unsigned int i = 0; i < all->n; i++) {
		pp_helper_abandon(&all->list[i]);
		pp_helpers_note(all, &all->list[i]);
	}
	all->n = 0;
	for (int i = 0; i < REAP_TRIES && all->n_leaving; i++) {
		reap_left(all);
		if (all->n_leaving)
			(void)nanosleep(&pause, NULL);
	}
}

void pp_helper_wait(struct pp_helper *h, pp_ns limit, pp_ns end, struct pp_reply *reply)
{
	struct pollfd fds[2] = {{.fd = h->out, .events = POLLIN},
				{.fd = h->doing, .events = POLLIN}};
	pp_ns left = limit, now;
	int status;

	reply->data = PP_BUF(MAX_ANSWER);
	reply->since = pp_clock_monotonic();
	while (left > 0 && drain(reply, fds, left)) {
		now = pp_clock_monotonic();
		left = reply->since + limit < end ? reply->since + limit - now : end - now;
	}
	if (left > 0 && whole(reply)) {
		let_go(h);
		return;
	}
	if (left <= 0) {
		pp_helper_abandon(h);
		reply->outcome = PP_TIMEOUT;
		blame(reply, h->name, 0, reply->since + limit < end ? limit : end - reply->since);
		return;
	}
	status = reap(h->pid);
	h->pid = status == -1 ? h->pid : 0;
	pp_helper_abandon(h);
	reply->outcome = PP_CRASHED;
	blame(reply, h->name, status, 0);
}
