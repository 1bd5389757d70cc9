/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RDMA_PS_UDP: which queue pair serves a port, asked and answered by datagrams (InfiniBand's SIDR).
 * Who asks repeats the question until there is an answer; who answers knows a repeated question by
 * its token and repeats the answer.
 */
#include "soft/cm/cm.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "soft/cm/address.h"

#include "base/banned.h"

static const pp_ns FIRST_WAIT = 50 * PP_MILLISECOND, LAST_WAIT = 4 * PP_SECOND;

/* ── active ── */

static void finish(struct soft_cm_id *id, int status)
{
	enum rdma_cm_event_type type =
		status ? RDMA_CM_EVENT_UNREACHABLE : RDMA_CM_EVENT_ESTABLISHED;
	struct soft_cm_event *e = soft_cm_event_new(id, type, status);

	id->deadline = 0;
	id->state = status ? SOFT_CM_OVER : SOFT_CM_ESTABLISHED;
	soft_cm_close_locked(id);
	if (!e)
		return;
	if (!status) {
		soft_cm_event_fill(e, &id->remote);
		e->pub.param.ud.ah_attr = (struct ibv_ah_attr){
			.grh = {.sgid_index = id->sgid_index,
				.hop_limit = id->pub.route.path_rec->hop_limit,
				.traffic_class = id->tos},
			.is_global = 1,
			.port_num = SOFT_CM_PORT,
		};
		memcpy(e->pub.param.ud.ah_attr.grh.dgid.raw, id->local.to.raw,
		       sizeof(id->local.to.raw));
	}
	soft_cm_push_locked(id->channel, e);
}

int soft_cm_lookup_locked(struct soft_cm_id *id)
{
	const struct sockaddr *to = &id->pub.route.addr.dst_addr;
	int r;

	if (connect(id->fd, to, soft_cm_address_length(to)))
		return errno;
	id->state = SOFT_CM_REQUESTED;
	r = soft_cm_watch_locked(id, EPOLLIN);
	if (r)
		return r;
	id->interval = FIRST_WAIT;
	id->give_up = pp_clock_monotonic() + soft_cm_patience;
	id->refusable = pp_clock_monotonic() + soft_cm_grace;
	(void)soft_cm_say_locked(id, SOFT_CM_LOOKUP, 0, id->local.private_data,
				 id->local.private_len);
	soft_cm_deadline_locked(id, id->interval);
	return 0;
}

void soft_cm_lookup_late_locked(struct soft_cm_id *id)
{
	if (pp_clock_monotonic() >= id->give_up) {
		finish(id, -ETIMEDOUT);
		return;
	}
	(void)soft_cm_say_locked(id, SOFT_CM_LOOKUP, 0, id->local.private_data,
				 id->local.private_len);
	if (id->interval < LAST_WAIT)
		id->interval *= 2;
	soft_cm_deadline_locked(id, id->interval);
}

void soft_cm_lookup_ready_locked(struct soft_cm_id *id)
{
	struct soft_cm_message m;
	ssize_t n = recv(id->fd, id->in, sizeof(id->in), MSG_DONTWAIT);

	if (n < 0) {
		/* Nobody has the port: the peer's kernel says so. As with TCP, not at once. */
		if (errno == ECONNREFUSED && pp_clock_monotonic() >= id->refusable)
			finish(id, SOFT_CM_SIDR_UNSUPPORTED);
		return;
	}
	if (soft_cm_message_read(id->in, (size_t)n, &m) || m.kind != SOFT_CM_LOOKUP_REPLY ||
	    m.token != id->local.token)
		return;
	id->remote = m;
	finish(id, m.status);
}

/* ── passive ── */

struct arrival {
	struct sockaddr_storage from, to;
	size_t len;
	uint8_t bytes[SOFT_CM_MESSAGE_MAX];
};

/* The address that the datagram was sent to, of a socket that may listen to all. */
static void destination(struct soft_cm_id *listener, struct msghdr *h, struct sockaddr_storage *ret)
{
	*ret = listener->pub.route.addr.src_storage;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		struct in6_pktinfo six;
		struct in_pktinfo four;

		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO &&
		    ret->ss_family == AF_INET) {
			memcpy(&four, CMSG_DATA(c), sizeof(four));
			((struct sockaddr_in *)ret)->sin_addr = four.ipi_addr;
		}
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO &&
		    ret->ss_family == AF_INET6) {
			memcpy(&six, CMSG_DATA(c), sizeof(six));
			((struct sockaddr_in6 *)ret)->sin6_addr = six.ipi6_addr;
		}
	}
}

static bool receive(struct soft_cm_id *listener, struct arrival *a)
{
	union {
		char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo)) +
			   CMSG_SPACE(sizeof(struct in_pktinfo))];
		struct cmsghdr align;
	} control;
	struct iovec v = {.iov_base = a->bytes, .iov_len = sizeof(a->bytes)};
	struct msghdr h = {
		.msg_name = &a->from,
		.msg_namelen = sizeof(a->from),
		.msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(listener->fd, &h, MSG_DONTWAIT);

	if (n < 0)
		return false;
	a->len = h.msg_flags & MSG_TRUNC ? 0 : (size_t)n;
	destination(listener, &h, &a->to);
	return true;
}

int soft_cm_lookup_answer_locked(struct soft_cm_id *child, uint16_t status, const void *data,
				 uint8_t len)
{
	union {
		char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo))];
		struct cmsghdr align;
	} control = {0};
	const struct sockaddr_storage *from = &child->pub.route.addr.src_storage;
	struct sockaddr_storage to = child->pub.route.addr.dst_storage;
	struct soft_cm_message m = child->local;
	uint8_t bytes[SOFT_CM_MESSAGE_MAX];
	struct iovec v = {.iov_base = bytes};
	struct msghdr h = {
		.msg_name = &to, .msg_iov = &v, .msg_iovlen = 1, .msg_control = &control};
	struct cmsghdr *c = &control.align;
	bool six = to.ss_family == AF_INET6;
	ssize_t sent;

	m.kind = SOFT_CM_LOOKUP_REPLY;
	m.status = status;
	m.private_len = data ? len : 0;
	if (data)
		memcpy(m.private_data, data, len);
	child->local = m;
	v.iov_len = soft_cm_message_write(&m, bytes);
	h.msg_namelen = soft_cm_address_length((struct sockaddr *)&to);
	h.msg_controllen = six ? CMSG_SPACE(sizeof(struct in6_pktinfo))
			       : CMSG_SPACE(sizeof(struct in_pktinfo));
	c->cmsg_level = six ? IPPROTO_IPV6 : IPPROTO_IP;
	c->cmsg_type = six ? IPV6_PKTINFO : IP_PKTINFO;
	c->cmsg_len =
		six ? CMSG_LEN(sizeof(struct in6_pktinfo)) : CMSG_LEN(sizeof(struct in_pktinfo));
	if (six)
		((struct in6_pktinfo *)(void *)CMSG_DATA(c))->ipi6_addr =
			((const struct sockaddr_in6 *)from)->sin6_addr;
	else
		((struct in_pktinfo *)(void *)CMSG_DATA(c))->ipi_spec_dst =
			((const struct sockaddr_in *)from)->sin_addr;
	sent = child->fd < 0 ? -1 : sendmsg(child->fd, &h, MSG_NOSIGNAL | MSG_DONTWAIT);
	/* Nobody would hear the question again, and the port is to be free. */
	if (!child->listener)
		soft_cm_close_locked(child);
	return sent < 0 ? ENOTCONN : 0;
}

struct seen {
	struct soft_cm_id *listener, *found;
	const struct arrival *arrival;
	uint64_t token;
};

static void compare(struct soft_cm_id *id, void *arg)
{
	struct seen *s = arg;

	if (id->listener == s->listener && id->remote.token == s->token &&
	    soft_cm_address_same(&id->pub.route.addr.dst_addr,
				 (const struct sockaddr *)&s->arrival->from))
		s->found = id;
}

/* Asked before: the answer again, if there is one. */
static bool repeated(struct soft_cm_id *listener, const struct arrival *a, uint64_t token)
{
	struct seen s = {.listener = listener, .arrival = a, .token = token};

	soft_cm_each_locked(compare, &s);
	if (s.found && s.found->local.kind == SOFT_CM_LOOKUP_REPLY)
		(void)soft_cm_lookup_answer_locked(s.found, s.found->local.status,
						   s.found->local.private_data,
						   s.found->local.private_len);
	return s.found;
}

static void asked(struct soft_cm_id *listener, const struct arrival *a,
		  const struct soft_cm_message *m)
{
	struct soft_cm_id *child = soft_cm_id_new(listener->channel, listener->pub.context,
						  listener->pub.ps, listener->pub.qp_type);

	if (!child)
		return;
	child->pub.route.addr.src_storage = a->to;
	child->pub.route.addr.dst_storage = a->from;
	child->remote = *m;
	child->local.token = m->token;
	child->state = SOFT_CM_ASKED;
	/* The listener may go before the answer. */
	child->fd = fcntl(listener->fd, F_DUPFD_CLOEXEC, 0);
	if (child->fd < 0 || soft_cm_enter_locked(child)) {
		soft_cm_id_free(child);
		return;
	}
	child->listener = listener;
	listener->waiting++;
	soft_cm_request_locked(child);
}

void soft_cm_lookup_accept_locked(struct soft_cm_id *listener)
{
	struct soft_cm_message m;
	struct arrival a;

	while (receive(listener, &a)) {
		soft_cm_address_plain(&a.from);
		soft_cm_address_plain(&a.to);
		if (soft_cm_message_read(a.bytes, a.len, &m) || m.kind != SOFT_CM_LOOKUP ||
		    repeated(listener, &a, m.token))
			continue;
		/* Who finds no room asks again. */
		if (listener->waiting < listener->backlog)
			asked(listener, &a, &m);
	}
}
