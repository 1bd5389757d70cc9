/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/statistics.h"
#include "cli/canary.h"
#include "base/banned.h"

enum { SHOWN = 24 };

static double median(const struct pp_trial *t, size_t metric, size_t *ret_n)
{
	double value[PP_CANARY_REPEATS];
	size_t n = 0;

	for (size_t i = 0; i < t->n_runs; i++)
		if (!t->run[i].void_why && isfinite(t->run[i].value[metric]))
			value[n++] = t->run[i].value[metric];
	*ret_n = n;
	return pp_median(value, n);
}

static const char *slo(const struct pp_metric *m, double value)
{
	if (isnan(m->slo) || isnan(value))
		return NULL;
	return (m->higher_is_better ? value >= m->slo : value <= m->slo) ? "met" : "missed";
}

static void figure(struct pp_out *o, double value)
{
	if (isnan(value))
		pp_out_cell(o, NULL);
	else
		pp_out_cellf(o, "%.4g", value);
}

static void metrics(struct pp_out *o, const struct pp_trial *t)
{
	static const struct pp_out_column columns[] = {
		{NULL, "METRIC", true}, {NULL, "MEDIAN", false}, {NULL, "UNIT", false},
		{NULL, "RUNS", false},	{NULL, "SLO", false},
	};

	pp_out_raw(o, "\n");
	pp_out_table(o, NULL, columns, PP_ARRAY_LEN(columns));
	for (size_t i = 0; i < t->canary.n_metrics; i++) {
		const struct pp_metric *m = &t->canary.metric[i];
		size_t n;
		double value = median(t, i, &n);

		pp_out_cellf(o, "%s%s", m->name, m->is_host ? " (host)" : "");
		figure(o, value);
		pp_out_cell(o, m->unit);
		pp_out_cellf(o, "%zu", n);
		pp_out_cell(o, slo(m, value));
	}
	pp_out_table_end(o);
}

void pp_canary_text(struct pp_out *o, const struct pp_trial *t)
{
	size_t voided = 0;

	pp_out_str(o, NULL, "workload", t->canary.workload);
	pp_out_u64(o, NULL, "runs that count", pp_trial_valid(t));
	metrics(o, t);
	for (size_t i = 0; i < t->n_runs; i++) {
		if (!t->run[i].void_why)
			continue;
		if (!voided++)
			pp_out_heading(o, "Void");
		if (voided <= SHOWN)
			pp_out_para(o, 4, "  run %zu: %s", i + 1, t->run[i].void_why);
	}
	if (voided > SHOWN)
		pp_out_para(o, 4, "  ... and %zu more", voided - SHOWN);
}
