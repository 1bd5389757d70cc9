/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands at the head of a ring's memory. Each line is written by one side, but for `asleep`:
 * the reader sets it, and whoever clears it wakes.
 */
#ifndef SOFT_LANE_RING_SHARED_H
#define SOFT_LANE_RING_SHARED_H

#include <stdatomic.h>
#include <stdint.h>

struct soft_ring_shared {
	_Alignas(64) _Atomic uint64_t tail; /* the writer's: bytes published */
	_Alignas(64) _Atomic uint64_t head; /* the reader's: bytes taken */
	_Alignas(64) _Atomic uint32_t asleep;
	_Atomic uint32_t no_pulls; /* the reader's: errno of reading the writer's memory */
	_Atomic uint32_t no_loans; /* and of copying from the memory of his GPUs */
};

#endif
