/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/comparison.h"

#include <math.h>

#include "base/banned.h"

static void write_list(struct pp_json *j, const char *key, const char *const *list, size_t n)
{
	pp_json_array(j, key);
	for (size_t i = 0; i < n; i++)
		pp_json_str(j, NULL, list[i]);
	pp_json_end_array(j);
}

static void write_slo(struct pp_json *j, const char *key, const struct pp_comparison_row *r,
		      int side)
{
	if (r->slo_known[side])
		pp_json_bool(j, key, r->slo_met[side]);
	else
		pp_json_null(j, key);
}

static void write_block(struct pp_json *j, const struct pp_comparison_block *b)
{
	pp_json_object(j, NULL);
	pp_json_str(j, "nodes", b->nodes);
	pp_json_u64(j, "before", b->n[0]);
	pp_json_u64(j, "after", b->n[1]);
	pp_json_double(j, "shift", b->shift);
	pp_json_end_object(j);
}

static void write_row(struct pp_json *j, const struct pp_comparison_row *r)
{
	pp_json_object(j, NULL);
	pp_json_str(j, "metric", r->metric->name);
	pp_json_str(j, "unit", r->metric->unit);
	pp_json_str(j, "group", r->metric->is_host ? "host" : "slo");
	pp_json_str(j, "direction", r->metric->higher_is_better ? "higher" : "lower");
	pp_json_double(j, "margin", r->metric->margin);
	pp_json_bool(j, "margin_is_ratio", r->metric->is_ratio);
	pp_json_str(j, "change", pp_change_name(r->change));
	pp_json_double(j, "median_before", r->median[0]);
	pp_json_double(j, "median_after", r->median[1]);
	pp_json_u64(j, "runs_before", r->n[0]);
	pp_json_u64(j, "runs_after", r->n[1]);
	pp_json_double(j, "shift", r->shift);
	pp_json_double(j, "shift_low", r->low);
	pp_json_double(j, "shift_high", r->high);
	pp_json_u64(j, "runs_needed", r->more);
	pp_json_bool(j, "near_margin", r->near_margin);
	write_slo(j, "slo_met_before", r, 0);
	write_slo(j, "slo_met_after", r, 1);
	pp_json_str(j, "why", r->why);
	pp_json_array(j, "nodes");
	for (size_t i = 0; i < r->n_blocks; i++)
		write_block(j, &r->block[i]);
	pp_json_end_array(j);
	pp_json_end_object(j);
}

void pp_comparison_write(struct pp_json *j, const struct pp_comparison *c)
{
	pp_json_str(j, "workload", c->workload);
	pp_json_bool(j, "simulated", c->simulated);
	pp_json_bool(j, "alike", c->alike);
	write_list(j, "differences", c->difference, c->n_differences);
	pp_json_u64(j, "more_differences", c->more_differences);
	write_list(j, "declared_changes", c->declared, c->n_declared);
	pp_json_u64(j, "runs_before", c->valid[0]);
	pp_json_u64(j, "runs_after", c->valid[1]);
	pp_json_u64(j, "void_before", c->voided[0]);
	pp_json_u64(j, "void_after", c->voided[1]);
	pp_json_str(j, "path_before", c->path[0]);
	pp_json_str(j, "path_after", c->path[1]);
	pp_json_bool(j, "mechanism_proven", c->proven);
	pp_json_double(j, "level", 0.95);
	pp_json_array(j, "metrics");
	for (size_t i = 0; i < c->n_rows; i++)
		write_row(j, &c->row[i]);
	pp_json_end_array(j);
	pp_json_str(j, "service_level", pp_change_name(c->slo));
	pp_json_str(j, "host", pp_change_name(c->host));
	pp_json_str(j, "verdict", pp_verdict_name(c->verdict));
	pp_json_str(j, "sentence", c->sentence);
	pp_json_str(j, "next", c->next);
}
