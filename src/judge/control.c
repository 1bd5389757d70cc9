/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge/control_parts.h"
#include "base/banned.h"

const char *pp_control_state_name(enum pp_control_state s)
{
	static const char *const names[] = {
		[PP_CONTROL_NOT_RUN] = "not run",    [PP_CONTROL_AS_EXPECTED] = "expected",
		[PP_CONTROL_OTHER] = "other",	     [PP_CONTROL_UNKNOWN] = "unknown",
		[PP_CONTROL_NOT_APPLICABLE] = "n/a",
	};

	return names[s];
}

static bool has_node(const struct pp_nccl_run *r, const char *id)
{
	for (uint32_t i = 0; i < r->n_nodes; i++)
		if (!strcmp(r->node[i].id, id))
			return true;
	return false;
}

/* Every node of the one is one of the other, unless some of the other gave no report. */
static const char *stranger(const struct pp_nccl_run *of, const struct pp_nccl_run *other)
{
	for (uint32_t i = 0; !other->missing && i < of->n_nodes; i++)
		if (!has_node(other, of->node[i].id))
			return of->node[i].id;
	return NULL;
}

static int same_job(const struct pp_nccl_run *a, const struct pp_nccl_run *b, struct pp_error *err)
{
	const char *arm = pp_nccl_arm_name(b->arm), *node = stranger(a, b);

	node = node ? node : stranger(b, a);
	if (strcmp(a->command, b->command) != 0)
		return pp_error_set(err, -EXDEV,
				    "arm %s ran another command: '%.100s', the unchanged one "
				    "'%.100s'",
				    arm, b->command, a->command);
	if (node)
		return pp_error_set(err, -EXDEV,
				    "arm %s did not run on the same nodes: %s is one of one run "
				    "only",
				    arm, node);
	if (*a->library && *b->library && strcmp(a->library, b->library) != 0)
		return pp_error_set(err, -EXDEV,
				    "arm %s used another NCCL: %s, the unchanged one "
				    "%s",
				    arm, b->library, a->library);
	if (*a->library_version && *b->library_version &&
	    strcmp(a->library_version, b->library_version) != 0)
		return pp_error_set(err, -EXDEV, "arm %s used NCCL %s, the unchanged one %s", arm,
				    b->library_version, a->library_version);
	return 0;
}

static bool is_simulated(const struct pp_nccl_run *r)
{
	bool any = r->simulated || r->judgement.simulated;

	for (uint32_t i = 0; i < r->n_nodes; i++) {
		const struct pp_traffic *t = &r->node[i].traffic;

		any |= r->node[i].simulated;
		for (unsigned int k = 0; k < t->n_ports; k++)
			any |= t->port[k].simulated;
	}
	return any;
}

static void gain(const struct pp_nccl_run *whole, const struct pp_nccl_run *a,
		 struct pp_control_gain *g)
{
	const struct pp_nccl_run_speed *x = &whole->speed, *y;
	struct pp_sum before, after;

	if (!a)
		return;
	y = &a->speed;
	if (x->known && y->known && x->large_bytes == y->large_bytes && x->large_busbw_gbps > 0 &&
	    y->large_busbw_gbps > 0) {
		g->bandwidth_known = true;
		g->bandwidth_ratio = x->large_busbw_gbps / y->large_busbw_gbps;
	}
	if (x->known && y->known && x->small_bytes == y->small_bytes && x->small_us > 0 &&
	    y->small_us > 0) {
		g->latency_known = true;
		g->latency_ratio = x->small_us / y->small_us;
	}
	pp_sum_run(whole, &before);
	pp_sum_run(a, &after);
	g->cpu_known = pp_sum_cpu_per_gb(&before, &g->cpu_per_gb) &&
		       pp_sum_cpu_per_gb(&after, &g->cpu_per_gb_a);
}

int pp_gate_library_judge(const struct pp_nccl_run *const run[PP_NCCL_ARMS],
			  struct pp_gate_library *ret, struct pp_error *err)
{
	const struct pp_nccl_run *whole = run[PP_NCCL_ARM_UNCHANGED];
	struct pp_gate_library *g;
	struct pp_sum sum;
	int r = 0;

	if (!whole)
		return pp_error_set(err, -EINVAL,
				    "no run of the user's own environment: controls alone say "
				    "nothing of it");
	for (unsigned int i = 0; i < PP_NCCL_ARMS && !r; i++)
		if (run[i] && i != PP_NCCL_ARM_UNCHANGED)
			r = same_job(whole, run[i], err);
	if (r)
		return r;
	g = calloc(1, sizeof(*g));
	if (!g)
		return pp_error_set(err, -ENOMEM, "out of memory");
	for (unsigned int i = 0; i < PP_NCCL_ARMS; i++)
		g->simulated |= run[i] && is_simulated(run[i]);
	pp_sum_run(whole, &sum);
	for (unsigned int i = PP_NCCL_ARM_A; i <= PP_NCCL_ARM_C; i++)
		pp_control_judge(whole, &sum, run[i], (enum pp_nccl_arm)i, &g->control[i]);
	gain(whole, run[PP_NCCL_ARM_A], &g->gain);
	pp_control_claims(run, &sum, g);
	pp_control_findings(run, g);
	*ret = *g;
	free(g);
	return 0;
}
