/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPU's clocks beside a run: the lowest SM clock seen, and what held it down. Being idle is not
 * counted: RDMA needs no SM, and a GPU that only serves it rests.
 */
#include "bench/agent_state.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "node/nvml_call.h"
#include "base/banned.h"

struct pp_gpu_watch {
	nvml_device device;
	int (*clock)(nvml_device, unsigned int, unsigned int *);
	int (*reasons)(nvml_device, unsigned long long *);
	int64_t mhz; /* -1 unknown */
	unsigned long long held;
};

static const struct {
	unsigned long long bit;
	const char *name;
} reasons[] = {
	{0x4, "power cap"},	    {0x8, "hardware slowdown"}, {0x20, "thermal"},
	{0x40, "hardware thermal"}, {0x80, "power brake"},
};

static void *symbol(void *library, const char *name, const char *older)
{
	void *found = dlsym(library, name);

	return found || !older ? found : dlsym(library, older);
}

struct pp_gpu_watch *pp_gpu_watch_new(const char *gpu)
{
	void *library = dlopen(PP_NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	struct pp_gpu_watch *w = library ? calloc(1, sizeof(*w)) : NULL;
	int (*init)(void), (*find)(const char *, nvml_device *);

	if (!w)
		return NULL;
	*(void **)&init = symbol(library, "nvmlInit_v2", NULL);
	*(void **)&find = symbol(library, "nvmlDeviceGetHandleByPciBusId_v2", NULL);
	*(void **)&w->clock = symbol(library, "nvmlDeviceGetClockInfo", NULL);
	*(void **)&w->reasons = symbol(library, "nvmlDeviceGetCurrentClocksEventReasons",
				       "nvmlDeviceGetCurrentClocksThrottleReasons");
	if (!init || !find || init() || find(gpu, &w->device))
		return pp_gpu_watch_free(w);
	pp_gpu_watch_reset(w);
	return w;
}

/* The library stays loaded and initialised: the agent ends soon, and NVML does not like to. */
struct pp_gpu_watch *pp_gpu_watch_free(struct pp_gpu_watch *w)
{
	free(w);
	return NULL;
}

void pp_gpu_watch_reset(struct pp_gpu_watch *w)
{
	w->mhz = -1;
	w->held = 0;
}

void pp_gpu_watch_sample(struct pp_gpu_watch *w)
{
	unsigned long long bits = 0;
	unsigned int mhz;

	if (w->clock && !w->clock(w->device, NVML_CLOCK_SM, &mhz) && (w->mhz < 0 || mhz < w->mhz))
		w->mhz = mhz;
	if (w->reasons && !w->reasons(w->device, &bits))
		w->held |= bits;
}

void pp_gpu_watch_write(struct pp_json *j, const struct pp_gpu_watch *w)
{
	char text[128] = "";
	size_t len = 0;
	int n;

	if (!w)
		return;
	if (w->mhz >= 0)
		pp_json_i64(j, "gpu_mhz", w->mhz);
	for (size_t i = 0; i < PP_ARRAY_LEN(reasons); i++) {
		if (!(w->held & reasons[i].bit))
			continue;
		n = snprintf(text + len, sizeof(text) - len, "%s%s", len ? ", " : "",
			     reasons[i].name);
		len += n > 0 ? (size_t)n : 0;
	}
	if (len)
		pp_json_str(j, "throttle", text);
}
