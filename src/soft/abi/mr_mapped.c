/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory behind a descriptor that can be mapped: a memfd, or a dma-buf whose exporter lets the
 * processor in (udmabuf, system heap). Coherent with the processor, so that no sync ioctl brackets
 * the accesses.
 */
#include "soft/abi/mr.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/banned.h"

enum { DMA_BUF_FS = 0x444d4142 }; /* DMA_BUF_MAGIC: f_type of a dma-buf's file system */

int64_t soft_mr_descriptor_size(int fd)
{
	struct statfs fs;
	struct stat st;
	off_t end;

	if (fstatfs(fd, &fs))
		return -errno;
	if (fs.f_type == DMA_BUF_FS) {
		/* dma-bufs before Linux 5.3 have no st_size; their lseek() keeps no position. */
		end = lseek(fd, 0, SEEK_END);
		return end < 0 ? -errno : end;
	}
	if (fcntl(fd, F_GET_SEALS) < 0 || fstat(fd, &st))
		return -EINVAL;
	return st.st_size;
}

int soft_mr_make_mapped(const struct soft_mr_request *q, struct soft_mr_object *mr)
{
	int prot = PROT_READ | (q->writable ? PROT_WRITE : 0);
	int64_t size;
	uint64_t end;
	void *at;
	int r;

	if (q->fd < 0)
		return -ENODEV;
	size = soft_mr_descriptor_size(q->fd);
	if (size < 0)
		return (int)size;
	if (__builtin_add_overflow(q->addr, q->length, &end) || end > (uint64_t)size ||
	    end > SIZE_MAX)
		return -EINVAL;
	/* From the start: an offset must be a multiple of a page size that may be a huge one. */
	at = mmap(NULL, (size_t)end, prot, MAP_SHARED, q->fd, 0);
	if (at == MAP_FAILED)
		/*
		 * Of what cannot be mapped (a GPU's exporter says ENOTSUPP, 524): ENODEV, mmap(2)'s
		 * own word for it. Not EOPNOTSUPP, by which NCCL, UCX and libfabric conclude that
		 * the device has no dma-buf support at all.
		 */
		return errno == EACCES || errno == ENOMEM || errno == EPERM ? -errno : -ENODEV;
	mr->mapping = at;
	mr->mapping_length = (size_t)end;
	mr->fd = fcntl(q->fd, F_DUPFD_CLOEXEC, 0);
	if (mr->fd < 0) {
		r = -errno;
		soft_mr_unmap(mr);
		return r;
	}
	mr->region.base = (uint8_t *)at + q->addr;
	mr->region.ops = &soft_region_host;
	return 0;
}

void soft_mr_unmap(struct soft_mr_object *mr)
{
	if (mr->mapping)
		(void)munmap(mr->mapping, mr->mapping_length);
	mr->mapping = NULL;
	if (mr->fd >= 0)
		close(mr->fd);
	mr->fd = -1;
}
