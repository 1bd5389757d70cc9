/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/proof.h"

#include <errno.h>
#include <string.h>

#include "base/banned.h"

static const char *option(const struct pp_args *args, const char *name)
{
	return pp_args_knows(args, name) ? pp_args_get(args, name) : NULL;
}

int pp_proof_judge(struct pp_session *s, enum pp_gate through, struct pp_proof *p)
{
	bool keep = pp_args_knows(s->args, "keep-going") && pp_args_has(s->args, "keep-going");
	struct pp_error err = {0};
	int r;

	p->judged = pp_clock_wall();
	r = pp_rules_load(option(s->args, "rules"), &p->rules, &err);
	if (!r)
		r = pp_policy_load(option(s->args, "policy"), &p->policy, &err);
	if (!r)
		r = pp_policy_check(p->policy, p->rules, &err);
	if (r)
		return pp_complain(s->args, r == -ENOMEM ? PP_EXIT_INTERNAL : PP_EXIT_INPUT, "%s",
				   err.text);
	r = pp_findings_judge(&s->node->facts, p->rules, p->policy, &p->findings);
	if (!r)
		r = pp_gates_judge(&s->node->facts, &p->findings, through, keep, &p->gates);
	return r ? pp_complain(s->args, PP_EXIT_INTERNAL, "cannot judge: %s", strerrordesc_np(-r))
		 : 0;
}

void pp_proof_done(struct pp_proof *p)
{
	pp_gates_done(&p->gates);
	pp_findings_done(&p->findings);
	pp_policy_free(p->policy);
	pp_rules_free(p->rules);
}
