/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_staging: host memory through which bytes of a device pass: segments that somebody
 * page-locked, given out in contiguous parts of whole units. What is asked for in vain is waited
 * for. Not thread-safe: the engine's lock.
 */
#ifndef SOFT_COPY_STAGING_H
#define SOFT_COPY_STAGING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SOFT_STAGING_UNIT = 16 << 10,
	SOFT_STAGING_SEGMENT = 8 << 20,
	SOFT_STAGING_SEGMENTS = 8, /* at most */
	SOFT_STAGING_WORDS = SOFT_STAGING_SEGMENT / SOFT_STAGING_UNIT / 64,
};

/* Called once when something was given back since it began to wait. */
struct soft_staging_waiter {
	bool waits;
	void (*wake)(struct soft_staging_waiter *waiter);
	struct soft_staging_waiter *next;
};

struct soft_staging {
	struct {
		uint8_t *memory;
		_Atomic uint32_t *generations;	   /* a unit; NULL: none are counted */
		uint64_t used[SOFT_STAGING_WORDS]; /* a bit a unit */
	} segments[SOFT_STAGING_SEGMENTS];
	unsigned int num;
	size_t in_use, most; /* bytes, in whole units */
	uint64_t refused;    /* askings in vain */
	struct soft_staging_waiter *waiters;
};

/* Borrows SOFT_STAGING_SEGMENT bytes for good. @generations: of each unit, counted up when it is
 * given back; or NULL. false: it has SOFT_STAGING_SEGMENTS already. */
bool soft_staging_add(struct soft_staging *staging, void *memory, _Atomic uint32_t *generations);
static inline size_t soft_staging_room(const struct soft_staging *staging)
{
	return (size_t)staging->num * SOFT_STAGING_SEGMENT;
}
/* NULL: no part of this length is free. @len: 1 to SOFT_STAGING_SEGMENT. */
void *soft_staging_get(struct soft_staging *staging, size_t len);
/* Gives back; wakes all that wait. */
void soft_staging_put(struct soft_staging *staging, void *at, size_t len);
/* Of @len bytes at @at only the first @keep are needed. */
void soft_staging_trim(struct soft_staging *staging, void *at, size_t len, size_t keep);
void soft_staging_wait(struct soft_staging *staging, struct soft_staging_waiter *waiter);
void soft_staging_forget(struct soft_staging *staging, struct soft_staging_waiter *waiter);

#endif
