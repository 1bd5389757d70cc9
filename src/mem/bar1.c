/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/bar1.h"

#include <dlfcn.h>
#include <string.h>

#include "base/banned.h"

enum { MOST_GPUS = 256 };

/* NVML's answer to "which GPU has this address"; NULL: none. */
static nvml_device find(const struct pp_nvml *t, const struct pp_bdf *gpu)
{
	int (*count)(unsigned int *) = pp_nvml_entry(t, "nvmlDeviceGetCount_v2");
	int (*handle)(unsigned int, nvml_device *) =
		pp_nvml_entry(t, "nvmlDeviceGetHandleByIndex_v2");
	int (*where)(nvml_device, struct nvml_pci *) = pp_nvml_entry(t, "nvmlDeviceGetPciInfo_v3");
	nvml_device device = NULL;
	struct pp_bdf its;
	unsigned int n = 0;

	if (!count || !handle || !where || count(&n))
		return NULL;
	for (unsigned int i = 0; i < n && i < MOST_GPUS; i++) {
		struct {
			struct nvml_pci pci;
			char end; /* ends an id that the library left open */
		} self = {0};

		if (!handle(i, &device) && !where(device, &self.pci) &&
		    !pp_bdf_parse(self.pci.id, &its) && pp_bdf_equal(&its, gpu))
			return device;
	}
	return NULL;
}

void pp_bar1_open(const struct pp_bdf *gpu, struct pp_bar1 *ret)
{
	struct pp_nvml t = {.gpu = -1};
	int (*init)(void);

	memset(ret, 0, sizeof(*ret));
	t.lib = dlopen(PP_NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!t.lib)
		return;
	init = pp_nvml_entry(&t, "nvmlInit_v2");
	if (!init || init())
		return;
	ret->library = t.lib;
	*(void **)&ret->read = pp_nvml_entry(&t, "nvmlDeviceGetBAR1MemoryInfo");
	ret->device = ret->read ? find(&t, gpu) : NULL;
}

void pp_bar1_close(struct pp_bar1 *b)
{
	const struct pp_nvml t = {.lib = b->library, .gpu = -1};
	int (*end)(void) = b->library ? pp_nvml_entry(&t, "nvmlShutdown") : NULL;

	if (end)
		(void)end();
	memset(b, 0, sizeof(*b));
}

void pp_bar1_read(const struct pp_bar1 *b, int64_t *ret_total, int64_t *ret_used)
{
	struct nvml_memory m = {0};
	bool known =
		b->device && !b->read(b->device, &m) && m.total <= INT64_MAX && m.used <= m.total;

	if (ret_total)
		*ret_total = known ? (int64_t)m.total : -1;
	if (ret_used)
		*ret_used = known ? (int64_t)m.used : -1;
}
