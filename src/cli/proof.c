/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/proof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

static const char *option(const struct pp_args *args, const char *name)
{
	return pp_args_knows(args, name) ? pp_args_get(args, name) : NULL;
}

int pp_proof_judge(struct pp_session *s, enum pp_gate through, struct pp_proof *p)
{
	bool keep = p->keep_going ||
		    (pp_args_knows(s->args, "keep-going") && pp_args_has(s->args, "keep-going"));
	struct pp_error err = {0};
	int r;

	p->judged = pp_clock_wall();
	if (!option(s->args, "rules") && secure_getenv("PEERPATH_RULES"))
		(void)pp_complain(s->args, 0, "judged by the rules of '%s' (PEERPATH_RULES)",
				  secure_getenv("PEERPATH_RULES"));
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
		r = pp_gates_judge(&s->node->facts, &p->findings, &p->runs, through, keep,
				   &p->gates);
	return r ? pp_complain(s->args, PP_EXIT_INTERNAL, "cannot judge: %s", strerrordesc_np(-r))
		 : 0;
}

static void rules_json(struct pp_json *j, const struct pp_proof *p,
		       const struct pp_rules_origin *origin, size_t n)
{
	const char *policy = pp_policy_name(p->policy), *word;
	const struct pp_rule *rule;

	pp_json_object(j, "rule_set");
	pp_json_str(j, "directory", origin->where);
	pp_json_u64(j, "rules", n);
	pp_json_str(j, "sha256", origin->sha256);
	pp_json_array(j, "disabled");
	for (size_t i = 0; (rule = pp_rules_at(p->rules, i)); i++)
		if (rule->disabled)
			pp_json_str(j, NULL, rule->id);
	pp_json_end_array(j);
	pp_json_str(j, "policy",
		    policy && strrchr(policy, '/') ? strrchr(policy, '/') + 1 : policy);
	pp_json_array(j, "forbidden");
	for (size_t i = 0; (word = pp_policy_word(p->policy, i)); i++)
		pp_json_str(j, NULL, word);
	pp_json_end_array(j);
	pp_json_end_object(j);
}

void pp_proof_rules(struct pp_out *o, const struct pp_proof *p)
{
	struct pp_rules_origin origin;
	char line[512];
	size_t n = 0;

	pp_rules_origin(p->rules, &origin);
	while (pp_rules_at(p->rules, n))
		n++;
	if (pp_out_is_json(o))
		return rules_json(pp_out_json(o), p, &origin, n);
	if (origin.own)
		return;
	(void)snprintf(line, sizeof(line), "%s: %zu rules, SHA-256 %.16s...", origin.where, n,
		       origin.sha256);
	pp_out_str(o, NULL, "rules", line);
}

void pp_proof_stuck(struct pp_out *o, const struct pp_session *s)
{
	const struct pp_helpers *all = pp_source_helpers(s->src);
	struct pp_json *j = pp_out_json(o);

	if (j)
		pp_json_array(j, "stuck");
	for (unsigned int i = 0; i < all->n_stuck; i++) {
		if (j)
			pp_json_str(j, NULL, all->stuck[i]);
		else
			pp_out_str(o, NULL, "stuck", all->stuck[i]);
	}
	if (j)
		pp_json_end_array(j);
}

void pp_proof_done(struct pp_proof *p)
{
	pp_gates_done(&p->gates);
	pp_findings_done(&p->findings);
	pp_policy_free(p->policy);
	pp_rules_free(p->rules);
}
