/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/compare_text.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>

#include "base/banned.h"

static void lines(struct pp_out *o, const char *title, const char *const *line, size_t n,
		  size_t more)
{
	if (n)
		pp_out_heading(o, title);
	for (size_t i = 0; i < n; i++)
		pp_out_para(o, 4, "  %s", line[i]);
	if (more)
		pp_out_para(o, 4, "  ... and %zu more", more);
}

static void figure(struct pp_out *o, double value)
{
	if (isnan(value))
		pp_out_cell(o, NULL);
	else
		pp_out_cellf(o, "%.4g", value);
}

/* "+9.8 % (+9.1 to +10.4)", "-0.02 (-0.05 to 0.01)"; an interval only where there is one. */
static void shift(struct pp_out *o, const struct pp_comparison_row *r)
{
	bool ratio = r->metric->is_ratio;
	double by = ratio ? 100 : 1, none = ratio ? 1 : 0;
	const char *unit = ratio ? " %" : "";

	if (isnan(r->shift))
		pp_out_cell(o, NULL);
	else if (isnan(r->low))
		pp_out_cellf(o, "%+.3g%s", by * (r->shift - none), unit);
	else
		pp_out_cellf(o, "%+.3g%s (%+.3g to %+.3g)", by * (r->shift - none), unit,
			     by * (r->low - none), by * (r->high - none));
}

static void margin(struct pp_out *o, const struct pp_metric *m)
{
	pp_out_cellf(o, "%.3g%s", m->is_ratio ? 100 * m->margin : m->margin,
		     m->is_ratio ? " %" : "");
}

static void slo(struct pp_out *o, const struct pp_comparison_row *r)
{
	static const char *const words[] = {"missed", "met"};

	if (!r->slo_known[0] || !r->slo_known[1])
		pp_out_cell(o, NULL);
	else if (r->slo_met[0] == r->slo_met[1])
		pp_out_cell(o, words[r->slo_met[0]]);
	else
		pp_out_cellf(o, "%s, now %s", words[r->slo_met[0]], words[r->slo_met[1]]);
}

static void change(struct pp_out *o, const struct pp_comparison_row *r)
{
	if (r->change == PP_CHANGE_MORE && !r->near_margin)
		pp_out_cellf(o, "need %zu more", r->more);
	else if (r->change == PP_CHANGE_MORE)
		pp_out_cell(o, "at its margin");
	else
		pp_out_cell(o, pp_change_name(r->change));
}

static void rows(struct pp_out *o, const struct pp_comparison *c)
{
	static const struct pp_out_column columns[] = {
		{NULL, "METRIC", true}, {NULL, "BEFORE", false}, {NULL, "AFTER", false},
		{NULL, "SHIFT", true},	{NULL, "MARGIN", false}, {NULL, "SLO", false},
		{NULL, "CHANGE", true},
	};

	pp_out_raw(o, "\n");
	pp_out_table(o, NULL, columns, PP_ARRAY_LEN(columns));
	for (size_t i = 0; i < c->n_rows; i++) {
		const struct pp_comparison_row *r = &c->row[i];

		pp_out_cellf(o, "%s%s%s%s", r->metric->name, r->metric->unit ? ", " : "",
			     r->metric->unit ? r->metric->unit : "",
			     r->metric->is_host ? " (host)" : "");
		figure(o, r->median[0]);
		figure(o, r->median[1]);
		shift(o, r);
		margin(o, r->metric);
		slo(o, r);
		change(o, r);
	}
	pp_out_table_end(o);
	for (size_t i = 0; i < c->n_rows; i++)
		if (c->row[i].why)
			pp_out_para(o, 2, "%s: %s.", c->row[i].metric->name, c->row[i].why);
}

void pp_compare_text(struct pp_out *o, const struct pp_comparison *c, const char *heading)
{
	pp_out_str(o, NULL, "workload", c->workload);
	pp_out_str(o, NULL, "path before", c->path[0]);
	pp_out_str(o, NULL, "path after", c->path[1]);
	for (int side = 0; side < 2; side++) {
		char runs[96];

		(void)snprintf(runs, sizeof(runs), "%zu that count, %zu void", c->valid[side],
			       c->voided[side]);
		pp_out_str(o, NULL, side ? "runs after" : "runs before", runs);
	}
	lines(o, "Not declared", c->difference, c->n_differences, c->more_differences);
	lines(o, "Declared to differ", c->declared, c->n_declared, 0);
	if (c->n_rows)
		rows(o, c);
	pp_out_heading(o, heading);
	pp_out_verdict(o, NULL, "verdict", c->verdict);
	pp_out_para(o, 2, "%c%s.", toupper((unsigned char)c->sentence[0]), c->sentence + 1);
	pp_out_para(o, 2, "Next: %s.", c->next);
}
