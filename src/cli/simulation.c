/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/simulation.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bundle/tree.h"
#include "cli/interrupt.h"
#include "cli/place.h"
#include "cli/session.h"
#include "cli/ward.h"
#include "base/banned.h"

/* Where the made /sys is; and what the loader's variables were before. */
static const char PLACE[] = "PEERPATH_SIMULATION";
static const struct {
	const char *name, *kept;
} kept[] = {
	{"LD_LIBRARY_PATH", "PEERPATH_SIMULATION_LIBRARY_PATH"},
	{"LD_PRELOAD", "PEERPATH_SIMULATION_PRELOAD"},
};
static const char *const made[] = {"PEERPATH_SOFT_SYSFS", "PEERPATH_SOFT_DEVICES"};

bool pp_simulation_inside(void)
{
	return secure_getenv(PLACE) != NULL;
}

static int keep_variables(const char *place)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(kept); i++) {
		const char *was = getenv(kept[i].name);

		if (was && setenv(kept[i].kept, was, 1))
			return -errno;
	}
	return setenv(PLACE, place, 1) ? -errno : 0;
}

/* {self, "soft", "--sysfs", DIR, "--", self, VERB, ...} */
static char **command(char *self, char *sysfs, char *const *raw)
{
	static const char *const words[] = {"soft", "--sysfs", "--"};
	char **argv;
	size_t n = 0, at = 0;

	while (raw[n])
		n++;
	argv = calloc(n + 7, sizeof(*argv));
	if (!argv)
		return NULL;
	argv[at++] = self;
	argv[at++] = (char *)(uintptr_t)words[0];
	argv[at++] = (char *)(uintptr_t)words[1];
	argv[at++] = sysfs;
	argv[at++] = (char *)(uintptr_t)words[2];
	argv[at++] = self;
	memcpy(argv + at, raw, n * sizeof(*argv));
	return argv;
}

/* A signal of the child that it did not cope with is as if it had. */
static int code_of(const struct pp_args *args, int status)
{
	int by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	if (by == SIGINT || by == SIGTERM || by == SIGHUP)
		return PP_EXIT_INTERRUPTED;
	if (by)
		return pp_complain(args, PP_EXIT_INTERNAL, "was killed by signal %d (%s)", by,
				   strsignal(by));
	return WIFEXITED(status) ? WEXITSTATUS(status) : PP_EXIT_INTERNAL;
}

/* Signals stay blocked until the verb can say what it has measured. */
static int run(const struct pp_args *args, char **argv)
{
	struct pp_ward w;
	int r = pp_ward_start(&w);

	if (r)
		return pp_complain(args, PP_EXIT_INTERNAL, "cannot start a process: %s",
				   strerror(-r));
	if (w.pid) {
		/* Told before it could be passed on. */
		if (pp_interrupted())
			(void)kill(w.pid, SIGTERM);
		return code_of(args, pp_ward_wait(&w, SIGTERM));
	}
	pp_interrupt_release();
	(void)execv(argv[0], argv);
	_exit(pp_complain(args, PP_EXIT_INTERNAL, "cannot execute itself: %s", strerror(errno)));
}

int pp_simulation_enter(const struct pp_args *args)
{
	char sysfs[PATH_MAX], self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	struct pp_error err = {0};
	struct pp_place place;
	char **argv;
	int code;

	self[n < 0 ? 0 : n] = '\0';
	if (pp_place_make(PP_PLACE_SIMULATION, &place, &err))
		return pp_complain(args, PP_EXIT_INTERNAL, "%s", err.text);
	(void)snprintf(sysfs, sizeof(sysfs), "%s/sysfs", place.path);
	argv = command(self, sysfs, pp_args_raw(args));
	code = !argv || keep_variables(place.path)
		       ? pp_complain(args, PP_EXIT_INTERNAL, "no memory")
		       : run(args, argv);
	free(argv);
	pp_place_done(&place);
	return code;
}

void pp_simulation_settle(void)
{
	if (pp_simulation_inside())
		pp_ward_admit(NULL);
}

/* The variable is anybody's to set: only what was made so is removed. */
void pp_simulation_leave(void)
{
	const char *place = secure_getenv(PLACE);
	char path[PATH_MAX];

	if (!place || !pp_place_is(PP_PLACE_SIMULATION, place))
		return;
	(void)snprintf(path, sizeof(path), "%s/sysfs/peerpath-soft-sysfs", place);
	if (access(path, F_OK))
		return;
	(void)snprintf(path, sizeof(path), "%s/sysfs", place);
	(void)pp_tree_remove(AT_FDCWD, path);
	(void)rmdir(place);
}

void pp_simulation_forget(void)
{
	if (!pp_simulation_inside())
		return;
	for (size_t i = 0; i < PP_ARRAY_LEN(kept); i++) {
		const char *was = getenv(kept[i].kept);

		(void)(was ? setenv(kept[i].name, was, 1) : unsetenv(kept[i].name));
		(void)unsetenv(kept[i].kept);
	}
	for (size_t i = 0; i < PP_ARRAY_LEN(made); i++)
		(void)unsetenv(made[i]);
	(void)unsetenv(PLACE);
}
