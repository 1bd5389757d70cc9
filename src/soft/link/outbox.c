/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/link/outbox.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "soft/link/parts.h"
#include "base/banned.h"

enum { RING = 16 }; /* trains: 1 MiB */

struct entry {
	int rc;
	struct soft_train train;
};

struct soft_outbox {
	/* Counts of trains; `reaped` and `passed` are known under the engine's lock alone. */
	_Alignas(64) _Atomic uint64_t given;
	uint64_t reaped;
	uint64_t passed; /* sent by who built them */
	bool reaping;	 /* the entry behind `reaped` has been shown */
	int wake_fd;	 /* eventfd */
	_Alignas(64) _Atomic uint64_t packed;
	_Atomic uint64_t done;
	_Atomic bool sending; /* somebody packs or sends the next one: trains go one by one */
	_Atomic bool asleep, ends;
	_Alignas(64) struct entry ring[RING];
};

int soft_outbox_new(struct soft_outbox **ret)
{
	struct soft_outbox *o = aligned_alloc(_Alignof(struct soft_outbox), sizeof(*o));

	if (!o)
		return -ENOMEM;
	memset(o, 0, offsetof(struct soft_outbox, ring));
	for (unsigned int i = 0; i < RING; i++)
		o->ring[i].train.packets = 0;
	o->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (o->wake_fd < 0) {
		int rc = -errno;

		free(o);
		return rc;
	}
	*ret = o;
	return 0;
}

void soft_outbox_free(struct soft_outbox *o)
{
	if (!o)
		return;
	(void)close(o->wake_fd);
	free(o);
}

static void wake(struct soft_outbox *o)
{
	uint64_t one = 1;

	/* A full counter is a wake-up already. */
	if (write(o->wake_fd, &one, sizeof(one)) < 0)
		return;
}

static uint64_t given(const struct soft_outbox *o)
{
	return atomic_load_explicit(&o->given, memory_order_relaxed);
}

unsigned int soft_outbox_room(const struct soft_outbox *o)
{
	return RING - (unsigned int)(given(o) - o->reaped);
}

struct soft_train *soft_outbox_next(struct soft_outbox *o)
{
	return soft_outbox_room(o) ? &o->ring[given(o) % RING].train : NULL;
}

void soft_outbox_give(struct soft_outbox *o)
{
	atomic_fetch_add(&o->given, 1);
	/* It saw nothing before it slept, or sees this. */
	if (atomic_load(&o->asleep) && atomic_exchange(&o->asleep, false))
		wake(o);
}

void soft_outbox_pass(struct soft_outbox *o)
{
	o->passed++;
}

uint64_t soft_outbox_mark(const struct soft_outbox *o)
{
	return given(o) + o->passed + 1;
}

bool soft_outbox_packed(const struct soft_outbox *o, uint64_t mark)
{
	/* What was passed had nothing before it: all that was given until then is packed. */
	return atomic_load_explicit(&o->packed, memory_order_acquire) + o->passed >= mark;
}

void soft_outbox_await(struct soft_outbox *o, uint64_t mark)
{
	if (mark > given(o) + o->passed)
		mark = given(o) + o->passed;
	while (!soft_outbox_packed(o, mark))
		if (!soft_outbox_send(o))
			sched_yield();
}

void soft_outbox_await_sent(struct soft_outbox *o)
{
	while (!soft_outbox_sent(o))
		if (!soft_outbox_send(o))
			sched_yield();
}

struct soft_train *soft_outbox_reap(struct soft_outbox *o, int *ret_rc)
{
	struct entry *e;

	if (o->reaping) {
		o->ring[o->reaped % RING].train.packets = 0;
		o->reaped++;
	}
	o->reaping = o->reaped != atomic_load_explicit(&o->done, memory_order_acquire);
	if (!o->reaping)
		return NULL;
	e = &o->ring[o->reaped % RING];
	*ret_rc = e->rc;
	return &e->train;
}

bool soft_outbox_sent_until(const struct soft_outbox *o, uint64_t mark)
{
	return atomic_load_explicit(&o->done, memory_order_acquire) + o->passed >= mark;
}

bool soft_outbox_sent(const struct soft_outbox *o)
{
	return atomic_load_explicit(&o->done, memory_order_acquire) == given(o);
}

static bool send_next(struct soft_outbox *o)
{
	uint64_t done = atomic_load_explicit(&o->done, memory_order_relaxed);
	struct entry *e = &o->ring[done % RING];

	if (done == atomic_load_explicit(&o->given, memory_order_acquire))
		return false;
	soft_train_pack(&e->train);
	/* Who waits for it may let go of what was read, and write there. */
	atomic_store_explicit(&o->packed, done + 1, memory_order_release);
	e->rc = soft_train_transmit(&e->train);
	atomic_store_explicit(&o->done, done + 1, memory_order_release);
	return true;
}

bool soft_outbox_send(struct soft_outbox *o)
{
	bool sent;

	if (soft_outbox_sent(o) ||
	    atomic_exchange_explicit(&o->sending, true, memory_order_acquire))
		return false;
	sent = send_next(o);
	atomic_store_explicit(&o->sending, false, memory_order_release);
	return sent;
}

void soft_outbox_wait(struct soft_outbox *o)
{
	struct pollfd fd = {.fd = o->wake_fd, .events = POLLIN};
	uint64_t drained;

	atomic_store(&o->asleep, true);
	/* Who gives after our look sees that we sleep; who awaits a mark gives no more. */
	atomic_thread_fence(memory_order_seq_cst);
	if (soft_outbox_sent(o) && !atomic_load(&o->ends) && poll(&fd, 1, -1) > 0 &&
	    read(o->wake_fd, &drained, sizeof(drained)) < 0)
		return;
	atomic_store(&o->asleep, false);
}

bool soft_outbox_ends(const struct soft_outbox *o)
{
	return atomic_load_explicit(&o->ends, memory_order_acquire);
}

void soft_outbox_end(struct soft_outbox *o)
{
	atomic_store(&o->ends, true);
	wake(o);
}
