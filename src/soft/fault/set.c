/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/fault/set.h"

#include <errno.h>
#include <string.h>

#include "base/banned.h"

/* Two time-outs, seeds or depths would contradict each other; two losses do not. */
static bool only_one(enum soft_fault_noun noun)
{
	return noun == SOFT_FAULT_BANDWIDTH || noun == SOFT_FAULT_SEED || noun == SOFT_FAULT_PORT ||
	       noun == SOFT_FAULT_CQ_DELAY || noun == SOFT_FAULT_CQ_DEPTH ||
	       noun == SOFT_FAULT_DEVICE;
}

bool soft_fault_set_remove(struct soft_fault_set *set, enum soft_fault_noun noun)
{
	unsigned int kept = 0, had = set->num;

	for (unsigned int i = 0; i < had; i++) {
		if (set->rules[i].spec.noun == noun)
			continue;
		if (kept != i)
			set->rules[kept] = set->rules[i];
		kept++;
	}
	set->num = kept;
	return kept != had;
}

int soft_fault_set_add(struct soft_fault_set *set, const struct soft_fault_spec *spec,
		       struct pp_error *err)
{
	if (spec->off || only_one(spec->noun))
		(void)soft_fault_set_remove(set, spec->noun);
	if (spec->off)
		return 0;
	if (set->num == SOFT_FAULTS_MAX)
		return pp_error_set(err, -ENOSPC, "more than %d faults at a time", SOFT_FAULTS_MAX);
	set->rules[set->num++] = (struct soft_fault_rule){.spec = *spec};
	return 0;
}

struct soft_fault_rule *soft_fault_set_find(struct soft_fault_set *set, enum soft_fault_noun noun)
{
	for (unsigned int i = set->num; i-- > 0;)
		if (set->rules[i].spec.noun == noun)
			return &set->rules[i];
	return NULL;
}

int soft_fault_set_call(struct soft_fault_set *set, enum soft_fault_noun noun, uint64_t *random)
{
	int error = 0;

	for (unsigned int i = 0; i < set->num; i++) {
		struct soft_fault_rule *r = &set->rules[i];

		if (r->spec.noun != noun)
			continue;
		r->seen++;
		if (!soft_fault_when_fires(&r->spec.when, r->seen,
					   (uint32_t)soft_fault_random(random)) ||
		    error)
			continue;
		r->fired++;
		error = r->spec.error;
	}
	return error;
}

uint64_t soft_fault_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}
