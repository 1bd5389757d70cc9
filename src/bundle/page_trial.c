/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/statistics.h"
#include "bundle/page_bundle.h"
#include "bundle/page_comparison.h"
#include "bundle/sheet.h"
#include "base/banned.h"

static double median_of(const struct pp_trial *t, size_t metric)
{
	double value[PP_TRIAL_RUNS];
	size_t n = 0;

	for (size_t i = 0; i < t->n_runs && n < PP_TRIAL_RUNS; i++)
		if (!t->run[i].void_why && isfinite(t->run[i].value[metric]))
			value[n++] = t->run[i].value[metric];
	return pp_median(value, n);
}

static void figure(struct pp_buf *out, double value)
{
	if (isfinite(value))
		pp_sheet_text(out, "td class=\"n\"", "%.6g", value);
	else
		pp_sheet_text(out, "td class=\"n\"", "-");
}

static void metrics(struct pp_buf *out, const struct pp_trial *t)
{
	static const char *const heads[] = {"Metric",	 "#Median", "Unit", "#Service level",
					    "Better is", "From",    NULL};

	pp_sheet_table(out, heads);
	for (size_t i = 0; i < t->canary.n_metrics; i++) {
		const struct pp_metric *m = &t->canary.metric[i];

		pp_sheet_row(out);
		pp_sheet_text(out, "td", "%s%s", m->name, m->is_host ? " (host)" : "");
		figure(out, median_of(t, i));
		pp_sheet_text(out, "td", "%s", m->unit ? m->unit : "");
		figure(out, m->slo);
		pp_sheet_text(out, "td", "%s", m->higher_is_better ? "higher" : "lower");
		pp_sheet_text(out, "td", "%s %s", pp_metric_source_name(m->source),
			      m->what ? m->what : "");
		pp_sheet_row_end(out);
	}
	pp_sheet_table_end(out);
	for (size_t i = 0; i < t->canary.n_metrics; i++) {
		if (!isfinite(median_of(t, i)))
			continue;
		pp_sheet_text(out, "h3", "%s", t->canary.metric[i].name);
		pp_page_strip(out, &t->canary.metric[i], median_of(t, i), t);
	}
}

static void runs(struct pp_buf *out, const struct pp_trial *t)
{
	const struct pp_canary *c = &t->canary;
	char when[32];

	pp_sheet_detail(out, "Every run, as it was measured: %zu", t->n_runs);
	pp_buf_str(out, "<div class=\"wide\"><table><thead><tr>");
	pp_sheet_text(out, "th", "Started");
	pp_sheet_text(out, "th class=\"n\"", "s");
	for (size_t i = 0; i < c->n_metrics; i++)
		pp_sheet_text(out, "th class=\"n\"", "%s", c->metric[i].name);
	pp_sheet_text(out, "th", "Void");
	pp_buf_str(out, "</tr></thead><tbody>\n");
	for (size_t i = 0; i < t->n_runs; i++) {
		const struct pp_trial_run *r = &t->run[i];

		pp_sheet_row(out);
		pp_sheet_text(out, "td", "%s",
			      r->started ? pp_clock_format(r->started, when, sizeof(when)) : "");
		pp_sheet_number(out, 3, (double)r->took / PP_SECOND);
		for (size_t k = 0; k < c->n_metrics; k++)
			figure(out, r->value[k]);
		pp_sheet_text(out, "td", "%s", r->void_why ? r->void_why : "");
		pp_sheet_row_end(out);
	}
	pp_sheet_table_end(out);
	pp_sheet_detail_end(out);
}

static void nodes(struct pp_buf *out, const struct pp_trial *t)
{
	for (size_t i = 0; i < t->n_nodes; i++) {
		const struct pp_trial_node *n = &t->node[i];

		pp_sheet_detail(out, "Software of %s that must be alike: topology class %s%s",
				n->id, n->topology_class ? n->topology_class : "unknown",
				n->simulated ? ", simulated" : "");
		pp_sheet_items(out);
		for (size_t k = 0; k < n->n_facts; k++)
			pp_sheet_item(out, n->fact[k].key, n->fact[k].value);
		pp_sheet_table_end(out);
		pp_sheet_detail_end(out);
	}
}

void pp_page_trial(struct pp_buf *out, const struct pp_page_sight *s)
{
	const struct pp_trial *t = s->trial;

	if (!t)
		return;
	pp_sheet_text(out, "h3", "%s%s", t->canary.workload, t->simulated ? ", simulated" : "");
	if (t->simulated)
		pp_sheet_text(out, "p class=\"mark-sim\"",
			      "Simulation: the software device carried it.");
	pp_sheet_items(out);
	for (size_t i = 0; i < t->canary.n_keys; i++)
		pp_sheet_item(out, t->canary.key[i].name, t->canary.key[i].value);
	pp_sheet_item(out, "Path", t->path.path ? t->path.path : "not looked at");
	if (t->path.path) {
		pp_sheet_item(out, "Mechanism", t->path.mechanism);
		pp_sheet_item(out, "State of both", t->path.claim_mechanism);
	}
	if (t->path.why)
		pp_sheet_item(out, "Missing", t->path.why);
	pp_sheet_table_end(out);
	metrics(out, t);
	runs(out, t);
	nodes(out, t);
}
