/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_fault: an ill wire by seed, between the link and its sockets. The same seed and the
 * same packets give the same faults.
 */
#ifndef SOFT_LINK_FAULT_H
#define SOFT_LINK_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct soft_fault_plan {
	uint64_t seed;
	/* Parts in a million of packets. */
	uint32_t loss_ppm, duplicate_ppm, reorder_ppm, corrupt_ppm;
};

struct soft_fault {
	struct soft_fault_plan plan;
	uint64_t random; /* state */
	uint64_t lost, duplicated, reordered, corrupted;
};

struct soft_fault_fate {
	bool lost; /* then it has no other fate */
	bool duplicated, corrupted;
	bool reordered;	      /* held back until @behind later packets have gone */
	uint8_t behind;	      /* 1..3 */
	uint32_t corrupt_bit; /* modulo the packet's bits */
};

void soft_fault_init(struct soft_fault *fault, const struct soft_fault_plan *plan);
bool soft_fault_active(const struct soft_fault *fault);
/* Draws the fate of the next packet and counts it. */
struct soft_fault_fate soft_fault_draw(struct soft_fault *fault);

#endif
