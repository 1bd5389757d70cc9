/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gate 3: does NCCL take the direct path? Only a job that was watched says so, with its controls;
 * without one, or on no hardware, it is not known.
 */
#include "judge/control.h"
#include "judge/gate_rows.h"
#include "base/banned.h"

static bool is_none(const struct pp_object *node, enum pp_fact_id id)
{
	const struct pp_fact *f = pp_fact_get(node, id);

	return f && f->known && !f->i64;
}

static struct pp_gate_row not_observed(const struct pp_facts *facts, bool simulated)
{
	const struct pp_object *node = pp_object_next(facts, PP_NODE, NULL);
	bool no_gpu = is_none(node, PP_F_N_GPUS), no_hca = is_none(node, PP_F_N_HCAS);
	struct pp_gate_row row = {
		.gate = PP_GATE_LIBRARY,
		.verdict = PP_UNKNOWN,
		.claim = "whether NCCL uses the direct path is unknown: no job was observed",
		.evidence = "none: no NCCL job was observed",
		.raise = "a job over two nodes, watched, with its controls: its document by --nccl",
		.next = "peerpath nccl run --controls -o nccl.json -- COMMAND",
	};

	if (no_gpu) {
		row.claim = "unknown (no GPU): there is nothing here that NCCL could run on";
		row.raise = "run on nodes that have GPUs";
		row.next = "peerpath check --details";
	} else if (no_hca) {
		row.claim = "unknown (no RDMA device): NCCL has no direct path to take";
		row.raise = "run on nodes that have an RDMA device; the chain alone can be "
			    "exercised in simulation";
		row.next = "peerpath prove --simulate";
	}
	if (simulated)
		pp_gate_beside_simulation(no_hca && !no_gpu, &row);
	return row;
}

void pp_gate_library(const struct pp_facts *facts, const struct pp_gate_runs *runs,
		     struct pp_arena *arena, struct pp_gate_row *row)
{
	const struct pp_gate_library *g = runs->library;

	if (!g) {
		*row = not_observed(facts, runs->simulated);
		return;
	}
	*row = (struct pp_gate_row){
		.gate = PP_GATE_LIBRARY,
		.verdict = g->verdict,
		.claim = pp_arena_str(arena, g->sentence),
		.evidence = pp_arena_str(arena, g->evidence),
		.raise = *g->raise ? pp_arena_str(arena, g->raise) : NULL,
		.next = *g->next ? pp_arena_str(arena, g->next) : NULL,
	};
}
