/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a refusal most probably means on this machine: errno and call choose the rows, the first
 * whose condition holds is told. `peerpath explain` knows more, of logs; this is the one line of
 * the call itself.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/parse.h"
#include "mem/way.h"
#include "base/banned.h"

enum { LINUX_ENOTSUPP = 524, CAP_IPC_LOCK = 14 };

/* What is known where the call was refused. */
struct scene {
	const struct pp_registering *g;
	uint64_t bytes;
	rlim_t memlock; /* RLIM_INFINITY also with CAP_IPC_LOCK */
};

typedef bool condition(const struct scene *s);

static bool always(const struct scene *s)
{
	(void)s;
	return true;
}

static bool memlock_small(const struct scene *s)
{
	return s->memlock != RLIM_INFINITY;
}

static bool of_gpu(const struct scene *s)
{
	return s->g->memory->cuda != NULL;
}

static bool no_peermem(const struct scene *s)
{
	return of_gpu(s) && access("/sys/module/nvidia_peermem", F_OK) &&
	       access("/sys/module/nv_peer_mem", F_OK);
}

static bool vmm(const struct scene *s)
{
	return s->g->memory->options.kind == PP_MEMORY_CUDA_VMM;
}

static bool small_bar1(const struct scene *s)
{
	const struct pp_memory *m = s->g->memory;

	return m->cuda && m->bar1_total >= 0 && (uint64_t)m->bar1_total < m->cuda->memory;
}

static bool not_capable(const struct scene *s)
{
	return of_gpu(s) && !s->g->memory->gdr_capable;
}

static bool on_software(const struct scene *s)
{
	return s->g->software;
}

static bool gpu_on_software(const struct scene *s)
{
	return of_gpu(s) && on_software(s);
}

static bool no_dmabuf_attribute(const struct scene *s)
{
	return of_gpu(s) && s->g->memory->cuda->dmabuf == 0;
}

enum { BY_ADDRESS = 1, BY_DESCRIPTOR = 2, ANY_VERB = 3, EXPORT = 4 };

static const struct {
	int calls, error;
	condition *when;
	const char *text;
} rows[] = {
	{ANY_VERB, EAGAIN, always,
	 "the container's limit of RDMA objects (cgroup rdma.max), or an mlx5 that is behind with "
	 "making keys: fewer, larger regions"},
	{BY_ADDRESS, ENOMEM, memlock_small,
	 "RLIMIT_MEMLOCK is too small and this process has no CAP_IPC_LOCK: ulimit -l unlimited "
	 "(service: LimitMEMLOCK=infinity; container: --ulimit memlock=-1 or IPC_LOCK)"},
	{BY_ADDRESS, ENOMEM, small_bar1,
	 "BAR1 of the GPU does not cover its memory and is full: register less at a time"},
	{BY_ADDRESS, ENOMEM, always, "the device has no keys or memory left: fewer regions"},
	{BY_ADDRESS, EPERM, always,
	 "this process may lock no memory: ulimit -l unlimited, or CAP_IPC_LOCK"},
	{BY_ADDRESS, EFAULT, gpu_on_software,
	 "the software device takes a GPU's memory by dmabuf only: it has no peermem"},
	{BY_ADDRESS, EFAULT, no_peermem,
	 "nvidia_peermem is not loaded, so that the address is nobody's: modprobe nvidia_peermem, "
	 "or register by dmabuf"},
	{BY_ADDRESS, EFAULT, not_capable,
	 "CUDA says that this memory is not for GPUDirect RDMA (a GPU without it, or cuMemCreate "
	 "without gpuDirectRDMACapable)"},
	{BY_ADDRESS, EFAULT, small_bar1,
	 "nvidia_peermem got no pages: most probably BAR1 is full (dmesg names "
	 "nvidia_p2p_get_pages)"},
	{BY_ADDRESS, EFAULT, of_gpu,
	 "nvidia_peermem is loaded and did not take the memory: a GPU without GPUDirect RDMA, or a "
	 "client that is not registered with this RDMA stack (dmesg, lines of nvidia-peermem)"},
	{BY_ADDRESS, EFAULT, always, "the memory is not mapped, or read-only with LOCAL_WRITE"},
	{BY_DESCRIPTOR, EPROTONOSUPPORT, always,
	 "this kernel or OFED knows no registration by DMA-BUF (Linux 5.12 does): a newer one, or "
	 "peermem"},
	{BY_DESCRIPTOR, EOPNOTSUPP, always,
	 "the provider library (this container's rdma-core) or the device's driver has no "
	 "registration by DMA-BUF; mlx5 needs a kernel with CONFIG_INFINIBAND_ON_DEMAND_PAGING"},
	{BY_DESCRIPTOR, LINUX_ENOTSUPP, always,
	 "the GPU's driver refuses this NIC: no common PCIe switch on a platform that needs one, "
	 "or "
	 "a mapping by PCIe that the GPU has not (dmesg: \"dma-buf attach failed\")"},
	{BY_DESCRIPTOR, ENOMEM, small_bar1,
	 "the memory cannot be mapped for the NIC: BAR1 is full (dma-buf says no more than that)"},
	{BY_DESCRIPTOR, ENOMEM, always,
	 "the memory cannot be mapped for the NIC: the IOMMU has no room, or the device no keys"},
	{BY_DESCRIPTOR, EINVAL, vmm,
	 "the range does not lie in one segment, or the segment was not made for RDMA"},
	{BY_DESCRIPTOR, EINVAL, always,
	 "offset, length or flags do not fit, or the device takes no region of this size (mlx5: "
	 "split it)"},
	{BY_DESCRIPTOR, EBADF, always, "the descriptor is closed, or another process's"},
	{BY_DESCRIPTOR, ENODEV, on_software,
	 "the software device cannot map this descriptor: it found no CUDA driver of its own"},
	{BY_DESCRIPTOR, ENODEV, always, "the descriptor's exporter does not let this device in"},
	{EXPORT, PP_CUDA_NOT_SUPPORTED, no_dmabuf_attribute,
	 "this driver has no DMA-BUF (attribute DMA_BUF_SUPPORTED is 0): the open kernel modules "
	 "are needed, or peermem"},
	{EXPORT, PP_CUDA_NOT_SUPPORTED, always,
	 "this memory or GPU exports no DMA-BUF (confidential mode, or proprietary kernel "
	 "modules): "
	 "peermem is left"},
	{EXPORT, PP_CUDA_INVALID_VALUE, vmm,
	 "the range lies in several segments of cuMemCreate, or a part of it is not mapped: export "
	 "each segment on its own"},
	{EXPORT, PP_CUDA_INVALID_VALUE, always,
	 "address or size are no multiple of a page (64 KiB pages on some kernels), or the range "
	 "is "
	 "not one allocation"},
	{EXPORT, PP_CUDA_OUT_OF_MEMORY, always, "the driver has no memory or BAR1 left to export"},
};

static bool may_lock_all(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	uint64_t caps = 0;
	char line[256];

	if (!f)
		return false;
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, "CapEff:", 7))
			(void)pp_parse_hex(pp_trim(line + 7), UINT64_MAX, &caps);
	(void)fclose(f);
	return caps >> CAP_IPC_LOCK & 1;
}

static rlim_t memlock(void)
{
	struct rlimit limit;

	if (may_lock_all() || getrlimit(RLIMIT_MEMLOCK, &limit))
		return RLIM_INFINITY;
	return limit.rlim_cur;
}

static const char *why(const struct scene *s, int call, int error)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(rows); i++)
		if (rows[i].calls & call && rows[i].error == error && rows[i].when(s))
			return rows[i].text;
	return "the kernel log may say more (dmesg), and peerpath explain what it means";
}

static struct scene scene(const struct pp_registering *g, uint64_t bytes)
{
	return (struct scene){.g = g, .bytes = bytes, .memlock = memlock()};
}

int pp_way_refused(struct pp_registering *g, const char *call, int error, uint64_t bytes)
{
	const struct scene s = scene(g, bytes);
	bool by_address = !strncmp(call, "ibv_reg_mr", sizeof("ibv_reg_mr") - 1);
	char limit[48] = "";

	if (by_address && (error == ENOMEM || error == EPERM) && s.memlock != RLIM_INFINITY)
		(void)snprintf(limit, sizeof(limit), " (limit %llu KiB)",
			       (unsigned long long)(s.memlock >> 10));
	return pp_error_set(g->err, -error, "%s of %llu KiB: %s (%d)%s: %s", call,
			    (unsigned long long)(bytes >> 10), pp_errno_name(error), error, limit,
			    why(&s, by_address ? BY_ADDRESS : BY_DESCRIPTOR, error));
}

int pp_way_refused_cuda(struct pp_registering *g, const char *call, int code, uint64_t bytes)
{
	const struct scene s = scene(g, bytes);
	char text[PP_CUDA_TEXT];

	return pp_error_set(g->err, -pp_cuda_errno(code), "%s of %llu KiB: %s: %s", call,
			    (unsigned long long)(bytes >> 10),
			    pp_cuda_error(&g->memory->cuda->call, code, text),
			    why(&s, EXPORT, code));
}
