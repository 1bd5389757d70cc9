/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/need.h"

#include <stddef.h>

#include "base/banned.h"

/* That something is not known is no fault of the node: "is known" asks for it to be named. */
static enum pp_truth truth(const struct pp_profile_need *need, const struct pp_facts *facts,
			   const struct pp_object *o)
{
	enum pp_truth t = pp_condition_test(&need->when, facts, o, NULL);

	return need->when.op == PP_OP_KNOWN && t == PP_FALSE ? PP_OPEN : t;
}

static struct pp_need row(const struct pp_profile_need *need, const struct pp_facts *facts,
			  const struct pp_object *o)
{
	return (struct pp_need){.need = need,
				.of = o,
				.seen = pp_fact_get(o, need->when.fact),
				.state = truth(need, facts, o)};
}

unsigned int pp_need_test(const struct pp_profile *p, const struct pp_facts *facts,
			  struct pp_need ret[PP_NEEDS])
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < p->n_needs; i++) {
		const struct pp_object *o = NULL;
		unsigned int first = n;

		while (n < PP_NEEDS && (o = pp_object_next(facts, p->need[i].scope, o)))
			ret[n++] = row(&p->need[i], facts, o);
		if (n == first && n < PP_NEEDS)
			ret[n++] = (struct pp_need){.need = &p->need[i], .state = PP_OPEN};
	}
	return n;
}

enum pp_verdict pp_need_verdict(enum pp_truth state)
{
	return state == PP_TRUE ? PP_PASS : state == PP_OPEN ? PP_UNKNOWN : PP_FAIL;
}
