/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First fit, short parts from the bottom and long ones from the top, so that the many short ones
 * leave the long ones their room.
 */
#include "soft/copy/staging.h"

#include "base/banned.h"

enum {
	UNITS = SOFT_STAGING_SEGMENT / SOFT_STAGING_UNIT,
	LONG = 16, /* units */
};

static unsigned int units_of(size_t len)
{
	return (unsigned int)((len + SOFT_STAGING_UNIT - 1) / SOFT_STAGING_UNIT);
}

static bool is_used(const uint64_t *used, unsigned int unit)
{
	return used[unit / 64] >> unit % 64 & 1;
}

static void mark(uint64_t *used, unsigned int from, unsigned int n, bool value)
{
	for (unsigned int unit = from; unit < from + n; unit++) {
		if (value)
			used[unit / 64] |= UINT64_C(1) << unit % 64;
		else
			used[unit / 64] &= ~(UINT64_C(1) << unit % 64);
	}
}

bool soft_staging_add(struct soft_staging *s, void *memory, _Atomic uint32_t *generations)
{
	if (s->num == SOFT_STAGING_SEGMENTS)
		return false;
	s->segments[s->num].memory = memory;
	s->segments[s->num++].generations = generations;
	return true;
}

/* The first of @n free units in a row, or UNITS. */
static unsigned int find_low(const uint64_t *used, unsigned int n)
{
	unsigned int run = 0;

	for (unsigned int unit = 0; unit < UNITS; unit++) {
		if (unit % 64 == 0 && used[unit / 64] == UINT64_MAX) {
			unit += 63;
			run = 0;
			continue;
		}
		run = is_used(used, unit) ? 0 : run + 1;
		if (run == n)
			return unit + 1 - n;
	}
	return UNITS;
}

static unsigned int find_high(const uint64_t *used, unsigned int n)
{
	unsigned int run = 0;

	for (unsigned int unit = UNITS; unit-- > 0;) {
		if (unit % 64 == 63 && used[unit / 64] == UINT64_MAX) {
			unit -= 63;
			run = 0;
			continue;
		}
		run = is_used(used, unit) ? 0 : run + 1;
		if (run == n)
			return unit;
	}
	return UNITS;
}

void *soft_staging_get(struct soft_staging *s, size_t len)
{
	unsigned int n = units_of(len);

	for (unsigned int i = 0; i < s->num && n && n <= UNITS; i++) {
		uint64_t *used = s->segments[i].used;
		unsigned int at = n < LONG ? find_low(used, n) : find_high(used, n);

		if (at == UNITS)
			continue;
		mark(used, at, n, true);
		s->in_use += (size_t)n * SOFT_STAGING_UNIT;
		s->most = s->in_use > s->most ? s->in_use : s->most;
		return s->segments[i].memory + (size_t)at * SOFT_STAGING_UNIT;
	}
	s->refused++;
	return NULL;
}

static void wake_all(struct soft_staging *s)
{
	struct soft_staging_waiter *w = s->waiters, *next;

	s->waiters = NULL;
	for (; w; w = next) {
		next = w->next;
		w->waits = false;
		w->wake(w);
	}
}

/* Who looks at bytes that another writes there later sees that they are no more the same. */
static void outdate(_Atomic uint32_t *generations, unsigned int from, unsigned int n)
{
	for (unsigned int unit = from; generations && unit < from + n; unit++) {
		uint32_t next = atomic_load_explicit(&generations[unit], memory_order_relaxed) + 1;

		/* 0 is none. */
		atomic_store_explicit(&generations[unit], next ? next : 1, memory_order_relaxed);
	}
	if (generations)
		atomic_thread_fence(memory_order_seq_cst);
}

/* Units [from, from + n) behind @at. */
static void give(struct soft_staging *s, const uint8_t *at, unsigned int from, unsigned int n)
{
	for (unsigned int i = 0; i < s->num && n; i++) {
		uintptr_t offset = (uintptr_t)at - (uintptr_t)s->segments[i].memory;

		if (offset >= SOFT_STAGING_SEGMENT)
			continue;
		from += (unsigned int)(offset / SOFT_STAGING_UNIT);
		outdate(s->segments[i].generations, from, n);
		mark(s->segments[i].used, from, n, false);
		s->in_use -= (size_t)n * SOFT_STAGING_UNIT;
		break;
	}
	if (n)
		wake_all(s);
}

void soft_staging_put(struct soft_staging *s, void *at, size_t len)
{
	give(s, at, 0, units_of(len));
}

void soft_staging_trim(struct soft_staging *s, void *at, size_t len, size_t keep)
{
	give(s, at, units_of(keep), units_of(len) - units_of(keep));
}

void soft_staging_wait(struct soft_staging *s, struct soft_staging_waiter *w)
{
	if (w->waits)
		return;
	w->waits = true;
	w->next = s->waiters;
	s->waiters = w;
}

void soft_staging_forget(struct soft_staging *s, struct soft_staging_waiter *w)
{
	if (!w->waits)
		return;
	w->waits = false;
	for (struct soft_staging_waiter **at = &s->waiters; *at; at = &(*at)->next) {
		if (*at == w) {
			*at = w->next;
			break;
		}
	}
}
