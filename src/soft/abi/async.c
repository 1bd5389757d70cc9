/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asynchronous events. A queue pair's, a completion queue's or a shared receive queue's source
 * names its object by event type.
 */
#include "soft/abi/export.h"

#include <errno.h>

#include "soft/abi/object.h"
#include "base/banned.h"

static bool about_cq(enum ibv_event_type type)
{
	return type == IBV_EVENT_CQ_ERR;
}

static bool about_srq(enum ibv_event_type type)
{
	return type == IBV_EVENT_SRQ_ERR || type == IBV_EVENT_SRQ_LIMIT_REACHED;
}

static bool about_qp(enum ibv_event_type type)
{
	return (type >= IBV_EVENT_QP_FATAL && type <= IBV_EVENT_SQ_DRAINED) ||
	       type == IBV_EVENT_QP_LAST_WQE_REACHED;
}

static bool about_port(enum ibv_event_type type)
{
	return type == IBV_EVENT_PORT_ACTIVE || type == IBV_EVENT_PORT_ERR ||
	       type == IBV_EVENT_GID_CHANGE;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct soft_context *c = soft_context_of(context);
	struct soft_event_source *s;
	unsigned int type;
	int r;

	if (!soft_engine_inherited(c->engine))
		soft_engine_sleep(c->engine);
	/* From here on only the queue is touched: the context may be closed while we sleep. */
	r = soft_events_get(c->async, &s, &type);
	if (r) {
		errno = -r;
		return -1;
	}
	event->event_type = type;
	if (about_port(event->event_type))
		event->element.port_num = 1;
	else
		event->element.qp = s->element; /* of whatever kind */
	return 0;
}

static void count(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed)
{
	pthread_mutex_lock(mutex);
	++*completed;
	pthread_cond_broadcast(cond);
	pthread_mutex_unlock(mutex);
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_cq *cq = event->element.cq;
	struct ibv_qp *qp = event->element.qp;
	struct ibv_srq *srq = event->element.srq;

	if (about_cq(event->event_type))
		count(&cq->mutex, &cq->cond, &cq->async_events_completed);
	else if (about_srq(event->event_type))
		count(&srq->mutex, &srq->cond, &srq->events_completed);
	else if (about_qp(event->event_type))
		count(&qp->mutex, &qp->cond, &qp->events_completed);
}
