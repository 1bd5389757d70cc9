/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcuda.so.1 that needs no GPU: the two H200 of the fake NVML, CUDA 13.0. As the real one it
 * obeys CUDA_VISIBLE_DEVICES, and orders devices by PCI address only when it is told so.
 *
 * PP_FAKE_CUDA: ok (default); block: cuInit never returns; crash: cuDeviceGetAttribute dies;
 * proprietary: no DMA-BUF; old: attributes above 116 are not known; one: the second GPU is hidden;
 * others: cuda_memory.c, the other half.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum { INVALID_VALUE = 1, NO_DEVICE = 100, INVALID_DEVICE = 101 };

static int mode(const char *word)
{
	const char *set = getenv("PP_FAKE_CUDA");

	return set && !strcmp(set, word);
}

API int cuGetErrorName(int code, const char **to)
{
	static const struct {
		int code;
		const char *name;
	} names[] = {
		{INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
		{2, "CUDA_ERROR_OUT_OF_MEMORY"},
		{46, "CUDA_ERROR_DEVICE_UNAVAILABLE"},
		{NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
		{INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
		{700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
		{801, "CUDA_ERROR_NOT_SUPPORTED"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].code != code)
			continue;
		*to = names[i].name;
		return 0;
	}
	*to = NULL;
	return INVALID_VALUE;
}

API int cuDriverGetVersion(int *to)
{
	*to = 13000;
	return 0;
}

API int cuInit(unsigned int flags)
{
	while (mode("block"))
		(void)pause();
	return flags ? INVALID_VALUE : getenv("CUDA_VISIBLE_DEVICES") ? NO_DEVICE : 0;
}

API int cuDeviceGetCount(int *to)
{
	*to = mode("one") ? 1 : 2;
	return 0;
}

API int cuDeviceGet(int *to, int ordinal)
{
	const char *order = getenv("CUDA_DEVICE_ORDER");
	int by_bus = order && !strcmp(order, "PCI_BUS_ID");

	if (ordinal < 0 || ordinal > 1)
		return INVALID_DEVICE;
	*to = by_bus ? ordinal : 1 - ordinal;
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
	static const unsigned char middle[] = {0xaa, 0xaa, 0xbb, 0xbb, 0xcc, 0xcc};

	memset(to, device ? 0x22 : 0x11, 16);
	memcpy(to + 4, middle, sizeof(middle));
	return 0;
}

API int cuDeviceGetPCIBusId(char *to, int size, int device)
{
	(void)strncpy(to, device ? "0000:9A:00.0" : "0000:3B:00.0", (size_t)size);
	return 0;
}

API int cuDeviceGetAttribute(int *to, int attribute, int device)
{
	if (mode("crash")) {
		(void)signal(SIGABRT, SIG_DFL);
		(void)raise(SIGABRT);
	}
	if (mode("old") && attribute > 116)
		return INVALID_VALUE;
	switch (attribute) {
	case 75: /* compute capability 9.0 */
		*to = 9;
		return 0;
	case 76:
		*to = 0;
		return 0;
	case 20: /* compute mode */
		*to = mode("exclusive") ? 3 : mode("prohibited") ? 2 : 0;
		return 0;
	case 103: /* POSIX descriptors of memory */
	case 110: /* GPUDirect RDMA with VMM */
	case 116: /* GPUDirect RDMA */
	case 117: /* flush: host */
		*to = 1;
		return 0;
	case 118: /* ordering: owner */
		*to = mode("unordered") ? 0 : 100;
		return 0;
	case 124: /* DMA-BUF */
		*to = !mode("proprietary");
		return 0;
	default:
		(void)device;
		return INVALID_VALUE;
	}
}
