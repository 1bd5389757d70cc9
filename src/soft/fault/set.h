/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_fault_set: the faults that are set somewhere, and how often each fired. No lock of
 * its own: its owner's covers it.
 */
#ifndef SOFT_FAULT_SET_H
#define SOFT_FAULT_SET_H

#include "soft/fault/spec.h"

struct soft_fault_rule {
	struct soft_fault_spec spec;
	uint64_t seen, fired; /* what matched since it was set, and what was meant of that */
};

struct soft_fault_set {
	unsigned int num;
	struct soft_fault_rule rules[SOFT_FAULTS_MAX];
};

/*
 * Adds @spec, or takes away what it says is off. Where one of a noun is all that there can be, the
 * new one takes the place of the old. -ENOSPC: SOFT_FAULTS_MAX are set.
 */
int soft_fault_set_add(struct soft_fault_set *set, const struct soft_fault_spec *spec,
		       struct pp_error *err);
/* true: there was one. */
bool soft_fault_set_remove(struct soft_fault_set *set, enum soft_fault_noun noun);
/* The last one of @noun, or NULL. */
struct soft_fault_rule *soft_fault_set_find(struct soft_fault_set *set, enum soft_fault_noun noun);

/*
 * A call of @noun: the errno with which it shall fail, or 0. Every rule of it counts the call; the
 * first that means it decides. @random: the state of a generator.
 */
int soft_fault_set_call(struct soft_fault_set *set, enum soft_fault_noun noun, uint64_t *random);

/* splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014). */
uint64_t soft_fault_random(uint64_t *state);

#endif
