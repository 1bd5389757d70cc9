/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion channels.
 */
#include "soft/abi/export.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "soft/abi/object.h"
#include "base/banned.h"

static struct soft_channel_object *channel_of(struct ibv_comp_channel *channel)
{
	return SOFT_OBJECT(struct soft_channel_object, channel, ibv);
}

static void channel_free(struct soft_channel_object *ch)
{
	if (ch->ibv.fd >= 0)
		close(ch->ibv.fd);
	soft_events_unref(ch->events);
	free(ch);
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct soft_context *c = soft_context_of(context);
	struct soft_channel_object *ch = calloc(1, sizeof(*ch));
	int r;

	if (!ch)
		return soft_fail(ENOMEM);
	ch->ibv.context = context;
	ch->ibv.fd = -1;
	r = soft_events_new(&ch->events, &ch->ibv.fd);
	if (!r)
		r = soft_object_enter(c, &ch->object, SOFT_KIND_CHANNEL, UINT32_MAX);
	if (r) {
		channel_free(ch);
		return soft_fail(-r);
	}
	return &ch->ibv;
}

void soft_channel_drop(struct soft_context *c, struct soft_object *object)
{
	if (!soft_object_leave(c, object))
		channel_free(SOFT_OBJECT(struct soft_channel_object, object, object));
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	struct soft_channel_object *ch = channel_of(channel);
	struct soft_context *c = soft_context_of(channel->context);

	if (soft_context_inherited(c))
		return 0;
	if (soft_context_gone(c))
		return EIO;
	/* refcnt is the client's to see, and counts completion queues. */
	if (soft_object_leave(c, &ch->object))
		return soft_busy();
	channel_free(ch);
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct soft_channel_object *ch = channel_of(channel);
	struct soft_context *c = soft_context_of(channel->context);
	struct soft_event_source *s;
	unsigned int type;
	int r;

	if (!soft_events_waiting(ch->events))
		soft_engine_sleep(c->engine);
	r = soft_events_get(ch->events, &s, &type);
	if (r) {
		errno = -r;
		return -1;
	}
	*cq = s->element;
	*cq_context = (*cq)->cq_context;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_broadcast(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}
