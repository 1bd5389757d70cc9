/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls that make a connection and end it.
 */
#include "soft/cm/cm.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "soft/cm/address.h"

#include "base/banned.h"

enum { RETRY_ALWAYS = 7 };

/* The number or, for "as much as there is", what there is. */
static uint8_t or_most(uint8_t asked, uint8_t most)
{
	return asked == UINT8_MAX ? most : asked;
}

static uint8_t least(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

/* 0 or errno. */
static int check(const struct soft_cm_id *id, const struct rdma_conn_param *p,
		 enum soft_cm_kind kind)
{
	const struct soft_cm_device *d = id->device;

	if (!soft_cm_mine(id->generation))
		return EIO;
	if (!d || (!id->pub.qp && !p))
		return EINVAL;
	if (!p)
		return 0;
	if (p->private_data && p->private_data_len > soft_cm_private_room(kind))
		return EINVAL;
	if (soft_cm_datagram(id))
		return 0;
	if (or_most(p->responder_resources, 0) > d->max_responder_resources ||
	    or_most(p->initiator_depth, 0) > d->max_initiator_depth)
		return EINVAL;
	return 0;
}

/* What this side will say of itself. */
static void describe(struct soft_cm_id *id, const struct rdma_conn_param *p)
{
	struct soft_cm_message *m = &id->local;

	m->retry_count = m->rnr_retry_count = RETRY_ALWAYS;
	if (p) {
		m->retry_count = least(p->retry_count, RETRY_ALWAYS);
		m->rnr_retry_count = least(p->rnr_retry_count, RETRY_ALWAYS);
		m->flow_control = p->flow_control;
		m->qpn = p->qp_num & 0xffffff;
		m->srq = !!p->srq;
		m->private_len = p->private_data ? p->private_data_len : 0;
		if (p->private_data)
			memcpy(m->private_data, p->private_data, p->private_data_len);
	}
	if (id->pub.qp) {
		m->qpn = id->pub.qp->qp_num;
		m->srq = !!id->pub.qp->srq;
	}
	m->qp_type = (uint8_t)id->pub.qp_type;
	m->qkey = RDMA_UDP_QKEY;
	m->responder_resources = id->responder_resources;
	m->initiator_depth = id->initiator_depth;
	m->ece_vendor = id->local_ece.vendor_id;
	m->ece_options = id->local_ece.options;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct soft_cm_id *mine = soft_cm_of(id);
	int r = check(mine, param, soft_cm_datagram(mine) ? SOFT_CM_LOOKUP : SOFT_CM_REQUEST);

	if (r)
		return soft_cm_fail(r);
	soft_cm_lock();
	if (mine->state != SOFT_CM_ROUTE || mine->fd < 0) {
		r = EINVAL;
	} else {
		const struct soft_cm_device *d = mine->device;

		mine->responder_resources = or_most(param ? param->responder_resources : UINT8_MAX,
						    d->max_responder_resources);
		mine->initiator_depth =
			or_most(param ? param->initiator_depth : UINT8_MAX, d->max_initiator_depth);
		describe(mine, param);
		r = soft_cm_datagram(mine) ? soft_cm_lookup_locked(mine)
					   : soft_cm_call_locked(mine);
	}
	soft_cm_unlock();
	return r ? soft_cm_fail(r) : soft_cm_complete(mine);
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	struct soft_cm_id *mine = soft_cm_of(id);
	struct sockaddr_in any = {.sin_family = AF_INET};
	int r = 0;

	if (!soft_cm_mine(mine->generation))
		return soft_cm_fail(EIO);
	(void)soft_cm_device_look(); /* without any, requests are refused */
	if (mine->state == SOFT_CM_IDLE && rdma_bind_addr(id, (struct sockaddr *)&any))
		return -1;
	soft_cm_lock();
	if (mine->state != SOFT_CM_BOUND)
		r = EINVAL;
	else if (!soft_cm_datagram(mine))
		r = soft_cm_socket_listen(mine->fd);
	if (!r) {
		mine->backlog = backlog > 0 && backlog < SOFT_CM_BACKLOG_MAX ? (unsigned int)backlog
									     : SOFT_CM_BACKLOG_MAX;
		mine->state = SOFT_CM_LISTENING;
		r = soft_cm_watch_locked(mine, EPOLLIN);
	}
	soft_cm_unlock();
	return r ? soft_cm_fail(r) : 0;
}

static int accept_datagram(struct soft_cm_id *id, const struct rdma_conn_param *p)
{
	int r = EINVAL;

	soft_cm_lock();
	if (id->state == SOFT_CM_ASKED) {
		describe(id, p);
		r = soft_cm_lookup_answer_locked(id, 0, id->local.private_data,
						 id->local.private_len);
		id->state = SOFT_CM_ESTABLISHED;
	}
	soft_cm_unlock();
	if (!r && id->sync && id->pub.event) {
		(void)rdma_ack_cm_event(id->pub.event);
		id->pub.event = NULL;
	}
	return r;
}

/* What this side is able to do, and will say of itself. 0 or errno. */
static int prepare_answer(struct soft_cm_id *id, const struct rdma_conn_param *p)
{
	const struct soft_cm_device *d = id->device;
	int r = EINVAL;

	soft_cm_lock();
	if (id->state == SOFT_CM_ASKED) {
		id->responder_resources =
			or_most(p ? p->responder_resources : UINT8_MAX,
				least(id->responder_resources, d->max_responder_resources));
		id->initiator_depth = or_most(p ? p->initiator_depth : UINT8_MAX,
					      least(id->initiator_depth, d->max_initiator_depth));
		describe(id, p);
		r = 0;
	}
	soft_cm_unlock();
	return r;
}

static int accept_stream(struct soft_cm_id *id, const struct rdma_conn_param *p)
{
	int r = prepare_answer(id, p);

	/* The peer may send as soon as it has the reply. */
	if (!r)
		r = soft_cm_qp_connect(id);
	if (r)
		return r;
	soft_cm_lock();
	r = id->state == SOFT_CM_ASKED
		    ? soft_cm_say_locked(id, SOFT_CM_REPLY, 0, id->local.private_data,
					 id->local.private_len)
		    : EINVAL;
	if (!r) {
		id->state = SOFT_CM_ACCEPTED;
		soft_cm_deadline_locked(id, soft_cm_patience);
	}
	soft_cm_unlock();
	if (r)
		(void)soft_cm_qp_error(id);
	return r;
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct soft_cm_id *mine = soft_cm_of(id);
	bool datagram = soft_cm_datagram(mine);
	int r = check(mine, param, datagram ? SOFT_CM_LOOKUP_REPLY : SOFT_CM_REPLY);

	if (!r)
		r = datagram ? accept_datagram(mine, param) : accept_stream(mine, param);
	if (r)
		return soft_cm_fail(r);
	return datagram ? 0 : soft_cm_complete(mine);
}

static int reject(struct soft_cm_id *id, const void *data, uint8_t len, uint16_t reason)
{
	bool datagram = soft_cm_datagram(id);
	int r;

	if (!soft_cm_mine(id->generation))
		return soft_cm_fail(EIO);
	if (data && len > soft_cm_private_room(datagram ? SOFT_CM_LOOKUP_REPLY : SOFT_CM_REJECT))
		return soft_cm_fail(EINVAL);
	soft_cm_lock();
	if (id->state != SOFT_CM_ASKED && (datagram || id->state != SOFT_CM_REPLIED)) {
		r = EINVAL;
	} else if (datagram) {
		r = soft_cm_lookup_answer_locked(id, SOFT_CM_SIDR_REJECT, data, len);
		id->state = SOFT_CM_OVER;
	} else {
		r = soft_cm_say_locked(id, SOFT_CM_REJECT, reason, data, len);
		soft_cm_close_locked(id);
		id->state = SOFT_CM_OVER;
		id->deadline = 0;
	}
	soft_cm_unlock();
	return r ? soft_cm_fail(r) : 0;
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	return reject(soft_cm_of(id), private_data, private_data_len, SOFT_CM_REJ_CONSUMER);
}

int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	return reject(soft_cm_of(id), private_data, private_data_len, SOFT_CM_REJ_OPTION);
}

int rdma_establish(struct rdma_cm_id *id)
{
	struct soft_cm_id *mine = soft_cm_of(id);
	int r = EINVAL;

	if (id->qp)
		return soft_cm_fail(EINVAL);
	soft_cm_lock();
	if (mine->state == SOFT_CM_REPLIED)
		r = soft_cm_say_locked(mine, SOFT_CM_READY, 0, NULL, 0);
	if (!r)
		soft_cm_established_locked(mine);
	soft_cm_unlock();
	return r ? soft_cm_fail(r) : 0;
}

/* Data came before the other's word that it is ready: established all the same. */
int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	struct soft_cm_id *mine = soft_cm_of(id);
	int r = EINVAL;

	soft_cm_lock();
	if (event == IBV_EVENT_COMM_EST && mine->state == SOFT_CM_ACCEPTED) {
		soft_cm_established_locked(mine);
		soft_cm_tell_locked(mine, RDMA_CM_EVENT_ESTABLISHED, 0);
		r = 0;
	} else if (event == IBV_EVENT_COMM_EST && mine->state == SOFT_CM_ESTABLISHED) {
		r = 0;
	}
	soft_cm_unlock();
	return r ? soft_cm_fail(r) : 0;
}

/* 0 or errno; *ret_wait: an event will tell of the end. */
static int leave_locked(struct soft_cm_id *id, bool *ret_wait)
{
	switch (id->state) {
	case SOFT_CM_ACCEPTED:
	case SOFT_CM_ESTABLISHED:
		id->state = SOFT_CM_LEAVING;
		if (soft_cm_say_locked(id, SOFT_CM_DISCONNECT, 0, NULL, 0))
			soft_cm_timewait_locked(id);
		else
			soft_cm_deadline_locked(id, soft_cm_leave_wait);
		*ret_wait = true;
		return 0;
	case SOFT_CM_LEAVING:
	case SOFT_CM_TIMEWAIT:
		*ret_wait = true;
		return 0;
	case SOFT_CM_OVER:
		return 0;
	default:
		return EINVAL;
	}
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	struct soft_cm_id *mine = soft_cm_of(id);
	bool wait = false;
	int r;

	if (!soft_cm_mine(mine->generation))
		return soft_cm_fail(EIO);
	if (!id->verbs)
		return soft_cm_fail(EINVAL);
	r = soft_cm_qp_leave(mine);
	if (!r && !soft_cm_datagram(mine)) {
		soft_cm_lock();
		r = leave_locked(mine, &wait);
		soft_cm_unlock();
	}
	if (r)
		return soft_cm_fail(r);
	return wait ? soft_cm_complete(mine) : 0;
}
