/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges that clients have told: see soft/dmabuf_range.h. A ring: the oldest gives way.
 */
#include "soft/dmabuf_range.h"

#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>

#include "soft/abi/export.h"
#include "soft/abi/mr.h"

#include "base/banned.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct told {
	dev_t dev;
	ino_t ino;
	uint64_t va, length; /* length 0: free */
} ring[SOFT_DMABUF_RANGES];
static unsigned int next;

static struct told *find_locked(const struct stat *st)
{
	for (unsigned int i = 0; i < SOFT_DMABUF_RANGES; i++)
		if (ring[i].length && ring[i].dev == st->st_dev && ring[i].ino == st->st_ino)
			return &ring[i];
	return NULL;
}

int peerpath_soft_dmabuf_range(int fd, uint64_t va, uint64_t length)
{
	int was = errno, rc = 0;
	struct told *slot;
	struct stat st;
	uint64_t end;

	if (fstat(fd, &st))
		rc = -EBADF;
	else if (!length || __builtin_add_overflow(va, length, &end) ||
		 soft_mr_descriptor_size(fd) != (int64_t)length)
		rc = -EINVAL;
	errno = was;
	if (rc)
		return rc;
	pthread_mutex_lock(&lock);
	slot = find_locked(&st);
	if (!slot)
		slot = &ring[next++ % SOFT_DMABUF_RANGES];
	*slot = (struct told){st.st_dev, st.st_ino, va, length};
	pthread_mutex_unlock(&lock);
	return 0;
}

bool soft_dmabuf_range_of(int fd, uint64_t *ret_va)
{
	struct told *slot;
	struct stat st;

	if (fstat(fd, &st))
		return false;
	pthread_mutex_lock(&lock);
	slot = find_locked(&st);
	if (slot)
		*ret_va = slot->va;
	pthread_mutex_unlock(&lock);
	return slot != NULL;
}
