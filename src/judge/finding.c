/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/finding.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

enum { TEXTS_LIMIT = 16 << 20 };

struct judge {
	const struct pp_facts *facts;
	const struct pp_policy *policy;
	struct pp_findings found;
	size_t cap;
	bool rails_known; /* every gpu has a rail, so other hcas are bystanders */
};

/* True when some pair of @o (a gpu or an hca) is known to be a rail. */
static bool has_rail(const struct pp_facts *facts, const struct pp_object *o)
{
	const struct pp_object *pair = NULL;

	while ((pair = pp_object_next(facts, PP_PAIR, pair)))
		if ((pair->parent == o || pair->peer == o) && pp_fact_is(pair, PP_F_PAIR_RAIL))
			return true;
	return false;
}

static bool every_gpu_has_rail(const struct pp_facts *facts)
{
	const struct pp_object *gpu = NULL;

	while ((gpu = pp_object_next(facts, PP_GPU, gpu)))
		if (!has_rail(facts, gpu))
			return false;
	return facts->count[PP_GPU] > 0;
}

/* An hca beside the rails, its link, ports and pairs do not judge the node. */
static bool bystander(const struct judge *j, const struct pp_object *o)
{
	const struct pp_object *hca;

	if (!j->rails_known)
		return false;
	switch (o->kind) {
	case PP_LINK:
		hca = pp_object_find(j->facts, PP_HCA, o->id);
		return hca && !has_rail(j->facts, hca);
	case PP_HCA:
		return !has_rail(j->facts, o);
	case PP_PORT:
		return o->parent && !has_rail(j->facts, o->parent);
	case PP_PAIR:
		return !pp_fact_is(o, PP_F_PAIR_RAIL);
	default:
		return false;
	}
}

static int add(struct judge *j, const struct pp_finding *finding)
{
	struct pp_finding *grown;
	size_t cap = j->cap ? j->cap * 2 : 64;

	if (j->found.n == PP_FINDINGS_MAX)
		return -EFBIG;
	if (j->found.n == j->cap) {
		grown = reallocarray(j->found.list, cap, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		j->found.list = grown;
		j->cap = cap;
	}
	j->found.list[j->found.n++] = *finding;
	return 0;
}

/* A title says what is wrong; where the machine has the name of it, "{fact}" takes it in. */
static const char *what(struct judge *j, const struct pp_rule *rule, const struct pp_object *o)
{
	const char *open = strchr(rule->title, '{'), *close = open ? strchr(open, '}') : NULL;
	enum pp_fact_id id;
	const char *key;
	char text[256];

	if (!close)
		return rule->title;
	key = pp_arena_printf(&j->found.arena, "%.*s", (int)(close - open - 1), open + 1);
	if (!key || pp_fact_find(key, &id))
		return rule->title;
	o = pp_condition_holder(j->facts, o, pp_fact_table[id].kind);
	return pp_arena_printf(&j->found.arena, "%.*s%s%s", (int)(open - rule->title), rule->title,
			       pp_fact_text(pp_fact_get(o, id), text, sizeof(text)), close + 1);
}

static int apply(struct judge *j, const struct pp_rule *rule, const struct pp_object *o)
{
	struct pp_finding f = {.rule = rule, .of = o};

	f.state = pp_rule_test(rule, j->facts, o, /* ret_missing= */ NULL, 0, /* ret_n= */ NULL);
	if (f.state == PP_FALSE)
		return 0;
	f.verdict = rule->advice ? PP_PASS : f.state == PP_OPEN ? PP_UNKNOWN : rule->verdict;
	f.counts = !rule->advice && !bystander(j, o);
	f.what = what(j, rule, o);
	if (!f.what)
		return -ENOMEM;
	f.blocked = pp_policy_forbids(j->policy, rule->fix_id);
	if (f.counts)
		j->found.verdict = pp_verdict_worst(j->found.verdict, f.verdict);
	return add(j, &f);
}

/* Small is first: what counts before what does not, the worst verdict, fired before open. */
static unsigned int weight(const struct pp_finding *f)
{
	return (f->counts ? 0u : 8u) + 2u * (unsigned int)(PP_FAIL - f->verdict) +
	       (f->state == PP_OPEN ? 1u : 0u);
}

static int judge_all(struct judge *j, const struct pp_rules *rules)
{
	const struct pp_rule *rule;
	const struct pp_object *o;
	int r;

	for (size_t i = 0; (rule = pp_rules_at(rules, i)); i++) {
		if (rule->disabled) {
			j->found.disabled++;
			continue;
		}
		j->found.rules++;
		pp_objects_foreach (j->facts, o) {
			r = o->kind == rule->scope ? apply(j, rule, o) : 0;
			if (r)
				return r;
		}
	}
	return 0;
}

/* Stable, so that equal findings stay in the order of the rules and of the machine. */
static int sort(struct judge *j)
{
	struct pp_finding *sorted = reallocarray(NULL, j->found.n + 1, sizeof(*sorted));
	size_t k = 0;

	if (!sorted)
		return -ENOMEM;
	for (unsigned int w = 0; w < 16; w++)
		for (size_t i = 0; i < j->found.n; i++)
			if (weight(&j->found.list[i]) == w)
				sorted[k++] = j->found.list[i];
	free(j->found.list);
	j->found.list = sorted;
	return 0;
}

int pp_findings_judge(const struct pp_facts *facts, const struct pp_rules *rules,
		      const struct pp_policy *policy, struct pp_findings *ret)
{
	struct judge j = {.facts = facts, .policy = policy};
	int r;

	j.found.arena = PP_ARENA(TEXTS_LIMIT);
	j.rails_known = every_gpu_has_rail(facts);
	r = judge_all(&j, rules);
	if (!r)
		r = sort(&j);
	if (r) {
		pp_findings_done(&j.found);
		return r;
	}
	*ret = j.found;
	return 0;
}

void pp_findings_done(struct pp_findings *f)
{
	pp_arena_done(&f->arena);
	free(f->list);
	*f = (struct pp_findings){0};
}
