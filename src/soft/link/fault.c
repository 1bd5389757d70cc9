/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fates by splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
 * Each packet takes the same count of numbers whatever its fate, so that one packet's fate does not
 * depend on which faults are switched on.
 */
#include "soft/link/fault.h"

#include "base/banned.h"

enum { MILLION = 1000000, BEHIND_MAX = 3 };

static uint64_t next(struct soft_fault *fault)
{
	uint64_t z = fault->random += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* Maps 32 random bits to 0 .. bound-1 without a division. */
static uint32_t below(uint32_t random, uint32_t bound)
{
	return (uint32_t)((uint64_t)random * bound >> 32);
}

void soft_fault_init(struct soft_fault *fault, const struct soft_fault_plan *plan)
{
	*fault = (struct soft_fault){.plan = *plan, .random = plan->seed};
}

bool soft_fault_active(const struct soft_fault *fault)
{
	const struct soft_fault_plan *p = &fault->plan;

	return p->loss_ppm || p->duplicate_ppm || p->reorder_ppm || p->corrupt_ppm;
}

struct soft_fault_fate soft_fault_draw(struct soft_fault *fault)
{
	const struct soft_fault_plan *p = &fault->plan;
	uint64_t a = next(fault), b = next(fault), c = next(fault);
	struct soft_fault_fate fate = {0};

	if (below((uint32_t)a, MILLION) < p->loss_ppm) {
		fate.lost = true;
		fault->lost++;
		return fate;
	}
	fate.duplicated = below((uint32_t)(a >> 32), MILLION) < p->duplicate_ppm;
	fate.reordered = below((uint32_t)b, MILLION) < p->reorder_ppm;
	fate.corrupted = below((uint32_t)(b >> 32), MILLION) < p->corrupt_ppm;
	fate.behind = (uint8_t)(1 + below((uint32_t)(c >> 32), BEHIND_MAX));
	fate.corrupt_bit = (uint32_t)c;
	fault->duplicated += fate.duplicated;
	fault->reordered += fate.reordered;
	fault->corrupted += fate.corrupted;
	return fate;
}
