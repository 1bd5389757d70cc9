/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/repeat_text.h"

#include <inttypes.h>
#include <math.h>

#include "base/compiler.h"
#include "base/banned.h"

enum { FEW_ROWS = 40 };

static void row_cells(struct pp_out *o, const struct pp_repeat_row *row,
		      const struct pp_bench *before)
{
	const struct pp_bench_cell *cell = row->before;

	pp_out_cell(o, pp_repeat_state_name(row->state));
	pp_out_cell(o, before->pairs[row->pair].name);
	pp_out_cell(o, pp_rung_name(row->rung));
	if (cell)
		pp_out_cellf(o, "%s %s", pp_measure_name(cell->measure),
			     pp_operation_name(cell->op));
	else
		pp_out_cell(o, "all");
	if (cell)
		pp_out_cellf(o, "%10" PRIu64, cell->size);
	else
		pp_out_cell(o, "         -");
	if (isnan(row->ratio))
		pp_out_cell(o, row->why);
	else
		pp_out_cellf(o, "%.2f of before%s", row->ratio,
			     row->decides ? "" : " (decides nothing)");
}

/* What is the same needs no row. */
static void rows(struct pp_out *o, const struct pp_repeat *r, const struct pp_bench *before)
{
	static const struct pp_out_column columns[] = {
		{NULL, "STATE", false}, {NULL, "PAIR", true},	     {NULL, "RUNG", false},
		{NULL, "WHAT", true},	{NULL, "    #bytes", false}, {NULL, "AFTER", true}};
	unsigned int shown = 0, all = 0;

	for (unsigned int i = 0; i < r->n_rows; i++) {
		if (r->rows[i].state == PP_REPEAT_SAME || all++ >= FEW_ROWS)
			continue;
		if (!shown++) {
			pp_out_heading(o, "Not as before");
			pp_out_table(o, NULL, columns, PP_ARRAY_LEN(columns));
		}
		row_cells(o, &r->rows[i], before);
	}
	if (shown)
		pp_out_table_end(o);
	if (all > shown)
		pp_out_para(o, 2, "  ... %u more; --json has all.", all - shown);
}

void pp_repeat_text(struct pp_out *o, const struct pp_repeat *r, const struct pp_bench *before)
{
	if (pp_out_is_json(o)) {
		pp_repeat_write(pp_out_json(o), "repeat", r);
		return;
	}
	if (r->n_differences)
		pp_out_heading(o, "Unlike");
	for (unsigned int i = 0; i < r->n_differences; i++)
		pp_out_para(o, 4, "  %s", r->difference[i]);
	if (r->more_differences)
		pp_out_para(o, 4, "  ... and %u more", r->more_differences);
	rows(o, r, before);
	pp_out_heading(o, "Beside the earlier run");
	pp_out_verdict(o, NULL, "verdict", r->verdict);
	pp_out_str(o, NULL, "because", r->sentence);
}
