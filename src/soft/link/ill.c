/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ill wire: every packet leaves alone, and meets the fate drawn for it. In use only when faults
 * are asked for.
 */
#include "soft/link/parts.h"
#include "base/banned.h"

enum { FLUSHES_HELD = 4 }; /* a packet is let go after so many flushes, if none followed it */

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

void soft_ill_send(struct soft_link *link, const struct soft_path *path,
		   const struct soft_packet *p, const struct iovec *pieces, unsigned int num_pieces)
{
	struct soft_ill *ill = link->ill;
	struct soft_fault_fate fate = soft_fault_draw(ill->fault);
	struct soft_train *t = &link->train;
	uint8_t packet[sizeof(ill->held[0].bytes)];
	size_t len;

	if (fate.lost)
		return;
	soft_train_add(link, path, p, pieces, num_pieces);
	len = t->total;
	t->packets = 0; /* taken out again */
	memcpy(packet, t->bytes, len);
	if (fate.corrupted) {
		uint32_t bit = fate.corrupt_bit % (uint32_t)(len * 8);

		packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	if (fate.reordered && ill->num_held < SOFT_HELD_MAX) {
		hold(ill, path, packet, len, fate.behind);
		return;
	}
	soft_train_send_raw(link, path, packet, len);
	if (fate.duplicated)
		soft_train_send_raw(link, path, packet, len);
	passed(link);
}

void soft_ill_flush(struct soft_link *link)
{
	struct soft_ill *ill = link->ill;

	for (unsigned int i = 0; i < ill->num_held;) {
		if (--ill->held[i].flushes == 0)
			let_go(link, i);
		else
			i++;
	}
}
