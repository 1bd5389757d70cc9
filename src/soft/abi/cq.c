/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion queues: making, taking away, events.
 */
#include "soft/abi/export.h"

#include <errno.h>
#include <stdlib.h>

#include "soft/abi/object.h"
#include "base/banned.h"

static struct soft_channel_object *channel_of(struct ibv_comp_channel *channel)
{
	return SOFT_OBJECT(struct soft_channel_object, channel, ibv);
}

/* Called by the engine's thread or a poster, with the engine's lock held. */
static void notify(struct soft_cq *queue)
{
	struct soft_cq_object *cq = queue->owner;

	soft_events_raise(channel_of(cq->ibv.channel)->events, &cq->comp, /* type= */ 0);
}

static void join_channel(struct soft_cq_object *cq, struct ibv_comp_channel *channel)
{
	cq->ibv.channel = channel;
	cq->comp.element = cq;
	if (!channel)
		return;
	cq->queue.notify = notify;
	soft_object_use(&channel_of(channel)->object);
	pthread_mutex_lock(&channel->context->mutex);
	channel->refcnt++;
	pthread_mutex_unlock(&channel->context->mutex);
}

static void leave_channel(struct soft_cq_object *cq)
{
	struct ibv_comp_channel *channel = cq->ibv.channel;

	if (!channel)
		return;
	pthread_mutex_lock(&channel->context->mutex);
	channel->refcnt--;
	pthread_mutex_unlock(&channel->context->mutex);
	soft_object_unuse(&channel_of(channel)->object);
}

static struct soft_cq_object *cq_new(struct ibv_context *context, uint32_t cqe, void *cq_context,
				     struct ibv_comp_channel *channel, int *ret_error)
{
	struct soft_context *c = soft_context_of(context);
	const struct soft_limits *limits = &c->device->config.limits;
	struct soft_cq_object *cq;
	int r;

	*ret_error = soft_device_fault(c->device, SOFT_FAULT_CREATE_CQ);
	if (*ret_error)
		return NULL;
	if (!cqe || cqe > limits->max_cqe || (channel && channel->context != context)) {
		*ret_error = EINVAL;
		return NULL;
	}
	/* Aligned as the ring's counters ask for. */
	cq = aligned_alloc(64, (sizeof(*cq) + 63) & ~(size_t)63);
	if (!cq) {
		*ret_error = ENOMEM;
		return NULL;
	}
	*cq = (struct soft_cq_object){
		.ibv = {.context = context, .cq_context = cq_context, .cqe = (int)cqe}};
	r = soft_cq_init(&cq->queue, cqe);
	if (!r) {
		r = soft_object_enter(c, &cq->object, SOFT_KIND_CQ, limits->max_cq);
		if (r)
			soft_cq_done(&cq->queue);
	}
	if (r) {
		free(cq);
		*ret_error = -r;
		return NULL;
	}
	cq->ibv.handle = cq->object.handle;
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	cq->queue.owner = cq;
	soft_cq_timers_init(cq);
	cq->async.element = cq;
	join_channel(cq, channel);
	if (atomic_load(&c->device->faults.on) & SOFT_FAULTY_CQS)
		soft_device_infect_cq(c, cq);
	return cq;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	struct soft_cq_object *cq;
	int error;

	if (cqe <= 0 || comp_vector < 0 || comp_vector >= context->num_comp_vectors)
		return soft_fail(EINVAL);
	cq = cq_new(context, (uint32_t)cqe, cq_context, channel, &error);
	return cq ? &cq->ibv : soft_fail(error);
}

enum {
	WC_FLAGS = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM |
		   IBV_WC_EX_WITH_SRC_QP | IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_SL |
		   IBV_WC_EX_WITH_DLID_PATH_BITS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
		   IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	CQ_FLAGS = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
};

struct ibv_cq_ex *soft_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	struct soft_cq_object *cq;
	int error;

	if (attr->comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD) ||
	    attr->comp_vector >= (uint32_t)context->num_comp_vectors)
		return soft_fail(EINVAL);
	if (attr->wc_flags & ~(uint64_t)WC_FLAGS ||
	    (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS && attr->flags & ~(uint32_t)CQ_FLAGS))
		return soft_fail(EOPNOTSUPP);
	cq = cq_new(context, attr->cqe, attr->cq_context, attr->channel, &error);
	if (!cq)
		return soft_fail(error);
	/* What finds no room is lost, and nobody hears of it. */
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
	    attr->flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)
		cq->queue.overflow = NULL;
	soft_cq_ex_fill(cq, attr->wc_flags);
	return &cq->ex;
}

static void cq_free(struct soft_cq_object *cq)
{
	struct soft_context *c = soft_context_of(cq->ibv.context);

	soft_cq_timers_done(cq);
	if (cq->ibv.channel)
		soft_events_forget(channel_of(cq->ibv.channel)->events, &cq->comp);
	soft_events_forget(c->async, &cq->async);
	leave_channel(cq);
	soft_cq_done(&cq->queue);
	pthread_cond_destroy(&cq->ibv.cond);
	pthread_mutex_destroy(&cq->ibv.mutex);
	free(cq);
}

void soft_cq_drop(struct soft_context *c, struct soft_object *object)
{
	if (!soft_object_leave(c, object))
		cq_free(SOFT_OBJECT(struct soft_cq_object, object, object));
}

int ibv_destroy_cq(struct ibv_cq *ibv)
{
	struct soft_cq_object *cq = soft_cq_of(ibv);
	struct soft_context *c = soft_context_of(ibv->context);
	uint32_t comp = 0, async;

	if (soft_context_inherited(c))
		return 0;
	if (!soft_object_is(&cq->object, ibv->context, ibv->handle))
		return soft_gone();
	if (soft_context_gone(c))
		return EIO;
	if (soft_object_leave(c, &cq->object))
		return soft_busy();
	soft_cq_timers_done(cq); /* no event comes any more */
	if (ibv->channel)
		comp = soft_events_forget(channel_of(ibv->channel)->events, &cq->comp);
	async = soft_events_forget(c->async, &cq->async);
	/* The interface promises that nobody holds an event of a queue that is gone. */
	pthread_mutex_lock(&ibv->mutex);
	while (ibv->comp_events_completed != comp || ibv->async_events_completed != async)
		pthread_cond_wait(&ibv->cond, &ibv->mutex);
	pthread_mutex_unlock(&ibv->mutex);
	cq_free(cq);
	return 0;
}

int soft_req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
	struct soft_cq_object *cq = soft_cq_of(ibv);
	struct soft_context *c = soft_context_of(ibv->context);

	if (soft_engine_inherited(c->engine))
		return EIO;
	if (!soft_object_is(&cq->object, ibv->context, ibv->handle))
		return soft_gone();
	/*
	 * What lies there and no event has told of gives one at once, as on hardware that compares
	 * its counters when it is armed: a client that polled, armed and then sleeps (UCX) must not
	 * miss what came in between.
	 */
	if (ibv->channel && soft_cq_arm(&cq->queue, solicited_only != 0) &&
	    soft_cq_disarm(&cq->queue))
		notify(&cq->queue);
	/* Next it sleeps on a descriptor that we may not see. */
	soft_engine_sleep(c->engine);
	return 0;
}
