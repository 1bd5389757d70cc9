/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory windows: making and taking away, and the binds that clients post. Rules: copy/mw.h.
 */
#include "soft/abi/mw.h"

#include <errno.h>
#include <stdlib.h>

#include "soft/abi/post.h"

#include "base/banned.h"

struct ibv_mw *soft_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct soft_context *c = soft_context_of(pd->context);
	struct soft_mw_object *mw;
	int r = soft_device_fault(c->device, SOFT_FAULT_ALLOC_MW);

	if (r)
		return soft_fail(r);
	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return soft_fail(EINVAL);
	if (!soft_object_is(&soft_pd_of(pd)->object, pd->context, pd->handle))
		return soft_fail(ENOENT);
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return soft_fail(ENOMEM);
	r = soft_object_enter(c, &mw->object, SOFT_KIND_MW, c->device->config.limits.max_mw);
	if (!r) {
		soft_engine_lock(c->engine);
		r = soft_mw_add(soft_engine_regions(c->engine), &mw->mw, soft_pd_meant(pd),
				type == IBV_MW_TYPE_2);
		soft_engine_unlock(c->engine);
		if (r)
			(void)soft_object_leave(c, &mw->object);
	}
	if (r) {
		free(mw);
		return soft_fail(-r);
	}
	mw->pd = soft_pd_of(pd);
	soft_object_use(&mw->pd->object);
	mw->ibv = (struct ibv_mw){.context = pd->context,
				  .pd = pd,
				  .rkey = mw->mw.entry.key,
				  .handle = mw->object.handle,
				  .type = type};
	return &mw->ibv;
}

static void mw_remove(struct soft_context *c, struct soft_mw_object *mw)
{
	soft_engine_lock(c->engine);
	soft_mw_remove(soft_engine_regions(c->engine), &mw->mw);
	soft_engine_unlock(c->engine);
	soft_object_unuse(&mw->pd->object);
	free(mw);
}

void soft_mw_drop(struct soft_context *c, struct soft_object *object)
{
	if (!soft_object_leave(c, object))
		mw_remove(c, SOFT_OBJECT(struct soft_mw_object, object, object));
}

int soft_dealloc_mw(struct ibv_mw *ibv)
{
	struct soft_mw_object *mw = SOFT_OBJECT(struct soft_mw_object, ibv, ibv);
	struct soft_context *c = soft_context_of(ibv->context);

	if (soft_context_inherited(c))
		return 0;
	if (!soft_object_is(&mw->object, ibv->context, ibv->handle))
		return soft_gone();
	if (soft_context_gone(c))
		return EIO;
	if (soft_object_leave(c, &mw->object))
		return soft_busy();
	mw_remove(c, mw);
	return 0;
}

void soft_mw_fill_bind(struct soft_send_wr *wr, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	wr->bind.window = mw->rkey;
	wr->bind.lkey = info->mr ? info->mr->lkey : 0;
	wr->bind.access =
		info->mw_access_flags & (SOFT_ACCESS_REMOTE_WRITE | SOFT_ACCESS_REMOTE_READ |
					 SOFT_ACCESS_REMOTE_ATOMIC | SOFT_ACCESS_ZERO_BASED);
	wr->bind.start = info->addr;
	wr->bind.length = info->length;
	wr->bind.key = rkey & SOFT_KEY_OWNERS;
	wr->num_sge = 0;
	wr->length = 0;
	/* The client's to know at once: it may be told to the peer by what is posted behind. */
	mw->rkey = (mw->rkey & ~(uint32_t)SOFT_KEY_OWNERS) | wr->bind.key;
}

int soft_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.bind_mw = {.mw = mw, .rkey = mw->rkey + 1, .bind_info = bind->bind_info},
	};

	return soft_post_bind(qp, &wr);
}
