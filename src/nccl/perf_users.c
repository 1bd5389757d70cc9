/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/perf_users.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "node/ask.h"
#include "node/nvml_call.h"
#include "base/banned.h"

enum { MOST = 4096, TRIES = 4 };

/* nvmlProcessInfo_v2_t. */
struct process {
	unsigned int pid;
	unsigned long long memory;
	unsigned int gpu_instance, compute_instance;
};

static bool is_mps(unsigned int pid)
{
	char path[64], name[32] = "";
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	f = fopen(path, "re");
	if (f && !fgets(name, sizeof(name), f))
		name[0] = '\0';
	if (f)
		(void)fclose(f);
	return !strncmp(name, "nvidia-cuda-mps", 15);
}

static int count(const struct process *list, unsigned int n)
{
	int users = 0;

	for (unsigned int i = 0; i < n; i++)
		users += !is_mps(list[i].pid);
	return users;
}

/* The list may grow between being measured and being read. */
static int ask(int (*fn)(nvml_device, unsigned int *, struct process *), nvml_device device)
{
	unsigned int n = 0;
	int code = fn(device, &n, NULL), users = 0;

	for (int i = 0; i < TRIES && code == NVML_INSUFFICIENT_SIZE && n <= MOST; i++) {
		struct process *PP_AUTO_FREE list = calloc(n += 16, sizeof(*list));

		if (!list)
			return -1;
		code = fn(device, &n, list);
		users = code ? 0 : count(list, n);
	}
	return code ? -1 : users;
}

int pp_perf_users(const char *bdf)
{
	int (*init)(void), (*find)(const char *, nvml_device *);
	int (*fn)(nvml_device, unsigned int *, struct process *);
	nvml_device device;
	void *library;

	pp_ask_doing("loading " PP_NVML_LIBRARY);
	library = dlopen(PP_NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return -1;
	*(void **)&init = dlsym(library, "nvmlInit_v2");
	*(void **)&find = dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2");
	*(void **)&fn = dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3");
	if (!fn)
		*(void **)&fn = dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v2");
	return !init || !find || !fn || init() || find(bdf, &device) ? -1 : ask(fn, device);
}
