/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listeners of RDMA_PS_TCP. A connection that comes in is an id at once, which no application sees
 * until its request is whole. So many may wait as the backlog says; then the listener looks away,
 * and TCP lets the others wait.
 */
#include "soft/cm/cm.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "soft/cm/address.h"

#include "base/banned.h"

/* For a whole request; and until a listener looks again that found no descriptor free. */
static const pp_ns REQUEST_WAIT = 5 * PP_SECOND, PAUSE = 100 * PP_MILLISECOND;

static bool addresses(struct soft_cm_id *child)
{
	struct rdma_addr *a = &child->pub.route.addr;
	socklen_t len = sizeof(a->src_storage);
	int one = 1;

	if (getsockname(child->fd, &a->src_addr, &len))
		return false;
	len = sizeof(a->dst_storage);
	if (getpeername(child->fd, &a->dst_addr, &len))
		return false;
	soft_cm_address_plain(&a->src_storage);
	soft_cm_address_plain(&a->dst_storage);
	/* So that what is left of it in TIME_WAIT keeps nobody from the port. */
	(void)setsockopt(child->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	soft_cm_tune(child->fd);
	return true;
}

static void adopt(struct soft_cm_id *listener, int fd)
{
	struct soft_cm_id *child = soft_cm_id_new(listener->channel, listener->pub.context,
						  listener->pub.ps, listener->pub.qp_type);

	if (!child) {
		(void)close(fd);
		return;
	}
	child->fd = fd;
	child->state = SOFT_CM_INCOMING;
	child->tos = listener->tos;
	if (!addresses(child) || soft_cm_enter_locked(child) ||
	    soft_cm_watch_locked(child, EPOLLIN)) {
		child->state = SOFT_CM_OVER;
		soft_cm_id_end_locked(child);
		soft_cm_id_free(child);
		return;
	}
	child->listener = listener;
	listener->waiting++;
	soft_cm_deadline_locked(child, REQUEST_WAIT);
}

void soft_cm_accept_locked(struct soft_cm_id *listener)
{
	while (listener->waiting < listener->backlog) {
		int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			adopt(listener, fd);
			continue;
		}
		if (errno == ECONNABORTED || errno == EINTR)
			continue;
		if (errno != EAGAIN) {
			soft_cm_unwatch_locked(listener);
			soft_cm_deadline_locked(listener, PAUSE);
		}
		return;
	}
	soft_cm_unwatch_locked(listener);
}

void soft_cm_resume_locked(struct soft_cm_id *listener)
{
	if (listener->state == SOFT_CM_LISTENING && !listener->watched && listener->fd >= 0 &&
	    listener->waiting < listener->backlog)
		(void)soft_cm_watch_locked(listener, EPOLLIN);
}

void soft_cm_refuse_locked(struct soft_cm_id *child, uint16_t reason)
{
	if (soft_cm_datagram(child))
		(void)soft_cm_lookup_answer_locked(child, SOFT_CM_SIDR_UNSUPPORTED, NULL, 0);
	else
		(void)soft_cm_say_locked(child, SOFT_CM_REJECT, reason, NULL, 0);
	child->state = SOFT_CM_OVER;
	soft_cm_id_end_locked(child);
	soft_cm_id_free(child);
}

/*
 * Packets go to the addresses that are said, not to those that an address translation made of them;
 * and a device has to have the one that was called.
 */
static bool reachable(const struct soft_cm_id *child)
{
	struct soft_gid peer = soft_cm_address_gid(&child->pub.route.addr.dst_addr);
	struct soft_gid here = soft_cm_address_gid(&child->pub.route.addr.src_addr);
	uint8_t index;

	return soft_gid_equal(&child->remote.from, &peer) &&
	       soft_gid_equal(&child->remote.to, &here) && soft_cm_device_find(&here, &index);
}

void soft_cm_request_locked(struct soft_cm_id *child)
{
	struct soft_cm_id *listener = child->listener;
	bool there = reachable(child);
	struct soft_cm_event *e =
		there && listener && listener->channel
			? soft_cm_event_new(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0)
			: NULL;

	child->state = SOFT_CM_ASKED;
	if (!e) {
		soft_cm_refuse_locked(child, there ? SOFT_CM_REJ_RESOURCES : SOFT_CM_REJ_GID);
		if (listener) {
			listener->waiting--;
			soft_cm_resume_locked(listener);
		}
		return;
	}
	/* The listener may have moved since. */
	child->channel = listener->channel;
	child->pub.channel = listener->pub.channel;
	child->mtu = child->remote.mtu;
	/* Each side gives what the other is able to take. */
	child->initiator_depth = child->remote.responder_resources;
	child->responder_resources = child->remote.initiator_depth;
	child->remote_ece = (struct ibv_ece){.vendor_id = child->remote.ece_vendor,
					     .options = child->remote.ece_options};
	e->child = child;
	soft_cm_event_fill(e, &child->remote);
	soft_cm_push_locked(listener->channel, e);
}
