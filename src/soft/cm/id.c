/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of an rdma_cm_id: made, moved to another channel, destroyed. Whoever destroys one waits
 * until its delivered events were acknowledged.
 */
#include "soft/cm/cm.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/banned.h"

struct soft_cm_id *soft_cm_id_new(struct soft_cm_channel *channel, void *context,
				  enum rdma_port_space ps, enum ibv_qp_type type)
{
	struct soft_cm_id *id = calloc(1, sizeof(*id));
	uint64_t chance[2] = {0};

	if (!id)
		return NULL;
	id->pub.context = context;
	id->pub.ps = ps;
	id->pub.qp_type = type;
	id->pub.channel = &channel->pub;
	id->channel = channel;
	id->generation = soft_cm_generation();
	id->fd = id->afonly = -1;
	/* Where there is no chance to be had the numbers are known, and still right. */
	(void)!getrandom(chance, sizeof(chance), GRND_NONBLOCK);
	id->local.token = chance[0];
	id->local.psn = (uint32_t)chance[1] & 0xffffff;
	return id;
}

void soft_cm_id_free(struct soft_cm_id *id)
{
	if (id->device && soft_cm_mine(id->generation))
		soft_cm_device_drop(id->device);
	if (id->fd >= 0)
		(void)close(id->fd);
	free(id->pub.route.path_rec);
	free(id->qp_init);
	free(id);
}

int soft_cm_id_create(struct soft_cm_channel *channel, struct soft_cm_id **ret, void *context,
		      enum rdma_port_space ps, enum ibv_qp_type type)
{
	struct rdma_event_channel *own = NULL;
	struct soft_cm_id *id;
	int r;

	if (ps != RDMA_PS_TCP && ps != RDMA_PS_UDP)
		return EPROTONOSUPPORT;
	if (!channel) {
		own = rdma_create_event_channel();
		if (!own)
			return errno;
		channel = (struct soft_cm_channel *)own;
	}
	if (!soft_cm_mine(channel->generation))
		return EIO;
	id = soft_cm_id_new(channel, context, ps, type);
	r = id ? 0 : ENOMEM;
	if (!r) {
		id->sync = own;
		soft_cm_lock();
		r = soft_cm_enter_locked(id);
		soft_cm_unlock();
	}
	if (r) {
		free(id);
		if (own)
			rdma_destroy_event_channel(own);
		return r;
	}
	*ret = id;
	return 0;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space ps)
{
	struct soft_cm_id *made;
	int r = soft_cm_id_create((struct soft_cm_channel *)channel, &made, context, ps,
				  ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB ? IBV_QPT_UD
									   : IBV_QPT_RC);

	if (r)
		return soft_cm_fail(r);
	*id = &made->pub;
	return 0;
}

/* A listener's children: who waits for nobody's answer any more ends, the others forget it. */
static void leave_listener(struct soft_cm_id *id, void *listener)
{
	if (id->listener != listener)
		return;
	id->listener = NULL;
	if (id->state == SOFT_CM_INCOMING) {
		soft_cm_id_end_locked(id);
		soft_cm_id_free(id);
	} else if (soft_cm_datagram(id) && id->state != SOFT_CM_ASKED) {
		soft_cm_close_locked(id); /* has answered; its descriptor holds the port */
	}
}

static void say_farewell(struct soft_cm_id *id)
{
	switch (id->state) {
	case SOFT_CM_ASKED:
		if (soft_cm_datagram(id))
			(void)soft_cm_lookup_answer_locked(id, SOFT_CM_SIDR_REJECT, NULL, 0);
		else
			(void)soft_cm_say_locked(id, SOFT_CM_REJECT, SOFT_CM_REJ_CONSUMER, NULL, 0);
		break;
	case SOFT_CM_REPLIED:
	case SOFT_CM_REQUESTED:
		if (!soft_cm_datagram(id))
			(void)soft_cm_say_locked(id, SOFT_CM_REJECT, SOFT_CM_REJ_TIMEOUT, NULL, 0);
		break;
	case SOFT_CM_ACCEPTED:
	case SOFT_CM_ESTABLISHED:
		if (!soft_cm_datagram(id))
			(void)soft_cm_say_locked(id, SOFT_CM_DISCONNECT, 0, NULL, 0);
		break;
	default:
		break;
	}
}

void soft_cm_id_end_locked(struct soft_cm_id *id)
{
	say_farewell(id);
	if (id->channel)
		soft_cm_purge_locked(id);
	if (id->state == SOFT_CM_LISTENING)
		soft_cm_each_locked(leave_listener, id);
	soft_cm_close_locked(id);
	id->state = SOFT_CM_OVER;
	id->deadline = 0;
	soft_cm_leave_locked(id);
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	struct soft_cm_id *mine = soft_cm_of(id);
	struct rdma_event_channel *own = mine->sync ? &mine->channel->pub : NULL;

	if (soft_cm_mine(mine->generation)) {
		soft_cm_lock();
		soft_cm_id_end_locked(mine);
		soft_cm_unlock();
	}
	if (id->event)
		(void)rdma_ack_cm_event(id->event);
	if (soft_cm_mine(mine->generation)) {
		soft_cm_lock();
		while (mine->acked < mine->delivered)
			soft_cm_wait_locked();
		soft_cm_unlock();
	}
	soft_cm_id_free(mine);
	if (own)
		rdma_destroy_event_channel(own);
	return 0;
}

int soft_cm_id_migrate(struct soft_cm_id *id, struct rdma_event_channel *channel)
{
	struct soft_cm_channel *to = (struct soft_cm_channel *)channel, *old = id->channel;
	bool was_sync = id->sync, sync = !channel;

	if (!soft_cm_mine(id->generation) || (to && !soft_cm_mine(to->generation)))
		return EIO;
	if (was_sync && sync)
		return EINVAL;
	if (sync) {
		channel = rdma_create_event_channel();
		if (!channel)
			return errno;
		to = (struct soft_cm_channel *)channel;
	}
	if (was_sync && id->pub.event) {
		(void)rdma_ack_cm_event(id->pub.event);
		id->pub.event = NULL;
	}
	soft_cm_lock();
	if (old != to)
		soft_cm_move_locked(id, to);
	id->channel = to;
	id->pub.channel = channel;
	id->sync = sync;
	/* As the ABI has it: nobody works on an event of the old channel afterwards. */
	while (id->acked < id->delivered)
		soft_cm_wait_locked();
	soft_cm_unlock();
	if (was_sync)
		rdma_destroy_event_channel(&old->pub);
	return 0;
}

int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	int r = soft_cm_id_migrate(soft_cm_of(id), channel);

	return r ? soft_cm_fail(r) : 0;
}
