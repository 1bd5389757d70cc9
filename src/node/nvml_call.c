/* SPDX-License-Identifier: Apache-2.0 */
#include "node/nvml_call.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdio.h>

#include "node/ask.h"
#include "node/dl.h"
#include "base/banned.h"

static_assert(sizeof(struct nvml_pci) == 68, "nvmlPciInfo_t");
static_assert(sizeof(struct nvml_memory) == 24, "nvmlMemory_t, nvmlBAR1Memory_t");
static_assert(sizeof(struct nvml_field) == 40, "nvmlFieldValue_t");
static_assert(sizeof(struct nvml_fabric) == 36, "nvmlGpuFabricInfo_v2_t");

static const char *const errors[] = {
	[1] = "UNINITIALIZED",
	[2] = "INVALID_ARGUMENT",
	[3] = "NOT_SUPPORTED",
	[4] = "NO_PERMISSION",
	[5] = "ALREADY_INITIALIZED",
	[6] = "NOT_FOUND",
	[7] = "INSUFFICIENT_SIZE",
	[8] = "INSUFFICIENT_POWER",
	[9] = "DRIVER_NOT_LOADED",
	[10] = "TIMEOUT",
	[11] = "IRQ_ISSUE",
	[12] = "LIBRARY_NOT_FOUND",
	[13] = "FUNCTION_NOT_FOUND",
	[14] = "CORRUPTED_INFOROM",
	[15] = "GPU_IS_LOST",
	[16] = "RESET_REQUIRED",
	[17] = "OPERATING_SYSTEM",
	[18] = "LIB_RM_VERSION_MISMATCH",
	[19] = "IN_USE",
	[20] = "MEMORY",
	[21] = "NO_DATA",
	[22] = "VGPU_ECC_NOT_SUPPORTED",
	[23] = "INSUFFICIENT_RESOURCES",
	[24] = "FREQ_NOT_SUPPORTED",
	[25] = "ARGUMENT_VERSION_MISMATCH",
	[26] = "DEPRECATED",
	[27] = "NOT_READY",
	[28] = "GPU_NOT_FOUND",
	[29] = "INVALID_STATE",
	[30] = "RESET_TYPE_NOT_SUPPORTED",
};

const char *pp_nvml_error(int code, char text[PP_NVML_TEXT])
{
	const char *name =
		code > 0 && (size_t)code < PP_ARRAY_LEN(errors) ? errors[code] : "UNKNOWN";

	(void)snprintf(text, PP_NVML_TEXT, "NVML_ERROR_%s (%d)", name, code);
	return text;
}

void *pp_nvml_entry(const struct pp_nvml *t, const char *name)
{
	void *fn = dlsym(t->lib, name);
	char doing[PP_NVML_TEXT];

	if (!fn)
		return NULL;
	if (t->gpu >= 0)
		(void)snprintf(doing, sizeof(doing), "%s (GPU %d)", name, t->gpu);
	pp_ask_doing(t->gpu >= 0 ? doing : name);
	return fn;
}

void *pp_nvml_entry_for(const struct pp_nvml *t, const char *member, const char *name)
{
	void *fn = pp_nvml_entry(t, name);

	if (!fn)
		pp_dl_missing(t->out, member, "this %s has no %s", PP_NVML_LIBRARY, name);
	return fn;
}

bool pp_nvml_good(const struct pp_nvml *t, const char *member, int code)
{
	char text[PP_NVML_TEXT];

	if (code != NVML_SUCCESS)
		pp_dl_missing(t->out, member, "%s", pp_nvml_error(code, text));
	return code == NVML_SUCCESS;
}
