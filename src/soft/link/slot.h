/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_slot: the number of this process among those that share UDP 4791 in a network
 * namespace: the top eight bits of its QP numbers.
 *
 * A slot is an abstract AF_UNIX datagram socket ("peerpath-soft.<number>"): taken atomically by
 * bind, scoped to the network namespace as the port is, and free again when its owner dies however
 * it dies. The same socket takes datagrams that reached another process. Only processes of the same
 * user, and root, may hand on; others are counted and dropped.
 */
#ifndef SOFT_LINK_SLOT_H
#define SOFT_LINK_SLOT_H

#include "soft/link/link.h"
#include "soft/link/probe.h"

enum {
	SOFT_SLOT_BITS = 8,
	SOFT_SLOTS = 1 << SOFT_SLOT_BITS,
	SOFT_SLOT_SHIFT = 24 - SOFT_SLOT_BITS
};

struct soft_slot;

/* -EUSERS: all slots of this namespace are taken. */
int soft_slot_take(struct soft_slot **ret, struct pp_error *err);
void soft_slot_free(struct soft_slot *slot); /* NULL is fine */
unsigned int soft_slot_number(const struct soft_slot *slot);
int soft_slot_fd(const struct soft_slot *slot); /* to be watched for reading */

/* Slot that the DestQP of a UDP payload names; -1: too short to name one. */
static inline int soft_slot_of(const uint8_t *bytes, size_t len)
{
	return len < SOFT_BTH_BYTES + SOFT_ICRC_BYTES ? -1 : bytes[5];
}

/*
 * Hands a datagram to the process of @number: d->len bytes which are datagrams of @segment bytes,
 * the last of them maybe shorter (one: @segment = d->len); d->place is the first one's. 0, or
 * -errno: nobody there, queue full for longer than a millisecond. A queue holds
 * net.unix.max_dgram_qlen messages (10 by default), so whole trains, not datagrams, should be
 * handed on.
 */
int soft_slot_pass_train(struct soft_slot *slot, unsigned int number, const struct soft_datagram *d,
			 size_t segment);
int soft_slot_pass(struct soft_slot *slot, unsigned int number, const struct soft_datagram *d);

/* Takes datagrams handed to us; as soft_link_receive(). */
unsigned int soft_slot_receive(struct soft_slot *slot, size_t budget,
			       soft_datagram_handler *handler, void *arg);

/*
 * Answers to probes (see probe.h) are kept, a few of them, for the link that asked, and not given
 * to the handler. soft_slot_answers() is how many there were so far; soft_slot_answer() gives the
 * next after *cursor, and moves it; NULL: no more.
 */
struct soft_slot_answer {
	struct soft_probe probe;
	uint8_t from; /* slot of who handed it on */
};
unsigned int soft_slot_answers(const struct soft_slot *slot);
const struct soft_slot_answer *soft_slot_answer(const struct soft_slot *slot, unsigned int *cursor);

struct soft_slot_stats {
	uint64_t passed, not_passed; /* messages */
	uint64_t taken, refused;     /* messages; refused: of another user, or malformed */
};
const struct soft_slot_stats *soft_slot_stats(const struct soft_slot *slot);

#endif
