/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared receive queues of the basic kind.
 */
#include "soft/abi/export.h"

#include <errno.h>
#include <stdlib.h>

#include "soft/abi/object.h"
#include "base/banned.h"

static _Atomic uint32_t next_num;

/* Called under the engine's lock when fewer than the limit are left. */
static void below_limit(struct soft_recv_queue *queue)
{
	struct soft_srq_object *srq = queue->owner;

	soft_events_raise(soft_context_of(srq->ibv.context)->async, &srq->async,
			  IBV_EVENT_SRQ_LIMIT_REACHED);
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct soft_context *c = soft_context_of(pd->context);
	const struct soft_limits *l = &c->device->config.limits;
	struct soft_srq_object *srq;
	int r = soft_device_fault(c->device, SOFT_FAULT_CREATE_SRQ);

	if (r)
		return soft_fail(r);
	if (!attr->attr.max_wr || attr->attr.max_wr > l->max_srq_wr ||
	    attr->attr.max_sge > l->max_sge)
		return soft_fail(EINVAL);
	if (!soft_object_is(&soft_pd_of(pd)->object, pd->context, pd->handle))
		return soft_fail(ENOENT);
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return soft_fail(ENOMEM);
	srq->ibv = (struct ibv_srq){
		.context = pd->context, .srq_context = attr->srq_context, .pd = pd};
	r = soft_recv_queue_init(&srq->queue, attr->attr.max_wr, attr->attr.max_sge);
	if (!r) {
		r = soft_object_enter(c, &srq->object, SOFT_KIND_SRQ, l->max_srq);
		if (r)
			soft_recv_queue_done(&srq->queue);
	}
	if (r) {
		free(srq);
		return soft_fail(-r);
	}
	pthread_mutex_init(&srq->ibv.mutex, NULL);
	pthread_cond_init(&srq->ibv.cond, NULL);
	srq->num = atomic_fetch_add(&next_num, 1) + 1;
	srq->ibv.handle = srq->object.handle;
	srq->queue.below_limit = below_limit;
	srq->queue.owner = srq;
	srq->queue.pd = soft_pd_meant(pd);
	srq->async.element = srq;
	srq->pd = soft_pd_of(pd);
	soft_object_use(&srq->pd->object);
	attr->attr.max_wr = srq->queue.depth;
	attr->attr.max_sge = srq->queue.max_sge;
	return &srq->ibv;
}

struct ibv_srq *soft_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq_init_attr basic = {.srq_context = attr->srq_context, .attr = attr->attr};
	struct ibv_srq *srq;

	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd || attr->pd->context != context)
		return soft_fail(EINVAL);
	if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type != IBV_SRQT_BASIC) ||
	    attr->comp_mask & ~(uint32_t)(IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE))
		return soft_fail(EOPNOTSUPP);
	srq = ibv_create_srq(attr->pd, &basic);
	if (srq)
		attr->attr = basic.attr;
	return srq;
}

int soft_get_srq_num(struct ibv_srq *ibv, uint32_t *srq_num)
{
	*srq_num = soft_srq_of(ibv)->num;
	return 0;
}

/* All or nothing. */
static int modify_locked(struct soft_srq_object *srq, const struct ibv_srq_attr *attr, int mask,
			 uint32_t max_wr)
{
	struct soft_recv_queue *q = &srq->queue;
	uint32_t depth = mask & IBV_SRQ_MAX_WR ? attr->max_wr : q->depth;
	uint32_t limit = mask & IBV_SRQ_LIMIT ? attr->srq_limit : q->limit;
	int r;

	if (limit > depth || !depth || depth > max_wr)
		return -EINVAL;
	if (mask & IBV_SRQ_MAX_WR) {
		r = soft_recv_queue_resize(q, depth);
		if (r)
			return r;
	}
	q->limit = limit;
	if (mask & IBV_SRQ_LIMIT && limit && q->posted - q->taken < limit) {
		q->limit = 0;
		below_limit(q);
	}
	return 0;
}

int ibv_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int attr_mask)
{
	struct soft_srq_object *srq = soft_srq_of(ibv);
	struct soft_context *c = soft_context_of(ibv->context);
	int r;

	if (soft_context_gone(c))
		return EIO;
	if (attr_mask & ~(IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR))
		return EINVAL;
	if (soft_engine_inherited(c->engine))
		return EIO;
	if (!soft_object_is(&srq->object, ibv->context, ibv->handle))
		return soft_gone();
	soft_engine_lock(c->engine);
	r = modify_locked(srq, attr, attr_mask, c->device->config.limits.max_srq_wr);
	soft_engine_unlock(c->engine);
	return -r;
}

int ibv_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
	struct soft_srq_object *srq = soft_srq_of(ibv);
	struct soft_context *c = soft_context_of(ibv->context);

	if (!soft_object_is(&srq->object, ibv->context, ibv->handle))
		return soft_gone();
	if (soft_context_gone(c))
		return EIO;
	soft_engine_lock(c->engine);
	*attr = (struct ibv_srq_attr){.max_wr = srq->queue.depth,
				      .max_sge = srq->queue.max_sge,
				      .srq_limit = srq->queue.limit};
	soft_engine_unlock(c->engine);
	return 0;
}

static void srq_free(struct soft_srq_object *srq)
{
	soft_object_unuse(&srq->pd->object);
	soft_recv_queue_done(&srq->queue);
	pthread_cond_destroy(&srq->ibv.cond);
	pthread_mutex_destroy(&srq->ibv.mutex);
	free(srq);
}

void soft_srq_drop(struct soft_context *c, struct soft_object *object)
{
	struct soft_srq_object *srq = SOFT_OBJECT(struct soft_srq_object, object, object);

	if (soft_object_leave(c, object))
		return;
	soft_events_forget(c->async, &srq->async);
	srq_free(srq);
}

int ibv_destroy_srq(struct ibv_srq *ibv)
{
	struct soft_srq_object *srq = soft_srq_of(ibv);
	struct soft_context *c = soft_context_of(ibv->context);
	uint32_t delivered;

	if (soft_context_inherited(c))
		return 0;
	if (!soft_object_is(&srq->object, ibv->context, ibv->handle))
		return soft_gone();
	if (soft_context_gone(c))
		return EIO;
	if (soft_object_leave(c, &srq->object))
		return soft_busy();
	delivered = soft_events_forget(c->async, &srq->async);
	pthread_mutex_lock(&ibv->mutex);
	while (ibv->events_completed != delivered)
		pthread_cond_wait(&ibv->cond, &ibv->mutex);
	pthread_mutex_unlock(&ibv->mutex);
	srq_free(srq);
	return 0;
}
