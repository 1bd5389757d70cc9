/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which way the bytes of the job go in this state: what `nccl run` has found, with its controls.
 */
#include <errno.h>
#include <string.h>

#include "cli/canary.h"
#include "cli/input.h"
#include "judge/control.h"
#include "base/banned.h"

static const size_t DOCUMENT_MOST = (size_t)64 << 20;

/* Is this node one of those that the job ran on? Names may be short on one side. */
static bool is_here(const struct pp_nccl_run *r, const char *node)
{
	size_t len = strlen(node);

	for (uint32_t i = 0; i < r->n_nodes; i++)
		if (!strncmp(r->node[i].host, node, len) &&
		    (!r->node[i].host[len] || r->node[i].host[len] == '.'))
			return true;
	return false;
}

void pp_canary_path(struct pp_trial *t, const struct pp_nccl_run *run,
		    const struct pp_gate_library *gate)
{
	struct pp_trial_path *p = &t->path;

	p->path = pp_nccl_path_name(run->judgement.path);
	p->mechanism = gate->mechanism;
	p->claim = pp_nccl_claim_name(gate->claim);
	p->claim_mechanism = pp_nccl_claim_name(gate->mechanism_claim);
	p->why = *gate->raise ? pp_arena_str(&t->arena, gate->raise) : NULL;
	t->simulated |= gate->simulated;
}

static int take(struct pp_canarying *c, const char *file, const struct pp_nccl_runs *runs)
{
	const struct pp_nccl_run *run = runs->arm[PP_NCCL_ARM_UNCHANGED];
	const struct pp_nccl_run *const *arms = (const struct pp_nccl_run *const *)runs->arm;
	struct pp_gate_library gate;
	struct pp_error err = {0};

	if (!run)
		return pp_complain(c->args, PP_EXIT_INPUT,
				   "%s: it lacks the user's own environment (arm unchanged)", file);
	if (!is_here(run, c->trial.node[0].id))
		return pp_complain(c->args, PP_EXIT_INPUT,
				   "%s: the job did not run on %s: it says nothing of this node",
				   file, c->trial.node[0].id);
	if (pp_gate_library_judge(arms, &gate, &err))
		return pp_complain(c->args, PP_EXIT_INPUT, "%s: %s", file, err.text);
	pp_canary_path(&c->trial, run, &gate);
	return 0;
}

int pp_canary_evidence(struct pp_canarying *c)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(DOCUMENT_MOST);
	const char *file = pp_args_get(c->args, "evidence");
	struct pp_nccl_runs runs = {{NULL}};
	struct pp_error err = {0};
	int r, code;

	if (!file)
		return 0;
	r = pp_input_read(file, &text, &err);
	if (r)
		return pp_complain(c->args, PP_EXIT_INPUT, "%s", err.text);
	r = pp_nccl_runs_read(pp_buf_text(&text), text.len, &runs, &err);
	if (r)
		return pp_complain(c->args, r == -ENOMEM ? PP_EXIT_INTERNAL : PP_EXIT_INPUT,
				   "%s: %s", pp_input_name(file), err.text);
	code = take(c, pp_input_name(file), &runs);
	pp_nccl_runs_done(&runs);
	return code;
}
