/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "judge/transfer_parts.h"
#include "base/banned.h"

const char *pp_transfer_word(const struct pp_transfer *t)
{
	if (t->simulated)
		return t->passed ? "simulation: passed" : "simulation: failed";
	return pp_verdict_name(t->verdict);
}

const char *pp_transfer_row_word(const struct pp_transfer *t, const struct pp_transfer_row *row)
{
	if (row->exercised && row->verdict == PP_UNKNOWN)
		return "exercised";
	return pp_verdict_name(row->verdict);
}

static void write_margins(struct pp_json *j, const struct pp_margins *m)
{
	pp_json_object(j, "margins");
	pp_json_double(j, "spread_ratio", m->spread);
	pp_json_double(j, "gpu_host_ratio", m->gpu_host);
	pp_json_double(j, "hop_ratio", m->hop);
	pp_json_u64(j, "from_bytes", m->from);
	pp_json_end_object(j);
}

static void write_row(struct pp_json *j, const struct pp_transfer_row *row)
{
	pp_json_object(j, NULL);
	pp_json_u64(j, "pair", row->pair);
	pp_json_str(j, "rung", row->rung < PP_RUNGS ? pp_rung_name(row->rung) : NULL);
	pp_json_str(j, "verdict", pp_verdict_name(row->verdict));
	pp_json_bool(j, "exercised", row->exercised);
	pp_json_str(j, "sentence", row->sentence);
	pp_json_str(j, "hop", row->hop);
	pp_json_str(j, "counter", row->counter);
	pp_json_str(j, "cause", row->cause);
	pp_json_str(j, "next", row->next);
	pp_json_str(j, "mechanism", row->mechanism);
	pp_json_str(j, "registration_state", row->registered ? pp_claim_name(row->claim) : NULL);
	pp_json_str(j, "registration_witness", row->witness);
	pp_json_str(j, "registration_seen", row->seen);
	pp_json_end_object(j);
}

static void write_interval(struct pp_json *j, const char *key, const struct pp_interval *x)
{
	pp_json_array(j, key);
	pp_json_double(j, NULL, x->low);
	pp_json_double(j, NULL, x->high);
	pp_json_end_array(j);
}

static void write_figure(struct pp_json *j, const struct pp_figure *f)
{
	bool latency = f->cell->measure == PP_LATENCY;

	pp_json_object(j, NULL);
	pp_json_u64(j, "pair", f->pair);
	pp_json_str(j, "rung", pp_rung_name(f->cell->rung));
	pp_json_str(j, "operation", pp_operation_name(f->cell->op));
	pp_json_str(j, "measure", pp_measure_name(f->cell->measure));
	pp_json_u64(j, "size_bytes", f->cell->size);
	pp_json_u64(j, "qps", f->cell->qps);
	pp_json_bool(j, "together", f->cell->together);
	pp_json_double(j, latency ? "median_us" : "median_mb_per_s", f->median);
	write_interval(j, latency ? "median_interval_us" : "median_interval_mb_per_s",
		       &f->interval);
	pp_json_double(j, "spread_ratio", f->spread);
	pp_json_double(j, "to_host_ratio", f->host);
	write_interval(j, "to_host_interval_ratio", &f->host_interval);
	pp_json_double(j, "direct_to_staged_ratio", f->staged);
	write_interval(j, "direct_to_staged_interval_ratio", &f->staged_interval);
	pp_json_double(j, "to_narrowest_hop_ratio", f->hop);
	pp_json_end_object(j);
}

void pp_transfer_write(struct pp_json *j, const char *key, const struct pp_transfer *t,
		       const struct pp_margins *margins)
{
	pp_json_object(j, key);
	pp_json_str(j, "verdict", pp_verdict_name(t->verdict));
	pp_json_bool(j, "simulated", t->simulated);
	pp_json_str(j, "simulation", !t->simulated ? NULL : t->passed ? "passed" : "failed");
	pp_json_str(j, "software", t->software);
	pp_json_str(j, "sentence", t->sentence);
	pp_json_str(j, "next", t->next);
	write_margins(j, margins);
	pp_json_double(j, "gpu_host_ratio", t->gpu_host);
	pp_json_double(j, "direct_staged_ratio", t->direct_staged);
	if (t->direct_wins_from)
		pp_json_u64(j, "direct_wins_from_bytes", t->direct_wins_from);
	else
		pp_json_null(j, "direct_wins_from_bytes");
	pp_json_array(j, "rows");
	for (unsigned int i = 0; i < t->n_rows; i++)
		write_row(j, &t->rows[i]);
	pp_json_end_array(j);
	pp_json_array(j, "figures");
	for (unsigned int i = 0; i < t->n_figures; i++)
		write_figure(j, &t->figures[i]);
	pp_json_end_array(j);
	pp_json_end_object(j);
}
