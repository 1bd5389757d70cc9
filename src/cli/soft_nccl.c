/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The variables, one row each. The user's own values stay, those of NCCL's configuration files
 * too: a variable in the environment would hide them.
 */
#include "cli/soft_nccl.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "base/banned.h"

extern char **environ;

enum { FILE_LINES_MAX = 4096, LINE_BYTES = 1024, VALUE_BYTES = 128 };

struct need {
	const char *variable;
	const char *value; /* NULL: the first device */
	const char *why, *else_why;
	bool (*applies)(const struct pp_soft_nccl_library *library);
};

static bool always(const struct pp_soft_nccl_library *l)
{
	(void)l;
	return true;
}

/* The GPU-initiated networking of 2.28 counts mlx5 devices alone, and calls through what it has
 * not loaded when there is none (NVIDIA/nccl, pull request 1881; in 2.29 it is mended). */
static bool is_2_28(const struct pp_soft_nccl_library *l)
{
	return l->major == 2 && l->minor == 28;
}

static bool has_mps(void)
{
	const char *pipe = getenv("CUDA_MPS_PIPE_DIRECTORY");
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/control", pipe ? pipe : "/tmp/nvidia-mps");
	return access(path, F_OK) == 0;
}

/* Seen on an H200: 2 MiB of a captured all_reduce 8.3 ms, 0.2 ms without (docs/results). */
static bool takes_turns(const struct pp_soft_nccl_library *l)
{
	(void)l;
	return !has_mps();
}

static const struct need needs[] = {
	{"NCCL_GIN_TYPE", "0", "without it NCCL 2.28 ends by SIGSEGV where no mlx5 device is",
	 "any other than 0 or 2 ends NCCL 2.28 by SIGSEGV where no mlx5 device is", is_2_28},
	{"NCCL_NET_PLUGIN", "none", "the device is for NCCL's own IB transport",
	 "a plug-in may bring a transport that does not use the device", always},
	{"NCCL_IB_HCA", NULL, "this device and no other", "NCCL takes the devices that it names",
	 always},
	{"NCCL_NET_GDR_LEVEL", "SYS",
	 "the device hangs on no GPU's bus: by distance NCCL would stage in host memory",
	 "below SYS NCCL may stage in host memory", always},
	{"NCCL_GRAPH_REGISTER", "0",
	 "without MPS copies of what CUDA graphs register (cudaMalloc) wait for NCCL's kernels",
	 "without MPS copies of what CUDA graphs register (cudaMalloc) wait for NCCL's kernels",
	 takes_turns},
};

/* Set to this NCCL uses the device not at all, or no memory of a GPU on it: said, never changed. */
static const struct {
	const char *variable, *value, *what;
} against[] = {
	{"NCCL_IB_DISABLE", "1", "NCCL will not use the device"},
	{"NCCL_NET", "Socket", "NCCL will not use the device"},
	{"NCCL_DMABUF_ENABLE", "0", "NCCL will stage memory of GPUs in host memory"},
};

/* Does one of NCCL's files set @variable? Writes its value. */
static bool in_file(const char *path, const char *variable, char *ret, size_t size)
{
	FILE *file = path ? fopen(path, "re") : NULL;
	char line[LINE_BYTES];
	bool found = false;

	for (unsigned int i = 0; file && i < FILE_LINES_MAX && fgets(line, sizeof(line), file);
	     i++) {
		char *value, *key = pp_trim(line);

		value = strchr(key, '=');
		if (*key == '#' || !value)
			continue;
		*value++ = '\0';
		if (strcmp(pp_trim(key), variable) != 0)
			continue;
		(void)snprintf(ret, size, "%s", pp_trim(value));
		found = true;
	}
	if (file)
		(void)fclose(file);
	return found;
}

/* The user's value of @variable, and where it stands; NULL: there is none. */
static const char *own(const char *variable, char *text, size_t size, const char **ret_where)
{
	const char *value = getenv(variable), *home = getenv("HOME"),
		   *named = getenv("NCCL_CONF_FILE");
	char path[PATH_MAX];

	*ret_where = "the environment";
	if (value)
		return value;
	if (!home || (size_t)snprintf(path, sizeof(path), "%s/.nccl.conf", home) >= sizeof(path))
		path[0] = '\0';
	*ret_where = named ? "NCCL_CONF_FILE" : "~/.nccl.conf";
	if (in_file(named ? named : path, variable, text, size))
		return text;
	*ret_where = "/etc/nccl.conf";
	return in_file("/etc/nccl.conf", variable, text, size) ? text : NULL;
}

static bool is_meant(const char *value, const char *want)
{
	return !strcasecmp(value, want);
}

/* One variable: set, or left as the user has it. */
static int meet(const struct pp_args *args, const struct need *need, const char *want)
{
	char text[VALUE_BYTES];
	const char *where, *value = own(need->variable, text, sizeof(text), &where);

	if (value && is_meant(value, want))
		return 0;
	if (value) {
		(void)pp_complain(args, 0, "NCCL: %s=%s of %s stays (here it would be %s): %s",
				  need->variable, value, where, want, need->else_why);
		return 0;
	}
	if (setenv(need->variable, want, 1))
		return -ENOMEM;
	(void)pp_complain(args, 0, "NCCL: %s=%s set: %s", need->variable, want, need->why);
	return 0;
}

static bool any_variable(void)
{
	for (char **at = environ; *at; at++)
		if (!strncmp(*at, "NCCL_", 5))
			return true;
	return false;
}

static void say_library(const struct pp_args *args, const struct pp_soft_nccl_library *l,
			bool found)
{
	if (!found)
		(void)pp_complain(args, 0,
				  "NCCL: no libnccl.so.2 is seen from here; if it is 2.28, "
				  "NCCL_GIN_TYPE=0 must be set by you");
	else if (!l->major)
		(void)pp_complain(args, 0,
				  "NCCL: %s does not tell its version; if it is 2.28, "
				  "NCCL_GIN_TYPE=0 must be set by you",
				  l->path);
	else
		(void)pp_complain(args, 0,
				  "NCCL: %u.%u.%u, %s (--no-nccl: leave its variables alone)",
				  l->major, l->minor, l->patch, l->path);
}

static void say_against(const struct pp_args *args)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(against); i++) {
		char text[VALUE_BYTES];
		const char *where, *value = own(against[i].variable, text, sizeof(text), &where);

		if (value && is_meant(value, against[i].value))
			(void)pp_complain(args, 0, "NCCL: %s=%s of %s stays: %s",
					  against[i].variable, value, where, against[i].what);
	}
}

/* Seen with driver 580: of two processes under MPS the second gets no context of its own then. */
static void say_mps(const struct pp_args *args)
{
	const char *connections = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
	uint64_t n;

	if (!connections || pp_parse_u64(connections, 0, 1024, &n) || n < 32 || !has_mps())
		return;
	(void)pp_complain(args, 0,
			  "CUDA_DEVICE_MAX_CONNECTIONS=%s under MPS: the device's own context may "
			  "be refused (CUDA error 2), and ibv_modify_qp() to RTR then says ENOMEM",
			  connections);
}

/* Ourselves, by a verb that runs no NCCL: a simulation. That we name the library means nothing. */
static bool is_simulation(const struct pp_args *args)
{
	struct stat own, program;

	return pp_args_operands(args) > 1 && strcmp(pp_args_operand(args, 1), "nccl") != 0 &&
	       !stat("/proc/self/exe", &own) && !stat(pp_args_operand(args, 0), &program) &&
	       own.st_dev == program.st_dev && own.st_ino == program.st_ino;
}

int pp_soft_nccl(const struct pp_args *args, const struct soft_config *devices)
{
	struct pp_soft_nccl_library library = {.path = ""};
	char device[SOFT_CONFIG_NAME_MAX + 1];
	bool found, meant = any_variable();

	if (pp_args_has(args, "no-nccl") || !devices->num_devices || is_simulation(args))
		return 0;
	found = pp_soft_nccl_find(pp_args_operand(args, 0), meant, &library);
	if (!found && !meant)
		return 0;
	/* An equals sign before the name: exactly this one, where NCCL else compares beginnings. */
	(void)snprintf(device, sizeof(device), "=%s", devices->devices[0].name);
	/* Who set it has thought of it. */
	if (library.major || !getenv("NCCL_GIN_TYPE"))
		say_library(args, &library, found);
	for (size_t i = 0; i < PP_ARRAY_LEN(needs); i++) {
		int r = needs[i].applies(&library)
				? meet(args, &needs[i], needs[i].value ? needs[i].value : device)
				: 0;

		if (r)
			return r;
	}
	say_against(args);
	say_mps(args);
	return 0;
}
