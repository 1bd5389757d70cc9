/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection's control socket: what is said on it, and what each word does to the id. Called by
 * the thread, and by who sends; always under the lock.
 */
#include "soft/cm/cm.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "soft/cm/address.h"

#include "base/banned.h"

/* 4.096 us * 2^20, sixteen times: the kernel's. Then its wait for an answer to a disconnect, and
 * how long a queue pair's number rests (packet life time and an acknowledge's delay). */
const pp_ns soft_cm_grace = 500 * PP_MILLISECOND;
const pp_ns soft_cm_patience = 16 * 4295 * PP_MILLISECOND;
const pp_ns soft_cm_leave_wait = 4295 * PP_MILLISECOND;
static const pp_ns TIME_WAIT = 537 * PP_MILLISECOND;
static const pp_ns AGAIN = 20 * PP_MILLISECOND;

void soft_cm_close_locked(struct soft_cm_id *id)
{
	if (id->fd < 0)
		return;
	soft_cm_unwatch_locked(id);
	/* A child of fork() without handlers (vfork, clone) may still hold it. */
	if (!soft_cm_datagram(id) && id->state != SOFT_CM_LISTENING)
		(void)shutdown(id->fd, SHUT_WR);
	(void)close(id->fd);
	id->fd = -1;
}

int soft_cm_say_locked(struct soft_cm_id *id, enum soft_cm_kind kind, uint16_t status,
		       const void *private_data, uint8_t private_len)
{
	uint8_t bytes[SOFT_CM_MESSAGE_MAX];
	struct soft_cm_message m = id->local;
	size_t len;
	ssize_t n;

	m.kind = kind;
	m.status = status;
	m.mtu = id->mtu;
	m.private_len = private_data ? private_len : 0;
	if (private_data)
		memcpy(m.private_data, private_data, private_len);
	len = soft_cm_message_write(&m, bytes);
	/* All that is ever said on one connection fits the smallest buffer of a socket. */
	n = id->fd < 0 ? -1 : send(id->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	return n == (ssize_t)len ? 0 : ENOTCONN;
}

void soft_cm_end_locked(struct soft_cm_id *id, enum rdma_cm_event_type event, int status)
{
	struct soft_cm_event *e;

	soft_cm_close_locked(id);
	id->deadline = 0;
	id->state = SOFT_CM_OVER;
	e = id->channel ? soft_cm_event_new(id, event, status) : NULL;
	if (!e)
		return;
	if (event == RDMA_CM_EVENT_REJECTED) {
		if (id->remote.kind != SOFT_CM_REJECT)
			id->remote = (struct soft_cm_message){.kind = SOFT_CM_REJECT};
		soft_cm_event_fill(e, &id->remote);
	}
	soft_cm_push_locked(id->channel, e);
}

void soft_cm_established_locked(struct soft_cm_id *id)
{
	id->state = SOFT_CM_ESTABLISHED;
	id->deadline = 0;
}

void soft_cm_timewait_locked(struct soft_cm_id *id)
{
	soft_cm_close_locked(id);
	id->state = SOFT_CM_TIMEWAIT;
	soft_cm_deadline_locked(id, TIME_WAIT);
	soft_cm_tell_locked(id, RDMA_CM_EVENT_DISCONNECTED, 0);
}

/* ── what the other side says ── */

static void got_request(struct soft_cm_id *id)
{
	id->deadline = 0;
	soft_cm_request_locked(id);
}

static void got_reply(struct soft_cm_id *id)
{
	struct soft_cm_event *e;

	id->state = SOFT_CM_REPLIED;
	id->deadline = 0;
	/* Each side gives what the other is able to take. */
	id->initiator_depth = id->remote.responder_resources;
	id->responder_resources = id->remote.initiator_depth;
	id->remote_ece = (struct ibv_ece){.vendor_id = id->remote.ece_vendor,
					  .options = id->remote.ece_options};
	if (id->remote.mtu < id->mtu)
		id->mtu = id->remote.mtu;
	e = id->channel ? soft_cm_event_new(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0) : NULL;
	if (!e)
		return;
	soft_cm_event_fill(e, &id->remote);
	soft_cm_push_locked(id->channel, e);
}

static void got_ready(struct soft_cm_id *id)
{
	if (id->state != SOFT_CM_ACCEPTED)
		return;
	soft_cm_established_locked(id);
	soft_cm_tell_locked(id, RDMA_CM_EVENT_ESTABLISHED, 0);
}

static void got_disconnected(struct soft_cm_id *id)
{
	soft_cm_timewait_locked(id);
}

void soft_cm_forget_locked(struct soft_cm_id *id)
{
	struct soft_cm_id *listener = id->listener;

	id->state = SOFT_CM_OVER;
	soft_cm_id_end_locked(id);
	soft_cm_id_free(id);
	if (listener) {
		listener->waiting--;
		soft_cm_resume_locked(listener);
	}
}

/*
 * Nobody listens, yet. On a network of InfiniBand a request is under way for milliseconds, and
 * there are programs that live by it: perftest's server opens its port after it has told the client
 * to connect.
 */
static void call_later(struct soft_cm_id *id)
{
	soft_cm_unwatch_locked(id);
	id->interval = AGAIN;
	soft_cm_deadline_locked(id, AGAIN);
}

/* The connection is over without a word, or the word was a reject. */
static void lost(struct soft_cm_id *id, int reason, int err)
{
	switch (id->state) {
	case SOFT_CM_INCOMING:
		soft_cm_forget_locked(id);
		break;
	case SOFT_CM_ASKED:
		/* The request stays before it, taken or not: who was told that its channel is
		 * readable must find something there. */
		soft_cm_end_locked(id, RDMA_CM_EVENT_REJECTED, reason);
		break;
	case SOFT_CM_CALLING:
		if (err == ECONNREFUSED && pp_clock_monotonic() < id->give_up)
			call_later(id);
		else if (err == ECONNREFUSED)
			soft_cm_end_locked(id, RDMA_CM_EVENT_REJECTED, SOFT_CM_REJ_SERVICE_ID);
		else
			soft_cm_end_locked(id, RDMA_CM_EVENT_UNREACHABLE, -(err ? err : EPROTO));
		break;
	case SOFT_CM_REQUESTED:
	case SOFT_CM_REPLIED:
	case SOFT_CM_ACCEPTED:
		if (err == EPROTO || err == EPROTONOSUPPORT || err == ETIMEDOUT)
			soft_cm_end_locked(id, RDMA_CM_EVENT_UNREACHABLE, -err);
		else
			soft_cm_end_locked(id, RDMA_CM_EVENT_REJECTED, reason);
		break;
	case SOFT_CM_ESTABLISHED:
	case SOFT_CM_LEAVING:
		soft_cm_timewait_locked(id);
		break;
	default:
		soft_cm_close_locked(id);
	}
}

static void got_reject(struct soft_cm_id *id)
{
	lost(id, id->remote.status, 0);
}

static void got_disconnect(struct soft_cm_id *id)
{
	(void)soft_cm_say_locked(id, SOFT_CM_DISCONNECTED, 0, NULL, 0);
	if (id->state == SOFT_CM_REPLIED)
		lost(id, SOFT_CM_REJ_TIMEOUT, 0);
	else
		soft_cm_timewait_locked(id);
}

#define IN(state) (1u << (state))

/* What may be said when, and what it does. Anything else ends the connection. */
static const struct {
	void (*act)(struct soft_cm_id *id);
	unsigned int states;
	bool kept; /* the queue pair, or the event, is made of it */
} words[SOFT_CM_KINDS] = {
	[SOFT_CM_REQUEST] = {got_request, IN(SOFT_CM_INCOMING), true},
	[SOFT_CM_REPLY] = {got_reply, IN(SOFT_CM_REQUESTED), true},
	[SOFT_CM_READY] = {got_ready, IN(SOFT_CM_ACCEPTED) | IN(SOFT_CM_ESTABLISHED), false},
	[SOFT_CM_REJECT] = {got_reject,
			    IN(SOFT_CM_REQUESTED) | IN(SOFT_CM_REPLIED) | IN(SOFT_CM_ASKED) |
				    IN(SOFT_CM_ACCEPTED),
			    true},
	[SOFT_CM_DISCONNECT] = {got_disconnect,
				IN(SOFT_CM_REPLIED) | IN(SOFT_CM_ACCEPTED) |
					IN(SOFT_CM_ESTABLISHED) | IN(SOFT_CM_LEAVING),
				false},
	[SOFT_CM_DISCONNECTED] = {got_disconnected, IN(SOFT_CM_LEAVING), false},
};

/* ── reading ── */

/* Why the connection ended, when nobody said. */
static int silent_reason(const struct soft_cm_id *id)
{
	return id->state == SOFT_CM_REQUESTED ? SOFT_CM_REJ_CONSUMER : SOFT_CM_REJ_TIMEOUT;
}

static void wrong(struct soft_cm_id *id, int err)
{
	if (id->state == SOFT_CM_INCOMING && err == EPROTONOSUPPORT)
		(void)soft_cm_say_locked(id, SOFT_CM_REJECT, SOFT_CM_REJ_VERSION, NULL, 0);
	lost(id, SOFT_CM_REJ_VERSION, err);
}

/* Handles one message, if there is a whole one. False: there is none, or the id is gone. */
static bool take_message(struct soft_cm_id *id)
{
	int len = soft_cm_message_length(id->in, id->in_len);
	uint64_t number = id->number;
	struct soft_cm_message m;

	if (len < 0) {
		wrong(id, -len);
		return false;
	}
	if (!len || (size_t)len > id->in_len)
		return false;
	if (soft_cm_message_read(id->in, (size_t)len, &m) ||
	    !(words[m.kind].states & IN(id->state))) {
		wrong(id, EPROTO);
		return false;
	}
	id->in_len -= (size_t)len;
	memmove(id->in, id->in + len, id->in_len);
	if (words[m.kind].kept)
		id->remote = m;
	words[m.kind].act(id);
	return soft_cm_find_locked(number) == id && id->fd >= 0;
}

static void read_control(struct soft_cm_id *id)
{
	ssize_t n = recv(id->fd, id->in + id->in_len, sizeof(id->in) - id->in_len, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		lost(id, silent_reason(id), n ? errno : 0);
		return;
	}
	id->in_len += (size_t)n;
	while (take_message(id))
		;
}

static void connected(struct soft_cm_id *id)
{
	const struct soft_cm_message *m = &id->local;

	soft_cm_tune(id->fd);
	id->state = SOFT_CM_REQUESTED;
	if (soft_cm_say_locked(id, SOFT_CM_REQUEST, 0, m->private_data, m->private_len) ||
	    soft_cm_watch_locked(id, EPOLLIN))
		lost(id, SOFT_CM_REJ_TIMEOUT, ETIMEDOUT);
}

/* TCP is there, or is not. */
static void called(struct soft_cm_id *id)
{
	socklen_t len = sizeof(int);
	int err = 0;

	if (getsockopt(id->fd, SOL_SOCKET, SO_ERROR, &err, &len))
		err = errno;
	if (err)
		lost(id, 0, err);
	else
		connected(id);
}

int soft_cm_call_locked(struct soft_cm_id *id)
{
	const struct sockaddr *to = &id->pub.route.addr.dst_addr;
	int r;

	if (id->state != SOFT_CM_CALLING)
		id->give_up = pp_clock_monotonic() + soft_cm_grace;
	id->state = SOFT_CM_CALLING;
	id->interval = 0;
	r = connect(id->fd, to, soft_cm_address_length(to)) ? errno : 0;
	if (r == ECONNABORTED) /* so the kernel ends the try before */
		r = connect(id->fd, to, soft_cm_address_length(to)) ? errno : 0;
	if (r && r != EINPROGRESS) {
		/* As when it were refused a moment later. The thread has to be there. */
		int failed = soft_cm_watch_locked(id, 0);

		if (!failed)
			lost(id, 0, r);
		return failed;
	}
	soft_cm_deadline_locked(id, soft_cm_patience);
	if (r)
		return soft_cm_watch_locked(id, EPOLLOUT);
	connected(id);
	return 0;
}

void soft_cm_ready_locked(struct soft_cm_id *id, uint32_t events)
{
	(void)events;
	if (id->state == SOFT_CM_LISTENING && soft_cm_datagram(id))
		soft_cm_lookup_accept_locked(id);
	else if (id->state == SOFT_CM_LISTENING)
		soft_cm_accept_locked(id);
	else if (soft_cm_datagram(id))
		soft_cm_lookup_ready_locked(id);
	else if (id->state == SOFT_CM_CALLING)
		called(id);
	else
		read_control(id);
}

void soft_cm_late_locked(struct soft_cm_id *id)
{
	switch (id->state) {
	case SOFT_CM_LISTENING:
		soft_cm_resume_locked(id);
		break;
	case SOFT_CM_INCOMING:
		lost(id, 0, 0);
		break;
	case SOFT_CM_LEAVING:
		soft_cm_timewait_locked(id);
		break;
	case SOFT_CM_TIMEWAIT:
		id->state = SOFT_CM_OVER;
		soft_cm_tell_locked(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
		break;
	case SOFT_CM_REQUESTED:
		if (soft_cm_datagram(id)) {
			soft_cm_lookup_late_locked(id);
			break;
		}
		lost(id, 0, ETIMEDOUT);
		break;
	case SOFT_CM_CALLING:
		if (!id->interval)
			lost(id, 0, ETIMEDOUT);
		else if (soft_cm_call_locked(id))
			soft_cm_end_locked(id, RDMA_CM_EVENT_UNREACHABLE, -ENOMEM);
		break;
	case SOFT_CM_ACCEPTED:
		lost(id, 0, ETIMEDOUT);
		break;
	default:
		break;
	}
}
