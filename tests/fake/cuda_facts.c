/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program asks the CUDA that copies (cuda_copy.c) beside copying: names, sizes, and to end
 * what its contexts own anyway. With it `peerpath bench` measures on memory that is a GPU's to the
 * software device.
 */
#include "cuda_copy.h"

#include <string.h>
#include <strings.h>

API int cuDriverGetVersion(int *to)
{
	*to = 13000;
	return 0;
}

API int cuDeviceGetName(char *to, int size, int device)
{
	(void)device;
	(void)strncpy(to, "NVIDIA H200", (size_t)size);
	return 0;
}

API int cuDeviceGetUuid(unsigned char *to, int device)
{
	memset(to, device ? 0x22 : 0x11, 16);
	return 0;
}

API int cuDeviceGetByPCIBusId(int *to, const char *bdf)
{
	static const char *const places[] = {"0000:3b:00.0", "0000:9a:00.0"};

	for (int i = 0; i < fake_gpus(); i++)
		if (!strcasecmp(bdf, places[i])) {
			*to = i;
			return 0;
		}
	return INVALID_VALUE;
}

API int cuDeviceTotalMem_v2(size_t *to, int device)
{
	(void)device;
	*to = (size_t)143771 << 20;
	return 0;
}

API int cuDevicePrimaryCtxRelease_v2(int device)
{
	(void)device;
	return 0;
}

/* They go with their context. */
API int cuStreamDestroy_v2(void *stream)
{
	(void)stream;
	return 0;
}

API int cuEventDestroy_v2(void *event)
{
	(void)event;
	return 0;
}

API int cuPointerSetAttribute(const void *value, int attribute, uint64_t at)
{
	(void)value;
	(void)attribute;
	(void)at;
	return 0;
}

API int cuFlushGPUDirectRDMAWrites(int target, int scope)
{
	(void)target;
	(void)scope;
	return 0;
}

API int cuGetErrorName(int code, const char **to)
{
	*to = code ? "CUDA_ERROR_OF_THE_FAKE" : "CUDA_SUCCESS";
	return 0;
}
