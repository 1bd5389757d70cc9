/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libnvidia-ml.so.1 that needs no GPU: two H200 joined by NVSwitch, driver 580.159.04, as such
 * a machine answers. Declared anew from the public ABI, so that a mistake in the program's own
 * declarations shows.
 *
 * PP_FAKE_NVML: ok (default); block: nvmlInit_v2 never returns; crash: nvmlDeviceGetMemoryInfo
 * dies; error: much is refused; small-bar1: a window of 256 MiB, 54 MiB of it free; lost: GPU 1 has
 * fallen off the bus; throttled: GPU 0 is hot; unloaded: no driver. PP_FAKE_GPU_BUS is the bus of
 * GPU 0 (18; else 3b). With PP_FAKE_FEW_SYMBOLS it is a library of a driver
 * branch that lacks all newer calls.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

typedef struct {
	int index;
} * device_t;

typedef struct {
	char busIdLegacy[16];
	unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
	char busId[32];
} pci_t;

typedef struct {
	unsigned long long a, b, c;
} triple_t;

typedef struct {
	unsigned int pid;
	unsigned long long used;
	unsigned int gpu_instance, compute_instance;
} process_t;

typedef struct {
	unsigned int fieldId, scopeId;
	long long timestamp, latencyUsec;
	unsigned int valueType;
	int nvmlReturn;
	unsigned long long value;
} field_t;

static int devices[2] = {0, 1};

enum {
	OK,
	INVALID_ARGUMENT = 2,
	NOT_SUPPORTED = 3,
	NO_PERMISSION = 4,
	INSUFFICIENT_SIZE = 7,
	DRIVER_NOT_LOADED = 9,
	GPU_IS_LOST = 15,
	ARGUMENT_VERSION_MISMATCH = 25
};

static int mode(const char *word)
{
	const char *set = getenv("PP_FAKE_NVML");

	return set && !strcmp(set, word);
}

static int text(char *to, unsigned int size, const char *from)
{
	if (strlen(from) >= size)
		return INSUFFICIENT_SIZE;
	memcpy(to, from, strlen(from) + 1);
	return OK;
}

static int number(unsigned int *to, unsigned int value)
{
	*to = value;
	return OK;
}

static unsigned int bus_of(device_t d)
{
	const char *set = getenv("PP_FAKE_GPU_BUS");

	return d->index ? 0x9a : set ? (unsigned int)strtoul(set, NULL, 16) : 0x3b;
}

API int nvmlInit_v2(void)
{
	if (mode("unloaded"))
		return DRIVER_NOT_LOADED;
	while (mode("block"))
		(void)pause();
	return OK;
}

API int nvmlShutdown(void)
{
	return OK;
}

API int nvmlSystemGetDriverVersion(char *to, unsigned int size)
{
	return text(to, size, "580.159.04");
}

API int nvmlSystemGetNVMLVersion(char *to, unsigned int size)
{
	return text(to, size, "13.580.159.04");
}

API int nvmlDeviceGetCount_v2(unsigned int *n)
{
	return number(n, 2);
}

API int nvmlDeviceGetHandleByIndex_v2(unsigned int index, device_t *to)
{
	if (index > 1)
		return INVALID_ARGUMENT;
	if (index == 1 && mode("lost"))
		return GPU_IS_LOST;
	*to = (device_t)&devices[index];
	return OK;
}

API int nvmlDeviceGetPciInfo_v3(device_t d, pci_t *to)
{
	memset(to, 0, sizeof(*to));
	to->bus = bus_of(d);
	to->pciDeviceId = 0x233510de;
	(void)snprintf(to->busId, sizeof(to->busId), "00000000:%02X:00.0", to->bus);
	return OK;
}

/* As the driver takes it: a domain of four digits or eight. */
API int nvmlDeviceGetHandleByPciBusId_v2(const char *bdf, device_t *to)
{
	char four[16], eight[20];

	for (int i = 0; i < 2; i++) {
		*to = (device_t)&devices[i];
		(void)snprintf(four, sizeof(four), "0000:%02x:00.0", bus_of(*to));
		(void)snprintf(eight, sizeof(eight), "0000%s", four);
		if (!strcasecmp(bdf, four) || !strcasecmp(bdf, eight))
			return i == 1 && mode("lost") ? GPU_IS_LOST : OK;
	}
	return 6; /* not found */
}

API int nvmlDeviceGetName(device_t d, char *to, unsigned int size)
{
	(void)d;
	return text(to, size, "NVIDIA H200");
}

API int nvmlDeviceGetUUID(device_t d, char *to, unsigned int size)
{
	return text(to, size,
		    d->index ? "GPU-22222222-aaaa-bbbb-cccc-222222222222"
			     : "GPU-11111111-aaaa-bbbb-cccc-111111111111");
}

API int nvmlDeviceGetSerial(device_t d, char *to, unsigned int size)
{
	return mode("error") ? NO_PERMISSION
			     : text(to, size, d->index ? "1650000000002" : "1650000000001");
}

API int nvmlDeviceGetVbiosVersion(device_t d, char *to, unsigned int size)
{
	(void)d;
	return text(to, size, "96.00.B3.00.02");
}

API int nvmlDeviceGetMemoryInfo(device_t d, triple_t *to)
{
	(void)d;
	if (mode("crash")) {
		(void)signal(SIGSEGV, SIG_DFL);
		(void)raise(SIGSEGV);
	}
	*to = (triple_t){143771ULL << 20, 143000ULL << 20, 771ULL << 20};
	return OK;
}

API int nvmlDeviceGetBAR1MemoryInfo(device_t d, triple_t *to)
{
	if (mode("error"))
		return NOT_SUPPORTED;
	if (mode("small-bar1"))
		*to = (triple_t){256ULL << 20, 54ULL << 20, 202ULL << 20};
	else
		*to = (triple_t){262144ULL << 20, (262144ULL - 1) << 20, 1ULL << 20};
	(void)d;
	return OK;
}

API int nvmlDeviceGetMigMode(device_t d, unsigned int *now, unsigned int *pending)
{
	(void)d;
	if (mode("error"))
		return NOT_SUPPORTED;
	return number(now, 0) || number(pending, 0);
}

API int nvmlDeviceGetPersistenceMode(device_t d, unsigned int *to)
{
	return mode("error") ? NO_PERMISSION : number(to, d->index == 0);
}

API int nvmlDeviceGetPerformanceState(device_t d, unsigned int *to)
{
	(void)d;
	return number(to, mode("error") ? 32 : 0);
}

API int nvmlDeviceGetClockInfo(device_t d, unsigned int type, unsigned int *to)
{
	(void)d;
	return type == 1 ? number(to, 345) : INVALID_ARGUMENT;
}

API int nvmlDeviceGetMaxClockInfo(device_t d, unsigned int type, unsigned int *to)
{
	(void)d;
	return type == 1 ? number(to, 1980) : INVALID_ARGUMENT;
}

API int nvmlDeviceGetCurrPcieLinkGeneration(device_t d, unsigned int *to)
{
	(void)d;
	return number(to, 5);
}

API int nvmlDeviceGetMaxPcieLinkGeneration(device_t d, unsigned int *to)
{
	(void)d;
	return number(to, 5);
}

API int nvmlDeviceGetCurrPcieLinkWidth(device_t d, unsigned int *to)
{
	(void)d;
	return number(to, 16);
}

API int nvmlDeviceGetMaxPcieLinkWidth(device_t d, unsigned int *to)
{
	(void)d;
	return number(to, 16);
}

/* GPU 0: idle. GPU 1: power cap, thermal slowdown, and a bit that nobody knows yet. */
API int nvmlDeviceGetCurrentClocksThrottleReasons(device_t d, unsigned long long *to)
{
	*to = d->index ? 0x4 | 0x20 | 0x2000 : mode("throttled") ? 0x1 | 0x20 : 0x1;
	return OK;
}

/* Three processes on GPU 1; one more appears between the two calls. */
static int processes(device_t d, unsigned int *n, process_t *to)
{
	unsigned int room = *n;

	if (!d->index) {
		*n = 0;
		return OK;
	}
	*n = room ? 4 : 3;
	if (room < *n)
		return INSUFFICIENT_SIZE;
	for (unsigned int i = 0; i < *n; i++)
		to[i] = (process_t){1000 + i, 1, UINT32_MAX, UINT32_MAX};
	return OK;
}

API int nvmlDeviceGetComputeRunningProcesses_v2(device_t d, unsigned int *n, process_t *to)
{
	return processes(d, n, to);
}

/* Eighteen links; with "error" the last one of GPU 1 is down. */
API int nvmlDeviceGetNvLinkState(device_t d, unsigned int link, unsigned int *to)
{
	if (link >= 18)
		return INVALID_ARGUMENT;
	return number(to, !(mode("error") && d->index && link == 17));
}

API int nvmlDeviceGetNvLinkRemotePciInfo_v2(device_t d, unsigned int link, pci_t *to)
{
	(void)d;
	(void)link;
	memset(to, 0x5a, sizeof(*to)); /* the rest is not filled by the real one either */
	return text(to->busId, sizeof(to->busId), "00000000:00:00.0");
}

#ifndef PP_FAKE_FEW_SYMBOLS

API int nvmlDeviceGetCurrentClocksEventReasons(device_t d, unsigned long long *to)
{
	return nvmlDeviceGetCurrentClocksThrottleReasons(d, to);
}

API int nvmlDeviceGetComputeRunningProcesses_v3(device_t d, unsigned int *n, process_t *to)
{
	return processes(d, n, to);
}

API int nvmlDeviceGetNvLinkRemoteDeviceType(device_t d, unsigned int link, unsigned int *to)
{
	(void)d;
	return link < 18 ? number(to, 2) : INVALID_ARGUMENT;
}

/*
 * GPU 0 keeps counters of PCIe bytes (197 sent, 198 received): of 32 bits, 512 more at each reading
 * and about to wrap. GPU 1 only gives a rate.
 */
API int nvmlDeviceGetFieldValues(device_t d, int n, field_t *fields)
{
	static unsigned int bytes = 0xffffff00u;
	bool pcie = false;

	for (int i = 0; i < n; i++) {
		bool counter = d == (device_t)&devices[0] &&
			       (fields[i].fieldId == 197 || fields[i].fieldId == 198);

		pcie = pcie || counter;
		fields[i].nvmlReturn = fields[i].fieldId == 91 || counter ? OK : NOT_SUPPORTED;
		fields[i].valueType = counter;
		fields[i].value = counter ? bytes : 18;
	}
	bytes += pcie ? 512 : 0;
	return OK;
}

/* KB/s over the last 20 ms: 0 sent, 1 received. */
API int nvmlDeviceGetPcieThroughput(device_t d, int way, unsigned int *kb)
{
	usleep(20000);
	*kb = way ? 3000000 : 5000000;
	return d == (device_t)&devices[1] ? OK : NOT_SUPPORTED;
}

API int nvmlDeviceGetAddressingMode(device_t d, unsigned int *version_value)
{
	(void)d;
	if (version_value[0] != 0x01000008)
		return ARGUMENT_VERSION_MISMATCH;
	return number(&version_value[1], 1);
}

API int nvmlDeviceGetC2cModeInfoV(device_t d, unsigned int *enabled)
{
	(void)d;
	(void)enabled;
	return NOT_SUPPORTED;
}

API int nvmlDeviceGetGpuFabricInfoV(device_t d, unsigned char *to)
{
	(void)d;
	if (*(const unsigned int *)(const void *)to != 0x02000024)
		return ARGUMENT_VERSION_MISMATCH;
	to[28] = 3;
	return OK;
}

#endif
