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

static void read_control(struct msghdr *msg, struct soft_datagram *d, size_t *segment)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		int value = control_value(c);

		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
			if (value > 0)
				*segment = (size_t)value;
		} else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) ||
			   (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS)) {
			d->traffic_class = (uint8_t)value;
		} else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TTL) ||
			   (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_HOPLIMIT)) {
			d->hop_limit = (uint8_t)value;
		}
	}
}

static void read_source(const union soft_sockaddr *from, struct soft_datagram *d)
{
	if (from->any.sa_family == AF_INET) {
		memset(d->src.raw, 0, 10);
		d->src.raw[10] = d->src.raw[11] = 0xff;
		memcpy(d->src.raw + 12, &from->in.sin_addr, 4);
		d->sport = ntohs(from->in.sin_port);
	} else {
		memcpy(d->src.raw, &from->in6.sin6_addr, 16);
		d->sport = ntohs(from->in6.sin6_port);
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

static unsigned int cut(struct soft_link *link, struct soft_receiver *r, struct soft_datagram *d,
			size_t len, size_t segment, soft_datagram_handler *handler, void *arg)
{
	size_t at = 0;
	unsigned int n = 0;

	while (at < len) {
		int slot;

		d->bytes = link->received + at;
		d->len = len - at < segment ? len - at : segment;
		d->place = (uint16_t)(at / segment);
		slot = soft_slot_of(d->bytes, d->len);
		if (link->handover && slot >= 0 && (unsigned int)slot != link->slot) {
			at += hand_on(link, r, d, len - at, segment, slot);
			continue;
		}
		at += d->len;
		n++;
		if (!soft_steer_takes(link, r, d))
			handler(arg, d);
	}
	return n;
}

/* Reads one datagram or train; its bytes, or -errno. */
static ssize_t read_train(struct soft_link *link, struct soft_receiver *r,
			  soft_datagram_handler *handler, void *arg, unsigned int *n)
{
	_Alignas(struct cmsghdr) char control[4 * CMSG_SPACE(sizeof(int))];
	struct iovec iov = {link->received, sizeof(link->received)};
	union soft_sockaddr from;
	struct msghdr msg = {.msg_name = &from,
			     .msg_namelen = sizeof(from),
			     .msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};
	ssize_t len = recvmsg(r->fd, &msg, MSG_DONTWAIT);
	struct soft_datagram d;
	size_t segment;

	if (len <= 0)
		return len < 0 ? -errno : 0;
	segment = (size_t)len;
	d.dst = r->gid;
	d.traffic_class = d.hop_limit = 0;
	read_source(&from, &d);
	read_control(&msg, &d, &segment);
	if (msg.msg_flags & MSG_TRUNC)
		link->stats.truncated++;
	link->stats.received_trains++;
	link->stats.received_packets += ((size_t)len + segment - 1) / segment;
	link->stats.received_bytes += (size_t)len;
	*n += cut(link, r, &d, (size_t)len, segment, handler, arg);
	return len;
}

/*
 * Reads one socket until it is empty or the budget is spent. To find it empty costs as much as a
 * third of a small datagram (perf/soft_link.c), and who waits for an answer waits for that too: so
 * a small datagram ends it, unless they have come in turn after turn.
 */
static size_t drain(struct soft_link *link, struct soft_receiver *r, size_t budget,
		    soft_datagram_handler *handler, void *arg, unsigned int *n)
{
	unsigned int failed = 0;
	size_t got = 0;

	while (got < budget && failed < FAILED_READS_MAX) {
		ssize_t len = read_train(link, r, handler, arg, n);

		if (len == -EAGAIN) {
			r->streak = 0;
			break;
		}
		if (len <= 0) {
			failed++;
			continue;
		}
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
		size_t bytes = drain(link, &link->receivers[at], budget - got, handler, arg, &n);

		if (bytes)
			link->hot = at;
		got += bytes;
	}
	for (unsigned int i = 0; i < link->num_receivers; i++)
		if (link->receivers[i].steer.nonce)
			soft_steer_advance(link, &link->receivers[i]);
	return n;
}
