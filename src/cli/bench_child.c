/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench_child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/parse.h"
#include "bundle/tree.h"
#include "cli/child_answer.h"
#include "cli/interrupt.h"
#include "cli/session.h"
#include "base/banned.h"

enum { DOCUMENT_MOST = 64 << 20, WORDS = 64, ARENA_MOST = 1 << 20 };

/* Options that prove has in common with bench, and hands on. */
static const char *const handed[] = {"token-file", "port",     "device",  "gpu",    "busy-ok",
				     "size",	   "duration", "repeats", "policy", "no-probes"};

/* The descriptor that takes the reason. */
static const char WHY[] = "PEERPATH_BENCH_WHY";

/* What the parent reads: the document, and the reason why there is none. */
struct pipes {
	int out[2], why[2];
};

struct words {
	char *at[WORDS]; /* NULL-terminated */
	size_t n;
	struct pp_arena arena; /* of those that were put together */
};

static void add(struct words *w, const char *word)
{
	if (word && w->n < WORDS - 1)
		w->at[w->n++] = (char *)(uintptr_t)word;
}

/* The child's command line; its words are others' or the arena's. */
static void command(const struct pp_args *args, char *self, struct pp_bench_child *c,
		    struct words *w)
{
	bool simulate = pp_args_has(args, "simulate");

	add(w, self);
	add(w, "bench");
	add(w, "--json");
	add(w, "--negative");
	if (simulate)
		add(w, "--simulate");
	if (c->kept.path[0]) {
		add(w, "--keep");
		add(w, c->kept.path);
	}
	for (size_t i = 0; i < PP_ARRAY_LEN(handed); i++) {
		const char *value = pp_args_get(args, handed[i]);

		if (!pp_args_has(args, handed[i]))
			continue;
		add(w, pp_arena_printf(&w->arena, "--%s%s%s", handed[i], value ? "=" : "",
				       value ? value : ""));
	}
	add(w, "--");
	for (size_t i = 0; i < pp_args_count(args, "peer"); i++)
		add(w, pp_args_nth(args, "peer", i));
}

static void close_end(struct pipes *p, unsigned int end)
{
	if (p->out[end] >= 0)
		(void)close(p->out[end]);
	if (p->why[end] >= 0)
		(void)close(p->why[end]);
}

static PP_NORETURN void become(char **argv, const struct pipes *p, pid_t parent)
{
	char number[16];

	pp_interrupt_release();
	/* Killed, we tell it nothing any more; and it survives what executes it anew. */
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(PP_EXIT_INTERNAL);
	(void)snprintf(number, sizeof(number), "%d", p->why[1]);
	if (dup2(p->out[1], STDOUT_FILENO) < 0 || fcntl(p->why[1], F_SETFD, 0) ||
	    setenv(WHY, number, 1))
		_exit(PP_EXIT_INTERNAL);
	(void)execv(argv[0], argv);
	_exit(PP_EXIT_INTERNAL);
}

static int start(char **argv, pid_t *ret_pid, struct pipes *ret)
{
	struct pipes p = {{-1, -1}, {-1, -1}};
	pid_t pid = -1, parent = getpid();
	int r;

	/* Who started us may have had children ignored: then none could be waited for. */
	(void)signal(SIGCHLD, SIG_DFL);
	r = pipe2(p.out, O_CLOEXEC) || pipe2(p.why, O_CLOEXEC | O_NONBLOCK) ? -errno : 0;
	if (!r) {
		pid = fork();
		r = pid < 0 ? -errno : 0;
	}
	if (!pid)
		become(argv, &p, parent);
	close_end(&p, 1);
	if (r) {
		close_end(&p, 0);
		return r;
	}
	*ret_pid = pid;
	*ret = p;
	return 0;
}

static void take_why(int fd, struct pp_bench_child *c)
{
	ssize_t n = read(fd, c->why, sizeof(c->why) - 1);

	c->why[n > 0 ? n : 0] = '\0';
	pp_sanitize(c->why, false);
	if (n <= 0)
		(void)snprintf(c->why, sizeof(c->why), "bench ended with status %d", c->status);
}

/* Takes the document apart; what is none is the reason why there was no run. */
static void take(struct pp_buf *text, struct pp_bench_child *c)
{
	struct pp_error err = {0};
	json_error_t where;
	json_t *document;

	if (!text->len)
		return;
	document = text->failed ? NULL : json_loadb(text->data, text->len, 0, &where);
	if (!document)
		(void)snprintf(c->why, sizeof(c->why), "bench wrote no whole document");
	else if (pp_bench_read(document, &c->bench, &err))
		(void)snprintf(c->why, sizeof(c->why), "bench: %s", err.text);
	else
		c->document = pp_take(text->data);
	json_decref(document);
}

static int make_place(const struct pp_args *args, struct pp_bench_child *c)
{
	struct pp_error err = {0};

	return pp_place_make(PP_PLACE_NODES, &c->kept, &err)
		       ? pp_complain(args, PP_EXIT_INTERNAL, "%s", err.text)
		       : 0;
}

int pp_bench_child_run(const struct pp_args *args, bool keep, struct pp_bench_child *ret)
{
	struct pp_bench_child c = {0};
	PP_AUTO_BUF struct pp_buf text = PP_BUF(DOCUMENT_MOST);
	struct words w = {.arena = PP_ARENA(ARENA_MOST)};
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	struct pipes p;
	int r = keep ? make_place(args, &c) : 0;
	pid_t pid = -1;

	if (r)
		return r;
	self[n < 0 ? 0 : n] = '\0';
	command(args, self, &c, &w);
	r = w.arena.failed ? -ENOMEM : start(w.at, &pid, &p);
	pp_arena_done(&w.arena);
	if (r) {
		pp_bench_child_done(&c);
		return pp_complain(args, PP_EXIT_INTERNAL, "bench: %s", strerror(-r));
	}
	pp_child_answer(p.out[0], pid, &text);
	c.status = pp_child_answer_status(pid);
	take_why(p.why[0], &c);
	close_end(&p, 0);
	take(&text, &c);
	*ret = c;
	return 0;
}

/* -1: nobody has started us for gate 2. */
static int why_fd(void)
{
	const char *number = secure_getenv(WHY);
	uint64_t fd;

	return number && !pp_parse_u64(number, STDERR_FILENO + 1, INT_MAX, &fd) ? (int)fd : -1;
}

bool pp_bench_child_tell(const char *why)
{
	int fd = why_fd();

	if (fd >= 0)
		(void)!write(fd, why, strlen(why));
	return fd >= 0;
}

void pp_bench_child_leave(const struct pp_args *args)
{
	const char *kept = pp_args_get(args, "keep");
	struct pollfd p = {.fd = why_fd()};

	/* An error: nobody reads any more. Only what was made so is removed. */
	if (p.fd < 0 || !kept || !pp_place_is(PP_PLACE_NODES, kept))
		return;
	if (poll(&p, 1, 0) == 1 && (p.revents & POLLERR))
		(void)pp_tree_remove(AT_FDCWD, kept);
}

void pp_bench_child_done(struct pp_bench_child *c)
{
	pp_bench_free(c->bench);
	free(c->document);
	pp_place_done(&c->kept);
	*c = (struct pp_bench_child){0};
}
