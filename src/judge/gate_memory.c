/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gate 2: does GPU memory move over RDMA? Only a run says so; without one, or on no hardware, it
 * is not known, whatever gate 1 found possible.
 */
#include "judge/gate_rows.h"

#include <inttypes.h>
#include <math.h>

#include "judge/transfer.h"
#include "base/banned.h"

static struct pp_gate_row not_measured(const struct pp_facts *facts, bool simulated)
{
	const struct pp_object *node = pp_object_next(facts, PP_NODE, NULL);
	const struct pp_fact *hcas = pp_fact_get(node, PP_F_N_HCAS);
	bool none = hcas && hcas->known && !hcas->i64;
	struct pp_gate_row row = {
		.gate = PP_GATE_MEMORY,
		.verdict = PP_UNKNOWN,
		.claim = "whether the hca reads and writes GPU memory directly was not measured",
		.evidence = "none: no memory was registered and no byte was moved",
		.raise = "a run with a peer: host, then GPU memory over the same hca, compared "
			 "byte by byte",
		.next = "peerpath prove --peer HOST",
	};

	if (none) {
		row.claim = "unknown (no RDMA device): there is nothing that could move memory";
		row.raise = "run on a node that has an RDMA device; the chain alone can be "
			    "exercised in simulation";
		row.next = "peerpath prove --simulate";
	}
	if (simulated)
		pp_gate_beside_simulation(none, &row);
	return row;
}

static const struct pp_transfer_row *worst_of(const struct pp_transfer *t)
{
	const struct pp_transfer_row *worst = NULL;

	for (unsigned int i = 0; i < t->n_rows; i++)
		if (t->rows[i].rung == PP_RUNGS && (!worst || t->rows[i].verdict > worst->verdict))
			worst = &t->rows[i];
	return worst;
}

static const char *registration(const struct pp_transfer *t, struct pp_arena *arena)
{
	const struct pp_transfer_row *row = worst_of(t);

	if (!row || !row->registered)
		return "";
	return pp_arena_printf(arena, "; registered by %s: %s by %s", row->mechanism,
			       row->claim == PP_UNPROVEN ? "told" : pp_claim_name(row->claim),
			       row->claim == PP_UNPROVEN ? "our own measurement" : row->witness);
}

static const char *evidence(const struct pp_transfer *t, struct pp_arena *arena)
{
	uint64_t checked = 0, wrong = 0;
	unsigned int pairs = 0;
	const char *ratio = "";

	for (unsigned int i = 0; i < t->n_rows; i++)
		pairs += t->rows[i].rung == PP_RUNGS;
	for (unsigned int i = 0; i < t->n_figures; i++) {
		checked += t->figures[i].cell->checked;
		wrong += t->figures[i].cell->wrong;
	}
	if (!isnan(t->gpu_host))
		ratio = pp_arena_printf(arena, "; GPU/host bandwidth %.2f", t->gpu_host);
	if (!isnan(t->direct_staged))
		ratio = pp_arena_printf(arena, "%s; direct/staged %.2f", ratio, t->direct_staged);
	return pp_arena_printf(
		arena, "%s%s%u pair%s, %u measurements; %" PRIu64 " of %" PRIu64 " bytes wrong%s%s",
		t->simulated  ? "simulated"
		: t->software ? t->software
			      : "",
		t->simulated || t->software ? ": " : "", pairs, pairs == 1 ? "" : "s", t->n_figures,
		wrong, checked, ratio, registration(t, arena));
}

static const char *raise(const struct pp_transfer *t, struct pp_arena *arena)
{
	const struct pp_transfer_row *row = worst_of(t);

	if (t->verdict == PP_PASS)
		return NULL;
	if ((t->simulated && t->passed) || (t->software && t->verdict == PP_UNKNOWN))
		return "a run on hardware, with a peer";
	if (row && row->cause)
		return pp_arena_printf(arena, "the cause repaired: peerpath explain knows it as %s",
				       row->cause);
	if (row && row->counter)
		return pp_arena_printf(arena, "no growth of %s in a run", row->counter);
	if (row && row->hop)
		return pp_arena_printf(arena, "a wider or shorter way at the hop: %s", row->hop);
	return t->verdict == PP_UNKNOWN ? "a whole run, with what is said to be missing"
					: "what is said repaired, and the same run again";
}

void pp_gate_memory(const struct pp_facts *facts, const struct pp_gate_runs *runs,
		    struct pp_arena *arena, struct pp_gate_row *row)
{
	const struct pp_transfer *t = runs->transfer;

	if (!t) {
		*row = not_measured(facts, runs->simulated);
		return;
	}
	*row = (struct pp_gate_row){
		.gate = PP_GATE_MEMORY,
		.verdict = t->verdict,
		.claim = pp_arena_str(arena, t->sentence),
		.evidence = evidence(t, arena),
		.raise = raise(t, arena),
		.next = t->next ? pp_arena_str(arena, t->next) : NULL,
	};
}
