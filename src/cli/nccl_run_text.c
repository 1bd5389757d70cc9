/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/nccl_run_text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "base/banned.h"

enum { TEXT_WIDTH = 80 };

static void number(struct pp_out *o, int digits, double value, bool known)
{
	char text[32];

	if (!known || isnan(value)) {
		pp_out_cell(o, NULL);
		return;
	}
	(void)snprintf(text, sizeof(text), "%.*f", digits, value);
	pp_out_cell(o, text);
}

static void arm_row(struct pp_out *o, const struct pp_nccl_run *r, const struct pp_gate_library *g)
{
	const struct pp_nccl_run_speed *s = &r->speed;
	bool judged = g && r->arm >= PP_NCCL_ARM_A && r->arm <= PP_NCCL_ARM_C;
	uint64_t regions;

	pp_out_cell(o, pp_nccl_arm_name(r->arm));
	pp_out_cell(o, pp_nccl_path_name(r->judgement.path));
	pp_out_cell(o, pp_control_mechanism(r));
	if (pp_control_gpu_regions(r, &regions))
		pp_out_cellf(o, "%" PRIu64, regions);
	else
		pp_out_cell(o, NULL);
	number(o, 1, pp_control_sent_gb(r), true);
	number(o, 1, s->large_busbw_gbps, s->known && s->large_busbw_gbps > 0);
	number(o, 1, s->small_us, s->known && s->small_us > 0);
	number(o, 3, pp_control_cpu_per_gb(r), true);
	pp_out_cell(o, judged ? pp_control_state_name(g->control[r->arm].state) : NULL);
}

static void arms(struct pp_out *o, const struct pp_nccl_run *const run[PP_NCCL_ARMS],
		 const struct pp_gate_library *g)
{
	static const struct pp_out_column columns[] = {
		{NULL, "ARM", false}, {NULL, "PATH", false},   {NULL, "BY", true},
		{NULL, "MRS", false}, {NULL, "HCA GB", false}, {NULL, "GB/S", false},
		{NULL, "US", false},  {NULL, "CPU/GB", true},  {NULL, "CONTROL", true}};

	pp_out_table(o, NULL, columns, PP_ARRAY_LEN(columns));
	for (unsigned int i = 0; i < PP_NCCL_ARMS; i++)
		if (run[i])
			arm_row(o, run[i], g);
	pp_out_table_end(o);
}

/* What sizes the columns are of; and how each command ended that did not end well. */
static void below(struct pp_out *o, const struct pp_nccl_run *const run[PP_NCCL_ARMS])
{
	const struct pp_nccl_run_speed *s = NULL;

	for (unsigned int i = 0; i < PP_NCCL_ARMS && !s; i++)
		if (run[i] && run[i]->speed.known)
			s = &run[i]->speed;
	if (s)
		pp_out_para(o, 2,
			    "GB/s: bus bandwidth of %s at %" PRIu64 " bytes; us: time of %" PRIu64
			    " bytes.",
			    *s->collective ? s->collective : "the collective", s->large_bytes,
			    s->small_bytes);
	for (unsigned int i = 0; i < PP_NCCL_ARMS; i++) {
		for (uint32_t k = 0; run[i] && k < run[i]->n_nodes; k++)
			if (run[i]->node[k].died[0])
				pp_out_para(o, 2, "%s: %s: the command %s.",
					    pp_nccl_arm_name(run[i]->arm), run[i]->node[k].id,
					    run[i]->node[k].died);
		if (run[i] && run[i]->missing)
			pp_out_para(o, 2, "%s: %" PRIu32 " nodes gave no report: %s",
				    pp_nccl_arm_name(run[i]->arm), run[i]->missing,
				    run[i]->missing_why);
		if (run[i] && run[i]->root_error[0])
			pp_out_para(o, 2, "%s: %s", pp_nccl_arm_name(run[i]->arm),
				    run[i]->root_error);
	}
}

/* Every override with the observation that it answers, and its reverse. */
static void overrides(struct pp_out *o, const struct pp_nccl_run *const run[PP_NCCL_ARMS])
{
	bool begun = false;

	for (unsigned int i = 0; i < PP_NCCL_ARMS; i++)
		for (uint32_t k = 0; run[i] && k < run[i]->n_settings; k++) {
			const struct pp_nccl_run_setting *s = &run[i]->setting[k];

			if (s->from != PP_NCCL_FROM_ARM)
				continue;
			if (!begun)
				pp_out_heading(o, "What the arms set");
			begun = true;
			pp_out_para(o, 2, "%s: %s=%s: %s; without it: %s",
				    pp_nccl_arm_name(run[i]->arm), s->name, s->value,
				    *s->why ? s->why : "it makes this arm",
				    *s->undo ? s->undo : "do not set it");
		}
}

static void controls(struct pp_out *o, const struct pp_gate_library *g)
{
	pp_out_heading(o, "Controls");
	for (unsigned int i = PP_NCCL_ARM_A; i <= PP_NCCL_ARM_C; i++) {
		const struct pp_control *c = &g->control[i];

		pp_out_para(o, 2, "%s, %s: %s: %s", pp_nccl_arm_name(c->arm),
			    pp_nccl_arm_title(c->arm), pp_control_state_name(c->state), c->says);
		for (unsigned int k = 0; k < c->n_checks; k++)
			if (c->check[k].state != PP_CONTROL_AS_EXPECTED)
				pp_out_para(o, 6, "    %s: expected: %s; seen: %s",
					    c->check[k].what, c->check[k].expected,
					    c->check[k].seen);
	}
}

static void findings(struct pp_out *o, const struct pp_gate_library *g)
{
	if (g->n_findings)
		pp_out_heading(o, "Findings");
	for (unsigned int i = 0; i < g->n_findings; i++) {
		const struct pp_control_finding *f = &g->finding[i];

		pp_out_para(o, 2, "%s: %s", f->id, f->text);
		pp_out_para(o, 6, "    fix: %s; reverse: %s", f->fix, f->undo);
	}
}

static void conclusion(struct pp_out *o, const struct pp_gate_library *g)
{
	pp_out_heading(o, "Gate 3");
	pp_out_str(o, NULL, "verdict", pp_gate_library_word(g));
	pp_out_str(o, NULL, "claim: GDR", pp_nccl_claim_name(g->claim));
	pp_out_str(o, NULL, "claim: mechanism", pp_nccl_claim_name(g->mechanism_claim));
	pp_out_str(o, NULL, "mechanism", g->mechanism);
	pp_out_para(o, 2, "%s.", g->sentence);
	pp_out_para(o, 2, "Evidence: %s.", g->evidence);
	if (*g->raise)
		pp_out_para(o, 2, "To raise it: %s.", g->raise);
	if (*g->next)
		pp_out_para(o, 2, "Next: %s", g->next);
}

void pp_nccl_run_text(struct pp_out *o, const struct pp_nccl_run *const run[PP_NCCL_ARMS],
		      const struct pp_gate_library *gate, const char *why)
{
	if (pp_out_is_json(o)) {
		if (gate)
			pp_gate_library_write(pp_out_json(o), "gate", gate);
		else
			pp_out_str(o, "not_judged", NULL, why);
		return;
	}
	/* made to be pasted into a ticket */
	pp_out_limit_width(o, TEXT_WIDTH);
	arms(o, run, gate);
	below(o, run);
	overrides(o, run);
	if (!gate) {
		pp_out_para(o, 0, "Gate 3 is not judged: %s.", why);
		return;
	}
	controls(o, gate);
	findings(o, gate);
	conclusion(o, gate);
}
