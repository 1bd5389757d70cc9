/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard: a child that waits for the tracer's end, however it comes, and removes what the tracer
 * has put into the kernel. It ignores what a terminal sends to all. It keeps no descriptor of the
 * tracer's, so that the tracer's pipes are closed when the tracer is.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trace/prober_parts.h"
#include "base/banned.h"

/* The kernel sends one when the tracer ends, the tracer the other when all is removed. */
enum { GONE = SIGUSR1, DONE = SIGUSR2, DESCRIPTORS = 4096 };

static void close_all(void)
{
	struct rlimit limit = {0};
	int most = DESCRIPTORS;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < DESCRIPTORS)
		most = (int)limit.rlim_cur;
	for (int fd = 3; fd < most; fd++)
		(void)close(fd);
}

static void watch(const struct pp_tracefs *t, const sigset_t *both, pid_t tracer)
{
	int number = GONE;

	(void)setsid();
	close_all();
	if (prctl(PR_SET_PDEATHSIG, GONE) == 0 && getppid() == tracer)
		while (sigwait(both, &number))
			;
	if (number == GONE)
		(void)pp_tracefs_remove(t, t->owner);
	_exit(0);
}

int pp_guard_start(const struct pp_tracefs *t, pid_t *ret)
{
	static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
	sigset_t both, before;
	pid_t tracer = getpid(), pid;

	(void)sigemptyset(&both);
	(void)sigaddset(&both, GONE);
	(void)sigaddset(&both, DONE);
	/* blocked before there is a guard: neither can come too early */
	(void)sigprocmask(SIG_BLOCK, &both, &before);
	pid = fork();
	if (!pid) {
		for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
			(void)signal(ignored[i], SIG_IGN);
		watch(t, &both, tracer);
	}
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	if (pid < 0)
		return -errno;
	*ret = pid;
	return 0;
}

void pp_guard_end(pid_t guard)
{
	if (guard <= 0)
		return;
	(void)kill(guard, DONE);
	while (waitpid(guard, NULL, 0) < 0 && errno == EINTR)
		;
}
