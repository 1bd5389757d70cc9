/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	LOCATION_DEVICE = 1,
	ALLOCATION_PINNED = 1,
	HANDLE_POSIX = 1,
	READ_WRITE = 3,
	HANDLE_DMA_BUF = 1,
	SEGMENT = 2 << 20,
};

/* CUmemAllocationProp and CUmemAccessDesc. */
struct properties {
	int type, handle_types;
	struct {
		int type, id;
	} location;
	void *win32;
	struct {
		unsigned char compression, rdma_capable;
		unsigned short usage;
		unsigned char reserved[4];
	} flags;
};
struct access {
	struct {
		int type, id;
	} location;
	int flags;
};

const char *const gpu_kind_names[GPU_KINDS] = {"host", "alloc", "vmm", "vmm2"};

static void *library;
static int device;

void *gpu_call(const char *name)
{
	void *at = library ? dlsym(library, name) : NULL;

	if (at)
		return at;
	printf("no GPU: %s\n", library ? name : "libcuda.so.1 is not here");
	exit(77);
}

#define CALL(name, ...) ((int (*)(__VA_ARGS__))gpu_call(name))

void gpu_must(int result, const char *what)
{
	if (!result)
		return;
	fprintf(stderr, "%s: CUDA error %d\n", what, result);
	exit(1);
}

void gpu_open(int ordinal)
{
	device = ordinal;
	void *context;
	int n = 0;

	library = dlopen("libcuda.so.1", RTLD_NOW);
	if (CALL("cuInit", unsigned int)(0) || CALL("cuDeviceGetCount", int *)(&n) ||
	    n <= ordinal) {
		printf("no GPU\n");
		exit(77);
	}
	gpu_must(CALL("cuDevicePrimaryCtxRetain", void **, int)(&context, device), "context");
	gpu_must(CALL("cuCtxSetCurrent", void *)(context), "context");
}

static size_t rounded(size_t len)
{
	return (len + SEGMENT - 1) / SEGMENT * SEGMENT;
}

static void map(uint64_t at, size_t len)
{
	struct properties p = {
		.type = ALLOCATION_PINNED,
		.handle_types = HANDLE_POSIX,
		.location = {LOCATION_DEVICE, device},
		.flags = {.rdma_capable = 1},
	};
	struct access access = {{LOCATION_DEVICE, device}, READ_WRITE};
	uint64_t handle;

	gpu_must(CALL("cuMemCreate", uint64_t *, size_t, const struct properties *,
		      unsigned long long)(&handle, len, &p, 0),
		 "cuMemCreate");
	gpu_must(CALL("cuMemMap", uint64_t, size_t, size_t, uint64_t,
		      unsigned long long)(at, len, 0, handle, 0),
		 "cuMemMap");
	gpu_must(CALL("cuMemRelease", uint64_t)(handle), "cuMemRelease");
	gpu_must(CALL("cuMemSetAccess", uint64_t, size_t, const struct access *,
		      size_t)(at, len, &access, 1),
		 "cuMemSetAccess");
}

static uint64_t take_vmm(size_t whole, size_t first)
{
	uint64_t at;

	gpu_must(CALL("cuMemAddressReserve", uint64_t *, size_t, size_t, uint64_t,
		      unsigned long long)(&at, whole, 0, 0, 0),
		 "cuMemAddressReserve");
	map(at, first);
	if (first < whole)
		map(at + first, whole - first);
	return at;
}

struct gpu_memory gpu_take(enum gpu_kind kind, size_t len, size_t inside)
{
	struct gpu_memory m = {.kind = kind, .len = len, .whole = rounded(inside + len)};
	void *host;

	switch (kind) {
	case GPU_HOST:
		host = mmap(NULL, m.whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
		gpu_must(host == MAP_FAILED, "mmap");
		m.base = (uintptr_t)host;
		break;
	case GPU_ALLOC:
		gpu_must(CALL("cuMemAlloc_v2", uint64_t *, size_t)(&m.base, m.whole), "cuMemAlloc");
		break;
	default:
		if (kind == GPU_VMM_TWO && m.whole == SEGMENT)
			m.whole = 2 * SEGMENT;
		m.base = take_vmm(m.whole, kind == GPU_VMM ? m.whole : SEGMENT);
		break;
	}
	m.at = m.base + inside;
	return m;
}

void gpu_give(struct gpu_memory *m)
{
	if (m->kind == GPU_HOST)
		(void)munmap((void *)(uintptr_t)m->base, m->whole);
	else if (m->kind == GPU_ALLOC)
		gpu_must(CALL("cuMemFree_v2", uint64_t)(m->base), "cuMemFree");
	else
		gpu_must(CALL("cuMemUnmap", uint64_t, size_t)(m->base, m->whole), "cuMemUnmap");
	memset(m, 0, sizeof(*m));
}

void gpu_renew(struct gpu_memory *m)
{
	if (m->kind == GPU_HOST)
		return;
	if (m->kind == GPU_ALLOC) {
		size_t inside = (size_t)(m->at - m->base), len = m->len;

		gpu_give(m);
		*m = gpu_take(GPU_ALLOC, len, inside);
		return;
	}
	gpu_must(CALL("cuMemUnmap", uint64_t, size_t)(m->base, m->whole), "cuMemUnmap");
	map(m->base, m->whole);
}

void gpu_put(const struct gpu_memory *m, size_t at, const void *from, size_t len)
{
	if (m->kind == GPU_HOST)
		memcpy((void *)(uintptr_t)(m->at + at), from, len);
	else {
		gpu_must(CALL("cuMemcpyHtoD_v2", uint64_t, const void *, size_t)(m->at + at, from,
										 len),
			 "cuMemcpyHtoD");
		/* Pageable memory: it may have been copied to where the GPU takes it from only. */
		gpu_must(CALL("cuCtxSynchronize", void)(), "cuCtxSynchronize");
	}
}

void gpu_get(const struct gpu_memory *m, size_t at, void *to, size_t len)
{
	if (m->kind == GPU_HOST)
		memcpy(to, (void *)(uintptr_t)(m->at + at), len);
	else
		gpu_must(CALL("cuMemcpyDtoH_v2", void *, uint64_t, size_t)(to, m->at + at, len),
			 "cuMemcpyDtoH");
}

int gpu_export(uint64_t at, size_t len)
{
	int fd = -1;

	gpu_must(CALL("cuMemGetHandleForAddressRange", int *, uint64_t, size_t, int,
		      unsigned long long)(&fd, at, len, HANDLE_DMA_BUF, 0),
		 "cuMemGetHandleForAddressRange");
	return fd;
}
