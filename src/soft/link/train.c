/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds a train in one buffer and sends it by one sendmsg() with UDP_SEGMENT.
 *
 *   | header 0 | payload 0 | pad | ICRC 0 | header 1 | payload 1 | pad | ICRC 1 | ...
 *
 * The kernel cuts every train->segment bytes, so all packets but the last are of that size, and
 * numbers them 0, 1, 2.. in the IPv4 identification, which each ICRC covers.
 *
 * Payload is copied while it is summed, so that what is sent is what was summed even when the
 * application changes its memory meanwhile. In an outbox that is left to who sends, where the
 * payload stays until it is done (outbox.h). Leaving the copy to the kernel alone, with a piece for
 * each payload, was tried: 6 % slower out of the cache, 2 % faster from memory (perf/soft_link.c).
 */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <netinet/udp.h>

#include "soft/link/parts.h"
#include "soft/wire/crc32.h"
#include "base/banned.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103 /* linux/udp.h, which clashes with netinet/udp.h */
#endif

enum {
	DEFAULT_HOP_LIMIT = 64,	 /* of the sockets, see socket.c */
	SHORT_BYTES = 16 * 1024, /* less is no train of bulk */
};

/* Bytes of a packet from BTH to ICRC. */
static size_t packet_bytes(const struct soft_packet *p)
{
	return soft_opcode_find(p->opcode)->header_bytes + (size_t)p->payload_bytes +
	       soft_packet_pad(p->payload_bytes) + SOFT_ICRC_BYTES;
}

static struct soft_sender *sender_of(struct soft_link *link, const struct soft_path *path)
{
	return &link->senders[path->sender / SOFT_SENDERS][path->sender % SOFT_SENDERS];
}

/* What is sent must stay behind what the sender has sent; else it goes where there is most room. */
static unsigned int outbox_of(const struct soft_link *link, const struct soft_sender *sender)
{
	unsigned int best = sender->outbox;

	if (!soft_outbox_sent_until(link->outboxes[best], sender->last))
		return best;
	for (unsigned int i = 0; i < link->num_outboxes; i++)
		if (soft_outbox_room(link->outboxes[i]) > soft_outbox_room(link->outboxes[best]))
			best = i;
	return best;
}

static void begin(struct soft_train *t, struct soft_sender *sender, const struct soft_path *path,
		  size_t segment)
{
	t->sender = sender;
	t->flow = path->flow;
	t->traffic_class = path->traffic_class;
	t->hop_limit = path->hop_limit;
	t->closed = false;
	t->segment = segment;
	t->packets = 0;
	t->total = 0;
	t->unpacked = 0;
}

static bool fits(const struct soft_train *t, const struct soft_sender *sender,
		 const struct soft_path *path, size_t bytes)
{
	return !t->closed && t->sender == sender && !sender->no_trains && bytes <= t->segment &&
	       t->packets < SOFT_TRAIN_PACKETS && t->total + bytes <= SOFT_TRAIN_BYTES &&
	       t->traffic_class == path->traffic_class && t->hop_limit == path->hop_limit &&
	       soft_gid_equal(&t->flow.dst, &path->flow.dst);
}

/*
 * Where the next train is built. Rarely all of the outbox are full, since who pumps asks before
 * (soft_link_room()); then order wants that it is waited for.
 */
static struct soft_train *buffer(struct soft_link *link, struct soft_sender *sender)
{
	struct soft_outbox *o = NULL;
	struct soft_train *t = NULL;

	if (link->num_outboxes) {
		soft_train_reap(link);
		sender->outbox = outbox_of(link, sender);
		o = link->outboxes[sender->outbox];
		t = soft_outbox_next(o);
		if (t)
			sender->last = soft_outbox_mark(o);
	}
	if (!t && o)
		soft_outbox_await_sent(o);
	link->train = t ? t : &link->own_train;
	link->train->outbox = t ? o : NULL;
	return link->train;
}

/* Payload, pad and ICRC behind the @header of packet @place, which has @bytes in all. */
static void fill(struct soft_train *t, unsigned int place, size_t header, size_t bytes,
		 const struct iovec *pieces, unsigned int num_pieces)
{
	uint8_t *at = t->bytes + place * t->segment, *end = at + bytes - SOFT_ICRC_BYTES;
	uint32_t state = soft_icrc_begin(&t->flow, (uint16_t)place, bytes, at, header);
	size_t pad;

	at += header;
	for (unsigned int i = 0; i < num_pieces; i++) {
		state = soft_crc32_copy(state, at, pieces[i].iov_base, pieces[i].iov_len);
		at += pieces[i].iov_len;
	}
	pad = (size_t)(end - at);
	assert(at <= end && pad < 4);
	memset(at, 0, pad);
	state = soft_crc32(state, at, pad);
	soft_icrc_final(state, end);
}

/* The bytes of packet @place: only the last may have fewer than the others. */
static size_t bytes_at(const struct soft_train *t, unsigned int place)
{
	return place + 1 < t->packets ? t->segment : t->total - place * t->segment;
}

void soft_train_pack(struct soft_train *t)
{
	for (unsigned int i = 0; i < t->packets && t->unpacked; i++) {
		struct soft_later *l = &t->later[i];

		if (!l->piece.iov_base)
			continue;
		fill(t, i, l->header, bytes_at(t, i), &l->piece, 1);
		l->piece.iov_base = NULL;
		t->unpacked--;
	}
}

/* An ill wire looks at the packet that it asked for. */
static bool packs_later(const struct soft_link *link, const struct soft_train *t,
			const struct soft_packet *p, unsigned int num_pieces)
{
	return t->outbox && p->later && num_pieces == 1 && p->payload_bytes >= SOFT_LATER_BYTES &&
	       !link->ill;
}

uint64_t soft_train_add(struct soft_link *link, const struct soft_path *path,
			const struct soft_packet *p, const struct iovec *pieces,
			unsigned int num_pieces)
{
	struct soft_sender *sender = sender_of(link, path);
	struct soft_train *t;
	size_t bytes = packet_bytes(p), header;
	uint64_t mark = 0;

	assert(p->payload_bytes <= SOFT_MTU_MAX);
	if (link->train->packets && !fits(link->train, sender, path, bytes))
		soft_train_send(link);
	t = link->train;
	if (!t->packets) {
		t = buffer(link, sender);
		begin(t, sender, path, bytes);
	}

	header = soft_packet_encode(p, t->bytes + t->total);
	if (packs_later(link, t, p, num_pieces)) {
		t->later[t->packets] = (struct soft_later){pieces[0], header};
		t->unpacked++;
		mark = soft_mark_of(sender->outbox, soft_outbox_mark(t->outbox));
	} else {
		t->later[t->packets].piece.iov_base = NULL;
		fill(t, t->packets, header, bytes, pieces, num_pieces);
	}
	t->packets++;
	t->total += bytes;
	t->closed = bytes < t->segment;
	return mark;
}

void soft_train_send_raw(struct soft_link *link, const struct soft_path *path, const uint8_t *bytes,
			 size_t len)
{
	struct soft_sender *sender = sender_of(link, path);
	struct soft_train *t;

	soft_train_send(link);
	t = buffer(link, sender);
	begin(t, sender, path, len);
	memcpy(t->bytes, bytes, len);
	t->later[0].piece.iov_base = NULL;
	t->packets = 1;
	t->total = len;
	soft_train_send(link);
}

static void put(struct msghdr *msg, int level, int type, const void *value, size_t len)
{
	struct cmsghdr *c = (struct cmsghdr *)((char *)msg->msg_control + msg->msg_controllen);

	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), value, len);
	msg->msg_controllen += CMSG_SPACE(len);
}

/* Says how to cut and mark it, where that is not what the socket does by itself. */
static void put_control(const struct soft_train *t, bool cut, struct msghdr *msg)
{
	bool ipv4 = t->flow.ipv4;
	uint16_t segment = (uint16_t)t->segment;
	int value;

	msg->msg_controllen = 0;
	if (cut)
		put(msg, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment));
	if (t->traffic_class) {
		value = t->traffic_class;
		put(msg, ipv4 ? IPPROTO_IP : IPPROTO_IPV6, ipv4 ? IP_TOS : IPV6_TCLASS, &value,
		    sizeof(value));
	}
	/* 0 would be refused; an address vector that says nothing means the default. */
	if (t->hop_limit && t->hop_limit != DEFAULT_HOP_LIMIT) {
		value = t->hop_limit;
		put(msg, ipv4 ? IPPROTO_IP : IPPROTO_IPV6, ipv4 ? IP_TTL : IPV6_HOPLIMIT, &value,
		    sizeof(value));
	}
}

struct letter {
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(uint16_t)) +
					      2 * CMSG_SPACE(sizeof(int))];
	struct iovec iov;
	union soft_sockaddr to;
	struct msghdr msg;
};

static void address(struct soft_train *t, bool cut, struct letter *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->iov = (struct iovec){t->bytes, t->total};
	ret->msg = (struct msghdr){.msg_name = &ret->to,
				   .msg_iov = &ret->iov,
				   .msg_iovlen = 1,
				   .msg_control = ret->control};
	ret->msg.msg_namelen = soft_sockaddr_make(&t->flow.dst, SOFT_UDP_PORT, &ret->to);
	put_control(t, cut, &ret->msg);
}

static int transmit(const struct soft_sender *sender, struct msghdr *msg)
{
	ssize_t sent;

	do
		sent = sendmsg(sender->fd, msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

static void count(struct soft_link *link, int rc, unsigned int packets, size_t bytes)
{
	struct soft_link_stats *s = &link->stats;

	if (rc < 0) {
		s->send_errors += packets;
		s->last_send_errno = -rc;
		return;
	}
	s->sent_trains++;
	s->sent_packets += packets;
	s->sent_bytes += bytes;
}

/*
 * Where trains are refused: each packet alone, of identification 0, for which its ICRC is made
 * anew. The socket builds no more trains, once one of the packets did get through.
 */
static __attribute__((noinline, cold)) void send_singly(struct soft_link *link,
							struct soft_train *t)
{
	struct letter letter;

	address(t, /* cut= */ false, &letter);
	for (size_t at = 0; at < t->total; at += t->segment) {
		uint8_t *packet = t->bytes + at;
		size_t len = t->total - at < t->segment ? t->total - at : t->segment;
		uint32_t state = soft_icrc_begin(&t->flow, 0, len, packet, SOFT_BTH_BYTES);
		int rc;

		state = soft_crc32(state, packet + SOFT_BTH_BYTES,
				   len - SOFT_BTH_BYTES - SOFT_ICRC_BYTES);
		soft_icrc_final(state, packet + len - SOFT_ICRC_BYTES);
		letter.iov = (struct iovec){packet, len};
		rc = transmit(t->sender, &letter.msg);
		count(link, rc, 1, len);
		if (rc == 0)
			t->sender->no_trains = true;
	}
}

int soft_train_transmit(struct soft_train *t)
{
	struct letter letter;

	address(t, /* cut= */ t->packets > 1, &letter);
	return transmit(t->sender, &letter.msg);
}

static void sent(struct soft_link *link, struct soft_train *t, int rc)
{
	if ((rc == -EIO || rc == -EINVAL) && t->packets > 1)
		send_singly(link, t);
	else
		count(link, rc, t->packets, t->total);
}

void soft_train_reap(struct soft_link *link)
{
	struct soft_train *t;
	int rc;

	for (unsigned int i = 0; i < link->num_outboxes; i++) {
		while ((t = soft_outbox_reap(link->outboxes[i], &rc))) {
			link->stats.threaded_sends += rc == 0;
			sent(link, t, rc);
		}
	}
}

void soft_link_set_outboxes(struct soft_link *link, struct soft_outbox *const *outboxes,
			    unsigned int num)
{
	assert(num <= SOFT_OUTBOXES_MAX);
	soft_train_send(link);
	soft_train_reap(link);
	for (unsigned int i = 0; i < num; i++)
		link->outboxes[i] = outboxes[i];
	link->num_outboxes = num;
	link->train = &link->own_train;
	for (unsigned int i = 0; i < SOFT_LINK_GIDS_MAX; i++)
		for (unsigned int j = 0; j < SOFT_SENDERS; j++)
			link->senders[i][j].outbox = link->senders[i][j].last = 0;
}

void soft_link_await_read(struct soft_link *link, uint64_t mark)
{
	struct soft_outbox *o = link->outboxes[soft_mark_outbox(mark)];

	/* Without one nothing was left to be read. */
	if (!link->num_outboxes || soft_outbox_packed(o, soft_mark(mark)))
		return;
	soft_train_pack(link->train);
	soft_outbox_await(o, soft_mark(mark));
}

void soft_link_await_all_read(struct soft_link *link)
{
	soft_train_pack(link->train);
	for (unsigned int i = 0; i < link->num_outboxes; i++)
		soft_outbox_await(link->outboxes[i], UINT64_MAX);
}

unsigned int soft_link_room(struct soft_link *link, const struct soft_path *path)
{
	unsigned int least = UINT_MAX;

	if (path && link->num_outboxes)
		return soft_outbox_room(link->outboxes[outbox_of(link, sender_of(link, path))]);
	for (unsigned int i = 0; i < link->num_outboxes; i++) {
		unsigned int room = soft_outbox_room(link->outboxes[i]);

		least = room < least ? room : least;
	}
	return least;
}

void soft_train_send(struct soft_link *link)
{
	struct soft_train *t = link->train;

	if (!t->packets)
		return;
	link->given += t->packets;
	if (t->total >= SHORT_BYTES)
		link->bulk += t->total;
	/* Few bytes, and nobody before them: to wake the other costs more. */
	if (t->outbox && (t->total >= SHORT_BYTES || !soft_outbox_sent(t->outbox))) {
		soft_outbox_give(t->outbox);
		link->train = &link->own_train;
		return;
	}
	soft_train_pack(t);
	if (t->outbox)
		soft_outbox_pass(t->outbox);
	sent(link, t, soft_train_transmit(t));
	t->packets = 0;
}
