/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mapping is done by the GPU's thread, in the GPU's own context: neither call needs anything of the
 * application's. Memory from cuMemCreate() is mapped for reading, where the driver has that.
 */
#include "soft/copy/cuda_peer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "soft/copy/cuda_parts.h"

#include "base/banned.h"

enum {
	LOCATION_DEVICE = 1,
	HANDLE_POSIX = 1,
	ACCESS_READ = 1,
	ACCESS_BOTH = 3,
	IPC_PEERS = 1, /* CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS */
};

const char *soft_cuda_allocation_of(uint64_t at, uint64_t len, struct soft_allocation *ret)
{
	const struct soft_cuda_driver *cuda = soft_cuda_driver();
	struct soft_allocation a = {.fd = -1};
	size_t size;

	if (!cuda || !soft_cuda_peers())
		return "the driver is too old to share memory of GPUs";
	if (cuda->address_range(&a.base, &size, at) || at < a.base || at - a.base > size)
		return "CUDA does not know the allocation";
	if (len > size - (at - a.base))
		return "the region lies in several allocations";
	a.len = size;
	if (cuda->pointer_attribute(&a.id, SOFT_CUDA_POINTER_BUFFER_ID, at))
		a.id = 0;
	*ret = a;
	return NULL;
}

static const char *share_mapped(struct soft_allocation *a)
{
	const struct soft_cuda_peers *peers = soft_cuda_peers();
	const struct soft_cuda_driver *cuda = soft_cuda_driver();
	uint64_t handle;
	int fd = -1, r;

	if (cuda->retain_allocation(&handle, (void *)(uintptr_t)a->base))
		return "CUDA does not know the allocation";
	r = peers->export_handle(&fd, handle, HANDLE_POSIX, /* flags= */ 0);
	(void)cuda->release_allocation(handle);
	if (r || fd < 0)
		return "the memory was made without a POSIX descriptor as handle type";
	/* A program that this one executes has no business with it. */
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	a->kind = SOFT_EXPORT_VMM;
	a->fd = fd;
	return NULL;
}

const char *soft_cuda_allocation_share(struct soft_allocation *a, bool vmm)
{
	struct soft_cuda_ipc_handle handle;

	if (vmm)
		return share_mapped(a);
	if (soft_cuda_peers()->ipc_get(&handle, a->base))
		return "CUDA gives no IPC handle of this memory";
	_Static_assert(sizeof(handle) == SOFT_EXPORT_HANDLE, "all of it");
	memcpy(a->handle, &handle, sizeof(handle));
	a->kind = SOFT_EXPORT_IPC;
	return NULL;
}

static int allow(const struct soft_cuda_device *d, uint64_t at, uint64_t len)
{
	struct soft_cuda_access access = {{LOCATION_DEVICE, d->device}, ACCESS_READ};
	int r = soft_cuda_peers()->set_access(at, len, &access, 1);

	if (!r)
		return 0;
	access.flags = ACCESS_BOTH;
	return soft_cuda_peers()->set_access(at, len, &access, 1);
}

static int map_descriptor(struct soft_cuda_device *d, struct soft_mapping *m)
{
	const struct soft_cuda_peers *peers = soft_cuda_peers();
	uint64_t handle, at, len = m->of.len;
	int r = peers->import_handle(&handle, (void *)(intptr_t)m->of.fd, HANDLE_POSIX);

	if (r)
		return r;
	r = peers->reserve(&at, len, /* alignment= */ 0, /* hint= */ 0, /* flags= */ 0);
	if (!r) {
		r = peers->map(at, len, /* offset= */ 0, handle, /* flags= */ 0);
		if (!r) {
			r = allow(d, at, len);
			if (r)
				(void)peers->unmap(at, len);
		}
		if (r)
			(void)peers->unreserve(at, len);
	}
	/* What is mapped keeps the memory. */
	(void)d->cuda->release_allocation(handle);
	if (!r)
		m->at = at;
	return r;
}

int soft_cuda_map(struct soft_cuda_device *d, struct soft_mapping *m)
{
	struct soft_cuda_ipc_handle handle;

	if (!soft_cuda_peers())
		return SOFT_CUDA_NOT_SUPPORTED;
	if (m->of.kind == SOFT_EXPORT_VMM)
		return map_descriptor(d, m);
	memcpy(&handle, m->of.handle, sizeof(handle));
	return soft_cuda_peers()->ipc_open(&m->at, handle, IPC_PEERS);
}

int soft_cuda_unmap(struct soft_cuda_device *d, struct soft_mapping *m)
{
	int r;

	(void)d;
	if (m->of.kind == SOFT_EXPORT_IPC)
		return soft_cuda_peers()->ipc_close(m->at);
	r = soft_cuda_peers()->unmap(m->at, m->of.len);
	return r ? r : soft_cuda_peers()->unreserve(m->at, m->of.len);
}
