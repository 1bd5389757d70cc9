/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A finding with the facts it rests on, as a record for programs.
 */
#include <string.h>

#include "judge/finding.h"
#include "base/banned.h"

static void see(const struct pp_facts *facts, const struct pp_finding *f, enum pp_fact_id id,
		struct pp_seen *list, unsigned int *n)
{
	for (unsigned int i = 0; i < *n; i++)
		if (list[i].id == id)
			return;
	list[*n].id = id;
	list[*n].of = pp_condition_holder(facts, f->of, pp_fact_table[id].kind);
	list[*n].fact = pp_fact_get(list[*n].of, id);
	*n += 1;
}

unsigned int pp_finding_facts(const struct pp_facts *facts, const struct pp_finding *f,
			      struct pp_seen ret[PP_RULE_FACTS])
{
	const struct pp_rule *rule = f->rule;
	unsigned int n = 0;

	for (unsigned int i = 0; i < rule->n_when + rule->n_unless; i++) {
		const struct pp_condition *c =
			i < rule->n_when ? &rule->when[i] : &rule->unless[i - rule->n_when];

		see(facts, f, c->fact, ret, &n);
		if (c->other >= 0)
			see(facts, f, (enum pp_fact_id)c->other, ret, &n);
	}
	for (unsigned int i = 0; i < rule->n_show; i++)
		see(facts, f, rule->show[i], ret, &n);
	return n;
}

static void write_words(struct pp_json *j, const char *key, const char *text)
{
	char word[512];
	size_t len;

	pp_json_array(j, key);
	for (; *text; text += len, text += strspn(text, " ")) {
		len = strcspn(text, " ");
		if (len >= sizeof(word))
			continue;
		memcpy(word, text, len);
		word[len] = '\0';
		pp_json_str(j, NULL, word);
	}
	pp_json_end_array(j);
}

static void write_facts(struct pp_json *j, const struct pp_facts *facts, const struct pp_finding *f)
{
	struct pp_seen seen[PP_RULE_FACTS];
	unsigned int n = pp_finding_facts(facts, f, seen);

	pp_json_array(j, "facts");
	for (unsigned int i = 0; i < n; i++) {
		if (seen[i].fact) {
			pp_fact_write(j, seen[i].of, seen[i].fact, facts->observed);
			continue;
		}
		pp_json_object(j, NULL);
		pp_json_str(j, "fact", pp_fact_table[seen[i].id].key);
		pp_json_str(j, "of", seen[i].of ? seen[i].of->id : NULL);
		pp_json_null(j, "value");
		pp_json_str(j, "unknown", "not observed");
		pp_json_str(j, "how", pp_fact_table[seen[i].id].how);
		pp_json_end_object(j);
	}
	pp_json_end_array(j);
}

static void write_one(struct pp_json *j, const struct pp_facts *facts, const struct pp_finding *f)
{
	const struct pp_rule *rule = f->rule;

	pp_json_object(j, NULL);
	pp_json_str(j, "rule", rule->id);
	write_words(j, "problem", rule->problem);
	pp_json_str(j, "title", f->what);
	pp_json_str(j, "state", f->state == PP_OPEN ? "open" : "fired");
	pp_json_str(j, "verdict", pp_verdict_name(f->verdict));
	pp_json_bool(j, "advice", rule->advice);
	pp_json_bool(j, "counts", f->counts);
	pp_json_object(j, "of");
	pp_json_str(j, "kind", pp_kind_name(f->of->kind));
	pp_json_str(j, "id", f->of->id);
	pp_json_str(j, "name", f->of->name);
	pp_json_end_object(j);
	write_facts(j, facts, f);
	pp_json_str(j, "cause", rule->cause);
	pp_json_str(j, "decide", rule->decide);
	pp_json_str(j, "fix", rule->fix);
	pp_json_str(j, "fix_id", rule->fix_id);
	pp_json_str(j, "blocked", f->blocked);
	pp_json_str(j, "reverse", rule->reverse);
	pp_json_str(j, "next", rule->next);
	write_words(j, "source", rule->source);
	pp_json_str(j, "reviewed", rule->reviewed);
	pp_json_str(j, "rule_file", rule->file);
	pp_json_u64(j, "rule_line", rule->line);
	pp_json_end_object(j);
}

void pp_findings_write(struct pp_json *j, const char *key, const struct pp_facts *facts,
		       const struct pp_findings *f)
{
	pp_json_array(j, key);
	for (size_t i = 0; i < f->n; i++)
		write_one(j, facts, &f->list[i]);
	pp_json_end_array(j);
}
