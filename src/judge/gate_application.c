/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gate 4: did it matter? Only a workload that was measured says so, as its canary file declares;
 * without one it is not known.
 */
#include "judge/application.h"
#include "judge/gate_rows.h"
#include "base/banned.h"

void pp_gate_application(const struct pp_gate_runs *runs, struct pp_arena *arena,
			 struct pp_gate_row *row)
{
	const struct pp_gate_application *g = runs->application;

	if (!g) {
		*row = (struct pp_gate_row){
			.gate = PP_GATE_APPLICATION,
			.verdict = PP_UNKNOWN,
			.claim = "whether the application gains from it is unknown: no workload "
				 "was measured",
			.evidence = "none: no canary file was given",
			.raise = "a canary file (man peerpath-canary) that declares the figures of "
				 "the workload, and the command that runs it",
			.next = "peerpath prove --canary FILE -- COMMAND",
		};
		if (runs->simulated)
			pp_gate_beside_simulation(/* no_hca= */ false, row);
		return;
	}
	*row = (struct pp_gate_row){
		.gate = PP_GATE_APPLICATION,
		.verdict = g->verdict,
		.claim = pp_arena_str(arena, g->sentence),
		.evidence = pp_arena_str(arena, g->evidence),
		.raise = *g->raise ? pp_arena_str(arena, g->raise) : NULL,
		.next = *g->next ? pp_arena_str(arena, g->next) : NULL,
	};
}
