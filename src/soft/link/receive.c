/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what waits in the receiving sockets and cuts GRO trains into datagrams. Datagrams for
 * another process, which the group's filter could not steer, are handed on in runs.
 */
#include <errno.h>
#include <netinet/udp.h>

#include "soft/link/parts.h"
#include "soft/link/probe.h"
#include "base/banned.h"

#ifndef UDP_GRO
#define UDP_GRO 104 /* linux/udp.h, which clashes with netinet/udp.h */
#endif

enum {
	FAILED_READS_MAX = 64, /* datagrams of no bytes must not hold a turn for ever */
	LONE_BYTES = 2048,     /* less is a small datagram */
	STREAK = 3,
	CACHE_LINE = 64,
	AHEAD = 4 * CACHE_LINE,
	COLD_TURNS = 8, /* sockets where nothing came last are read every so many turns */
};

/* Bytes of a small control value: the kernel gives IPv4's TOS as one byte, the rest as int. */
static int control_value(const struct cmsghdr *c)
{
	int value = 0;

	if (c->cmsg_len >= CMSG_LEN(sizeof(value)))
		memcpy(&value, CMSG_DATA(c), sizeof(value));
	else if (c->cmsg_len >= CMSG_LEN(1))
		value = *CMSG_DATA(c);
	return value;
}

static void read_control(struct msghdr *msg, struct soft_arrival *a)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		int value = control_value(c);

		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
			if (value > 0)
				a->segment = (size_t)value;
		} else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) ||
			   (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS)) {
			a->traffic_class = (uint8_t)value;
		} else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TTL) ||
			   (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_HOPLIMIT)) {
			a->hop_limit = (uint8_t)value;
		}
	}
}

static void read_source(const union soft_sockaddr *from, struct soft_arrival *a)
{
	if (from->any.sa_family == AF_INET) {
		memset(a->src.raw, 0, 10);
		a->src.raw[10] = a->src.raw[11] = 0xff;
		memcpy(a->src.raw + 12, &from->in.sin_addr, 4);
		a->sport = ntohs(from->in.sin_port);
	} else {
		memcpy(a->src.raw, &from->in6.sin6_addr, 16);
		a->sport = ntohs(from->in6.sin6_port);
	}
}

/* Hands on the datagrams from @d on that are for the same process; returns the bytes. */
static size_t hand_on(struct soft_link *link, struct soft_receiver *r,
		      const struct soft_datagram *d, size_t left, size_t segment, int slot)
{
	struct soft_datagram run = *d;
	struct soft_probe probe;
	unsigned int n = 0;

	run.len = 0;
	while (run.len < left) {
		size_t len = left - run.len < segment ? left - run.len : segment;

		if (soft_slot_of(d->bytes + run.len, len) != slot)
			break;
		run.len += len;
		n++;
	}
	if (soft_slot_pass_train(link->handover, (unsigned int)slot, &run,
				 run.len < segment ? run.len : segment) < 0) {
		link->stats.not_handed += n;
		return run.len;
	}
	link->stats.handed_on += n;
	/* A probe is handed on because it should be. */
	if (soft_probe_read(run.bytes, run.len, &probe))
		soft_steer_heard(r, (unsigned int)slot);
	else
		soft_steer_misrouted(link, r);
	return run.len;
}

static unsigned int cut(struct soft_link *link, const struct soft_arrival *a,
			soft_datagram_handler *handler, void *arg)
{
	struct soft_receiver *r = &link->receivers[a->receiver];
	struct soft_datagram d = {.src = a->src,
				  .dst = a->dst,
				  .sport = a->sport,
				  .traffic_class = a->traffic_class,
				  .hop_limit = a->hop_limit};
	size_t at = 0;
	unsigned int n = 0;

	while (at < a->len) {
		size_t place = at / a->segment;
		int slot;

		d.bytes = a->bytes + at;
		d.len = a->len - at < a->segment ? a->len - at : a->segment;
		/* The next one's header and a little, which another processor may have: it comes
		 * while this one is worked on. */
		for (size_t i = 0; i < AHEAD && at + d.len + i < a->len; i += CACHE_LINE)
			__builtin_prefetch(d.bytes + d.len + i);
		d.place = (uint16_t)place;
		d.checked = place < a->num_checked ? &a->checked[place] : NULL;
		slot = soft_slot_of(d.bytes, d.len);
		if (link->handover && slot >= 0 && (unsigned int)slot != link->slot) {
			at += hand_on(link, r, &d, a->len - at, a->segment, slot);
			continue;
		}
		at += d.len;
		n++;
		if (!soft_steer_takes(link, r, &d))
			handler(arg, &d);
	}
	return n;
}

unsigned int soft_link_take(struct soft_link *link, const struct soft_arrival *a,
			    soft_datagram_handler *handler, void *arg)
{
	if (a->truncated)
		link->stats.truncated++;
	link->stats.received_trains++;
	link->stats.threaded_trains += a->num_checked > 0;
	link->stats.received_packets += (a->len + a->segment - 1) / a->segment;
	link->stats.received_bytes += a->len;
	return cut(link, a, handler, arg);
}

/* Reads one datagram or train; its bytes, or -errno. */
static ssize_t read_train(const struct soft_link *link, unsigned int receiver,
			  struct soft_arrival *ret)
{
	const struct soft_receiver *r = &link->receivers[receiver];
	_Alignas(struct cmsghdr) char control[4 * CMSG_SPACE(sizeof(int))];
	struct iovec iov = {ret->bytes, sizeof(ret->bytes)};
	union soft_sockaddr from;
	struct msghdr msg = {.msg_name = &from,
			     .msg_namelen = sizeof(from),
			     .msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};
	ssize_t len = recvmsg(r->fd, &msg, MSG_DONTWAIT);

	if (len <= 0)
		return len < 0 ? -errno : 0;
	ret->receiver = receiver;
	ret->len = ret->segment = (size_t)len;
	ret->dst = r->gid;
	ret->traffic_class = ret->hop_limit = 0;
	ret->num_checked = 0;
	ret->truncated = msg.msg_flags & MSG_TRUNC;
	read_source(&from, ret);
	read_control(&msg, ret);
	return len;
}

/*
 * Reads one socket until it is empty or the budget is spent. To find it empty costs as much as a
 * third of a small datagram (perf/soft_link.c), and who waits for an answer waits for that too: so
 * a small datagram ends it, unless they have come in turn after turn.
 */
static size_t drain(struct soft_link *link, unsigned int receiver, size_t budget,
		    soft_datagram_handler *handler, void *arg, unsigned int *n)
{
	struct soft_receiver *r = &link->receivers[receiver];
	unsigned int failed = 0;
	size_t got = 0;

	while (got < budget && failed < FAILED_READS_MAX) {
		ssize_t len = read_train(link, receiver, &link->arrival);

		if (len == -EAGAIN) {
			r->streak = 0;
			break;
		}
		if (len <= 0) {
			failed++;
			continue;
		}
		*n += soft_link_take(link, &link->arrival, handler, arg);
		got += (size_t)len;
		if (len < LONE_BYTES && r->streak < STREAK) {
			r->streak++;
			break;
		}
	}
	return got;
}

unsigned int soft_link_receive(struct soft_link *link, size_t budget,
			       soft_datagram_handler *handler, void *arg)
{
	unsigned int n = 0, hot = link->hot;
	bool all = link->turns++ % COLD_TURNS == 0;
	size_t got = 0;

	/* When it is the others' turn they go first: a flood at the hot one cannot shut them out.
	 */
	for (unsigned int i = 0; i < (all ? link->num_receivers : 1) && got < budget; i++) {
		unsigned int at = (hot + all + i) % link->num_receivers;
		size_t bytes = drain(link, at, budget - got, handler, arg, &n);

		if (bytes)
			link->hot = at;
		got += bytes;
	}
	soft_link_advance(link);
	return n;
}

void soft_link_advance(struct soft_link *link)
{
	for (unsigned int i = 0; i < link->num_receivers; i++)
		if (link->receivers[i].steer.nonce)
			soft_steer_advance(link, &link->receivers[i]);
}

bool soft_link_read(struct soft_link *link, struct soft_arrival *ret)
{
	unsigned int from = link->hot + (link->turns++ % COLD_TURNS == 0);

	for (unsigned int i = 0; i < link->num_receivers; i++) {
		unsigned int at = (from + i) % link->num_receivers;

		if (read_train(link, at, ret) > 0) {
			link->hot = at;
			return true;
		}
	}
	return false;
}

void soft_arrival_check(struct soft_arrival *a, unsigned int slot, struct soft_icrc_flow *flow)
{
	unsigned int n = 0;

	/* What is for another process it checks itself. */
	if (soft_slot_of(a->bytes, a->len < a->segment ? a->len : a->segment) != (int)slot)
		return;
	if (flow->sport != a->sport || !soft_gid_equal(&flow->src, &a->src) ||
	    !soft_gid_equal(&flow->dst, &a->dst))
		soft_icrc_flow_init(flow, &a->src, &a->dst, a->sport);
	for (size_t at = 0; at < a->len && n < SOFT_ARRIVAL_CHECKED_MAX; at += a->segment, n++) {
		size_t len = a->len - at < a->segment ? a->len - at : a->segment;
		struct soft_icrc_verdict *v = &a->checked[n];

		v->right = soft_icrc_solve(flow, (uint16_t)n, a->bytes + at, len, &v->id);
	}
	a->num_checked = n;
}
