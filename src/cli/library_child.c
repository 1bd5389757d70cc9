/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/library_child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/parse.h"
#include "cli/child_answer.h"
#include "cli/interrupt.h"
#include "cli/session.h"
#include "base/banned.h"

enum { DOCUMENT_MOST = 64 << 20, WHY_MOST = 4096, WORDS = 32 };

/* Each arm ends by itself. */
static const char SELF[] = "@SELF";
static const char *const words[] = {SELF,
				    "nccl",
				    "run",
				    "--simulate",
				    "--json",
				    "--quiet",
				    "--controls",
				    "--timeout=120s",
				    "--busy-ok",
				    "--",
				    SELF,
				    "nccl",
				    "perf",
				    "all_reduce",
				    "--ranks=2",
				    "--one-gpu",
				    "--minbytes=8",
				    "--maxbytes=16M",
				    "--stepfactor=8",
				    "--iters=5",
				    "--deadline=100s"};

static PP_NORETURN void become(char **argv, int out, int why, pid_t parent)
{
	pp_interrupt_release();
	/* Killed, we tell it nothing any more. */
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent || dup2(out, STDOUT_FILENO) < 0 || dup2(why, STDERR_FILENO) < 0)
		_exit(PP_EXIT_INTERNAL);
	(void)execv(argv[0], argv);
	_exit(PP_EXIT_INTERNAL);
}

/* Standard error goes to a file: a pipe that nobody reads in time would hold the child up. */
static int start(char **argv, int why, pid_t *ret_pid, int *ret_fd)
{
	pid_t pid, parent = getpid();
	int fds[2];

	(void)signal(SIGCHLD, SIG_DFL);
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (!pid)
		become(argv, fds[1], why, parent);
	(void)close(fds[1]);
	if (pid < 0) {
		(void)close(fds[0]);
		return -EAGAIN;
	}
	*ret_pid = pid;
	*ret_fd = fds[0];
	return 0;
}

/* The last line that it said, else how it ended. */
static void take_why(int fd, int status, char *why, size_t size)
{
	char text[WHY_MOST], *end;
	off_t all = lseek(fd, 0, SEEK_END), from = all > WHY_MOST - 1 ? all - (WHY_MOST - 1) : 0;
	ssize_t n = pread(fd, text, sizeof(text) - 1, from);

	text[n > 0 ? n : 0] = '\0';
	end = pp_trim(text);
	if (strrchr(end, '\n'))
		end = strrchr(end, '\n') + 1;
	pp_sanitize(end, false);
	if (*end)
		(void)snprintf(why, size, "%s", end);
	else
		(void)snprintf(why, size, "nccl run ended with status %d", status);
}

static int run(char **argv, struct pp_buf *text, char *why, size_t size, int *ret_status)
{
	int PP_AUTO_CLOSE errors = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	pid_t pid = -1;
	int fd = -1, r;

	if (errors < 0)
		errors = open("/dev/null", O_RDWR | O_CLOEXEC);
	r = errors < 0 ? -errno : start(argv, errors, &pid, &fd);
	if (r)
		return r;
	pp_child_answer(fd, pid, text);
	(void)close(fd);
	*ret_status = pp_child_answer_status(pid);
	take_why(errors, *ret_status, why, size);
	return 0;
}

int pp_library_child_run(const struct pp_args *args, char **ret_document, size_t *ret_len,
			 char *why, size_t size)
{
	struct pp_buf text = PP_BUF(DOCUMENT_MOST);
	char *argv[WORDS + 1] = {NULL}, self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int status = -1, r;

	_Static_assert(sizeof(words) / sizeof(*words) <= WORDS, "room for the words");
	self[n < 0 ? 0 : n] = '\0';
	for (size_t i = 0; i < PP_ARRAY_LEN(words); i++)
		argv[i] = words[i] == SELF ? self : (char *)(uintptr_t)words[i];
	r = run(argv, &text, why, size, &status);
	pp_buf_char(&text, '\0');
	if (r || pp_interrupted() || status == PP_EXIT_INTERRUPTED || text.failed ||
	    text.len <= 1) {
		pp_buf_done(&text);
		return r ? pp_complain(args, PP_EXIT_INTERNAL, "nccl run: %s", strerrordesc_np(-r))
		       : pp_interrupted() || status == PP_EXIT_INTERRUPTED ? PP_EXIT_INTERRUPTED
									   : 0;
	}
	*why = '\0';
	*ret_len = text.len - 1;
	*ret_document = text.data;
	return 0;
}
