/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_run with a registration that is wrong, as other programs' were (Mooncake 2035: offset 0 for
 * a tensor inside an allocation; torchcomms 3078: a region over the first segment alone). What
 * PEERPATH_MUTANT says is done to pp_register() by the linker's --wrap:
 *
 *   offset   the region begins at the allocation, not at the memory; it is as long as it should be
 *   short    the region ends in the middle, its key says otherwise
 *   skipped  the second half has no key
 *   first    the second half's key leads to the first half
 *   address  registered by its address, and called DMA-BUF: bytes are right, the way is another
 *
 * It is the memory of a GPU (here sim) that is spoilt; host memory stays right.
 */
#include <stdlib.h>
#include <string.h>

#include "mem/registration.h"

int __real_pp_register(const struct pp_verbs *v, struct ibv_pd *pd, struct pp_memory *m,
		       const struct pp_registration_options *options, struct pp_registered *ret,
		       struct pp_error *err);
int __wrap_pp_register(const struct pp_verbs *v, struct ibv_pd *pd, struct pp_memory *m,
		       const struct pp_registration_options *options, struct pp_registered *ret,
		       struct pp_error *err);

static struct pp_verbs spoilt;
static struct ibv_mr *(*right)(struct ibv_pd *pd, uint64_t offset, size_t len, uint64_t iova,
			       int fd, int access);
static uint64_t spare[512];

static struct ibv_mr *at_the_allocation(struct ibv_pd *pd, uint64_t offset, size_t len,
					uint64_t iova, int fd, int access)
{
	(void)offset;
	return right(pd, 0, len, iova, fd, access);
}

static struct ibv_mr *half(struct ibv_pd *pd, uint64_t offset, size_t len, uint64_t iova, int fd,
			   int access)
{
	return right(pd, offset, len / 2, iova, fd, access);
}

static struct ibv_mr *by_address(struct ibv_pd *pd, uint64_t offset, size_t len, uint64_t iova,
				 int fd, int access)
{
	(void)offset;
	(void)fd;
	return spoilt.reg_memory(pd, (void *)(uintptr_t)iova, len, access);
}

static bool is(const char *mutant)
{
	const char *wanted = getenv("PEERPATH_MUTANT");

	return wanted && !strcmp(wanted, mutant);
}

static void spoil_keys(struct ibv_pd *pd, struct pp_registered *r)
{
	if (!is("skipped") && !is("first"))
		return;
	r->key[0].length /= 2;
	if (is("skipped"))
		return;
	r->key[1] = r->key[0];
	r->key[1].start = r->key[0].length;
	/* what deregisters takes as many regions as there are keys */
	r->mr[1] = r->verbs->reg_memory(pd, spare, sizeof(spare), 0);
	r->n = 2;
}

int __wrap_pp_register(const struct pp_verbs *v, struct ibv_pd *pd, struct pp_memory *m,
		       const struct pp_registration_options *options, struct pp_registered *ret,
		       struct pp_error *err)
{
	int r;

	if (m->options.kind == PP_MEMORY_HOST)
		return __real_pp_register(v, pd, m, options, ret, err);
	spoilt = *v;
	right = v->reg_dmabuf;
	if (is("offset"))
		spoilt.reg_dmabuf = at_the_allocation;
	if (is("short"))
		spoilt.reg_dmabuf = half;
	if (is("address"))
		spoilt.reg_dmabuf = by_address;
	r = __real_pp_register(&spoilt, pd, m, options, ret, err);
	if (!r)
		spoil_keys(pd, ret);
	return r;
}
