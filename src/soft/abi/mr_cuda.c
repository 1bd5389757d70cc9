/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a GPU, by the DMA-BUF descriptor that CUDA made of it. Nobody maps such a descriptor:
 * its bytes are copied by their CUDA address, in the client's process, which has it. The
 * descriptor is kept until the end of the registration: the kernel's list of dma-bufs is the one
 * witness that is not ours.
 */
#include "soft/abi/mr.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "soft/copy/cuda_driver.h"
#include "soft/copy/cuda_memory.h"
#include "soft/engine/direct.h"
#include "soft/engine/gpus.h"

#include "base/banned.h"

enum { PAGE = 4096 };

static bool can_be_mapped(int fd)
{
	void *at = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return false;
	(void)munmap(at, PAGE);
	return true;
}

static int keep(int fd, struct soft_mr_object *mr)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	mr->inode = (uint64_t)st.st_ino;
	mr->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return mr->fd < 0 ? -errno : 0;
}

int soft_mr_make_cuda(const struct soft_mr_request *q, struct soft_mr_object *mr)
{
	struct soft_cuda_range range;
	struct soft_cuda_device *gpu;
	uint64_t end, at = q->iova;
	int64_t size;
	int rc;

	if (q->fd < 0 || can_be_mapped(q->fd) || !soft_cuda_driver())
		return -ENODEV;
	size = soft_mr_descriptor_size(q->fd);
	if (size < 0)
		return -ENODEV;
	mr->offset_modelled = soft_dmabuf_range_of(q->fd, &at);
	if (mr->offset_modelled && __builtin_add_overflow(at, q->addr, &at))
		return -EINVAL;
	rc = soft_cuda_range_of(at, q->length, &range);
	if (rc)
		return rc;
	if (__builtin_add_overflow(q->addr, q->length, &end) || end > (uint64_t)size)
		return -EINVAL;
	rc = soft_gpus_register(q->context->engine, range.ordinal, &gpu);
	if (rc)
		return rc;
	rc = keep(q->fd, mr);
	if (rc)
		return rc;
	mr->gpu = gpu;
	mr->vmm = range.vmm;
	mr->descriptor_size = (uint64_t)size;
	mr->offset = q->addr;
	mr->region.ops = &soft_region_far;
	mr->region.copier = soft_cuda_device_copier(gpu, range.vmm);
	mr->region.far = at;
	soft_direct_register(q->context->engine, &mr->region, at, q->length, range.vmm);
	return 0;
}
