/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in the helper process: its deadline ends nvidia-smi too. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "node/smi_compare.h"
#include "base/banned.h"

enum { MAX_TEXT = 256 << 10, MAX_PATH = 4096 };

static const char program[] = "nvidia-smi";

static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* Relative and empty elements of PATH mean the working directory, which is nobody's tool box. */
static bool find(char path[MAX_PATH])
{
	const char *list = getenv("PATH"), *end;
	int n;

	for (; list && *list; list = *end ? end + 1 : end) {
		end = list + strcspn(list, ":");
		if (*list != '/')
			continue;
		n = snprintf(path, MAX_PATH, "%.*s/%s", (int)(end - list), list, program);
		if (n > 0 && n < MAX_PATH && is_program(path))
			return true;
	}
	return false;
}

static PP_NORETURN void child(const char *path, int out)
{
	char name[] = "nvidia-smi", topo[] = "topo", option[] = "-m";
	char *argv[] = {name, topo, option, NULL};

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)dup2(out, STDOUT_FILENO);
	(void)execve(path, argv, environ);
	_exit(127);
}

static int run_program(const char *path, struct pp_buf *b, struct pp_error *err)
{
	int fds[2], status = 0, r;
	char text[128];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return pp_error_set(err, -errno, "pipe: %s", strerror(errno));
	pid = fork();
	if (pid == 0)
		child(path, fds[1]);
	(void)close(fds[1]);
	r = pid < 0 ? -errno : pp_fd_read(fds[0], b);
	(void)close(fds[0]);
	if (pid > 0 && r)
		(void)kill(pid, SIGKILL);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (r)
		return pp_error_set(err, r, "%s: %s", path,
				    r == -EFBIG ? "prints more than 256 KiB"
						: pp_errno_text(r, text, sizeof(text)));
	if (WIFSIGNALED(status))
		return pp_error_set(err, -EIO, "%s topo -m ended by signal %d", path,
				    WTERMSIG(status));
	if (WEXITSTATUS(status))
		return pp_error_set(err, -EIO, "%s topo -m ended with status %d", path,
				    WEXITSTATUS(status));
	return 0;
}

static int run(struct pp_json *data, const void *arg, struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF b = PP_BUF(MAX_TEXT);
	char path[MAX_PATH];
	int r;

	(void)arg;
	if (!find(path))
		return 0;
	pp_json_str(data, "path", path);
	pp_ask_doing("nvidia-smi topo -m");
	r = run_program(path, &b, err);
	if (!r)
		pp_json_str(data, "text", pp_buf_text(&b));
	return r;
}

const struct pp_question pp_smi_question = {.name = "nvidia-smi", .run = run};
