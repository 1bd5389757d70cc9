/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making regions: the seam for kinds of memory. A maker looks at a request and fills the object's
 * region (base, ops, and what its release needs), or says -ENODEV: not my kind, ask the next.
 */
#ifndef SOFT_ABI_MR_H
#define SOFT_ABI_MR_H

#include "soft/abi/object.h"

struct soft_mr_request {
	struct soft_context *context;
	uint64_t addr; /* host memory; of a descriptor: the offset */
	uint64_t length, iova;
	int fd; /* -1: host memory */
	bool writable;
	bool null; /* no memory: see mr_null.c */
};

typedef int soft_mr_maker(const struct soft_mr_request *request, struct soft_mr_object *mr);

soft_mr_maker soft_mr_make_null;
soft_mr_maker soft_mr_make_host;
soft_mr_maker soft_mr_make_cuda;
soft_mr_maker soft_mr_make_mapped;
/* All registrations end here. @addr is what the client sees in the object. NULL with errno set. */
struct ibv_mr *soft_mr_new(struct ibv_pd *pd, const struct soft_mr_request *request, void *addr,
			   unsigned int access);
struct ibv_mr *soft_alloc_null_mr(struct ibv_pd *pd);
int soft_advise_mr(struct ibv_pd *pd, int advice, uint32_t flags, struct ibv_sge *sges,
		   uint32_t num_sges);
/* Bytes behind a descriptor that may be registered, or -errno: of other files the kernel says
 * EINVAL.
 */
int64_t soft_mr_descriptor_size(int fd);
/* Was it told which addresses @fd exports? See soft/dmabuf_range.h. */
bool soft_dmabuf_range_of(int fd, uint64_t *ret_va);
/* Undoes soft_mr_make_mapped(). */
void soft_mr_unmap(struct soft_mr_object *mr);

/*
 * Is all of [addr, addr+len) mapped with these rights? -EFAULT. Touches nothing: pages that were
 * never used stay so.
 */
int soft_mr_range_check(uint64_t addr, uint64_t len, bool writable);

#endif
