/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/apart.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"
#include "daemon/apart_answer.h"
#include "daemon/watch.h"
#include "base/banned.h"

/* Texts of a look, as many as in the monitor, and their lengths. */
enum { TEXTS = 16 << 20, ANSWER = 20 << 20, PIECE = 16 << 10, DOING = 256, REAP_TRIES = 20 };

/* The first look is waited for, so that it is in the first round. Later ones come at the next look
 * where they need longer than a disk does. What has not come within LIMIT is a call that hangs. */
static const pp_ns LIMIT = 5 * PP_SECOND, MOMENT = 200 * PP_MILLISECOND;

struct pp_apart {
	const struct pp_watcher *w;
	pid_t pid, leaving; /* 0: there is none; one that was let go and is not gone */
	int fd;
	bool waiting, answered; /* asked and no answer yet; an answer came ever */
	pp_ns asked;
	struct pp_buf answer; /* a size_t of length first */
	char *doing;	      /* shared with the process: its last call */
	char ended[160];      /* why the last process is gone; "" it is not */
};

struct request {
	int64_t now_ns, wall_ns;
};

/* In the process only; in the monitor NULL. */
static char *doing_page;

void pp_apart_doing(const char *call, const char *path)
{
	if (doing_page)
		(void)snprintf(doing_page, DOING, "%s '%s'", call, path);
}

static bool transfer(int fd, void *bytes, size_t len, bool out)
{
	char *at = bytes;

	while (len) {
		ssize_t n = out ? send(fd, at, len, MSG_NOSIGNAL) : recv(fd, at, len, 0);

		if (n == 0 || (n < 0 && errno != EINTR))
			return false;
		at += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return true;
}

/* What the monitor remembered when the process began, and what it is to remember from now on. */
struct memory {
	const struct pp_watch_context *monitor;
	struct pp_buf *answer;
};

static const char *recall(void *ctx, const char *watcher, const char *key)
{
	const struct memory *m = ctx;

	return pp_watch_recall(m->monitor, watcher, key);
}

static int remember(void *ctx, const char *watcher, const char *key, const char *value)
{
	const struct memory *m = ctx;

	pp_apart_put_mark(m->answer, watcher, key, value);
	return m->answer->failed;
}

/* The answer to one request, behind its length. False: it could not be made, or nobody wants it. */
static bool answer_one(int fd, const struct pp_watcher *w, struct pp_watch_context *at,
		       void **state)
{
	struct pp_arena arena = PP_ARENA(TEXTS);
	struct pp_looks looks = {.arena = &arena};
	struct pp_buf PP_AUTO_BUF answer = PP_BUF(ANSWER);
	struct memory memory = {.monitor = at, .answer = &answer};
	struct pp_watch_context mine = *at;
	struct pp_error err = {0};
	size_t len = 0;
	int r;

	pp_buf_add(&answer, &len, sizeof(len));
	mine.recall = recall;
	mine.remember = remember;
	mine.ctx = &memory;
	r = w->look(&mine, state, &looks, &err);
	for (size_t i = 0; !r && i < looks.n; i++)
		pp_apart_put_look(&answer, &looks.looks[i]);
	if (looks.left_out)
		pp_apart_put_left_out(&answer, looks.left_out);
	pp_arena_done(&arena);
	if (r || answer.failed)
		return false;
	len = answer.len - sizeof(len);
	(void)memcpy(answer.data, &len, sizeof(len));
	return transfer(fd, answer.data, answer.len, true);
}

/* Whatever a process that is stuck would keep in use: sockets that listen, the database, locks. */
static void close_but(int one, int other)
{
	unsigned int low = (unsigned int)(one < other ? one : other);
	unsigned int high = (unsigned int)(one < other ? other : one);

	if (low > 3)
		(void)close_range(3, low - 1, 0);
	if (high > low + 1)
		(void)close_range(low < 3 ? 3 : low + 1, high - 1, 0);
	(void)close_range(high + 1, UINT32_MAX, 0);
}

static PP_NORETURN void process(const struct pp_watcher *w, const struct pp_watch_context *monitor,
				int fd, pid_t parent, char *doing)
{
	struct pp_watch_context at = *monitor;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int root = at.source ? pp_source_root_fd(at.source) : -1;
	struct request q;
	void *state = NULL;

	for (int i = 0; i < 3 && null >= 0; i++)
		(void)dup2(null, i);
	close_but(fd, root < 0 ? fd : root);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	/* A terminal's, and an administrator's, are meant for the monitor. */
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGTERM, SIG_DFL);
	(void)prctl(PR_SET_NAME, w->name);
	if (at.source)
		pp_source_set_record(at.source, NULL);
	doing_page = doing;
	while (transfer(fd, &q, sizeof(q), false)) {
		at.now_ns = q.now_ns;
		at.wall_ns = q.wall_ns;
		*doing = '\0';
		if (!answer_one(fd, w, &at, &state))
			_exit(1);
	}
	_exit(0);
}

static int start(struct pp_apart *a, const struct pp_watch_context *at)
{
	int pair[2];
	pid_t parent = getpid(), pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	pid = fork();
	if (pid == 0)
		process(a->w, at, pair[1], parent, a->doing);
	(void)close(pair[1]);
	if (pid < 0) {
		int r = -errno;

		(void)close(pair[0]);
		return r;
	}
	a->pid = pid;
	a->fd = pair[0];
	a->waiting = false;
	return 0;
}

/* A process that exits closes its files, and that too may wait for a server. */
static bool reap(struct pp_apart *a)
{
	const struct timespec pause = {.tv_nsec = PP_MILLISECOND};
	int status;

	for (int i = 0; i < REAP_TRIES; i++) {
		pid_t gone = waitpid(a->leaving, &status, WNOHANG);

		if (gone == a->leaving && WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
			(void)snprintf(a->ended, sizeof(a->ended),
				       "its process ended by signal %d (%s)", WTERMSIG(status),
				       sigabbrev_np(WTERMSIG(status)));
		if (gone) {
			a->leaving = 0;
			return true;
		}
		(void)nanosleep(&pause, NULL);
	}
	(void)snprintf(a->ended, sizeof(a->ended), "its process does not end");
	return false;
}

/* Another begins at the next look, with what was remembered. */
static void let_go(struct pp_apart *a)
{
	(void)kill(a->pid, SIGKILL);
	(void)close(a->fd);
	a->leaving = a->pid;
	a->pid = 0;
	a->fd = -1;
	a->waiting = false;
	(void)snprintf(a->ended, sizeof(a->ended), "its process ended");
	(void)reap(a);
	pp_buf_done(&a->answer);
	a->answer = PP_BUF(ANSWER);
}

/* Bytes that are still to come; less than none: it is no answer of ours. */
static ssize_t missing(const struct pp_apart *a)
{
	size_t len;

	if (a->answer.len < sizeof(len))
		return 1;
	(void)memcpy(&len, a->answer.data, sizeof(len));
	return len > ANSWER ? -1 : (ssize_t)(len + sizeof(len)) - (ssize_t)a->answer.len;
}

/* Until @end at the most, and while bytes come. -EAGAIN: not whole yet; -EPIPE: there will be none.
 */
static int collect(struct pp_apart *a, pp_ns end)
{
	struct pollfd p = {.fd = a->fd, .events = POLLIN};
	char piece[PIECE];
	ssize_t more;

	while ((more = missing(a)) > 0) {
		pp_ns left = end - pp_clock_monotonic();
		ssize_t n = recv(a->fd, piece, sizeof(piece), MSG_DONTWAIT);

		if (n > 0) {
			pp_buf_add(&a->answer, piece, (size_t)n);
			if (a->answer.failed)
				return -EPIPE;
			continue;
		}
		if (n == 0 || (errno != EAGAIN && errno != EINTR))
			return -EPIPE;
		if (left <= 0)
			return -EAGAIN;
		(void)poll(&p, 1, (int)(left / PP_MILLISECOND) + 1);
	}
	return more ? -EPIPE : 0;
}

static int ask(struct pp_apart *a, const struct pp_watch_context *at)
{
	struct request q = {at->now_ns, at->wall_ns};
	int r;

	if (a->leaving && !reap(a))
		return -EPIPE;
	r = a->pid ? 0 : start(a, at);
	if (r) {
		(void)snprintf(a->ended, sizeof(a->ended), "no process can be started for it: %s",
			       strerrordesc_np(-r));
		return -EPIPE;
	}
	a->asked = pp_clock_monotonic();
	a->waiting = true;
	if (transfer(a->fd, &q, sizeof(q), true))
		return collect(a, a->asked + (a->answered ? MOMENT : LIMIT));
	return -EPIPE;
}

static int tell_ended(struct pp_apart *a, const char *name, const struct pp_watch_context *at,
		      struct pp_looks *into)
{
	int r;

	if (a->pid)
		let_go(a);
	r = pp_look_unknown(into, PP_SIGNAL_HUNG_CALL, name, "%s", a->ended);
	return r ? r : a->w->silent(at, into, a->ended);
}

static int tell_silent(const struct pp_apart *a, const char *name,
		       const struct pp_watch_context *at, struct pp_looks *into)
{
	char doing[DOING], why[DOING + 64];
	int r;

	(void)memcpy(doing, a->doing, sizeof(doing));
	doing[sizeof(doing) - 1] = '\0';
	pp_sanitize(doing, false);
	(void)snprintf(why, sizeof(why), "%s did not return in %lld ms",
		       *doing ? doing : "its process", (long long)(LIMIT / PP_MILLISECOND));
	r = pp_look_state(into, PP_SIGNAL_HUNG_CALL, name, why, "did not return");
	return r ? r : a->w->silent(at, into, why);
}

static int tell_answer(struct pp_apart *a, const char *name, const struct pp_watch_context *at,
		       struct pp_looks *into)
{
	int r = pp_apart_take(a->answer.data + sizeof(size_t), a->answer.len - sizeof(size_t), at,
			      into);

	if (r == -EBADMSG)
		return tell_ended(a, name, at, into);
	pp_buf_done(&a->answer);
	a->answer = PP_BUF(ANSWER);
	a->waiting = false;
	a->answered = true;
	return r ? r
		 : pp_look_state(into, PP_SIGNAL_HUNG_CALL, name, NULL, "%s", PP_HUNG_CALL_FINE);
}

static struct pp_apart *make(const struct pp_watcher *w)
{
	struct pp_apart *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->w = w;
	a->fd = -1;
	a->answer = PP_BUF(ANSWER);
	a->doing = mmap(NULL, DOING, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (a->doing == MAP_FAILED) {
		free(a);
		return NULL;
	}
	return a;
}

int pp_apart_look(struct pp_apart **a, const struct pp_watcher *w, const char *name,
		  struct pp_watch_context *at, struct pp_looks *into, bool *ret_looked,
		  struct pp_error *err)
{
	struct pp_apart *p = *a ? *a : (*a = make(w));
	size_t before;
	int r;

	if (!p)
		return pp_error_set(err, -ENOMEM, "out of memory");
	before = p->answer.len;
	r = p->waiting ? collect(p, 0) : ask(p, at);
	*ret_looked = true;
	if (!r)
		r = tell_answer(p, name, at, into);
	else if (r == -EPIPE)
		r = tell_ended(p, name, at, into);
	else if (pp_clock_monotonic() - p->asked >= LIMIT && p->answer.len == before)
		r = tell_silent(p, name, at, into);
	else
		*ret_looked = false;
	if (!*ret_looked)
		return 0;
	return r ? pp_error_set(err, r, "watching %s: %s", name, pp_source_why(r)) : 0;
}

struct pp_apart *pp_apart_free(struct pp_apart *a)
{
	if (!a)
		return NULL;
	/* One that is stuck is left to init. */
	if (a->pid)
		let_go(a);
	pp_buf_done(&a->answer);
	(void)munmap(a->doing, DOING);
	free(a);
	return NULL;
}
