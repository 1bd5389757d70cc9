/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ill wire: every packet leaves alone, and meets the fate drawn for it. In use only when faults
 * are asked for.
 *
 * Packets that are delayed, or wait for a slow wire, lie in a list until they may go.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft/link/parts.h"
#include "base/banned.h"

enum {
	FLUSHES_HELD = 4,	 /* a packet is let go after so many flushes, if none followed it */
	LATE_BYTES = 64 << 20,	 /* more than that does not fit on the wire */
	QUEUE_BYTES = 256 << 10, /* of a slow wire: a switch's buffer of a port */
	WIRE_BYTES = 42,	 /* Ethernet, IPv4 and UDP around a packet */
	ECN_CE = 3,
};

struct soft_late {
	struct soft_late *next;
	struct soft_path path;
	pp_ns due;
	size_t len;
	uint8_t bytes[];
};

int soft_ill_new(struct soft_fault *fault, struct soft_ill **ret)
{
	struct soft_ill *ill = calloc(1, sizeof(*ill));

	if (!ill)
		return -ENOMEM;
	ill->fault = fault;
	*ret = ill;
	return 0;
}

void soft_ill_free(struct soft_ill *ill)
{
	struct soft_late *next;

	if (!ill)
		return;
	for (struct soft_late *l = ill->late; l; l = next) {
		next = l->next;
		free(l);
	}
	free(ill);
}

static void let_go(struct soft_link *link, unsigned int i)
{
	struct soft_ill *ill = link->ill;
	struct soft_held *h = &ill->held[i];

	soft_train_send_raw(link, &h->path, h->bytes, h->len);
	memmove(h, h + 1, (--ill->num_held - i) * sizeof(*h));
}

static void hold(struct soft_ill *ill, const struct soft_path *path, const uint8_t *bytes,
		 size_t len, unsigned int behind)
{
	struct soft_held *h = &ill->held[ill->num_held++];

	h->path = *path;
	/* The flush that ends this very turn is no sign that nothing follows. */
	h->flushes = FLUSHES_HELD;
	h->behind = behind;
	h->len = len;
	memcpy(h->bytes, bytes, len);
}

/* A packet has gone: those that waited for it may follow. */
static void passed(struct soft_link *link)
{
	struct soft_ill *ill = link->ill;

	for (unsigned int i = 0; i < ill->num_held;) {
		if (--ill->held[i].behind == 0)
			let_go(link, i);
		else
			i++;
	}
}

/* To the end of the list: a scattered delay stretches the distances of packets, and not their
 * order, which has a fault of its own. */
static bool enqueue(struct soft_ill *ill, const struct soft_path *path, const uint8_t *bytes,
		    size_t len, pp_ns due)
{
	struct soft_late *l;

	if (ill->late_bytes + len > LATE_BYTES)
		return false;
	l = malloc(sizeof(*l) + len);
	if (!l)
		return false;
	l->next = NULL;
	l->path = *path;
	l->due = ill->late_last && ill->late_last->due > due ? ill->late_last->due : due;
	l->len = len;
	memcpy(l->bytes, bytes, len);
	if (ill->late_last)
		ill->late_last->next = l;
	else
		ill->late = l;
	ill->late_last = l;
	ill->late_bytes += len;
	return true;
}

static void release(struct soft_link *link, pp_ns now)
{
	struct soft_ill *ill = link->ill;

	while (ill->late && ill->late->due <= now) {
		struct soft_late *l = ill->late;

		ill->late = l->next;
		if (!ill->late)
			ill->late_last = NULL;
		ill->late_bytes -= l->len;
		soft_train_send_raw(link, &l->path, l->bytes, l->len);
		free(l);
	}
}

/* When a packet of @len bytes has passed a slow wire; 0: it does not fit into its queue. */
static pp_ns through(struct soft_ill *ill, uint64_t bits_s, size_t len, pp_ns now)
{
	const pp_ns full = (pp_ns)((uint64_t)QUEUE_BYTES * 8 * PP_SECOND / bits_s);

	if (ill->free_at < now)
		ill->free_at = now;
	if (ill->free_at - now > full)
		return 0;
	ill->free_at += (pp_ns)((len + WIRE_BYTES) * 8 * PP_SECOND / bits_s);
	return ill->free_at;
}

/* Sends it later, if it is to be; false: not at all. */
static bool delay(struct soft_link *link, const struct soft_path *path, const uint8_t *bytes,
		  size_t len, const struct soft_fault_fate *fate)
{
	struct soft_ill *ill = link->ill;
	uint64_t bits_s = soft_fault_bandwidth(ill->fault);
	pp_ns now, due;

	if (!fate->delay && !bits_s) {
		soft_train_send_raw(link, path, bytes, len);
		return true;
	}
	due = now = pp_clock_monotonic();
	if (bits_s) {
		due = through(ill, bits_s, len, now);
		if (!due)
			return false;
	}
	due += fate->delay;
	if (due > now)
		return enqueue(ill, path, bytes, len, due);
	soft_train_send_raw(link, path, bytes, len);
	return true;
}

/*
 * What a memory or a switch does that makes the checksum anew: the packet is right, its payload is
 * not. Returns the pieces to send instead.
 */
static struct iovec spoil(const struct iovec *pieces, unsigned int num_pieces, uint32_t bit,
			  uint8_t bytes[SOFT_MTU_MAX])
{
	struct iovec whole = {.iov_base = bytes};

	for (unsigned int i = 0; i < num_pieces; i++) {
		memcpy(bytes + whole.iov_len, pieces[i].iov_base, pieces[i].iov_len);
		whole.iov_len += pieces[i].iov_len;
	}
	bit %= (uint32_t)(whole.iov_len * 8);
	bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	return whole;
}

/* The packet as it would stand on the wire: made by the train's builder, and taken out again. */
static size_t build(struct soft_link *link, const struct soft_path *path,
		    const struct soft_packet *p, const struct iovec *pieces,
		    unsigned int num_pieces, uint8_t *bytes)
{
	struct soft_train *t;
	size_t len;

	soft_train_send(link);
	soft_train_add(link, path, p, pieces, num_pieces);
	t = link->train;
	len = t->total;
	t->packets = 0;
	memcpy(bytes, t->bytes, len);
	return len;
}

void soft_ill_send(struct soft_link *link, const struct soft_path *way, const struct soft_packet *p,
		   const struct iovec *pieces, unsigned int num_pieces)
{
	struct soft_ill *ill = link->ill;
	const struct soft_fault_packet about = {.src = &way->flow.src,
						.dst = &way->flow.dst,
						.psn = p->psn,
						.opcode = p->opcode,
						.syndrome = p->syndrome,
						.has_payload = p->payload_bytes > 0};
	struct soft_fault_fate fate = soft_fault_draw(ill->fault, &about);
	struct soft_path path = *way;
	uint8_t packet[sizeof(ill->held[0].bytes)], payload[SOFT_MTU_MAX];
	struct iovec whole;
	size_t len;

	if (fate.lost)
		return;
	if (fate.marked)
		path.traffic_class |= ECN_CE;
	if (fate.spoiled) {
		whole = spoil(pieces, num_pieces, fate.corrupt_bit, payload);
		pieces = &whole;
		num_pieces = 1;
	}
	len = build(link, &path, p, pieces, num_pieces, packet);
	if (fate.corrupted) {
		uint32_t bit = fate.corrupt_bit % (uint32_t)(len * 8);

		packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	if (fate.reordered && ill->num_held < SOFT_HELD_MAX) {
		hold(ill, &path, packet, len, fate.behind);
		return;
	}
	if (!delay(link, &path, packet, len, &fate)) {
		soft_fault_dropped(ill->fault, &about);
		return;
	}
	if (fate.duplicated)
		(void)delay(link, &path, packet, len, &fate);
	passed(link);
}

pp_ns soft_ill_flush(struct soft_link *link)
{
	struct soft_ill *ill = link->ill;

	for (unsigned int i = 0; i < ill->num_held;) {
		if (--ill->held[i].flushes == 0)
			let_go(link, i);
		else
			i++;
	}
	if (!ill->late)
		return 0;
	release(link, pp_clock_monotonic());
	return ill->late ? ill->late->due : 0;
}

void soft_ill_end(struct soft_link *link)
{
	while (link->ill->num_held)
		let_go(link, 0);
	release(link, INT64_MAX);
}
