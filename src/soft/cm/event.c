/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events on their way to the application. What a queue pair needs is done here, by the thread that
 * asks for the event, as rdma-core does it: nothing changes behind a program's back.
 */
#include "soft/cm/cm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft/cm/address.h"

#include "base/banned.h"

void soft_cm_event_fill(struct soft_cm_event *e, const struct soft_cm_message *m)
{
	struct rdma_conn_param *conn = &e->pub.param.conn;

	/* Of the full length that InfiniBand always delivers, zero behind what was sent. */
	memcpy(e->private_data, m->private_data, sizeof(e->private_data));
	if (m->kind == SOFT_CM_LOOKUP || m->kind == SOFT_CM_LOOKUP_REPLY) {
		e->pub.param.ud = (struct rdma_ud_param){
			.private_data = e->private_data,
			.private_data_len = soft_cm_private_room(m->kind),
			.qp_num = m->kind == SOFT_CM_LOOKUP_REPLY ? m->qpn : 0,
			.qkey = m->kind == SOFT_CM_LOOKUP_REPLY ? m->qkey : 0,
		};
		return;
	}
	*conn = (struct rdma_conn_param){
		.private_data = e->private_data,
		.private_data_len = soft_cm_private_room(m->kind),
	};
	if (m->kind == SOFT_CM_REJECT)
		return;
	/* Each side gives what the other is able to take. */
	conn->responder_resources = m->initiator_depth;
	conn->initiator_depth = m->responder_resources;
	conn->flow_control = m->flow_control;
	conn->rnr_retry_count = m->rnr_retry_count;
	conn->srq = m->srq;
	conn->qp_num = m->qpn;
	if (m->kind == SOFT_CM_REQUEST)
		conn->retry_count = m->retry_count;
}

/* There is no memory for it, or the device grants no more. */
static void turn_away(struct soft_cm_id *child)
{
	soft_cm_lock();
	soft_cm_refuse_locked(child, SOFT_CM_REJ_RESOURCES);
	soft_cm_unlock();
}

static bool introduce(struct soft_cm_event *e)
{
	struct soft_cm_id *child = e->child, *listener = e->id;

	soft_cm_lock();
	listener->waiting--;
	soft_cm_resume_locked(listener);
	child->pub.context = listener->pub.context;
	soft_cm_unlock();
	e->child = NULL;
	if (soft_cm_take_device(child) || soft_cm_take_route(child)) {
		turn_away(child);
		return false;
	}
	e->pub.listen_id = &listener->pub;
	e->pub.id = &child->pub;
	/* A synchronous listener's children are synchronous too. */
	if (listener->sync && soft_cm_id_migrate(child, NULL)) {
		(void)rdma_destroy_id(&child->pub);
		return false;
	}
	return true;
}

/* The reply is there: with a queue pair the connection stands at once. */
static void answer(struct soft_cm_event *e)
{
	struct soft_cm_id *id = e->id;
	int r;

	if (!id->pub.qp)
		return; /* rdma_establish() is the application's to call */
	r = soft_cm_qp_connect(id);
	soft_cm_lock();
	if (!r && id->state == SOFT_CM_REPLIED)
		r = soft_cm_say_locked(id, SOFT_CM_READY, 0, NULL, 0);
	else if (!r)
		r = ENOTCONN;
	if (!r)
		soft_cm_established_locked(id);
	if (r) {
		/* This event tells the end; no other shall. */
		(void)soft_cm_say_locked(id, SOFT_CM_REJECT, SOFT_CM_REJ_CONSUMER, NULL, 0);
		soft_cm_close_locked(id);
		id->state = SOFT_CM_OVER;
		id->deadline = 0;
		soft_cm_purge_locked(id);
	}
	soft_cm_unlock();
	e->pub.event = r ? RDMA_CM_EVENT_CONNECT_ERROR : RDMA_CM_EVENT_ESTABLISHED;
	e->pub.status = -r;
	if (r)
		(void)soft_cm_qp_error(id);
}

/* False: nobody is to see it. */
static bool digest(struct soft_cm_event *e)
{
	switch (e->pub.event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return introduce(e);
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		answer(e);
		return true;
	/* Not DISCONNECTED: what came before it may still be taken, until the program leaves too.
	 */
	case RDMA_CM_EVENT_REJECTED:
		if (!soft_cm_datagram(e->id))
			soft_cm_qp_left(e->id);
		return true;
	default:
		return true;
	}
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct soft_cm_event *e;
	int r;

	if (!event)
		return soft_cm_fail(EINVAL);
	for (;;) {
		r = soft_cm_channel_take(channel, &e);
		if (r)
			return soft_cm_fail(r);
		if (digest(e)) {
			*event = &e->pub;
			return 0;
		}
		(void)rdma_ack_cm_event(&e->pub);
	}
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	struct soft_cm_event *e = (struct soft_cm_event *)event;

	if (!event)
		return soft_cm_fail(EINVAL);
	if (soft_cm_mine(e->id->generation)) {
		soft_cm_lock();
		soft_cm_ack_locked(e->id);
		soft_cm_unlock();
	}
	free(e);
	return 0;
}

int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status,
			uint64_t arg)
{
	struct soft_cm_id *mine = soft_cm_of(id);
	struct soft_cm_event *e;

	if (event != RDMA_CM_EVENT_USER)
		return soft_cm_fail(EINVAL);
	e = soft_cm_event_new(mine, event, status);
	if (!e)
		return soft_cm_fail(ENOMEM);
	e->pub.param.arg = arg;
	soft_cm_lock();
	if (mine->channel)
		soft_cm_push_locked(mine->channel, e);
	else
		free(e);
	soft_cm_unlock();
	return 0;
}
