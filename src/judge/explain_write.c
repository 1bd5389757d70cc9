/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members of the document "peerpath.explain/1".
 */
#include "judge/explain.h"

#include "base/banned.h"

static const char *truth_word(enum pp_truth t)
{
	static const char *const words[] = {
		[PP_FALSE] = "no", [PP_TRUE] = "yes", [PP_OPEN] = "open"};

	return words[t];
}

static void write_line(struct pp_json *j, const struct pp_seen_line *s)
{
	pp_json_object(j, NULL);
	pp_json_u64(j, "line", s->line);
	pp_json_u64(j, "times", s->times);
	pp_json_str(j, "text", s->text);
	if (s->stamp.rank >= 0)
		pp_json_i64(j, "rank", s->stamp.rank);
	pp_json_end_object(j);
}

static void write_condition(struct pp_json *j, const struct pp_condition *c, const char *role,
			    const struct pp_facts *facts, const struct pp_object *o)
{
	const struct pp_object *of = pp_condition_holder(facts, o, pp_fact_table[c->fact].kind);
	const struct pp_fact *fact = pp_fact_get(of, c->fact);
	char text[512];

	pp_json_object(j, NULL);
	pp_json_str(j, "condition", c->text);
	pp_json_str(j, "role", role);
	pp_json_str(j, "holds", truth_word(pp_condition_test(c, facts, o, NULL)));
	pp_json_str(j, "of", of ? of->id : NULL);
	pp_json_str(j, "value",
		    fact && fact->known ? pp_fact_text(fact, text, sizeof(text)) : NULL);
	if (!fact || !fact->known)
		pp_json_str(j, "how", pp_fact_table[c->fact].how);
	pp_json_end_object(j);
}

static void write_conditions(struct pp_json *j, const struct pp_diagnosis *d,
			     const struct pp_facts *facts)
{
	const struct pp_rule *rule = &d->known->rule;

	pp_json_array(j, "conditions");
	for (unsigned int i = 0; facts && d->of && i < rule->n_when; i++)
		write_condition(j, &rule->when[i], "requires", facts, d->of);
	for (unsigned int i = 0; facts && d->of && i < rule->n_unless; i++)
		write_condition(j, &rule->unless[i], "excludes", facts, d->of);
	pp_json_end_array(j);
}

static void write_ranges(struct pp_json *j, const struct pp_explanation *x,
			 const struct pp_known *k, const struct pp_facts *facts)
{
	pp_json_array(j, "versions");
	for (unsigned int i = 0; i < k->n_ranges; i++) {
		const struct pp_range *r = &k->ranges[i];
		const char *version = NULL, *from;

		from = pp_component_version(x->components, facts, r->component, &version);
		pp_json_object(j, NULL);
		pp_json_str(j, "component", pp_component_name(r->component));
		pp_json_str(j, "operator", pp_range_op(r));
		pp_json_str(j, "than", r->version);
		pp_json_str(j, "holds",
			    truth_word(pp_range_test(r, x->components, facts, x->here)));
		pp_json_str(j, "found", version);
		pp_json_str(j, "found_in", from);
		pp_json_end_object(j);
	}
	pp_json_end_array(j);
}

static void write_diagnosis(struct pp_json *j, const struct pp_explanation *x,
			    const struct pp_diagnosis *d, const struct pp_facts *facts,
			    const struct pp_policy *policy)
{
	const struct pp_known *k = d->known;

	pp_json_object(j, NULL);
	pp_json_str(j, "rule", k->rule.id);
	pp_json_str(j, "problem", k->rule.problem);
	pp_json_str(j, "kind", pp_known_kind_name(k->kind));
	pp_json_str(j, "certainty", pp_certainty_name(d->certainty));
	pp_json_str(j, "title", k->rule.title);
	pp_json_str(j, "cause", k->rule.cause);
	pp_json_str(j, "follows_from", d->caused ? d->caused->rule.id : NULL);
	pp_json_str(j, "facts", truth_word(d->facts));
	pp_json_str(j, "decide", k->rule.decide);
	pp_json_str(j, "check", k->rule.next);
	pp_json_str(j, "control", k->control);
	pp_json_str(j, "fix", k->rule.fix);
	pp_json_str(j, "fix_id", k->rule.fix_id);
	pp_json_str(j, "blocked", pp_policy_forbids(policy, k->rule.fix_id));
	pp_json_str(j, "reverse", k->rule.reverse);
	pp_json_str(j, "not", k->not_text);
	pp_json_str(j, "source", k->rule.source);
	pp_json_str(j, "reviewed", k->rule.reviewed);
	pp_json_array(j, "evidence");
	for (unsigned int i = 0; i < d->n_evidence; i++)
		write_line(j, d->evidence[i]);
	pp_json_end_array(j);
	write_conditions(j, d, facts);
	write_ranges(j, x, k, facts);
	pp_json_end_object(j);
}

void pp_explanation_write(struct pp_json *j, const struct pp_explanation *x,
			  const struct pp_facts *facts, const struct pp_policy *policy)
{
	pp_json_array(j, "diagnoses");
	for (size_t i = 0; i < x->n; i++)
		write_diagnosis(j, x, &x->list[i], facts, policy);
	pp_json_end_array(j);
	pp_json_array(j, "recognised");
	for (unsigned int i = 0; i < x->n_formats; i++)
		pp_json_str(j, NULL, x->formats[i]->rule.id);
	pp_json_end_array(j);
	pp_json_array(j, "unexplained");
	for (unsigned int i = 0; i < x->n_unexplained; i++)
		write_line(j, &x->unexplained[i]);
	pp_json_end_array(j);
	pp_json_u64(j, "unexplained_lines", x->unexplained_lines);
	pp_json_u64(j, "lines", x->lines);
	pp_json_u64(j, "bytes", x->bytes);
}
