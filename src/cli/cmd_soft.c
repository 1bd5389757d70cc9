/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerpath soft: runs a program on the software RDMA device, shows what such programs hold, and
 * lets things go wrong for them.
 *
 * Running is an exec: the program finds the device's libibverbs before any other, and keeps its
 * process, signals, terminal and exit status.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/near.h"
#include "cli/interrupt.h"
#include "cli/place.h"
#include "cli/session.h"
#include "cli/soft_fault.h"
#include "cli/soft_nccl.h"
#include "cli/soft_preload.h"
#include "cli/soft_program.h"
#include "cli/soft_show.h"
#include "cli/soft_sysfs.h"
#include "soft/config/config.h"
#include "base/banned.h"

/*
 * The private directory with libibverbs.so.1: where it lies beside this program, in a build tree or
 * below any prefix, else where it is installed.
 */
static int find_library(char *ret, size_t size)
{
	static const char *const beside[] = {"../soft/lib", PEERPATH_SOFT_FROM_BIN};
	char self[PATH_MAX], *slash, file[PATH_MAX + 128];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n < 0 ? 0 : n] = '\0';
	slash = strrchr(self, '/');
	for (size_t i = 0; slash && i < PP_ARRAY_LEN(beside); i++) {
		char real[PATH_MAX];

		(void)snprintf(file, sizeof(file), "%.*s/%s/libibverbs.so.1", (int)(slash - self),
			       self, beside[i]);
		if (access(file, R_OK))
			continue;
		*strrchr(file, '/') = '\0';
		return realpath(file, real) && (size_t)snprintf(ret, size, "%s", real) < size
			       ? 0
			       : -ENAMETOOLONG;
	}
	(void)snprintf(file, sizeof(file), "%s/libibverbs.so.1", PEERPATH_SOFTDIR);
	if (access(file, R_OK))
		return -errno;
	return (size_t)snprintf(ret, size, "%s", PEERPATH_SOFTDIR) < size ? 0 : -ENAMETOOLONG;
}

/* The directory goes first; what the user had there stays behind it. */
static int set_library_path(const char *dir)
{
	const char *old = getenv("LD_LIBRARY_PATH");
	char *path;
	int r;

	if (asprintf(&path, "%s%s%s", dir, old && *old ? ":" : "", old ? old : "") < 0)
		return -ENOMEM;
	r = setenv("LD_LIBRARY_PATH", path, 1) ? -errno : 0;
	free(path);
	return r;
}

/* What the program will stumble over without a word of its own: said before it runs. */
static void warn(const struct pp_args *args, const struct soft_config *devices)
{
	const char *program = pp_args_operand(args, 0), *blind, *taken;
	char text[64];

	if (!devices->num_devices)
		(void)pp_complain(args, 0,
				  "there will be no device: no network interface is up with an "
				  "address (ip link set lo up)");
	blind = pp_soft_program_blind(program);
	if (blind)
		(void)pp_complain(args, 0, "%s %s", program, blind);
	taken = pp_soft_port_taken(devices, text, sizeof(text));
	if (taken)
		(void)pp_complain(
			args, 0,
			"UDP port 4791 of %s belongs to another user or to the kernel (rdma_rxe): "
			"no "
			"queue pair can be made there; a network namespace of your own is free: "
			"unshare -rn",
			taken);
}

/* The library prints nothing: what is wrong with a description is said here. */
static int set_devices(const struct pp_args *args, const char *config, const char *dir)
{
	struct soft_config *devices = calloc(1, sizeof(*devices));
	const char *description = config ? config : getenv("PEERPATH_SOFT");
	struct pp_error err = {0};
	int r, none;

	if (!devices)
		return pp_complain(args, PP_EXIT_INTERNAL, "no memory");
	r = soft_config_load(description, devices, &err);
	if (!r)
		warn(args, devices);
	if (!r && pp_args_has(args, "sysfs")) {
		none = pp_soft_sysfs(args, devices);
		if (none) {
			free(devices);
			return none;
		}
	}
	none = r ? 0 : pp_soft_nccl(args, devices);
	if (!r && !none)
		none = pp_soft_preload(dir, devices, pp_args_operand(args, 0));
	free(devices);
	if (r)
		return pp_complain(args, PP_EXIT_INPUT, "%s: %s%s",
				   config ? "--config" : "PEERPATH_SOFT", err.text,
				   r == -ENOENT ? "; as text it would have an equals sign" : "");
	return none ? pp_complain(args, PP_EXIT_INTERNAL, "no memory") : 0;
}

static int run(const struct pp_args *args)
{
	size_t n = pp_args_operands(args);
	const char *config = pp_args_get(args, "config");
	char dir[PATH_MAX], why[128];
	struct pp_near near;
	char **argv;
	int r;

	pp_place_sweep();
	r = find_library(dir, sizeof(dir));
	if (r)
		return pp_complain(
			args, PP_EXIT_INTERNAL,
			"the software device's libibverbs.so.1 is not in %s (%s); install it with "
			"peerpath",
			PEERPATH_SOFTDIR, strerror(-r));
	r = set_devices(args, config, dir);
	if (r)
		return r;
	argv = calloc(n + 1, sizeof(*argv));
	if (!argv || set_library_path(dir) || (config && setenv("PEERPATH_SOFT", config, 1))) {
		free(argv);
		return pp_complain(args, PP_EXIT_INTERNAL, "no memory");
	}
	for (size_t i = 0; i < n; i++)
		argv[i] = (char *)(uintptr_t)pp_args_operand(args, i);
	pp_interrupt_release();
	(void)execvp(argv[0], argv);
	r = errno;
	free(argv);
	near = PP_NEAR(n == 1 ? pp_args_operand(args, 0) : "");
	pp_near_offer(&near, "show");
	pp_near_offer(&near, "fault");
	/* As a shell says it: 127 not found, 126 found and not run. */
	return pp_complain(args, r == ENOENT ? 127 : 126, "'%s': %s%s", pp_args_operand(args, 0),
			   pp_soft_program_why(pp_args_operand(args, 0), r, why, sizeof(why)),
			   r != ENOENT || !near.best	? ""
			   : !strcmp(near.best, "show") ? ", did you mean 'show'?"
							: ", did you mean 'fault'?");
}

static const char show_word[] = "show", fault_word[] = "fault";

/* An option that would say nothing is refused, as everywhere. */
static const struct {
	const char *option;
	bool run, show, fault;
} heeded[] = {
	{"config", .run = true},
	{"sysfs", .run = true},
	{"beside", .run = true},
	{"replay", .run = true},
	{"no-nccl", .run = true},
	{"all", .show = true},
	{"pid", .fault = true},
	{"device", .fault = true},
	{"json", .show = true, .fault = true},
	{"color", .show = true, .fault = true},
};

static int check(const struct pp_args *args, bool show, bool fault)
{
	static const char *const of_sysfs[] = {"beside", "replay"};

	if (show && pp_args_operands(args) > 1)
		return pp_complain(args, PP_EXIT_USAGE,
				   "unexpected operand '%s' of show; a program of that name is run "
				   "by its path, as -- ./show",
				   pp_args_operand(args, 1));
	for (size_t i = 0; i < PP_ARRAY_LEN(of_sysfs); i++)
		if (pp_args_has(args, of_sysfs[i]) && !pp_args_has(args, "sysfs"))
			return pp_complain(args, PP_EXIT_USAGE, "--%s goes with --sysfs DIR",
					   of_sysfs[i]);
	for (size_t i = 0; i < PP_ARRAY_LEN(heeded); i++) {
		const char *name = heeded[i].option;
		bool ok = show ? heeded[i].show : fault ? heeded[i].fault : heeded[i].run;

		if (ok || !pp_args_has(args, name))
			continue;
		if (heeded[i].run)
			return pp_complain(args, PP_EXIT_USAGE,
					   "%s takes no --%s: it asks programs that run",
					   show ? show_word : fault_word, name);
		return pp_complain(args, PP_EXIT_USAGE,
				   "--%s belongs to '%s'; options of a command follow it", name,
				   heeded[i].show && !show ? show_word : fault_word);
	}
	return 0;
}

int pp_cmd_soft(const struct pp_args *args)
{
	bool show = !strcmp(pp_args_operand(args, 0), show_word);
	bool fault = !strcmp(pp_args_operand(args, 0), fault_word);
	int r = check(args, show, fault);

	if (r)
		return r;
	return show ? pp_soft_show(args) : fault ? pp_soft_fault(args) : run(args);
}
