/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gate 3 for programs.
 */
#include "judge/control.h"

#include <math.h>

#include "base/banned.h"

const char *pp_gate_library_word(const struct pp_gate_library *g)
{
	if (g->simulated)
		return g->passed ? "simulation: passed" : "simulation: failed";
	return pp_verdict_name(g->verdict);
}

static const char *text_or_null(const char *text)
{
	return *text ? text : NULL;
}

static void write_control(struct pp_json *j, const struct pp_control *c)
{
	pp_json_object(j, NULL);
	pp_json_str(j, "arm", pp_nccl_arm_name(c->arm));
	pp_json_str(j, "title", pp_nccl_arm_title(c->arm));
	pp_json_str(j, "state", pp_control_state_name(c->state));
	pp_json_str(j, "says", c->says);
	pp_json_array(j, "checks");
	for (unsigned int i = 0; i < c->n_checks; i++) {
		const struct pp_control_check *k = &c->check[i];

		pp_json_object(j, NULL);
		pp_json_str(j, "what", k->what);
		pp_json_str(j, "expected", k->expected);
		pp_json_str(j, "seen", k->seen);
		pp_json_str(j, "state", pp_control_state_name(k->state));
		pp_json_end_object(j);
	}
	pp_json_end_array(j);
	pp_json_end_object(j);
}

static void write_findings(struct pp_json *j, const struct pp_gate_library *g)
{
	pp_json_array(j, "findings");
	for (unsigned int i = 0; i < g->n_findings; i++) {
		const struct pp_control_finding *f = &g->finding[i];

		pp_json_object(j, NULL);
		pp_json_str(j, "id", f->id);
		pp_json_str(j, "verdict", pp_verdict_name(f->verdict));
		pp_json_str(j, "text", f->text);
		pp_json_str(j, "fix", f->fix);
		pp_json_str(j, "reverse", f->undo);
		pp_json_end_object(j);
	}
	pp_json_end_array(j);
}

/* Against control A. */
static void write_gain(struct pp_json *j, const struct pp_control_gain *g)
{
	pp_json_object(j, "gain");
	pp_json_double(j, "bandwidth_ratio", g->bandwidth_known ? g->bandwidth_ratio : NAN);
	pp_json_double(j, "latency_ratio", g->latency_known ? g->latency_ratio : NAN);
	pp_json_double(j, "cpu_s_per_gb", g->cpu_known ? g->cpu_per_gb : NAN);
	pp_json_double(j, "cpu_s_per_gb_without", g->cpu_known ? g->cpu_per_gb_a : NAN);
	pp_json_end_object(j);
}

void pp_gate_library_write(struct pp_json *j, const char *key, const struct pp_gate_library *g)
{
	pp_json_object(j, key);
	pp_json_str(j, "verdict", pp_verdict_name(g->verdict));
	pp_json_bool(j, "simulated", g->simulated);
	if (g->simulated)
		pp_json_str(j, "simulation", g->passed ? "passed" : "failed");
	pp_json_str(j, "claim_gdr", pp_nccl_claim_name(g->claim));
	pp_json_str(j, "claim_mechanism", pp_nccl_claim_name(g->mechanism_claim));
	pp_json_str(j, "mechanism", g->mechanism);
	pp_json_str(j, "sentence", g->sentence);
	pp_json_str(j, "evidence", g->evidence);
	pp_json_str(j, "raise", text_or_null(g->raise));
	pp_json_str(j, "next", text_or_null(g->next));
	pp_json_array(j, "controls");
	for (unsigned int i = PP_NCCL_ARM_A; i <= PP_NCCL_ARM_C; i++)
		write_control(j, &g->control[i]);
	pp_json_end_array(j);
	write_findings(j, g);
	write_gain(j, &g->gain);
	pp_json_end_object(j);
}
