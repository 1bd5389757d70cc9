/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion queues. `produced` and `consumed` are running counts: their difference is what lies in
 * the ring, and it is never more than the capacity.
 *
 * Arming and pushing meet as in Dekker's algorithm: each side writes its word, then reads the
 * other's, all sequentially consistent, so that at least one of them sees the other. When both do,
 * soft_cq_disarm() lets one win.
 */
#include "soft/qp/cq.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

/* What consumers get: all but the mark, which another thread may set at any time. */
#define SHOWN_BYTES offsetof(struct soft_cqe, dead)

static int ring_new(uint32_t capacity, struct soft_cqe **ret, uint32_t *ret_mask)
{
	uint32_t slots = 1;

	if (capacity < 1 || capacity > SOFT_CQ_CAPACITY_MAX)
		return -EINVAL;
	while (slots < capacity)
		slots <<= 1;
	*ret = calloc(slots, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	*ret_mask = slots - 1;
	return 0;
}

int soft_cq_init(struct soft_cq *cq, uint32_t capacity)
{
	int rc;

	memset(cq, 0, sizeof(*cq));
	rc = ring_new(capacity, &cq->ring, &cq->mask);
	if (rc)
		return rc;
	rc = pthread_mutex_init(&cq->consumer, NULL);
	if (rc) {
		free(cq->ring);
		cq->ring = NULL;
		return -rc;
	}
	cq->capacity = cq->room = capacity;
	return 0;
}

void soft_cq_set_room(struct soft_cq *cq, uint32_t room)
{
	cq->room = room && room < cq->capacity ? room : cq->capacity;
}

void soft_cq_done(struct soft_cq *cq)
{
	if (!cq->ring)
		return;
	pthread_mutex_destroy(&cq->consumer);
	free(cq->ring);
	cq->ring = NULL;
}

/* Both locks held. Live completions move towards the newer end; order stays. */
static void compact(struct soft_cq *cq, uint32_t qp_num, bool any)
{
	uint32_t produced = atomic_load_explicit(&cq->produced, memory_order_relaxed);
	uint32_t consumed = atomic_load_explicit(&cq->consumed, memory_order_relaxed);
	uint32_t to = produced;

	for (uint32_t at = produced; at != consumed; at--) {
		const struct soft_cqe *cqe = &cq->ring[(at - 1) & cq->mask];
		bool dead = atomic_load_explicit(&cqe->dead, memory_order_relaxed);

		if (dead || (any && cqe->qp_num == qp_num))
			continue;
		to--;
		if (to == at - 1)
			continue;
		memcpy(&cq->ring[to & cq->mask], cqe, SHOWN_BYTES);
		atomic_store_explicit(&cq->ring[to & cq->mask].dead, false, memory_order_relaxed);
	}
	atomic_store_explicit(&cq->consumed, to, memory_order_release);
	cq->marked = false;
}

/* Is there room for one more? Dead completions are cleared away for it unless somebody polls. */
static bool make_room(struct soft_cq *cq, uint32_t produced)
{
	uint32_t consumed = atomic_load_explicit(&cq->consumed, memory_order_acquire);

	if (produced - consumed < cq->room)
		return true;
	if (cq->marked && pthread_mutex_trylock(&cq->consumer) == 0) {
		compact(cq, 0, false);
		pthread_mutex_unlock(&cq->consumer);
		consumed = atomic_load_explicit(&cq->consumed, memory_order_relaxed);
	}
	return produced - consumed < cq->room;
}

int soft_cq_resize_locked(struct soft_cq *cq, uint32_t capacity)
{
	struct soft_cqe *ring = NULL, *old = NULL;
	uint32_t mask = 0, produced, consumed;
	int rc = ring_new(capacity, &ring, &mask);

	if (rc)
		return rc;
	compact(cq, /* qp_num= */ 0, /* any= */ false);
	produced = atomic_load_explicit(&cq->produced, memory_order_relaxed);
	consumed = atomic_load_explicit(&cq->consumed, memory_order_relaxed);
	if (produced - consumed <= capacity) {
		for (uint32_t at = consumed; at != produced; at++)
			memcpy(&ring[at & mask], &cq->ring[at & cq->mask], SHOWN_BYTES);
		old = cq->ring;
		cq->ring = ring;
		cq->mask = mask;
		cq->room = cq->room < cq->capacity && cq->room < capacity ? cq->room : capacity;
		cq->capacity = capacity;
	}
	free(old ? old : ring);
	return old ? 0 : -EINVAL;
}

/* Does the event for the newest completion wait for more? The queue stays armed then. */
static bool hold_back(struct soft_cq *cq, uint32_t produced)
{
	if (cq->hold_count <= 1 || !cq->hold_ns || !cq->held)
		return false;
	if (!cq->holding) {
		cq->holding = true;
		cq->hold_from = produced - 1;
		cq->held(cq);
	}
	if (produced - cq->hold_from < cq->hold_count)
		return true;
	cq->holding = false;
	return false;
}

void soft_cq_release(struct soft_cq *cq)
{
	if (!cq->holding)
		return;
	cq->holding = false;
	if (!soft_cq_empty(cq) && soft_cq_disarm(cq))
		cq->notify(cq);
}

static void publish(struct soft_cq *cq, uint32_t produced, bool wakes)
{
	if (!cq->notify) {
		atomic_store_explicit(&cq->produced, produced, memory_order_release);
		return;
	}
	if (wakes) {
		atomic_store_explicit(&cq->solicited, produced, memory_order_relaxed);
	} else {
		uint32_t last = atomic_load_explicit(&cq->solicited, memory_order_relaxed);

		/* Kept near, or the running counts would lap it and it would look newer. */
		if (produced - last > cq->capacity)
			atomic_store_explicit(&cq->solicited, produced - cq->capacity,
					      memory_order_relaxed);
	}
	atomic_store(&cq->produced, produced);
	if (atomic_load(&cq->armed) >= (wakes ? SOFT_CQ_ARMED_SOLICITED : SOFT_CQ_ARMED_ANY) &&
	    !hold_back(cq, produced) && soft_cq_disarm(cq))
		cq->notify(cq);
}

bool soft_cq_push(struct soft_cq *cq, const struct soft_cqe *cqe)
{
	if (cq->late && soft_cq_late_add(cq, cqe))
		return true;
	return soft_cq_show(cq, cqe);
}

bool soft_cq_show(struct soft_cq *cq, const struct soft_cqe *cqe)
{
	uint32_t produced = atomic_load_explicit(&cq->produced, memory_order_relaxed);
	struct soft_cqe *slot = &cq->ring[produced & cq->mask];

	if (!make_room(cq, produced)) {
		cq->overrun = true;
		if (cq->overflow)
			cq->overflow(cq);
		return false;
	}
	memcpy(slot, cqe, SHOWN_BYTES);
	atomic_store_explicit(&slot->dead, false, memory_order_relaxed);
	publish(cq, produced + 1, cqe->solicited || cqe->status != 0);
	return true;
}

struct soft_cqe *soft_cq_peek_locked(struct soft_cq *cq)
{
	uint32_t consumed = atomic_load_explicit(&cq->consumed, memory_order_relaxed);
	uint32_t produced = atomic_load_explicit(&cq->produced, memory_order_acquire);

	for (; consumed != produced; consumed++) {
		struct soft_cqe *cqe = &cq->ring[consumed & cq->mask];

		if (!atomic_load_explicit(&cqe->dead, memory_order_relaxed))
			return cqe;
		atomic_store_explicit(&cq->consumed, consumed + 1, memory_order_release);
	}
	return NULL;
}

void soft_cq_advance_locked(struct soft_cq *cq)
{
	uint32_t consumed = atomic_load_explicit(&cq->consumed, memory_order_relaxed);

	atomic_store_explicit(&cq->consumed, consumed + 1, memory_order_release);
}

unsigned int soft_cq_pop(struct soft_cq *cq, struct soft_cqe *ret, unsigned int n)
{
	const struct soft_cqe *cqe;
	unsigned int taken = 0;

	if (n == 0 || soft_cq_empty(cq))
		return 0;
	pthread_mutex_lock(&cq->consumer);
	while (taken < n && (cqe = soft_cq_peek_locked(cq)) != NULL) {
		memcpy(&ret[taken], cqe, SHOWN_BYTES);
		atomic_init(&ret[taken].dead, false);
		taken++;
		soft_cq_advance_locked(cq);
	}
	pthread_mutex_unlock(&cq->consumer);
	return taken;
}

bool soft_cq_empty(const struct soft_cq *cq)
{
	return atomic_load_explicit(&cq->consumed, memory_order_relaxed) ==
	       atomic_load_explicit(&cq->produced, memory_order_acquire);
}

/* How many of those that lie there events have told of; they are the oldest. */
static uint32_t told_of(const struct soft_cq *cq, uint32_t produced, uint32_t consumed)
{
	uint32_t told = atomic_load_explicit(&cq->told, memory_order_relaxed) - consumed;

	return told <= produced - consumed ? told : 0; /* else it lags behind */
}

bool soft_cq_arm(struct soft_cq *cq, bool solicited_only)
{
	int want = solicited_only ? SOFT_CQ_ARMED_SOLICITED : SOFT_CQ_ARMED_ANY;
	int armed = atomic_load(&cq->armed);
	uint32_t produced, consumed, told;

	while (armed < want && !atomic_compare_exchange_weak(&cq->armed, &armed, want))
		;
	produced = atomic_load(&cq->produced);
	consumed = atomic_load_explicit(&cq->consumed, memory_order_relaxed);
	told = consumed + told_of(cq, produced, consumed);
	if (!solicited_only)
		return produced != told;
	return (int32_t)(atomic_load_explicit(&cq->solicited, memory_order_relaxed) - told) > 0;
}

bool soft_cq_disarm(struct soft_cq *cq)
{
	int armed = atomic_exchange(&cq->armed, SOFT_CQ_IDLE);
	uint32_t produced, consumed;

	if (armed == SOFT_CQ_IDLE)
		return false;
	produced = atomic_load(&cq->produced);
	consumed = atomic_load_explicit(&cq->consumed, memory_order_relaxed);
	/* Who waits for solicited ones takes those before it for the same event. */
	if (armed == SOFT_CQ_ARMED_ANY && told_of(cq, produced, consumed) < produced - consumed)
		produced = consumed + told_of(cq, produced, consumed) + 1;
	atomic_store_explicit(&cq->told, produced, memory_order_relaxed);
	return true;
}

void soft_cq_forget(struct soft_cq *cq, uint32_t qp_num)
{
	uint32_t produced = atomic_load_explicit(&cq->produced, memory_order_relaxed);

	if (cq->late)
		soft_cq_late_forget(cq->late, cq, qp_num);
	if (pthread_mutex_trylock(&cq->consumer) == 0) {
		compact(cq, qp_num, true);
		pthread_mutex_unlock(&cq->consumer);
		return;
	}
	/* Somebody polls, perhaps for long: mark only. What lies behind `consumed` is marked in
	 * vain.
	 */
	for (uint32_t at = atomic_load_explicit(&cq->consumed, memory_order_acquire);
	     at != produced; at++) {
		struct soft_cqe *cqe = &cq->ring[at & cq->mask];

		if (cqe->qp_num == qp_num)
			atomic_store_explicit(&cqe->dead, true, memory_order_relaxed);
	}
	cq->marked = true;
}
