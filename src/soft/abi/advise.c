/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ibv_advise_mr(): memory is not pinned here, so that to prefetch it is to have its pages there.
 * Errors are those of rdma-core's manual page.
 */
#include "soft/abi/mr.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/banned.h"

enum { PREFETCH, PREFETCH_WRITE, PREFETCH_NO_FAULT, ADVICES };
enum { FLAG_FLUSH = 1 << 0, PAGE_BYTES = 4096 };

/* Kernel 5.14; older headers lack them. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

/* Where the piece lies for the processor, or NULL with the reason. Engine's lock held. */
static uint8_t *find(const struct soft_context *c, const struct soft_pd_object *pd, bool write,
		     const struct ibv_sge *sge, int *ret_error)
{
	const struct soft_regions *table = soft_engine_regions(c->engine);
	const struct soft_region *region = soft_regions_find(table, sge->lkey);

	*ret_error = 0;
	if (!region)
		*ret_error = EFAULT;
	else if (region->window)
		*ret_error = EINVAL;
	else if (region->pd != pd || (write && !(region->access & SOFT_ACCESS_LOCAL_WRITE)))
		*ret_error = EPERM;
	else if (!soft_regions_check(table, pd, sge->lkey, sge->addr, sge->length, 0))
		*ret_error = EFAULT;
	return *ret_error ? NULL : soft_region_at(region, sge->addr);
}

/* Best effort, but for what is not mapped at all. */
static int prefetch(uint8_t *at, size_t len, bool write)
{
	size_t before = (uintptr_t)at % PAGE_BYTES;

	if (!len ||
	    !madvise(at - before, len + before, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
		return 0;
	return errno == ENOMEM || errno == EFAULT ? EFAULT : 0;
}

int soft_advise_mr(struct ibv_pd *pd, int advice, uint32_t flags, struct ibv_sge *sges, uint32_t n)
{
	struct soft_context *c = soft_context_of(pd->context);
	bool write = advice == PREFETCH_WRITE;

	if (advice < 0 || advice >= ADVICES)
		return EOPNOTSUPP;
	if (!soft_object_is(&soft_pd_of(pd)->object, pd->context, pd->handle) || !n || !sges ||
	    flags & ~(uint32_t)FLAG_FLUSH)
		return EINVAL;
	if (soft_engine_inherited(c->engine))
		return EIO;
	/* All are looked at before anything is done. */
	for (int doing = 0; doing < 2; doing++)
		for (uint32_t i = 0; i < n; i++) {
			uint8_t *at;
			int error;

			soft_engine_lock(c->engine);
			at = find(c, soft_pd_meant(pd), write, &sges[i], &error);
			soft_engine_unlock(c->engine);
			if (!error && doing && at && advice != PREFETCH_NO_FAULT)
				error = prefetch(at, sges[i].length, write);
			if (error)
				return error;
		}
	return 0;
}
