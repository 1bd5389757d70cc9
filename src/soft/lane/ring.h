/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_ring: one side of a ring of bytes in memory that two processes share: one writes,
 * the other reads. Both may write everywhere in that memory, and neither believes it: each keeps
 * its own position for itself, and a position of the other's that cannot be makes the ring broken,
 * for good.
 *
 *   memory  | head: positions, sleep | SOFT_RING_BYTES |
 *   mapped  | head                   | bytes           | the same bytes once more |
 *
 * Positions run on and are never reduced; a piece that begins near the end goes on behind it, where
 * the bytes are mapped again. Pieces are multiples of SOFT_RING_UNIT. No lock, no system call.
 */
#ifndef SOFT_LANE_RING_H
#define SOFT_LANE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SOFT_RING_BYTES = 2 << 20,
	SOFT_RING_HEAD = 64 << 10, /* a multiple of any page */
	SOFT_RING_UNIT = 64,	   /* a cache line: pieces share none */
	/* A ring that is empty again and again skips what lies behind: little, for what was skipped
	 * is taken until the reader has seen it. */
	SOFT_RING_NEAR = SOFT_RING_BYTES / 4 * 3,
};

struct soft_ring_shared;

struct soft_ring {
	struct soft_ring_shared *shared; /* NULL: not mapped */
	uint8_t *bytes;			 /* mapped twice */
	uint64_t mine, theirs;		 /* own position; the other's as last seen */
	bool broken;
};

/* The writing side: makes the memory. @ret_fd is the caller's, to be given away and closed. */
int soft_ring_make(struct soft_ring *ring, int *ret_fd);
/*
 * The reading side, of memory that somebody else made: -EPROTO when it is not of the right size, or
 * could shrink, or is no ordinary memory. Does not take @fd.
 */
int soft_ring_adopt(struct soft_ring *ring, int fd);
void soft_ring_done(struct soft_ring *ring); /* a ring that was never made is fine */

/* Writing side. Room for @bytes, or NULL: full, or broken. */
uint8_t *soft_ring_reserve(struct soft_ring *ring, size_t bytes);
/* Do more than @bytes lie there? */
bool soft_ring_beyond(struct soft_ring *ring, size_t bytes);
/* Gives the reader what was reserved last; @bytes of it. */
void soft_ring_publish(struct soft_ring *ring, size_t bytes);
/* Nothing lies in the ring, and its next bytes are far from the first ones: how many to skip. 0:
 * none. */
size_t soft_ring_far(struct soft_ring *ring);
/* true: the reader sleeps, and the caller is the one to wake it. After publishing. */
bool soft_ring_must_wake(struct soft_ring *ring);
/* What the reader says of reading the writer's memory: 0, or why it cannot, for good. */
int soft_ring_pull_errno(const struct soft_ring *ring);
/* The same of copying from the memory of his GPUs. */
int soft_ring_loan_errno(const struct soft_ring *ring);
/* Has the reader come to @position? */
bool soft_ring_passed(struct soft_ring *ring, uint64_t position);

/* Reading side. What lies there, *ret_bytes of it; NULL: nothing, or broken. It may change while it
 * is looked at. */
const uint8_t *soft_ring_peek(struct soft_ring *ring, size_t *ret_bytes);
void soft_ring_take(struct soft_ring *ring, size_t bytes);
bool soft_ring_empty(struct soft_ring *ring);
/* The reader is about to sleep; it must look once more before it does. */
void soft_ring_sleep(struct soft_ring *ring);
void soft_ring_awake(struct soft_ring *ring);
void soft_ring_refuse_pulls(struct soft_ring *ring, int code);
void soft_ring_refuse_loans(struct soft_ring *ring, int code);

#endif
