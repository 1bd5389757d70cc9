/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the way of computing CRC-32 at the first call.
 *
 * Several threads may call first at once: each finds the same way and stores the same pointer to
 * constant data, so a relaxed atomic is enough.
 */
#include "soft/wire/crc32.h"

#include <stdatomic.h>

#include "soft/wire/crc32_way.h"
#include "base/banned.h"

static _Atomic(const struct soft_crc32_way *) chosen;

static __attribute__((noinline, cold)) const struct soft_crc32_way *choose(void)
{
	const struct soft_crc32_way *const *way = soft_crc32_ways;

	while (!(*way)->usable())
		way++;
	atomic_store_explicit(&chosen, *way, memory_order_relaxed);
	return *way;
}

static inline const struct soft_crc32_way *in_use(void)
{
	const struct soft_crc32_way *way = atomic_load_explicit(&chosen, memory_order_relaxed);

	return __builtin_expect(way != NULL, 1) ? way : choose();
}

uint32_t soft_crc32(uint32_t state, const void *bytes, size_t len)
{
	return in_use()->sum(state, bytes, len);
}

uint32_t soft_crc32_copy(uint32_t state, void *restrict to, const void *restrict from, size_t len)
{
	return in_use()->copy(state, to, from, len);
}

const char *soft_crc32_way(void)
{
	return in_use()->name;
}
