/* SPDX-License-Identifier: Apache-2.0 */
/*
 * witness: the same transfer by perftest's ib_write_bw, where it is installed. End 1 serves, end 0
 * connects and answers "mbytes_per_s" (10^6). A program of others: it has a deadline, and is
 * killed behind it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "bench/agent_state.h"
#include "bench/witness.h"
#include "base/banned.h"

enum { ARGUMENTS = 24, OUTPUT = 65536, TRIES = 20 };
static const pp_ns SLACK = 15 * PP_SECOND, PAUSE = 250 * PP_MILLISECOND;

struct call {
	char number[6][24];
	const char *argv[ARGUMENTS];
};

static void make_call(const struct pp_witness_command *w, struct call *c)
{
	unsigned int n = 0;
	const struct {
		const char *option;
		int64_t value;
	} numbers[] = {{"-i", w->port ? w->port : 1},
		       {"-x", w->gid_index},
		       {"-s", w->size},
		       {"-p", w->tcp_port},
		       {"-D", w->seconds}};

	c->argv[n++] = "ib_write_bw";
	c->argv[n++] = "-F";
	c->argv[n++] = "-d";
	c->argv[n++] = w->device;
	for (unsigned int i = 0; i < PP_ARRAY_LEN(numbers); i++) {
		if (numbers[i].value < 0)
			continue;
		(void)snprintf(c->number[i], sizeof(c->number[i]), "%lld",
			       (long long)numbers[i].value);
		c->argv[n++] = numbers[i].option;
		c->argv[n++] = c->number[i];
	}
	c->argv[n++] = w->peer;
	c->argv[n] = NULL;
}

/*
 * In the child, on the memory of its parent. It goes with it: an agent that is killed has nobody
 * who would end it, and perftest waits for its peer for ever.
 */
static PP_NORETURN void become(const struct call *c, pid_t parent, int null, int out,
			       volatile int *error)
{
	*error = prctl(PR_SET_PDEATHSIG, SIGKILL) || dup2(null, STDIN_FILENO) < 0 ||
				 dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0
			 ? errno
			 : 0;
	/* It may have died before the kernel was told. */
	if (!*error && getppid() == parent) {
		/* execvp() takes strings that it does not change */
		(void)execvp(c->argv[0], (char *const *)(uintptr_t)c->argv);
		*error = errno;
	}
	_exit(127);
}

/*
 * vfork(): after fork() the pages of registered memory would be the child's too, and what is
 * written into them next would not be what the device reads. posix_spawn() has no word for
 * PR_SET_PDEATHSIG.
 */
static int start(const struct call *c, int *ret_fd, pid_t *ret_pid)
{
	int PP_AUTO_CLOSE null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	volatile int error = 0;
	pid_t parent = getpid(), pid;
	int fd[2];

	if (null < 0 || pipe2(fd, O_CLOEXEC))
		return -errno;
	pid = vfork();
	if (!pid)
		become(c, parent, null, fd[1], &error);
	if (pid < 0)
		error = errno;
	(void)close(fd[1]);
	if (error) {
		while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		(void)close(fd[0]);
		return -error;
	}
	*ret_fd = fd[0];
	*ret_pid = pid;
	return 0;
}

/* Reads until it ends. What is beyond the limit is read and dropped. */
static int listen_to(int fd, char *text, pp_ns deadline)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char spare[4096];
	size_t len = 0;
	ssize_t n;

	for (;;) {
		if (pp_clock_monotonic() > deadline || pp_agent_left())
			return -ETIMEDOUT;
		if (poll(&p, 1, 100) <= 0)
			continue;
		n = len + 1 < OUTPUT ? read(fd, text + len, OUTPUT - 1 - len)
				     : read(fd, spare, sizeof(spare));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += len + 1 < OUTPUT ? (size_t)n : 0;
		text[len] = '\0';
	}
	return 0;
}

static int once(const struct call *c, char *text, pp_ns deadline, int *ret_status)
{
	pid_t pid;
	int fd = -1, r = start(c, &fd, &pid);

	*text = '\0';
	if (r)
		return r;
	r = listen_to(fd, text, deadline);
	(void)close(fd);
	if (r)
		(void)kill(pid, SIGKILL);
	while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
		;
	return r;
}

int pp_agent_witness(struct pp_agent *a, const struct pp_command *c, struct pp_json *out,
		     struct pp_error *err)
{
	const struct pp_witness_command *w = &c->witness;
	pp_ns deadline = pp_clock_monotonic() + w->seconds * PP_SECOND + SLACK;
	char *PP_AUTO_FREE text = malloc(OUTPUT);
	struct call call;
	double mbytes;
	int status = 0, r = -EIO;

	if (!text)
		return pp_error_set(err, -ENOMEM, "out of memory");
	a->call = "ib_write_bw";
	make_call(w, &call);
	/* the server may need a moment until it listens */
	for (int i = 0; i < (w->peer ? TRIES : 1); i++) {
		r = once(&call, text, deadline, &status);
		if (r || !status)
			break;
		(void)poll(NULL, 0, (int)(PAUSE / PP_MILLISECOND));
	}
	if (r == -ENOENT)
		return pp_error_set(err, r, "ib_write_bw (perftest) is not installed");
	if (r || status)
		return pp_error_set(err, r ? r : -EIO, "ib_write_bw %s",
				    r == -ETIMEDOUT ? "did not end" : "failed");
	if (!w->peer)
		return 0;
	if (pp_witness_parse(text, (uint64_t)w->size, &mbytes))
		return pp_error_set(err, -EBADMSG, "ib_write_bw printed no row of %lld bytes",
				    (long long)w->size);
	a->call = NULL;
	pp_json_double(out, "mbytes_per_s", mbytes);
	return 0;
}
