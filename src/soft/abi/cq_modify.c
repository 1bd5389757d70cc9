/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What completion queues do by time, and how they change: moderation, overrun, size.
 */
#include "soft/abi/export.h"

#include <errno.h>

#include "soft/abi/object.h"
#include "base/banned.h"

static struct soft_engine *engine_of(const struct soft_cq_object *cq)
{
	return soft_context_of(cq->ibv.context)->engine;
}

/* ── moderation: engine's lock held ── */

static void on_held(struct soft_cq *queue)
{
	struct soft_cq_object *cq = queue->owner;

	soft_engine_timer_set(engine_of(cq), &cq->held, pp_clock_monotonic() + queue->hold_ns);
}

static void on_release(struct soft_engine_timer *timer)
{
	soft_cq_release(&SOFT_OBJECT(struct soft_cq_object, timer, held)->queue);
}

int soft_modify_cq(struct ibv_cq *ibv, struct ibv_modify_cq_attr *attr)
{
	struct soft_cq_object *cq = soft_cq_of(ibv);

	if (attr->attr_mask & ~(uint32_t)IBV_CQ_ATTR_MODERATE)
		return EINVAL;
	if (soft_engine_inherited(engine_of(cq)))
		return EIO;
	if (!soft_object_is(&cq->object, ibv->context, ibv->handle))
		return soft_gone();
	if (!(attr->attr_mask & IBV_CQ_ATTR_MODERATE))
		return 0;
	soft_engine_lock(engine_of(cq));
	/* An event that waits by the old figures is due now. */
	soft_engine_timer_cancel(engine_of(cq), &cq->held);
	soft_cq_release(&cq->queue);
	cq->queue.hold_count = attr->moderate.cq_count;
	cq->queue.hold_ns = attr->moderate.cq_period * (pp_ns)1000;
	soft_engine_unlock(engine_of(cq));
	return 0;
}

/* ── overrun: the queue, and all that complete to it, are in error (11.6.3.2) ── */

static void fail_qp(void *arg, struct soft_qp *qp)
{
	const struct soft_cq *queue = arg;

	if ((qp->send_cq != queue && qp->recv_cq != queue) || qp->state == SOFT_QP_RESET ||
	    qp->state == SOFT_QP_ERR)
		return;
	soft_qp_to_error(qp);
	qp->ops->event(qp, SOFT_QP_EVENT_FATAL);
}

/* Later than the completion that was lost: its queue pair is in the middle of something. */
static void on_lost(struct soft_engine_timer *timer)
{
	struct soft_cq_object *cq = SOFT_OBJECT(struct soft_cq_object, timer, lost);

	soft_engine_each_qp(engine_of(cq), fail_qp, &cq->queue);
}

static void on_overflow(struct soft_cq *queue)
{
	struct soft_cq_object *cq = queue->owner;

	if (!cq->lost_told && queue->room < queue->capacity)
		soft_device_count_fault(soft_context_of(cq->ibv.context)->device,
					SOFT_FAULT_CQ_DEPTH);
	if (!cq->lost_told)
		soft_events_raise(soft_context_of(cq->ibv.context)->async, &cq->async,
				  IBV_EVENT_CQ_ERR);
	cq->lost_told = true;
	soft_engine_timer_set(engine_of(cq), &cq->lost, pp_clock_monotonic());
}

void soft_cq_timers_init(struct soft_cq_object *cq)
{
	cq->held.expired = on_release;
	cq->lost.expired = on_lost;
	cq->queue.held = on_held;
	cq->queue.overflow = on_overflow;
}

void soft_cq_timers_done(struct soft_cq_object *cq)
{
	soft_engine_lock(engine_of(cq));
	soft_engine_timer_cancel(engine_of(cq), &cq->held);
	soft_engine_timer_cancel(engine_of(cq), &cq->lost);
	soft_engine_unlock(engine_of(cq));
}

/* ── size ── */

int ibv_resize_cq(struct ibv_cq *ibv, int cqe)
{
	struct soft_cq_object *cq = soft_cq_of(ibv);
	struct soft_context *c = soft_context_of(ibv->context);
	int r;

	if (soft_engine_inherited(c->engine) || soft_context_gone(c))
		return EIO;
	if (!soft_object_is(&cq->object, ibv->context, ibv->handle))
		return soft_gone();
	if (cqe <= 0 || (uint32_t)cqe > c->device->config.limits.max_cqe)
		return EINVAL;
	/* Who polls may need the engine's lock before it lets go of the queue: to post. */
	pthread_mutex_lock(&cq->queue.consumer);
	soft_engine_lock(c->engine);
	r = soft_cq_resize_locked(&cq->queue, (uint32_t)cqe);
	soft_engine_unlock(c->engine);
	pthread_mutex_unlock(&cq->queue.consumer);
	if (!r)
		ibv->cqe = cqe;
	return -r;
}
