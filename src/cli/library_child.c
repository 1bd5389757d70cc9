/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/library_child.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/parse.h"
#include "cli/child_answer.h"
#include "cli/interrupt.h"
#include "cli/session.h"
#include "base/banned.h"

enum { DOCUMENT_MOST = 64 << 20, WHY_MOST = 16 << 10, WORDS = 32, VARIABLES = 8, SIZES = 64 };

/* A command line and what is set for it: texts are others' or the arena's. */
struct words {
	char *at[WORDS + 1];
	size_t n;
	struct {
		const char *name, *value;
	} set[VARIABLES];
	size_t n_set;
	struct pp_arena arena;
};

/* Each arm ends by itself. What is simulated has this node's GPUs, and memory that is copied. */
static const char *const always[] = {"nccl", "run", "--json", "--quiet", "--timeout=120s"};
static const char *const simulated[] = {"--simulate", "--controls", "--iters=5"};
static const char *const ranks[][2] = {{"--ranks=2", "--one-gpu"}, {"--gpus=2", "--apart"}};
static const char *const real[] = {"--iters=10"};
static const char *const simulated_sizes[] = {"--minbytes=8", "--maxbytes=16M", "--stepfactor=8"};
static const char *const real_sizes[] = {"--minbytes=8", "--maxbytes=128M", "--stepfactor=8"};

static void add(struct words *w, const char *word)
{
	if (word && w->n < WORDS)
		w->at[w->n++] = (char *)(uintptr_t)word;
}

static void add_option(struct words *w, const char *name, const char *value)
{
	if (value)
		add(w, pp_arena_printf(&w->arena, "--%s=%s", name, value));
}

static void set(struct words *w, const char *name, const char *value)
{
	w->set[w->n_set].name = name;
	w->set[w->n_set++].value = value;
}

static void set_number(struct words *w, const char *name, unsigned int value)
{
	set(w, name, pp_arena_printf(&w->arena, "%u", value));
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* bench takes sizes in any order; NCCL's table has them grow. What is no size goes as it is. */
static const char *in_order(struct words *w, const char *list)
{
	uint64_t size[SIZES];
	const char *text = "";
	char word[32];
	size_t n = 0, len;

	for (const char *at = list; *at; at += len + (at[len] == ',')) {
		len = strcspn(at, ",");
		(void)snprintf(word, sizeof(word), "%.*s", (int)(len < 31 ? len : 31), at);
		if (n == SIZES || pp_parse_size(word, INT64_MAX, &size[n]))
			return list;
		n++;
	}
	qsort(size, n, sizeof(*size), by_size);
	for (size_t i = 0; i < n; i++)
		if (!i || size[i] != size[i - 1])
			text = pp_arena_printf(&w->arena, "%s%s%" PRIu64, text, *text ? "," : "",
					       size[i]);
	return text;
}

static void make_words(const struct pp_library_job *job, char *self, struct words *w)
{
	add(w, self);
	for (size_t i = 0; i < PP_ARRAY_LEN(always); i++)
		add(w, always[i]);
	for (size_t i = 0; job->simulate && i < PP_ARRAY_LEN(simulated); i++)
		add(w, simulated[i]);
	for (size_t i = 0; job->simulate && i < PP_ARRAY_LEN(ranks[0]); i++)
		add(w, ranks[job->two_gpus][i]);
	for (size_t i = 0; !job->simulate && i < PP_ARRAY_LEN(real); i++)
		add(w, real[i]);
	for (size_t i = 0; !job->sizes && i < PP_ARRAY_LEN(real_sizes); i++)
		add(w, job->simulate ? simulated_sizes[i] : real_sizes[i]);
	if (job->sizes)
		add_option(w, "sizes", in_order(w, job->sizes));
	add_option(w, "arm", job->arm);
	add_option(w, "gpu", job->gpu);
	add_option(w, "keep-logs", job->logs);
	if (job->busy_ok)
		add(w, "--busy-ok");
	if (!job->size)
		return;
	set_number(w, "PEERPATH_RANK", job->rank);
	set_number(w, "PEERPATH_SIZE", job->size);
	set(w, "PEERPATH_COORDINATOR", job->coordinator);
	set(w, "PEERPATH_JOB", job->name);
	set(w, "PEERPATH_TOKEN", job->token);
}

static PP_NORETURN void become(const struct words *w, int out, int why, pid_t parent)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	bool bad = null < 0 || dup2(null, STDIN_FILENO) < 0;

	pp_interrupt_release();
	/*
	 * Who ends the node's process kills its group at once; this one has a job to end first, and
	 * logs to remove. So it hears of Ctrl-C by us alone, and reads from no terminal.
	 */
	(void)setpgid(0, 0);
	/* Killed, we tell it nothing any more. */
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	for (size_t i = 0; i < w->n_set; i++)
		bad |= setenv(w->set[i].name, w->set[i].value, 1) != 0;
	if (bad || getppid() != parent || dup2(out, STDOUT_FILENO) < 0 ||
	    dup2(why, STDERR_FILENO) < 0)
		_exit(PP_EXIT_INTERNAL);
	(void)execv(w->at[0], w->at);
	_exit(PP_EXIT_INTERNAL);
}

/* Standard error goes to a file: a pipe that nobody reads in time would hold the child up. */
static int start(const struct words *w, int why, pid_t *ret_pid, int *ret_fd)
{
	pid_t pid, parent = getpid();
	int fds[2];

	(void)signal(SIGCHLD, SIG_DFL);
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (!pid)
		become(w, fds[1], why, parent);
	(void)close(fds[1]);
	if (pid < 0) {
		(void)close(fds[0]);
		return -EAGAIN;
	}
	*ret_pid = pid;
	*ret_fd = fds[0];
	return 0;
}

/* The last line of ours in @text, since what NCCL and its job print goes there too; else the last
 * one. */
static const char *last_line(char *text)
{
	static const char OURS[] = "peerpath nccl";
	char *line, *next, *last = NULL, *ours = NULL;

	for (line = text; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (!strncmp(line, OURS, sizeof(OURS) - 1))
			ours = line;
		if (*pp_trim(line))
			last = line;
	}
	if (ours && strstr(ours, ": "))
		return strstr(ours, ": ") + 2;
	return last ? last : "";
}

static void take_why(int fd, struct pp_library_done *d)
{
	char *PP_AUTO_FREE text = malloc(WHY_MOST);
	off_t all = lseek(fd, 0, SEEK_END), from = all > WHY_MOST - 1 ? all - (WHY_MOST - 1) : 0;
	ssize_t n = text ? pread(fd, text, WHY_MOST - 1, from) : 0;
	const char *line = "";

	if (text) {
		text[n > 0 ? n : 0] = '\0';
		line = last_line(text);
	}
	if (*line)
		(void)snprintf(d->why, sizeof(d->why), "%s", line);
	else if (d->status)
		(void)snprintf(d->why, sizeof(d->why), "nccl run ended with status %d", d->status);
	pp_sanitize(d->why, false);
}

static int run(const struct words *w, struct pp_library_done *d)
{
	int PP_AUTO_CLOSE errors = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	struct pp_buf text = PP_BUF(DOCUMENT_MOST);
	pid_t pid = -1;
	int fd = -1, r;

	if (errors < 0)
		errors = open("/dev/null", O_RDWR | O_CLOEXEC);
	r = errors < 0 ? -errno : start(w, errors, &pid, &fd);
	if (r)
		return r;
	pp_child_answer(fd, pid, &text);
	(void)close(fd);
	d->status = pp_child_answer_status(pid);
	take_why(errors, d);
	pp_buf_char(&text, '\0');
	if (text.failed || text.len <= 1) {
		pp_buf_done(&text);
		return 0;
	}
	d->len = text.len - 1;
	d->document = text.data;
	return 0;
}

int pp_library_child_run(const struct pp_library_job *job, struct pp_library_done *ret)
{
	struct words w = {.arena = PP_ARENA(1 << 20)};
	struct pp_library_done d = {.status = -1};
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int r;

	self[n < 0 ? 0 : n] = '\0';
	make_words(job, self, &w);
	r = w.arena.failed ? -ENOMEM : run(&w, &d);
	pp_arena_done(&w.arena);
	if (!r)
		*ret = d;
	return r;
}
