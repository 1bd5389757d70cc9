/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_outbox: trains of a link that a thread of its own packs and sends, so that neither
 * the copy into the train, with its checksums, nor the kernel's is the time of who builds them. A
 * ring: who has the engine's lock builds a train in it and gives it (soft_train_send()), the thread
 * sends it, and the next who builds counts what became of it.
 *
 *   reaped ─► counted | sent, result ◄─ done ◄─ packed ◄─ to be packed ◄─ given ◄─ being built
 *
 * Its order is the wire's: while a sender has anything in it all that this one sends goes behind
 * it.
 *
 * Until a train is packed the thread reads memory of the application or of staging. Each has a
 * mark, which who sends keeps: before he lets go of that memory he waits for the mark
 * (soft_outbox_await()). The thread takes no lock, so that it always comes. What an honest peer
 * acknowledges was packed before: then there is nothing to wait for.
 */
#ifndef SOFT_LINK_OUTBOX_H
#define SOFT_LINK_OUTBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "soft/link/link.h"

struct soft_outbox;
struct soft_train;

enum { SOFT_OUTBOXES_MAX = 2 }; /* of a link */

/* A mark of a link is one of an outbox's, and which outbox. */
static inline uint64_t soft_mark_of(unsigned int outbox, uint64_t mark)
{
	return mark * SOFT_OUTBOXES_MAX + outbox;
}

static inline unsigned int soft_mark_outbox(uint64_t of_link)
{
	return of_link % SOFT_OUTBOXES_MAX;
}

static inline uint64_t soft_mark(uint64_t of_link)
{
	return of_link / SOFT_OUTBOXES_MAX;
}

int soft_outbox_new(struct soft_outbox **ret); /* -ENOMEM, or why there is no eventfd */
void soft_outbox_free(struct soft_outbox *o);  /* NULL is fine; nobody sends from it any more */

/* Under the engine's lock: */
/* The link's trains go by these from the next one on; 0: not any more, and they must be empty. */
void soft_link_set_outboxes(struct soft_link *link, struct soft_outbox *const *outboxes,
			    unsigned int num);
/* Where the next train is built; NULL: all are full. */
struct soft_train *soft_outbox_next(struct soft_outbox *o);
/* The train of soft_outbox_next() is whole. */
void soft_outbox_give(struct soft_outbox *o);
/* It was packed, and sent by who built it; nothing lay before it. */
void soft_outbox_pass(struct soft_outbox *o);
/* The mark of that train; they only grow. */
uint64_t soft_outbox_mark(const struct soft_outbox *o);
/* Are all trains up to @mark packed? */
bool soft_outbox_packed(const struct soft_outbox *o, uint64_t mark);
/* Waits until they are; but for the one being built. */
void soft_outbox_await(struct soft_outbox *o, uint64_t mark);
/* Waits until all is sent that was given. */
void soft_outbox_await_sent(struct soft_outbox *o);
/* A train that was sent and is not counted yet, and what sendmsg() said; NULL: none. Calling it
 * again makes its place free. */
struct soft_train *soft_outbox_reap(struct soft_outbox *o, int *ret_rc);
unsigned int soft_outbox_room(const struct soft_outbox *o); /* trains */
/* Are all trains up to @mark sent? */
bool soft_outbox_sent_until(const struct soft_outbox *o, uint64_t mark);
/* Is all sent that was given? */
bool soft_outbox_sent(const struct soft_outbox *o);

/* Anybody, without any lock: packs and sends one train; false: there is none, or somebody else is
 * at it. The thread's work; who waits for a train does it himself, for the thread may not get a
 * processor for long. */
bool soft_outbox_send(struct soft_outbox *o);
/* The thread: sleeps until there is one, or somebody says that it is to end. */
void soft_outbox_wait(struct soft_outbox *o);
bool soft_outbox_ends(const struct soft_outbox *o);

/* Anybody: the thread is to end when all is sent. */
void soft_outbox_end(struct soft_outbox *o);

#endif
