/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/gates_text.h"

#include "base/compiler.h"
#include "base/banned.h"

static void gates_json(struct pp_out *o, const struct pp_gates *g)
{
	static const struct pp_out_column columns[] = {
		{"gate", NULL, false},	   {"name", NULL, false},	 {"asked", NULL, false},
		{"verdict", NULL, false},  {"claim_state", NULL, false}, {"claim", NULL, false},
		{"evidence", NULL, false}, {"raise", NULL, false},	 {"next", NULL, false}};

	pp_out_table(o, "gates", columns, PP_ARRAY_LEN(columns));
	for (unsigned int i = 0; i < PP_GATES; i++) {
		const struct pp_gate_row *row = &g->row[i];

		pp_out_cell_i64(o, row->gate);
		pp_out_cell(o, pp_gate_name(row->gate));
		pp_out_cell_bool(o, row->gate <= g->through);
		pp_out_cell_verdict(o, row->verdict);
		pp_out_cell(o, pp_verdict_claim(row->verdict));
		pp_out_cell(o, row->claim);
		pp_out_cell(o, row->evidence);
		pp_out_cell(o, row->raise);
		pp_out_cell(o, row->next);
	}
	pp_out_table_end(o);
}

/* One line of a gate's row: what it is, and its text; the gate stands on the first line only. */
static void line(struct pp_out *o, const char *what, const char *text)
{
	if (!text)
		return;
	pp_out_cell(o, " ");
	pp_out_cell(o, what);
	pp_out_cell(o, text);
}

/* Six columns do not fit a terminal: the texts of a gate stand below each other. */
static void gates_text(struct pp_out *o, const struct pp_gates *g)
{
	static const struct pp_out_column columns[] = {{NULL, "GATE", false},
						       {NULL, "VERDICT", false},
						       {NULL, "CLAIM, EVIDENCE, WHAT NEXT", true}};

	pp_out_table(o, NULL, columns, PP_ARRAY_LEN(columns));
	for (unsigned int i = 0; i < PP_GATES; i++) {
		const struct pp_gate_row *row = &g->row[i];

		pp_out_cellf(o, "%d %s", row->gate, pp_gate_name(row->gate));
		pp_out_cell_verdict(o, row->verdict);
		pp_out_cell(o, row->claim);
		line(o, "state", pp_verdict_claim(row->verdict));
		if (row->gate <= g->through)
			line(o, "evidence", row->evidence);
		line(o, "to raise", row->raise);
		line(o, "next", row->next);
	}
	pp_out_table_end(o);
}

void pp_gates_emit(struct pp_out *o, const struct pp_gates *g)
{
	if (pp_out_is_json(o))
		gates_json(o, g);
	else
		gates_text(o, g);
}
