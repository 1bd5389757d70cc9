/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/cuda.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "node/ask.h"
#include "node/dl.h"
#include "base/banned.h"

static const char LIBRARY[] = "libcuda.so.1";

static_assert(sizeof(struct pp_cuda_property) == 32, "CUmemAllocationProp");
static_assert(sizeof(struct pp_cuda_access) == 12, "CUmemAccessDesc");

/* CUcomputemode */
enum { PROHIBITED = 2, EXCLUSIVE = 3 };

#define ENTRY(member, name, optional)                                  \
	{                                                              \
		name, offsetof(struct pp_cuda_calls, member), optional \
	}

static const struct {
	const char *name;
	size_t offset;
	bool optional;
} entries[] = {
	ENTRY(error_name, "cuGetErrorName", true),
	ENTRY(init, "cuInit", false),
	ENTRY(by_bdf, "cuDeviceGetByPCIBusId", false),
	ENTRY(attribute, "cuDeviceGetAttribute", false),
	ENTRY(total_memory, "cuDeviceTotalMem_v2", false),
	ENTRY(retain, "cuDevicePrimaryCtxRetain", false),
	ENTRY(release, "cuDevicePrimaryCtxRelease_v2", false),
	ENTRY(set_current, "cuCtxSetCurrent", false),
	ENTRY(synchronize, "cuCtxSynchronize", false),
	ENTRY(alloc, "cuMemAlloc_v2", false),
	ENTRY(free, "cuMemFree_v2", false),
	ENTRY(address_range, "cuMemGetAddressRange_v2", false),
	ENTRY(pointer_get, "cuPointerGetAttribute", false),
	ENTRY(pointer_set, "cuPointerSetAttribute", false),
	ENTRY(host_register, "cuMemHostRegister_v2", false),
	ENTRY(host_unregister, "cuMemHostUnregister", false),
	ENTRY(stream_create, "cuStreamCreate", false),
	ENTRY(stream_destroy, "cuStreamDestroy_v2", false),
	ENTRY(event_create, "cuEventCreate", false),
	ENTRY(event_destroy, "cuEventDestroy_v2", false),
	ENTRY(event_record, "cuEventRecord", false),
	ENTRY(event_query, "cuEventQuery", false),
	ENTRY(event_wait, "cuEventSynchronize", false),
	ENTRY(copy_in, "cuMemcpyHtoDAsync_v2", false),
	ENTRY(copy_out, "cuMemcpyDtoHAsync_v2", false),
	ENTRY(handle_for_range, "cuMemGetHandleForAddressRange", true),
	ENTRY(flush, "cuFlushGPUDirectRDMAWrites", true),
	ENTRY(create, "cuMemCreate", true),
	ENTRY(destroy, "cuMemRelease", true),
	ENTRY(reserve, "cuMemAddressReserve", true),
	ENTRY(unreserve, "cuMemAddressFree", true),
	ENTRY(map, "cuMemMap", true),
	ENTRY(unmap, "cuMemUnmap", true),
	ENTRY(set_access, "cuMemSetAccess", true),
	ENTRY(granularity, "cuMemGetAllocationGranularity", true),
};

/* CUdevice_attribute. */
static const struct {
	size_t offset;
	int attribute;
} attributes[] = {
	{offsetof(struct pp_cuda, compute_mode), 20},
	{offsetof(struct pp_cuda, posix_fd), 103},
	{offsetof(struct pp_cuda, gdr_vmm), 110},
	{offsetof(struct pp_cuda, gdr), 116},
	{offsetof(struct pp_cuda, flush_options), 117},
	{offsetof(struct pp_cuda, writes_ordering), 118},
	{offsetof(struct pp_cuda, dmabuf), 124},
};

const char *pp_cuda_error(const struct pp_cuda_calls *call, int code, char text[PP_CUDA_TEXT])
{
	const char *name = NULL;

	if (!call->error_name || call->error_name(code, &name) || !name)
		name = "CUDA error";
	(void)snprintf(text, PP_CUDA_TEXT, "%s (%d)", name, code);
	return text;
}

int pp_cuda_errno(int code)
{
	static const struct {
		int code, error;
	} same[] = {
		{0, 0},
		{PP_CUDA_INVALID_VALUE, EINVAL},
		{PP_CUDA_OUT_OF_MEMORY, ENOMEM},
		{PP_CUDA_UNAVAILABLE, EBUSY},
		{PP_CUDA_NO_DEVICE, ENODEV},
		{PP_CUDA_INVALID_DEVICE, ENODEV},
		{PP_CUDA_NOT_READY, EAGAIN},
		{PP_CUDA_NOT_PERMITTED, EPERM},
		{PP_CUDA_NOT_SUPPORTED, EOPNOTSUPP},
	};

	for (size_t i = 0; i < PP_ARRAY_LEN(same); i++)
		if (same[i].code == code)
			return same[i].error;
	return EIO;
}

int pp_cuda_fail(const struct pp_cuda *c, const char *call, int code, struct pp_error *err)
{
	char text[PP_CUDA_TEXT];

	return pp_error_set(err, -pp_cuda_errno(code), "GPU %s: %s: %s", c->name, call,
			    pp_cuda_error(&c->call, code, text));
}

void pp_cuda_enter(const struct pp_cuda *c)
{
	(void)c->call.set_current(c->context);
}

static int load(struct pp_cuda *c, struct pp_error *err)
{
	/* NVIDIA's libraries would load a missing kernel module through a setuid program. */
	const struct pp_dl_options options = {.module_absent = access("/sys/module/nvidia", F_OK) &&
							       errno == ENOENT};
	int r = pp_dl_permit(&options, LIBRARY, err);
	const char *why;

	if (r)
		return r;
	pp_ask_doing("loading libcuda.so.1");
	c->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!c->library) {
		why = dlerror();
		return pp_error_set(err, -ENODEV,
				    "GPU %s: %s: is NVIDIA's driver installed here, and given to "
				    "this container?",
				    c->name, why ? why : "libcuda.so.1 cannot be loaded");
	}
	for (size_t i = 0; i < PP_ARRAY_LEN(entries); i++) {
		void *fn = dlsym(c->library, entries[i].name);

		if (!fn && !entries[i].optional)
			return pp_error_set(err, -ENOSYS,
					    "GPU %s: this %s has no %s (CUDA 10.2 has)", c->name,
					    LIBRARY, entries[i].name);
		memcpy((char *)&c->call + entries[i].offset, &fn, sizeof(fn));
	}
	return 0;
}

/* A GPU that this process may not see is told apart from one that is not there. */
static int not_seen(const struct pp_cuda *c, const char *call, int code, struct pp_error *err)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	char text[PP_CUDA_TEXT];

	if (visible)
		return pp_error_set(err, -ENODEV,
				    "GPU %s: %s: %s: CUDA_VISIBLE_DEVICES=%.64s may hide it: unset "
				    "it or choose a GPU of it",
				    c->name, call, pp_cuda_error(&c->call, code, text), visible);
	return pp_error_set(err, -ENODEV,
			    "GPU %s: %s: %s: no such GPU for this process (nvidia-smi -L; a "
			    "container must be given it)",
			    c->name, call, pp_cuda_error(&c->call, code, text));
}

static int no_context(const struct pp_cuda *c, int code, struct pp_error *err)
{
	char text[PP_CUDA_TEXT];

	if (c->compute_mode == EXCLUSIVE && code == PP_CUDA_UNAVAILABLE)
		return pp_error_set(err, -EBUSY,
				    "GPU %s is in compute mode EXCLUSIVE_PROCESS and another "
				    "process has it: end that one (nvidia-smi), or as root "
				    "nvidia-smi -i %s -c DEFAULT",
				    c->name, c->name);
	if (c->compute_mode == PROHIBITED)
		return pp_error_set(
			err, -EBUSY,
			"GPU %s is in compute mode PROHIBITED: as root nvidia-smi -i %s "
			"-c DEFAULT",
			c->name, c->name);
	if (code == PP_CUDA_OUT_OF_MEMORY)
		return pp_error_set(err, -ENOMEM,
				    "GPU %s has no memory left for a context: end what uses it "
				    "(nvidia-smi)",
				    c->name);
	return pp_error_set(err, -pp_cuda_errno(code), "GPU %s: cuDevicePrimaryCtxRetain: %s",
			    c->name, pp_cuda_error(&c->call, code, text));
}

static void read_attributes(struct pp_cuda *c)
{
	size_t bytes = 0;
	int value;

	for (size_t i = 0; i < PP_ARRAY_LEN(attributes); i++) {
		if (c->call.attribute(&value, attributes[i].attribute, c->device))
			value = -1;
		memcpy((char *)c + attributes[i].offset, &value, sizeof(value));
	}
	if (!c->call.total_memory(&bytes, c->device))
		c->memory = bytes;
}

static int start(struct pp_cuda *c, struct pp_error *err)
{
	int code;

	pp_ask_doing("cuInit");
	code = c->call.init(0);
	if (code == PP_CUDA_NO_DEVICE)
		return not_seen(c, "cuInit", code, err);
	if (code)
		return pp_cuda_fail(c, "cuInit", code, err);
	code = c->call.by_bdf(&c->device, c->name);
	if (code)
		return not_seen(c, "cuDeviceGetByPCIBusId", code, err);
	read_attributes(c);
	pp_ask_doing("cuDevicePrimaryCtxRetain");
	code = c->call.retain(&c->context, c->device);
	if (code) {
		c->context = NULL;
		return no_context(c, code, err);
	}
	pp_cuda_enter(c);
	code = c->call.stream_create(&c->in, PP_CUDA_NON_BLOCKING);
	if (!code)
		code = c->call.stream_create(&c->out, PP_CUDA_NON_BLOCKING);
	return code ? pp_cuda_fail(c, "cuStreamCreate", code, err) : 0;
}

int pp_cuda_open(const char *bdf, struct pp_cuda **ret, struct pp_error *err)
{
	struct pp_cuda *c;
	struct pp_bdf at;
	int r;

	if (!bdf || pp_bdf_parse(bdf, &at))
		return pp_error_set(err, -EINVAL, "GPU '%s': not a PCI address",
				    bdf ? bdf : "(none)");
	c = calloc(1, sizeof(*c));
	if (!c)
		return pp_error_set(err, -ENOMEM, "out of memory");
	c->bdf = at;
	(void)pp_bdf_format(&at, c->name);
	r = load(c, err);
	if (!r)
		r = start(c, err);
	if (r) {
		pp_cuda_close(c);
		return r;
	}
	pp_bar1_open(&c->bdf, &c->bar1);
	*ret = c;
	return 0;
}

struct pp_cuda *pp_cuda_close(struct pp_cuda *c)
{
	if (!c)
		return NULL;
	if (c->context) {
		pp_cuda_enter(c);
		if (c->in)
			(void)c->call.stream_destroy(c->in);
		if (c->out)
			(void)c->call.stream_destroy(c->out);
		(void)c->call.release(c->device);
	}
	pp_bar1_close(&c->bar1);
	free(c);
	return NULL;
}
