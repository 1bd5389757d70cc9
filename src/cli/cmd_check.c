/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerpath check: gate 1, read-only unless --probe. Rules are applied to the facts; the verdict is
 * that of gates 0 and 1, so that check and prove never disagree.
 */
#include "cli/check.h"

#include <string.h>

#include "judge/prerequisite.h"
#include "base/banned.h"

static void needs_json(struct pp_check *c)
{
	static const struct pp_out_column columns[] = {{"name", NULL, false},
						       {"fact", NULL, false},
						       {"state", NULL, false},
						       {"value", NULL, false},
						       {"how", NULL, false}};
	static const char *const words[] = {
		[PP_FALSE] = "no", [PP_TRUE] = "yes", [PP_OPEN] = "unknown"};

	pp_out_table(c->s.out, "prerequisites", columns, PP_ARRAY_LEN(columns));
	for (unsigned int i = 0; i < c->needs->n; i++) {
		const struct pp_prerequisite *p = &c->needs->list[i];

		pp_out_cell(c->s.out, p->name);
		pp_out_cell(c->s.out, p->fact);
		pp_out_cell(c->s.out, words[p->state]);
		pp_out_cell(c->s.out, p->value);
		pp_out_cell(c->s.out, p->how);
	}
	pp_out_table_end(c->s.out);
}

static void write_json(struct pp_check *c)
{
	const struct pp_rule *rule;
	struct pp_json *j = pp_out_json(c->s.out);

	needs_json(c);
	pp_findings_write(j, "findings", &c->s.node->facts, &c->proof.findings);
	pp_json_u64(j, "rules", c->proof.findings.rules);
	pp_json_array(j, "rules_disabled");
	for (size_t i = 0; (rule = pp_rules_at(c->proof.rules, i)); i++)
		if (rule->disabled)
			pp_json_str(j, NULL, rule->id);
	pp_json_end_array(j);
	pp_json_str(j, "policy", pp_policy_name(c->proof.policy));
}

/* What already runs is no next step. */
static const char *next_of(const struct pp_check *c, const struct pp_gate_row *row)
{
	bool details = pp_args_has(c->s.args, "details");

	if (!row->next ||
	    strcmp(row->next, details ? "peerpath check --details" : "peerpath check") != 0)
		return row->next;
	return details ? "peerpath identity" : "peerpath check --details";
}

static void write_all(struct pp_check *c)
{
	const struct pp_gate_row *row = &c->proof.gates.row[PP_GATE_PREREQUISITES];
	struct pp_out *o = c->s.out;

	pp_out_document(o, "peerpath.check/1");
	pp_out_str(o, "source", NULL, pp_source_name(c->s.src));
	if (c->probe) {
		pp_out_bool(o, "busy_ok", NULL, pp_args_has(c->s.args, "busy-ok"));
		pp_check_probe_out(o, c->probe);
	}
	if (pp_out_is_json(o))
		write_json(c);
	else
		pp_check_text(c, pp_args_has(c->s.args, "details"));
	if (c->proof.gates.row[PP_GATE_IDENTITY].verdict > row->verdict)
		row = &c->proof.gates.row[PP_GATE_IDENTITY];
	pp_out_heading(o, "Verdict");
	pp_out_verdict(o, "verdict", "verdict", c->verdict);
	pp_proof_stuck(o, &c->s);
	pp_out_str(o, "claim", "claim", row->claim);
	pp_out_str(o, "raise", row->raise ? "to raise" : NULL, row->raise);
	pp_out_str(o, "next", row->next ? "next" : NULL, next_of(c, row));
	pp_proof_rules(o, &c->proof);
	if (pp_node_simulated(c->s.node))
		pp_out_para(
			o, 2,
			"  simulated: %s is peerpath's software device. The chain is exercised; "
			"nothing is proven of hardware.",
			pp_node_simulated(c->s.node)->name);
	pp_out_bool(o, "simulated", NULL, pp_node_simulated(c->s.node));
}

static int judge(struct pp_check *c, struct pp_prerequisites *needs)
{
	int code = 0;

	if (pp_args_has(c->s.args, "probe"))
		code = pp_check_probe(c);
	if (!code)
		code = pp_proof_judge(&c->s, PP_GATE_PREREQUISITES, &c->proof);
	if (code)
		return code;
	if (pp_prerequisites_examine(&c->s.node->facts, &c->s.node->arena, needs))
		return pp_complain(c->s.args, PP_EXIT_INTERNAL, "out of memory");
	c->needs = needs;
	c->verdict = c->proof.gates.verdict;
	return 0;
}

int pp_cmd_check(const struct pp_args *args)
{
	struct pp_prerequisites needs;
	struct pp_check c = {0};
	int code;

	if (pp_args_has(args, "busy-ok") && !pp_args_has(args, "probe"))
		return pp_complain(args, PP_EXIT_USAGE, "--busy-ok goes with --probe");
	code = pp_session_open(args, false, &c.s);
	if (!code)
		code = judge(&c, &needs);
	if (!code) {
		write_all(&c);
		code = pp_exit_of(args, c.verdict);
	}
	code = pp_session_close(&c.s, code);
	pp_probe_free(c.probe);
	pp_proof_done(&c.proof);
	return code;
}
