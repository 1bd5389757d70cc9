/* SPDX-License-Identifier: Apache-2.0 */
/* A trial as JSON: what trial_read.c takes back. Order is as it was declared and run. */
#include "judge/trial.h"

#include <math.h>

#include "base/banned.h"

size_t pp_trial_valid(const struct pp_trial *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n_runs; i++)
		n += !t->run[i].void_why;
	return n;
}

static void write_metric(struct pp_json *j, const struct pp_metric *m)
{
	pp_json_object(j, NULL);
	pp_json_str(j, "name", m->name);
	pp_json_str(j, "source", pp_metric_source_name(m->source));
	pp_json_str(j, "what", m->what);
	pp_json_str(j, "reduce", pp_metric_reduce_name(m->reduce));
	pp_json_u64(j, "skip", m->skip);
	pp_json_str(j, "unit", m->unit);
	pp_json_str(j, "direction", m->higher_is_better ? "higher" : "lower");
	pp_json_double(j, "margin", m->margin);
	pp_json_bool(j, "margin_is_ratio", m->is_ratio);
	pp_json_double(j, "slo", m->slo);
	pp_json_str(j, "group", m->is_host ? "host" : "slo");
	pp_json_end_object(j);
}

static void write_declared(struct pp_json *j, const struct pp_canary *c)
{
	pp_json_object(j, "workload");
	for (size_t i = 0; i < c->n_keys; i++)
		pp_json_str(j, c->key[i].name, c->key[i].value);
	pp_json_end_object(j);
	pp_json_array(j, "changed");
	for (size_t i = 0; i < c->n_changed; i++)
		pp_json_str(j, NULL, c->changed[i]);
	pp_json_end_array(j);
	pp_json_array(j, "metrics");
	for (size_t i = 0; i < c->n_metrics; i++)
		write_metric(j, &c->metric[i]);
	pp_json_end_array(j);
}

static void write_node(struct pp_json *j, const struct pp_trial_node *n)
{
	pp_json_object(j, NULL);
	pp_json_str(j, "id", n->id);
	pp_json_str(j, "topology_class", n->topology_class);
	pp_json_bool(j, "simulated", n->simulated);
	pp_json_object(j, "software");
	for (size_t i = 0; i < n->n_facts; i++)
		pp_json_str(j, n->fact[i].key, n->fact[i].value);
	pp_json_end_object(j);
	pp_json_end_object(j);
}

static void write_run(struct pp_json *j, const struct pp_canary *c, const struct pp_trial_run *r)
{
	char when[32];

	pp_json_object(j, NULL);
	pp_json_str(j, "started",
		    r->started ? pp_clock_format(r->started, when, sizeof(when)) : NULL);
	pp_json_double(j, "took_s", (double)r->took / PP_SECOND);
	pp_json_str(j, "void", r->void_why);
	pp_json_object(j, "values");
	for (size_t i = 0; i < c->n_metrics; i++)
		pp_json_double(j, c->metric[i].name, r->value[i]);
	pp_json_end_object(j);
	pp_json_end_object(j);
}

void pp_trial_write(struct pp_json *j, const struct pp_trial *t)
{
	pp_json_bool(j, "simulated", t->simulated);
	write_declared(j, &t->canary);
	pp_json_object(j, "path");
	pp_json_str(j, "path", t->path.path);
	pp_json_str(j, "mechanism", t->path.mechanism);
	pp_json_str(j, "claim_gdr", t->path.claim);
	pp_json_str(j, "claim_mechanism", t->path.claim_mechanism);
	pp_json_str(j, "why", t->path.why);
	pp_json_end_object(j);
	pp_json_array(j, "nodes");
	for (size_t i = 0; i < t->n_nodes; i++)
		write_node(j, &t->node[i]);
	pp_json_end_array(j);
	pp_json_array(j, "runs");
	for (size_t i = 0; i < t->n_runs; i++)
		write_run(j, &t->canary, &t->run[i]);
	pp_json_end_array(j);
}
