/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page of peerpath check: what is needed, what is wrong, what is not known, what is worth
 * knowing. One rule that fires on many objects is one entry.
 */
#include "cli/check.h"

#include <stdio.h>
#include <string.h>

#include "judge/prerequisite.h"
#include "base/banned.h"

enum { LINE = 1024 };

static const struct pp_out_column finding_columns[] = {
	{NULL, "VERDICT", false}, {NULL, "WHERE", false}, {NULL, "WHAT, WHY, NEXT", true}};

static void needs_table(const struct pp_check *c)
{
	static const struct pp_out_column columns[] = {
		{NULL, "NEEDED", false}, {NULL, "", false}, {NULL, "VALUE", true}};
	static const char *const words[] = {
		[PP_FALSE] = "no", [PP_TRUE] = "yes", [PP_OPEN] = "unknown"};

	pp_out_heading(c->s.out, "Prerequisites");
	pp_out_table(c->s.out, NULL, columns, PP_ARRAY_LEN(columns));
	for (unsigned int i = 0; i < c->needs->n; i++) {
		const struct pp_prerequisite *p = &c->needs->list[i];
		bool told = !strncmp(p->value, "unknown: ", 9);

		pp_out_cell(c->s.out, p->name);
		pp_out_cell(c->s.out, words[p->state]);
		pp_out_cell(c->s.out, told ? p->value + 9 : p->value);
	}
	pp_out_table_end(c->s.out);
}

/* Findings of one rule in one state stand together: the number of them from @i on. */
static size_t group_size(const struct pp_findings *f, size_t i)
{
	size_t n = 1;

	while (i + n < f->n && f->list[i + n].rule == f->list[i].rule &&
	       f->list[i + n].state == f->list[i].state &&
	       f->list[i + n].counts == f->list[i].counts &&
	       !strcmp(f->list[i + n].what, f->list[i].what))
		n++;
	return n;
}

static void where_cell(struct pp_out *o, const struct pp_finding *f, size_t n)
{
	if (n > 1)
		pp_out_cellf(o, "%s +%zu", f->of->id, n - 1);
	else
		pp_out_cell(o, f->of->id);
}

static void line_cells(struct pp_out *o, const char *what, const char *text)
{
	pp_out_cell(o, " ");
	pp_out_cell(o, " ");
	pp_out_cellf(o, "%s: %s", what, text);
}

/* "node.hcas is 0; gpu.name is NVIDIA H200" */
static const char *why(const struct pp_check *c, const struct pp_finding *f, char line[LINE])
{
	struct pp_seen seen[PP_RULE_FACTS];
	unsigned int n = pp_finding_facts(&c->s.node->facts, f, seen);
	struct pp_buf PP_AUTO_BUF text = PP_BUF(LINE * 4);
	char value[256];

	for (unsigned int i = 0; i < n; i++) {
		if (seen[i].id == PP_F_PAIR_RAIL || !seen[i].fact || !seen[i].fact->known)
			continue;
		pp_buf_printf(&text, "%s%s is %s", text.len ? "; " : "",
			      pp_fact_table[seen[i].id].key,
			      pp_fact_text(seen[i].fact, value, sizeof(value)));
	}
	(void)snprintf(line, LINE, "%s", pp_buf_text(&text));
	return line;
}

static void finding_rows(const struct pp_check *c, const struct pp_finding *f, size_t n,
			 bool verdict)
{
	struct pp_out *o = c->s.out;
	char line[LINE];

	if (verdict)
		pp_out_cell_verdict(o, f->verdict);
	else
		pp_out_cell(o, f->rule->advice ? "note" : "beside");
	where_cell(o, f, n);
	pp_out_cell(o, f->what);
	if (*why(c, f, line))
		line_cells(o, "why", line);
	if (f->blocked)
		line_cells(o, "fix blocked by site policy", f->blocked);
	line_cells(o, "next", f->rule->next);
}

enum part { JUDGED, NOTES, BESIDE };

static enum part part_of(const struct pp_finding *f)
{
	return f->rule->advice ? NOTES : f->counts ? JUDGED : BESIDE;
}

static void findings_table(const struct pp_check *c, enum part part, const char *title)
{
	const struct pp_findings *f = &c->proof.findings;
	bool open = false;
	size_t n;

	for (size_t i = 0; i < f->n; i += n) {
		n = group_size(f, i);
		if (f->list[i].state != PP_TRUE || part_of(&f->list[i]) != part)
			continue;
		if (!open) {
			pp_out_heading(c->s.out, title);
			pp_out_table(c->s.out, NULL, finding_columns,
				     PP_ARRAY_LEN(finding_columns));
			open = true;
		}
		finding_rows(c, &f->list[i], n, part == JUDGED);
	}
	if (open)
		pp_out_table_end(c->s.out);
	if (open || part != JUDGED)
		return;
	pp_out_heading(c->s.out, title);
	pp_out_para(c->s.out, 2, "  No rule fired (%zu rules on this node).", f->rules);
}

/* A fact that leaves rules open: how many, and on how many objects it is missing. */
struct open_fact {
	const struct pp_object *of;
	const char *first_rule;
	unsigned int rules, objects;
	const struct pp_rule *last_rule;
	const struct pp_object *last_of;
};

static void count_open(const struct pp_check *c, struct open_fact *open)
{
	const struct pp_findings *f = &c->proof.findings;
	enum pp_fact_id missing[PP_RULE_CONDITIONS];
	unsigned int n;

	for (size_t i = 0; i < f->n; i++) {
		const struct pp_finding *one = &f->list[i];

		if (one->state != PP_OPEN || !one->counts)
			continue;
		(void)pp_rule_test(one->rule, &c->s.node->facts, one->of, missing,
				   PP_RULE_CONDITIONS, &n);
		for (unsigned int k = 0; k < n; k++) {
			struct open_fact *o = &open[missing[k]];
			const struct pp_object *of = pp_condition_holder(
				&c->s.node->facts, one->of, pp_fact_table[missing[k]].kind);

			if (!o->of) {
				o->of = of;
				o->first_rule = one->rule->id;
			}
			o->rules += o->last_rule != one->rule;
			o->objects += o->rules == 1 && o->last_of != of;
			o->last_rule = one->rule;
			o->last_of = of;
		}
	}
}

static void open_rows(struct pp_out *o, enum pp_fact_id id, const struct open_fact *open)
{
	const struct pp_fact *fact = pp_fact_get(open->of, id);
	const char *reason = fact && fact->why ? fact->why : "not observed";
	char rules[128];

	pp_out_cell_verdict(o, PP_UNKNOWN);
	if (open->objects > 1)
		pp_out_cellf(o, "%s +%u", open->of->id, open->objects - 1);
	else
		pp_out_cell(o, open->of->id);
	pp_out_cellf(o, "%s: %s", pp_fact_table[id].key, reason);
	line_cells(o, "how", pp_fact_table[id].how);
	if (open->rules == 1)
		return line_cells(o, "rule left open", open->first_rule);
	(void)snprintf(rules, sizeof(rules), "%s and %u more", open->first_rule, open->rules - 1);
	line_cells(o, "rules left open", rules);
}

static void open_table(const struct pp_check *c)
{
	struct open_fact open[PP_FACTS] = {0};
	bool any = false;

	count_open(c, open);
	for (unsigned int id = 0; id < PP_FACTS; id++) {
		if (!open[id].rules)
			continue;
		if (!any) {
			pp_out_heading(c->s.out, "Could not be judged");
			pp_out_table(c->s.out, NULL, finding_columns,
				     PP_ARRAY_LEN(finding_columns));
			any = true;
		}
		open_rows(c->s.out, (enum pp_fact_id)id, &open[id]);
	}
	if (any)
		pp_out_table_end(c->s.out);
}

static void detail(struct pp_out *o, const char *what, const char *text)
{
	if (text)
		pp_out_para(o, 11, "  %-9s%s", what, text);
}

static void details_of(const struct pp_check *c, const struct pp_finding *f, size_t n)
{
	const struct pp_rule *rule = f->rule;
	struct pp_out *o = c->s.out;
	char head[256];

	(void)snprintf(head, sizeof(head), "%s (%s)", rule->id, rule->problem);
	pp_out_heading(o, head);
	detail(o, "what", f->what);
	for (size_t i = 0; i < n && i < 8; i++)
		detail(o, i ? "" : "where", f[i].of->id);
	detail(o, "cause", rule->cause);
	detail(o, "decide", rule->decide);
	if (f->blocked)
		detail(o, "blocked", f->blocked);
	else
		detail(o, "fix", rule->fix);
	detail(o, "fix-id", rule->fix_id);
	detail(o, "reverse", f->blocked ? NULL : rule->reverse);
	detail(o, "next", rule->next);
	detail(o, "source", rule->source);
	detail(o, "reviewed", rule->reviewed);
}

void pp_check_text(const struct pp_check *c, bool details)
{
	const struct pp_findings *f = &c->proof.findings;
	const struct pp_rule *rule;
	size_t n;

	needs_table(c);
	findings_table(c, JUDGED, "Findings");
	open_table(c);
	findings_table(c, BESIDE, "Of hcas beside the rails (judges nothing)");
	findings_table(c, NOTES, "Worth knowing (judges nothing)");
	for (size_t i = 0; details && i < f->n; i += n) {
		n = group_size(f, i);
		if (f->list[i].state == PP_TRUE)
			details_of(c, &f->list[i], n);
	}
	for (size_t i = 0; f->disabled && (rule = pp_rules_at(c->proof.rules, i)); i++)
		if (rule->disabled)
			pp_out_para(c->s.out, 2, "  Rule %s is disabled by this site.", rule->id);
}
