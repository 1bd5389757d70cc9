/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ward.h"

#include <errno.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/banned.h"

static sigset_t ours(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	return set;
}

int pp_ward_start(struct pp_ward *ret)
{
	struct pp_ward w = {.pid = -1};
	sigset_t set = ours();
	pid_t parent = getpid();

	/* Who started us may have had children ignored: then none could be waited for. */
	(void)signal(SIGCHLD, SIG_DFL);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &set, &w.before);
	w.pid = fork();
	if (w.pid < 0) {
		int e = errno;

		(void)sigprocmask(SIG_SETMASK, &w.before, NULL);
		return -e;
	}
	if (!w.pid) {
		(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
		/* It may have died before the kernel was told. */
		if (getppid() != parent)
			_exit(1);
		(void)sigemptyset(&set);
		(void)sigaddset(&set, SIGCHLD);
		(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	}
	*ret = w;
	return 0;
}

void pp_ward_admit(const struct pp_ward *w)
{
	sigset_t set = ours();

	(void)(w ? sigprocmask(SIG_SETMASK, &w->before, NULL)
		 : sigprocmask(SIG_UNBLOCK, &set, NULL));
}

int pp_ward_wait(const struct pp_ward *w, int pass_on)
{
	sigset_t set = ours();
	int status = -1, got;

	(void)sigaddset(&set, SIGCHLD);
	while (waitpid(w->pid, &status, WNOHANG) == 0) {
		got = sigwaitinfo(&set, NULL);
		if (got > 0 && got != SIGCHLD)
			(void)kill(w->pid, pass_on);
	}
	(void)sigprocmask(SIG_SETMASK, &w->before, NULL);
	return status;
}
