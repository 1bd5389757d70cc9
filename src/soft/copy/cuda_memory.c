/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/copy/cuda_memory.h"

#include <errno.h>

#include "soft/copy/cuda_driver.h"

#include "base/banned.h"

enum { MAPPINGS_MAX = 4096 };

bool soft_cuda_is_device(uint64_t at)
{
	const struct soft_cuda_driver *cuda = soft_cuda_driver();
	unsigned int type = 0, managed = 0;

	return cuda && !cuda->pointer_attribute(&type, SOFT_CUDA_POINTER_MEMORY_TYPE, at) &&
	       type == SOFT_CUDA_MEMORYTYPE_DEVICE &&
	       (cuda->pointer_attribute(&managed, SOFT_CUDA_POINTER_IS_MANAGED, at) ||
		!(managed & 0xff));
}

static bool is_vmm(const struct soft_cuda_driver *cuda, uint64_t at)
{
	uint64_t handle;

	if (cuda->retain_allocation(&handle, (void *)(uintptr_t)at))
		return false;
	(void)cuda->release_allocation(handle);
	return true;
}

int soft_cuda_range_of(uint64_t at, uint64_t len, struct soft_cuda_range *ret)
{
	const struct soft_cuda_driver *cuda = soft_cuda_driver();
	struct soft_cuda_range range;
	uint64_t end;

	if (!cuda || !soft_cuda_is_device(at) ||
	    cuda->pointer_attribute(&range.ordinal, SOFT_CUDA_POINTER_DEVICE_ORDINAL, at))
		return -ENODEV;
	range.vmm = is_vmm(cuda, at);
	if (__builtin_add_overflow(at, len, &end))
		return -EINVAL;
	for (unsigned int i = 0; at < end; i++) {
		int ordinal = -1;
		uint64_t base;
		size_t size;

		/* Allocations that only happen to be neighbours are two. */
		if ((i && !(range.vmm && is_vmm(cuda, at))) || i == MAPPINGS_MAX ||
		    cuda->address_range(&base, &size, at) || base > at || base + size <= at ||
		    cuda->pointer_attribute(&ordinal, SOFT_CUDA_POINTER_DEVICE_ORDINAL, at) ||
		    ordinal != range.ordinal)
			return -EINVAL;
		at = base + size;
	}
	*ret = range;
	return 0;
}
