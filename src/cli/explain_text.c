/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/explain.h"

#include <inttypes.h>
#include <string.h>

#include "cli/explain_run.h"
#include "base/banned.h"

enum { INDENT = 12, WIDTH = 80, SHORT_TEXT = 20, OUTPUT_LINES = 8 };

static void row(struct pp_out *o, const char *label, const char *text)
{
	if (text)
		pp_out_para(o, INDENT, "   %-8s %s", label, text);
}

/* Addresses are for copying: one a line, and one that is too long begins further left, whole. */
static void sources(struct pp_out *o, const char *text)
{
	const char *label = "source";
	size_t n;

	for (text += strspn(text, " \n"); *text; text += strspn(text, " \n")) {
		n = strcspn(text, " \n");
		if (n > WIDTH - INDENT) {
			if (*label)
				pp_out_para(o, INDENT, "   %s", label);
			pp_out_para(o, 0, "%*s%.*s", n > WIDTH - 3 ? 0 : 3, "", (int)n, text);
		} else {
			pp_out_para(o, INDENT, "   %-8s %.*s", label, (int)n, text);
		}
		label = "";
		text += n;
	}
}

static void evidence(struct pp_out *o, const struct pp_explain_page *p,
		     const struct pp_seen_line *s)
{
	char label[32], times[40] = "", rank[24] = "";

	if (p->one_line)
		(void)snprintf(label, sizeof(label), "text");
	else
		(void)snprintf(label, sizeof(label), "line %" PRIu64, s->line);
	if (s->times > 1)
		(void)snprintf(times, sizeof(times), "  (%" PRIu64 " such lines)", s->times);
	if (s->stamp.rank >= 0)
		(void)snprintf(rank, sizeof(rank), "rank %d: ", s->stamp.rank);
	pp_out_para(o, INDENT, "   %-8s %s%.200s%s", label, rank, s->text, times);
}

static void condition(struct pp_out *o, const struct pp_explain_page *p,
		      const struct pp_condition *c, bool excludes, const struct pp_object *of)
{
	const struct pp_object *holder =
		pp_condition_holder(p->facts, of, pp_fact_table[c->fact].kind);
	const struct pp_fact *fact = pp_fact_get(holder, c->fact);
	enum pp_truth truth = pp_condition_test(c, p->facts, of, NULL);
	const char *says = truth == PP_OPEN		    ? "leaves it open"
			   : (truth == PP_TRUE) == excludes ? "speaks against it"
							    : "agrees";
	char value[256];

	if (!fact || !fact->known)
		pp_out_para(o, INDENT, "   %-8s %s: unknown, %s (%s)", "checked",
			    pp_fact_table[c->fact].key, says, pp_fact_table[c->fact].how);
	else
		pp_out_para(o, INDENT, "   %-8s %s: %s = %s, %s", "checked",
			    holder ? holder->id : "node", pp_fact_table[c->fact].key,
			    pp_fact_text(fact, value, sizeof(value)), says);
}

static void checks(struct pp_out *o, const struct pp_explain_page *p, const struct pp_diagnosis *d)
{
	const struct pp_rule *rule = &d->known->rule;
	char value[256];

	if (!p->checks || !p->facts || !d->of)
		return;
	for (unsigned int i = 0; i < rule->n_when; i++)
		condition(o, p, &rule->when[i], false, d->of);
	for (unsigned int i = 0; i < rule->n_unless; i++)
		condition(o, p, &rule->unless[i], true, d->of);
	for (unsigned int i = 0; i < rule->n_show; i++) {
		const struct pp_fact *fact = pp_fact_get(
			pp_condition_holder(p->facts, d->of, pp_fact_table[rule->show[i]].kind),
			rule->show[i]);

		pp_out_para(o, INDENT, "   %-8s %s = %s", "see also",
			    pp_fact_table[rule->show[i]].key,
			    fact ? pp_fact_text(fact, value, sizeof(value)) : "unknown");
	}
}

/* The releases in which it happens, and what the text or the node says of them. */
static void ranges(struct pp_out *o, const struct pp_explain_page *p, const struct pp_known *k)
{
	for (unsigned int i = 0; i < k->n_ranges; i++) {
		const struct pp_range *r = &k->ranges[i];
		const char *version = NULL, *from, *name = pp_component_name(r->component);

		from = pp_component_version(p->x->components, p->facts, r->component, &version);
		if (from)
			pp_out_para(o, INDENT, "   %-8s %s %s %s: the %s says %s",
				    i ? "" : "versions", name, pp_range_op(r), r->version, from,
				    version);
		else
			pp_out_para(o, INDENT, "   %-8s %s %s %s: not stated here",
				    i ? "" : "versions", name, pp_range_op(r), r->version);
	}
}

/* What the command that decides says here, or why it was not run. */
static void answer(struct pp_out *o, const struct pp_explain_page *p, const char *command)
{
	char *at, *end;
	struct pp_run run;

	run.why_not = p->no_run;
	if (!p->no_run)
		pp_run(command, &run);
	if (run.why_not) {
		pp_out_para(o, INDENT, "   %-8s not run: %s", "", run.why_not);
		return;
	}
	if (!*run.output)
		pp_out_para(o, INDENT, "   %-8s (it prints nothing)", "says");
	at = run.output;
	for (unsigned int n = 0; *at && n < OUTPUT_LINES; n++, at = end) {
		end = at + strcspn(at, "\n");
		if (*end)
			*end++ = '\0';
		pp_out_para(o, INDENT + 2, "   %-8s %.200s", n ? "" : "says", at);
	}
	if (*at || run.cut)
		pp_out_para(o, INDENT, "   %-8s ...", "");
}

static const char *word(const struct pp_diagnosis *d)
{
	if (d->known->kind == PP_KNOWN_HARMLESS)
		return "harmless";
	if (d->known->kind == PP_KNOWN_CONSEQUENCE || d->caused)
		return "consequence";
	return pp_certainty_name(d->certainty);
}

static void in_full(struct pp_out *o, const struct pp_explain_page *p, const struct pp_diagnosis *d,
		    size_t number)
{
	const struct pp_known *k = d->known;
	const char *blocked = pp_policy_forbids(p->policy, k->rule.fix_id);
	char head[512];

	(void)snprintf(head, sizeof(head), "%zu. %s: %s", number, word(d), k->rule.title);
	if (number > 1)
		pp_out_raw(o, "\n");
	pp_out_para(o, 3, "%s", head);
	for (unsigned int i = 0; i < d->n_evidence; i++)
		evidence(o, p, d->evidence[i]);
	if (d->caused)
		pp_out_para(o, INDENT, "   %-8s %s", "follows", d->caused->rule.title);
	row(o, "why", k->rule.cause);
	ranges(o, p, k);
	checks(o, p, d);
	row(o, "decide", k->rule.decide);
	pp_out_para(o, INDENT + 2, "   %-8s $ %s", "", k->rule.next);
	if (p->checks)
		answer(o, p, k->rule.next);
	row(o, "control", k->control);
	if (blocked)
		pp_out_para(o, INDENT, "   %-8s blocked by site policy: %s", "fix", blocked);
	else
		row(o, "fix", k->rule.fix);
	row(o, "undo", blocked || !k->rule.fix_id ? NULL : k->rule.reverse);
	row(o, "not", k->not_text);
	sources(o, k->rule.source);
	pp_out_para(o, INDENT, "   %-8s %s%s%s", "rule", k->rule.id,
		    strcmp(k->rule.problem, "-") != 0 ? ", " : "",
		    strcmp(k->rule.problem, "-") != 0 ? k->rule.problem : "");
}

static void in_short(struct pp_out *o, const struct pp_explain_page *p,
		     const struct pp_diagnosis *d, size_t number)
{
	char where[40] = "";

	if (!p->one_line)
		(void)snprintf(where, sizeof(where), ", line %" PRIu64, d->evidence[0]->line);
	pp_out_para(o, 5, "%2zu. %s: %s (%s%s)", number, word(d), d->known->rule.title,
		    d->known->rule.id, where);
}

static void unexplained(struct pp_out *o, const struct pp_explain_page *p)
{
	const struct pp_explanation *x = p->x;

	if (!x->unexplained_lines)
		return;
	pp_out_para(o, 0, "%s%" PRIu64 " %s like an error, and no rule knows %s:", x->n ? "\n" : "",
		    x->unexplained_lines, x->unexplained_lines == 1 ? "line reads" : "lines read",
		    x->unexplained_lines == 1 ? "it" : "them");
	for (unsigned int i = 0; i < x->n_unexplained && i < 5; i++)
		evidence(o, p, &x->unexplained[i]);
	if (x->unexplained_lines > 5)
		pp_out_para(o, 3, "   ...");
}

static void nothing(struct pp_out *o, const struct pp_explain_page *p)
{
	const struct pp_explanation *x = p->x;

	if (!x->n_formats) {
		pp_out_para(o, 0,
			    "Not known: no rule fits this text, and it is no log that is "
			    "understood here.");
		pp_out_para(o, 0,
			    "What helps: the first error of the first rank that failed, with "
			    "NCCL_DEBUG=INFO; the kernel log of that node (dmesg).");
		return;
	}
	pp_out_para(o, 0, "%s in this %s (%" PRIu64 " lines).",
		    x->unexplained_lines ? "Not known: no rule fits" : "No known problem was found",
		    x->formats[0]->rule.title, x->lines);
}

/* In a whole log, lines that only read like errors are worth one line each. */
static bool only_harmless(const struct pp_explanation *x)
{
	for (size_t i = 0; i < x->n; i++)
		if (x->list[i].known->kind != PP_KNOWN_HARMLESS)
			return false;
	return x->n_formats && x->lines > SHORT_TEXT;
}

void pp_explain_text(struct pp_out *o, const struct pp_explain_page *p)
{
	const struct pp_explanation *x = p->x;
	bool quiet = !x->n || only_harmless(x), more = false;
	size_t full = p->all ? x->n : quiet ? 0 : PP_EXPLAIN_FULL;

	if (quiet)
		nothing(o, p);
	for (size_t i = 0; i < x->n; i++) {
		if (i < full) {
			in_full(o, p, &x->list[i], i + 1);
			continue;
		}
		if (!more)
			pp_out_para(o, 0, "\n%s (--all shows each in full):",
				    quiet ? "Lines that only read like errors" : "Also");
		more = true;
		in_short(o, p, &x->list[i], i + 1);
	}
	unexplained(o, p);
	if (!quiet)
		pp_out_para(o, 0, "\nFacts: %s.", p->facts_name);
}
