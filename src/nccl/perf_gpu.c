/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/perf_gpu.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/parse.h"
#include "node/ask.h"
#include "node/dl.h"
#include "base/banned.h"

enum { MPS_ENABLED = 133 /* CUdevice_attribute, CUDA 12 */ };

struct finder {
	int (*init)(unsigned int flags);
	int (*count)(int *ret);
	int (*get)(int *ret, int ordinal);
	int (*bdf)(char *ret, int size, int device);
	int (*name)(char *ret, int size, int device);
	int (*attribute)(int *ret, int attribute, int device);
};

static int load(struct finder *f, struct pp_error *err)
{
	const struct pp_dl_options options = {.module_absent = access("/sys/module/nvidia", F_OK) &&
							       errno == ENOENT};
	int r = pp_dl_permit(&options, "libcuda.so.1", err);
	void *library;

	if (r)
		return r;
	pp_ask_doing("loading libcuda.so.1");
	library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return pp_error_set(
			err, -ENODEV,
			"no GPU here: libcuda.so.1 cannot be loaded: is NVIDIA's driver "
			"installed, and given to this container?");
	*(void **)&f->init = dlsym(library, "cuInit");
	*(void **)&f->count = dlsym(library, "cuDeviceGetCount");
	*(void **)&f->get = dlsym(library, "cuDeviceGet");
	*(void **)&f->bdf = dlsym(library, "cuDeviceGetPCIBusId");
	*(void **)&f->name = dlsym(library, "cuDeviceGetName");
	*(void **)&f->attribute = dlsym(library, "cuDeviceGetAttribute");
	if (!f->init || !f->count || !f->get || !f->bdf || !f->attribute)
		return pp_error_set(err, -ENOSYS, "this libcuda.so.1 is older than CUDA 10");
	return 0;
}

static void describe(const struct finder *f, int device, struct pp_perf_gpu *g)
{
	if (!f->name || f->name(g->name, sizeof(g->name) - 1, device))
		(void)snprintf(g->name, sizeof(g->name), "GPU");
	pp_sanitize(g->name, false);
	if (f->attribute(&g->mps, MPS_ENABLED, device))
		g->mps = -1;
}

static int find(const struct finder *f, const char *bdf, int ordinal, struct pp_perf_gpu *g,
		struct pp_error *err)
{
	struct pp_bdf at, wanted = {0};
	char text[32] = "";
	int device;

	if (bdf && pp_bdf_parse(bdf, &wanted))
		return pp_error_set(err, -EINVAL, "GPU '%.64s' is no PCI address", bdf);
	for (int i = 0; i < g->count; i++) {
		if (f->get(&device, i) || f->bdf(text, sizeof(text) - 1, device) ||
		    pp_bdf_parse(text, &at))
			continue;
		if (bdf ? !pp_bdf_equal(&at, &wanted) : i != ordinal)
			continue;
		(void)pp_bdf_format(&at, g->bdf);
		g->ordinal = i;
		describe(f, device, g);
		return 0;
	}
	if (bdf)
		return pp_error_set(err, -ENODEV, "CUDA sees no GPU %.64s here", bdf);
	return pp_error_set(err, -ENODEV,
			    "rank needs GPU %d, and CUDA sees %d here (CUDA_VISIBLE_DEVICES?): "
			    "fewer ranks, or --one-gpu",
			    ordinal, g->count);
}

int pp_perf_gpu_find(const char *bdf, int ordinal, struct pp_perf_gpu *ret, struct pp_error *err)
{
	struct pp_perf_gpu g = {.mps = -1};
	struct finder f = {0};
	int r = load(&f, err), code;

	if (r)
		return r;
	pp_ask_doing("cuInit");
	code = f.init(0);
	if (code || f.count(&g.count) || g.count < 1)
		return pp_error_set(err, -ENODEV,
				    "no GPU here: CUDA sees none (cuInit: %d; nvidia-smi -L; "
				    "CUDA_VISIBLE_DEVICES)",
				    code);
	r = find(&f, bdf, ordinal, &g, err);
	if (!r)
		*ret = g;
	return r;
}

int pp_perf_gpu_open(struct pp_perf_gpu *g, struct pp_error *err)
{
	int code, r = pp_cuda_open(g->bdf, &g->cuda, err);

	if (r)
		return r;
	code = g->cuda->call.stream_create(&g->stream, PP_CUDA_NON_BLOCKING);
	if (!code)
		code = g->cuda->call.event_create(&g->event, PP_CUDA_NO_TIMING);
	g->chunk = mmap(NULL, PP_PERF_CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	if (g->chunk == MAP_FAILED)
		g->chunk = NULL;
	if (code || !g->chunk) {
		r = code ? pp_cuda_fail(g->cuda, "cuStreamCreate", code, err)
			 : pp_error_set(err, -ENOMEM, "no memory for a bounce buffer");
		pp_perf_gpu_close(g);
		return r;
	}
	/* Slower where it cannot be, and else the same. */
	g->locked = !g->cuda->call.host_register(g->chunk, PP_PERF_CHUNK, PP_CUDA_PORTABLE);
	return 0;
}

int pp_perf_gpu_buffers(struct pp_perf_gpu *g, enum pp_memory_kind kind, uint64_t send,
			uint64_t receive, struct pp_error *err)
{
	struct pp_memory_options o = {.kind = kind, .gpu = g->bdf, .numa = -1};
	int r;

	g->send = pp_memory_free(g->send);
	g->receive = pp_memory_free(g->receive);
	o.size = send ? send : 1;
	r = pp_memory_new(&o, &g->send, err);
	o.size = receive ? receive : 1;
	if (!r)
		r = pp_memory_new(&o, &g->receive, err);
	if (r)
		g->send = pp_memory_free(g->send);
	pp_cuda_enter(g->cuda);
	return r;
}

void pp_perf_gpu_close(struct pp_perf_gpu *g)
{
	if (!g->cuda)
		return;
	(void)pp_memory_free(g->send);
	(void)pp_memory_free(g->receive);
	pp_cuda_enter(g->cuda);
	if (g->locked)
		(void)g->cuda->call.host_unregister(g->chunk);
	if (g->chunk)
		(void)munmap(g->chunk, PP_PERF_CHUNK);
	if (g->event)
		(void)g->cuda->call.event_destroy(g->event);
	if (g->stream)
		(void)g->cuda->call.stream_destroy(g->stream);
	g->cuda = pp_cuda_close(g->cuda);
}

static int finish(struct pp_perf_gpu *g, int code, const char *call, struct pp_error *err)
{
	if (!code)
		code = g->cuda->call.event_record(g->event, g->stream);
	if (!code)
		code = g->cuda->call.event_wait(g->event);
	return code ? pp_cuda_fail(g->cuda, call, code, err) : 0;
}

int pp_perf_gpu_put(struct pp_perf_gpu *g, const struct pp_payload *p, uint64_t first, uint64_t at,
		    uint64_t count, unsigned int size, struct pp_error *err)
{
	uint64_t most = PP_PERF_CHUNK / size, n;
	int r = 0;

	if (!p)
		memset(g->chunk, PP_PAYLOAD_POISON, (count < most ? count : most) * size);
	for (; count && !r; first += n, count -= n, at += n * size) {
		n = count < most ? count : most;
		if (p)
			pp_payload_write(p, first, n, g->chunk);
		r = finish(g, g->cuda->call.copy_in(at, g->chunk, n * size, g->stream),
			   "cuMemcpyHtoDAsync", err);
	}
	return r;
}

int pp_perf_gpu_compare(struct pp_perf_gpu *g, const struct pp_payload *p, uint64_t first,
			uint64_t at, uint64_t count, struct pp_perf_found *found,
			struct pp_error *err)
{
	uint64_t most = PP_PERF_CHUNK / p->size, n, wrong, where = 0;
	int r = 0;

	for (; count; first += n, count -= n, at += n * p->size) {
		n = count < most ? count : most;
		r = finish(g, g->cuda->call.copy_out(g->chunk, at, n * p->size, g->stream),
			   "cuMemcpyDtoHAsync", err);
		if (r)
			return r;
		wrong = pp_payload_compare(p, first, n, g->chunk, &where);
		if (wrong && !found->wrong)
			found->first = found->checked + where;
		found->wrong += wrong;
		found->checked += n;
	}
	return 0;
}
