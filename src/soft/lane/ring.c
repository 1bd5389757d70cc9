/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Positions and the two barriers of the ring.
 *
 * Publishing: the writer stores bytes, then its position with release; the reader loads the
 * position with acquire, then bytes. Taking is the same the other way round.
 * Sleeping: the reader stores "asleep", then loads the writer's position; the writer stores its
 * position, then loads "asleep"; a full fence between the two on either side, so that not both can
 * miss the other's store.
 */
#include "soft/lane/ring.h"

#include "soft/lane/ring_shared.h"

#include "base/banned.h"

/* Bytes between the two positions; more than there can be: broken. */
static bool distance(struct soft_ring *ring, uint64_t from, uint64_t to, uint64_t *ret)
{
	*ret = to - from;
	if (*ret > SOFT_RING_BYTES || *ret % SOFT_RING_UNIT)
		ring->broken = true;
	return !ring->broken;
}

static bool see_head(struct soft_ring *ring, uint64_t *ret_used)
{
	ring->theirs = atomic_load_explicit(&ring->shared->head, memory_order_acquire);
	return distance(ring, ring->theirs, ring->mine, ret_used);
}

uint8_t *soft_ring_reserve(struct soft_ring *ring, size_t bytes)
{
	uint64_t used = ring->mine - ring->theirs;

	if (ring->broken || bytes > SOFT_RING_BYTES)
		return NULL;
	/* The reader's line is looked at only when what was seen last does not do. */
	if (bytes > SOFT_RING_BYTES - used &&
	    (!see_head(ring, &used) || bytes > SOFT_RING_BYTES - used))
		return NULL;
	return ring->bytes + ring->mine % SOFT_RING_BYTES;
}

bool soft_ring_beyond(struct soft_ring *ring, size_t bytes)
{
	uint64_t used = ring->mine - ring->theirs;

	return used > bytes && see_head(ring, &used) && used > bytes;
}

void soft_ring_publish(struct soft_ring *ring, size_t bytes)
{
	ring->mine += bytes;
	atomic_store_explicit(&ring->shared->tail, ring->mine, memory_order_release);
}

size_t soft_ring_far(struct soft_ring *ring)
{
	uint64_t at = ring->mine % SOFT_RING_BYTES, used;

	if (at < SOFT_RING_NEAR || !see_head(ring, &used) || used)
		return 0;
	return SOFT_RING_BYTES - at;
}

bool soft_ring_must_wake(struct soft_ring *ring)
{
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(&ring->shared->asleep, memory_order_relaxed) &&
	       atomic_exchange(&ring->shared->asleep, 0);
}

int soft_ring_pull_errno(const struct soft_ring *ring)
{
	return (int)atomic_load_explicit(&ring->shared->no_pulls, memory_order_relaxed);
}

bool soft_ring_passed(struct soft_ring *ring, uint64_t position)
{
	uint64_t used;

	return ring->theirs >= position || (see_head(ring, &used) && ring->theirs >= position);
}

const uint8_t *soft_ring_peek(struct soft_ring *ring, size_t *ret_bytes)
{
	uint64_t there;

	if (ring->broken)
		return NULL;
	ring->theirs = atomic_load_explicit(&ring->shared->tail, memory_order_acquire);
	if (!distance(ring, ring->mine, ring->theirs, &there) || !there)
		return NULL;
	*ret_bytes = there;
	return ring->bytes + ring->mine % SOFT_RING_BYTES;
}

void soft_ring_take(struct soft_ring *ring, size_t bytes)
{
	ring->mine += bytes;
	atomic_store_explicit(&ring->shared->head, ring->mine, memory_order_release);
}

bool soft_ring_empty(struct soft_ring *ring)
{
	return atomic_load_explicit(&ring->shared->tail, memory_order_acquire) == ring->mine;
}

void soft_ring_sleep(struct soft_ring *ring)
{
	atomic_store_explicit(&ring->shared->asleep, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

void soft_ring_awake(struct soft_ring *ring)
{
	/* The line is read by every writer: it is written only when it must be. */
	if (atomic_load_explicit(&ring->shared->asleep, memory_order_relaxed))
		atomic_store_explicit(&ring->shared->asleep, 0, memory_order_relaxed);
}

int soft_ring_loan_errno(const struct soft_ring *ring)
{
	return (int)atomic_load_explicit(&ring->shared->no_loans, memory_order_relaxed);
}

void soft_ring_refuse_loans(struct soft_ring *ring, int code)
{
	atomic_store_explicit(&ring->shared->no_loans, (uint32_t)code, memory_order_relaxed);
}

void soft_ring_refuse_pulls(struct soft_ring *ring, int code)
{
	atomic_store_explicit(&ring->shared->no_pulls, (uint32_t)code, memory_order_relaxed);
}
