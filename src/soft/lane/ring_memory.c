/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a ring: a memfd that can neither shrink nor grow, so that nobody who maps it can be
 * made to fault.
 */
#include "soft/lane/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "soft/lane/ring_shared.h"

#include "base/banned.h"

enum {
	MEMORY = SOFT_RING_HEAD + SOFT_RING_BYTES,
	MAPPED = MEMORY + SOFT_RING_BYTES,
	SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL,
};

_Static_assert(sizeof(struct soft_ring_shared) <= SOFT_RING_HEAD, "the head holds it");

static int map(struct soft_ring *ring, int fd)
{
	uint8_t *at = mmap(NULL, MAPPED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const int both = PROT_READ | PROT_WRITE, fixed = MAP_SHARED | MAP_FIXED;

	if (at == MAP_FAILED)
		return -errno;
	if (mmap(at, MEMORY, both, fixed, fd, 0) == MAP_FAILED ||
	    mmap(at + MEMORY, SOFT_RING_BYTES, both, fixed, fd, SOFT_RING_HEAD) == MAP_FAILED) {
		int rc = -errno;

		(void)munmap(at, MAPPED);
		return rc;
	}
	memset(ring, 0, sizeof(*ring));
	ring->shared = (struct soft_ring_shared *)(void *)at;
	ring->bytes = at + SOFT_RING_HEAD;
	return 0;
}

int soft_ring_make(struct soft_ring *ring, int *ret_fd)
{
	int fd = memfd_create("peerpath-soft-lane", MFD_CLOEXEC | MFD_ALLOW_SEALING), rc = 0;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, MEMORY) < 0 || fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		rc = -errno;
	if (rc == 0)
		rc = map(ring, fd);
	if (rc < 0) {
		(void)close(fd);
		return rc;
	}
	*ret_fd = fd;
	return 0;
}

int soft_ring_adopt(struct soft_ring *ring, int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs fs;
	struct stat st;

	/* Of huge pages there may be none left when one is touched. */
	if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstatfs(fd, &fs) < 0 ||
	    fs.f_type != TMPFS_MAGIC || fstat(fd, &st) < 0 || st.st_size != MEMORY)
		return -EPROTO;
	return map(ring, fd);
}

void soft_ring_done(struct soft_ring *ring)
{
	if (ring->shared)
		(void)munmap((void *)ring->shared, MAPPED);
	memset(ring, 0, sizeof(*ring));
}
