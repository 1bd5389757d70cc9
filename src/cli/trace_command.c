/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace -- CMD: probes first, then CMD, then the table of what it has registered. CMD keeps its
 * terminal and gets its signals; it ends with us.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/parse.h"
#include "cli/interrupt.h"
#include "cli/soft_program.h"
#include "cli/trace_show.h"
#include "node/library.h"
#include "base/banned.h"

enum { ANCESTORS = 64, PATHS_LIMIT = 1 << 20 };
static const char LIBRARY[] = "libibverbs.so.1";
static const pp_ns LOOK_EACH = 250 * PP_MILLISECOND, PATIENCE = 2 * PP_SECOND;
/* Events are read so often. Nobody waits for them: each would wake a reader, at CMD's expense. */
enum { READ_EACH_MS = 25 };

static PP_NORETURN void become(const struct pp_tracing *t, char *const *argv, pid_t parent,
			       int told)
{
	int e;

	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	/* One document on standard output: what CMD prints goes beside it. */
	if (pp_args_has(t->args, "json"))
		(void)dup2(STDERR_FILENO, STDOUT_FILENO);
	pp_interrupt_release();
	(void)signal(SIGINT, SIG_DFL);
	(void)signal(SIGTERM, SIG_DFL);
	(void)execvp(argv[0], argv);
	e = errno;
	(void)!write(told, &e, sizeof(e));
	_exit(127);
}

static int start(const struct pp_tracing *t, pid_t *ret)
{
	size_t n = pp_args_operands(t->args);
	char **PP_AUTO_FREE argv = calloc(n + 1, sizeof(*argv));
	char why[128];
	pid_t parent = getpid(), pid;
	int told[2], e = 0;

	if (!argv || pipe2(told, O_CLOEXEC))
		return pp_complain(t->args, PP_EXIT_INTERNAL, "cannot start '%s': %s",
				   pp_args_operand(t->args, 0), strerror(errno));
	for (size_t i = 0; i < n; i++)
		argv[i] = (char *)(uintptr_t)pp_args_operand(t->args, i);
	(void)signal(SIGCHLD, SIG_DFL);
	pid = fork();
	if (!pid)
		become(t, argv, parent, told[1]);
	if (pid < 0)
		e = errno;
	(void)close(told[1]);
	if (pid > 0 && read(told[0], &e, sizeof(e)) > 0)
		(void)waitpid(pid, NULL, 0);
	(void)close(told[0]);
	if (e)
		return pp_complain(t->args, PP_EXIT_USAGE, "'%s': %s", argv[0],
				   pp_soft_program_why(argv[0], e, why, sizeof(why)));
	*ret = pid;
	return 0;
}

/* Parent of a process; 0 when it is gone. */
static pid_t parent_of(pid_t pid)
{
	char path[64], text[1024], *at;
	uint64_t n = 0;
	ssize_t len;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		(void)close(fd);
	if (len <= 0)
		return 0;
	text[len] = '\0';
	/* "pid (name) state parent ...": the name may hold anything. */
	at = strrchr(text, ')');
	if (!at || strlen(at) < 5)
		return 0;
	at += 4;
	at[strcspn(at, " ")] = '\0';
	return pp_parse_u64(at, 1, INT32_MAX, &n) ? 0 : (pid_t)n;
}

static bool is_below(pid_t pid, pid_t top)
{
	for (int i = 0; pid > 1 && i < ANCESTORS; i++) {
		if (pid == top)
			return true;
		pid = parent_of(pid);
	}
	return false;
}

/* Keeps the rows of CMD and of what it has started. */
static void keep_below(struct pp_trace_table *t, pid_t top)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n_processes; i++)
		if (t->process[i].pid && is_below(t->process[i].pid, top))
			t->process[n++] = t->process[i];
	t->n_processes = n;
	n = 0;
	for (size_t i = 0; i < t->n; i++)
		for (size_t k = 0; k < t->n_processes; k++)
			if (t->process[k].pid == t->region[i].pid) {
				t->region[n++] = t->region[i];
				break;
			}
	t->n = n;
}

/* A look while CMD runs; the one with rows of it replaces the one before. */
static int look(struct pp_tracing *t, pid_t top, struct pp_trace *kept, bool *ret_kept)
{
	int code = pp_tracing_look(t);

	if (code)
		return code;
	keep_below(&t->look.table, top);
	if (t->look.table.n || !*ret_kept) {
		if (*ret_kept)
			pp_trace_done(kept);
		*kept = t->look;
		*ret_kept = true;
		t->looked = false;
	}
	return 0;
}

static bool reap(struct pp_tracing *t, pid_t pid)
{
	if (!t->ended && waitpid(pid, &t->status, WNOHANG) == pid)
		t->ended = true;
	return t->ended;
}

/* Interrupted: CMD is asked to end, then made to. */
static void end(struct pp_tracing *t, pid_t pid)
{
	pp_ns until = pp_clock_monotonic() + PATIENCE;

	if (reap(t, pid))
		return;
	(void)kill(pid, SIGTERM);
	while (!reap(t, pid) && pp_clock_monotonic() < until)
		(void)poll(NULL, 0, 20);
	if (t->ended)
		return;
	(void)kill(pid, SIGKILL);
	t->ended = waitpid(pid, &t->status, 0) == pid;
}

/* Of the regions that probes saw begin, all are CMD's: they watch it and what it starts. */
static void keep_watched(struct pp_trace_table *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		if (t->region[i].added)
			t->region[n++] = t->region[i];
	t->n = n;
	n = 0;
	for (size_t i = 0; i < t->n_processes; i++)
		for (size_t k = 0; k < t->n; k++)
			if (t->process[i].pid == t->region[k].pid) {
				t->process[n++] = t->process[i];
				break;
			}
	t->n_processes = n;
}

/* With probes: their events until it ends, then one look. */
static int run_probed(struct pp_tracing *t, struct pp_trace *kept, bool *ret_kept)
{
	struct pp_error err = {0};
	pid_t pid = 0;
	int code = start(t, &pid);

	if (code)
		return code;
	while (!pp_interrupted() && !reap(t, pid)) {
		(void)poll(NULL, 0, READ_EACH_MS);
		(void)pp_prober_drain(t->prober, &err);
	}
	end(t, pid);
	(void)pp_prober_drain(t->prober, &err);
	code = pp_tracing_look(t);
	if (code)
		return code;
	keep_watched(&t->look.table);
	*kept = t->look;
	*ret_kept = true;
	t->looked = false;
	return 0;
}

static int run(struct pp_tracing *t, struct pp_trace *kept, bool *ret_kept)
{
	pp_ns next = pp_clock_monotonic() + LOOK_EACH / 4;
	pid_t pid = 0;
	int code = start(t, &pid);

	if (code)
		return code;
	while (!code && !pp_interrupted() && !reap(t, pid)) {
		(void)poll(NULL, 0, 20);
		if (pp_clock_monotonic() < next)
			continue;
		code = look(t, pid, kept, ret_kept);
		next = pp_clock_monotonic() + LOOK_EACH;
	}
	end(t, pid);
	return code ? code : *ret_kept ? 0 : look(t, pid, kept, ret_kept);
}

/* The library that CMD will load, most likely: it may have a path of its own. */
static void find_library(struct pp_tracing *t)
{
	struct pp_arena arena = PP_ARENA(PATHS_LIMIT);
	struct pp_library_path path;
	struct utsname machine;
	size_t at = 0;

	pp_library_path_init(t->session.src, &arena, getenv("LD_LIBRARY_PATH"),
			     uname(&machine) ? NULL : machine.machine, &path);
	if (pp_library_find(t->session.src, &path, LIBRARY, &at, t->library))
		t->library[0] = '\0';
	pp_arena_done(&arena);
}

/* Why something was not watched, where nobody has said it. */
static void explain(struct pp_tracing *t)
{
	struct pp_surface_report *live = &t->look.table.surface[PP_SURFACE_LIVE_PROBE],
				 *library = &t->look.table.surface[PP_SURFACE_LIBRARY];

	t->sampled = live->state != PP_SURFACE_READ;
	if (t->sampled && !*live->why)
		(void)snprintf(live->why, sizeof(live->why),
			       "no probe saw it from the start: looked four times a second");
	if (*t->library || library->state != PP_SURFACE_UNASKED)
		return;
	library->state = PP_SURFACE_ABSENT;
	(void)snprintf(library->why, sizeof(library->why), "the loader would find no %s", LIBRARY);
}

int pp_trace_command(struct pp_tracing *t)
{
	struct pp_trace kept = {0};
	bool has = false;
	int code;

	find_library(t);
	pp_tracing_probe(t, /* live= */ true);
	code = t->prober ? run_probed(t, &kept, &has) : run(t, &kept, &has);
	pp_tracing_unprobe(t);
	if (t->looked)
		pp_trace_done(&t->look);
	t->looked = has;
	t->look = kept;
	if (code)
		return code;
	explain(t);
	code = pp_trace_logs_judge(t->args, &t->look.table, &t->logs);
	if (code)
		return code;
	pp_tracing_show(t);
	t->session.answered = true;
	return pp_interrupted() ? PP_EXIT_INTERRUPTED : pp_tracing_verdict(t);
}
