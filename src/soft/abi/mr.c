/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory regions. The checks are the kernel's (ib_check_mr_access() and the uverbs calls around
 * it), in its order.
 */
#include "soft/abi/mr.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "soft/abi/export.h"
#include "soft/engine/direct.h"
#include "soft/engine/gpus.h"
#include "base/banned.h"

enum {
	PAGE_MASK = 4095,
	KNOWN_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		       IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
		       IBV_ACCESS_HUGETLB,
	/* What makes a device write: the pages must be writable then. */
	WRITING_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND,
};

/* First that knows the kind of memory wins. */
static soft_mr_maker *const makers[] = {soft_mr_make_null, soft_mr_make_host, soft_mr_make_cuda,
					soft_mr_make_mapped};

static int check_access(unsigned int access)
{
	access &= ~(unsigned int)IBV_ACCESS_OPTIONAL_RANGE;
	if (access & ~(unsigned int)KNOWN_ACCESS)
		return -EINVAL;
	if (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	return 0;
}

static int make(const struct soft_mr_request *q, struct soft_mr_object *mr)
{
	int r = -ENODEV;

	for (size_t i = 0; i < PP_ARRAY_LEN(makers) && r == -ENODEV; i++)
		r = makers[i](q, mr);
	return r;
}

static uint32_t access_of(unsigned int access)
{
	return access &
	       (SOFT_ACCESS_LOCAL_WRITE | SOFT_ACCESS_REMOTE_WRITE | SOFT_ACCESS_REMOTE_READ |
		SOFT_ACCESS_REMOTE_ATOMIC | SOFT_ACCESS_MW_BIND | SOFT_ACCESS_ZERO_BASED);
}

static void mr_release(struct soft_mr_object *mr)
{
	if (mr->region.export)
		soft_direct_leave(soft_context_of(mr->ibv.context)->engine, &mr->region);
	if (mr->region.ops)
		mr->region.ops->release(&mr->region);
	soft_mr_unmap(mr);
	free(mr);
}

static int enter(struct soft_context *c, struct soft_mr_object *mr)
{
	int r = soft_object_enter(c, &mr->object, SOFT_KIND_MR, c->device->config.limits.max_mr);

	if (r)
		return r;
	soft_engine_lock(c->engine);
	r = soft_engine_add_region(c->engine, &mr->region);
	soft_engine_unlock(c->engine);
	if (r)
		(void)soft_object_leave(c, &mr->object);
	return r;
}

struct ibv_mr *soft_mr_new(struct ibv_pd *pd, const struct soft_mr_request *q, void *addr,
			   unsigned int access)
{
	struct soft_context *c = soft_context_of(pd->context);
	struct soft_mr_object *mr;
	int r;

	if (!soft_object_is(&soft_pd_of(pd)->object, pd->context, pd->handle))
		return soft_fail(ENOENT);
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return soft_fail(ENOMEM);
	mr->fd = -1;
	mr->access = (int)access;
	mr->ibv = (struct ibv_mr){
		.context = pd->context, .pd = pd, .addr = addr, .length = (size_t)q->length};
	mr->region.access = access_of(access);
	mr->region.pd = soft_pd_meant(pd);
	mr->region.iova = q->iova;
	mr->region.length = q->length;
	mr->region.owner = mr;
	r = make(q, mr);
	if (!r)
		r = enter(c, mr);
	if (r) {
		mr_release(mr);
		return soft_fail(-r);
	}
	mr->ibv.handle = mr->object.handle;
	mr->ibv.lkey = mr->ibv.rkey = mr->region.key;
	mr->pd = soft_pd_of(pd);
	soft_object_use(&mr->pd->object);
	return &mr->ibv;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	struct soft_mr_request q = {.context = soft_context_of(pd->context),
				    .addr = (uintptr_t)addr,
				    .length = length,
				    .iova = access & IBV_ACCESS_ZERO_BASED ? 0 : iova,
				    .fd = -1,
				    .writable = access & WRITING_ACCESS};

	int error = soft_device_fault(q.context->device, SOFT_FAULT_REG_MR);

	if (error)
		return soft_fail(error);
	if ((q.addr & PAGE_MASK) != (iova & PAGE_MASK) || check_access(access) || !length)
		return soft_fail(EINVAL);
	return soft_mr_new(pd, &q, addr, access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			       int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned int)access);
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access)
{
	struct soft_mr_request q = {.context = soft_context_of(pd->context),
				    .addr = offset,
				    .length = length,
				    .iova = iova,
				    .fd = fd,
				    .writable = access & WRITING_ACCESS};

	int error = soft_device_fault(q.context->device, SOFT_FAULT_REG_DMABUF_MR);

	/* Before all checks: a stack without it makes none. */
	if (error)
		return soft_fail(error);
	if ((offset & PAGE_MASK) != (iova & PAGE_MASK) || check_access((unsigned int)access))
		return soft_fail(EINVAL);
	/* Before the length: NCCL and UCX probe with a length of 0 and take EBADF for support. */
	if (fcntl(fd, F_GETFD) < 0)
		return soft_fail(EBADF);
	if (!length)
		return soft_fail(EINVAL);
	return soft_mr_new(pd, &q, (void *)(uintptr_t)offset, (unsigned int)access);
}

struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *attr)
{
	uint64_t mask = attr->comp_mask;
	uint64_t iova = mask & IBV_REG_MR_MASK_IOVA ? attr->iova : (uintptr_t)attr->addr;

	if (mask & ~(uint64_t)(IBV_REG_MR_MASK_IOVA | IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_FD |
			       IBV_REG_MR_MASK_FD_OFFSET))
		return soft_fail(EOPNOTSUPP);
	if (mask & IBV_REG_MR_MASK_FD) {
		if (mask & IBV_REG_MR_MASK_ADDR || !(mask & IBV_REG_MR_MASK_IOVA) ||
		    !(mask & IBV_REG_MR_MASK_FD_OFFSET))
			return soft_fail(EINVAL);
		return ibv_reg_dmabuf_mr(pd, attr->fd_offset, attr->length, attr->iova, attr->fd,
					 attr->access);
	}
	if (!(mask & IBV_REG_MR_MASK_ADDR) || mask & IBV_REG_MR_MASK_FD_OFFSET)
		return soft_fail(EINVAL);
	return ibv_reg_mr_iova2(pd, attr->addr, attr->length, iova, (unsigned int)attr->access);
}

/* None can be bound meanwhile: that takes a client that uses what it takes away. */
static uint32_t windows_of(struct soft_context *c, const struct soft_mr_object *mr)
{
	uint32_t n;

	soft_engine_lock(c->engine);
	n = mr->region.windows;
	soft_engine_unlock(c->engine);
	return n;
}

struct rereg {
	bool move, to_pd;
	unsigned int access;
	uint64_t at;
	size_t len;
};

/* 0 or a positive errno. What it was bound to and registered as stays valid until then. */
static int rereg_check(struct soft_mr_object *mr, const struct rereg *q)
{
	struct soft_context *c = soft_context_of(mr->ibv.context);

	if (soft_context_gone(c))
		return EIO;
	if (!soft_object_is(&mr->object, mr->ibv.context, mr->ibv.handle))
		return ENOENT;
	if (check_access(q->access))
		return EINVAL;
	if (mr->fd >= 0 || mr->region.length == UINT64_MAX) /* a descriptor's, the null region */
		return EOPNOTSUPP;
	if (windows_of(c, mr))
		return EBUSY;
	return soft_mr_range_check(q->at, q->len, q->access & WRITING_ACCESS) ? EFAULT : 0;
}

static void rereg(struct soft_mr_object *mr, const struct rereg *q, struct ibv_pd *pd)
{
	struct soft_context *c = soft_context_of(mr->ibv.context);

	soft_engine_lock(c->engine);
	mr->access = (int)q->access;
	mr->region.access = access_of(q->access);
	if (q->to_pd)
		mr->region.pd = soft_pd_meant(pd);
	if (q->move) {
		soft_engine_take_back(c->engine, mr->region.base, mr->region.length);
		mr->region.base = (uint8_t *)(uintptr_t)q->at;
		mr->region.iova = q->access & IBV_ACCESS_ZERO_BASED ? 0 : q->at;
		mr->region.length = q->len;
	}
	soft_engine_unlock(c->engine);
	if (q->to_pd) {
		soft_object_use(&soft_pd_of(pd)->object);
		soft_object_unuse(&mr->pd->object);
		mr->pd = soft_pd_of(pd);
		mr->ibv.pd = pd;
	}
	if (q->move) {
		mr->ibv.addr = (void *)(uintptr_t)q->at;
		mr->ibv.length = q->len;
	}
}

/* What rdma-core's library finds wrong is an error of the input, what the kernel does one of the
 * command. */
int ibv_rereg_mr(struct ibv_mr *ibv, int flags, struct ibv_pd *pd, void *addr, size_t length,
		 int access)
{
	struct soft_mr_object *mr = soft_mr_of(ibv);
	bool to_access = flags & IBV_REREG_MR_CHANGE_ACCESS;
	struct rereg q = {
		.move = flags & IBV_REREG_MR_CHANGE_TRANSLATION,
		.to_pd = flags & IBV_REREG_MR_CHANGE_PD,
		.access = (unsigned int)(to_access ? access : mr->access),
	};

	q.at = q.move ? (uintptr_t)addr : (uintptr_t)ibv->addr;
	q.len = q.move ? length : ibv->length;
	if (!flags || flags & ~IBV_REREG_MR_FLAGS_SUPPORTED || (q.move && (!addr || !length)) ||
	    (access && !to_access) || (q.to_pd && (!pd || pd->context != ibv->context))) {
		errno = EINVAL;
		return IBV_REREG_MR_ERR_INPUT;
	}
	errno = rereg_check(mr, &q);
	if (errno)
		return IBV_REREG_MR_ERR_CMD;
	rereg(mr, &q, pd);
	return 0;
}

static void mr_remove(struct soft_context *c, struct soft_mr_object *mr)
{
	soft_engine_lock(c->engine);
	soft_regions_remove(soft_engine_regions(c->engine), &mr->region);
	if (mr->region.base)
		soft_engine_take_back(c->engine, mr->region.base, mr->region.length);
	soft_direct_end_answers(c->engine, &mr->region);
	soft_engine_unlock(c->engine);
	soft_object_unuse(&mr->pd->object);
	/* The client may free it now: no copy may come after. One that hangs keeps what it needs.
	 */
	if (!mr->gpu || soft_gpus_leave(c->engine, &mr->region))
		mr_release(mr);
	else
		soft_direct_leave(c->engine, &mr->region);
}

void soft_mr_drop(struct soft_context *c, struct soft_object *object)
{
	if (!soft_object_leave(c, object))
		mr_remove(c, SOFT_OBJECT(struct soft_mr_object, object, object));
}

int ibv_dereg_mr(struct ibv_mr *ibv)
{
	struct soft_mr_object *mr = soft_mr_of(ibv);
	struct soft_context *c = soft_context_of(ibv->context);

	if (soft_context_inherited(c))
		return 0;
	if (!soft_object_is(&mr->object, ibv->context, ibv->handle))
		return soft_gone();
	if (soft_context_gone(c))
		return EIO;
	if (windows_of(c, mr) || soft_object_leave(c, &mr->object))
		return soft_busy();
	mr_remove(c, mr);
	return 0;
}
