/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim: a memfd, which stands for a DMA-BUF descriptor where there is no GPU. Always simulated.
 */
#include "mem/kind.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/banned.h"

static int make(struct pp_memory *m, struct pp_error *err)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	void *at;
	int r;

	m->simulated = true;
	r = pp_memory_round(m->size + m->options.inside, page, &m->allocated, err);
	if (r)
		return r;
	m->fd = memfd_create("peerpath-sim", MFD_CLOEXEC);
	if (m->fd < 0)
		return pp_error_set(err, -errno, "memfd_create: %s", pp_errno_name(errno));
	if (ftruncate(m->fd, (off_t)m->allocated))
		return pp_error_set(err, -errno, "memory of %llu bytes: %s",
				    (unsigned long long)m->allocated, pp_errno_name(errno));
	at = mmap(NULL, m->allocated, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, m->fd, 0);
	if (at == MAP_FAILED)
		return pp_error_set(err, -errno, "memory of %llu bytes: %s",
				    (unsigned long long)m->allocated, pp_errno_name(errno));
	m->allocation = (uintptr_t)at;
	m->at = m->allocation + m->options.inside;
	return pp_memory_add_segment(m, m->allocation, m->allocated, err);
}

static void unmake(struct pp_memory *m)
{
	if (m->allocation)
		(void)munmap((void *)(uintptr_t)m->allocation, m->allocated);
	if (m->fd >= 0)
		(void)close(m->fd);
}

const struct pp_memory_ops pp_memory_sim_ops = {.make = make, .unmake = unmake};
