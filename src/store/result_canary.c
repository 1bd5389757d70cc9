/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerpath.canary/1, of which medians of the runs that count are kept, and
 * peerpath.comparison/1, whose shifts are gains of the change; and both as prove's gate 4 has them.
 */
#include "store/result_read.h"

#include <errno.h>
#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "judge/trial.h"
#include "base/banned.h"

enum { BLOCKS = 256 };

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
	if (!n)
		return NAN;
	qsort(v, n, sizeof(*v), by_value);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* Of the first @nodes. */
static void add_metric(struct pp_reading *in, const struct pp_trial *t, size_t m, size_t nodes)
{
	double values[PP_TRIAL_RUNS];
	struct pp_result_figure *f;
	size_t n = 0;

	for (size_t i = 0; i < t->n_runs && n < PP_TRIAL_RUNS; i++)
		if (!t->run[i].void_why && isfinite(t->run[i].value[m]))
			values[n++] = t->run[i].value[m];
	if (!n)
		return;
	for (size_t i = 0; i < nodes; i++) {
		f = pp_reading_add_figure(in);
		if (!f)
			return;
		f->node = i;
		f->what = pp_reading_printf(in, "canary %s", t->canary.metric[m].name);
		f->unit = pp_reading_printf(in, "%s", t->canary.metric[m].unit);
		f->value = median(values, n);
	}
}

/* By the reader that compare trusts. False: refused. */
static bool read_trial(struct pp_reading *in, const json_t *doc, struct pp_trial *ret)
{
	char *text = json_dumps(doc, JSON_COMPACT);
	int r = text ? pp_trial_read("result", text, strlen(text), ret, in->err) : -ENOMEM;

	free(text);
	if (r)
		in->failed = r == -ENOMEM ? pp_error_set(in->err, r, "out of memory") : r;
	return !r;
}

void pp_result_canary(struct pp_reading *in, const json_t *doc)
{
	struct pp_trial t;
	char when[32];

	if (!read_trial(in, doc, &t))
		return;
	in->r->simulated = t.simulated;
	for (size_t i = 0; i < t.n_nodes; i++) {
		struct pp_result_node *n = pp_reading_add_node(in);

		if (!n)
			break;
		n->host = pp_reading_printf(in, "%s", t.node[i].id);
		n->topology = t.node[i].topology_class
				      ? pp_reading_printf(in, "%s", t.node[i].topology_class)
				      : NULL;
		in->r->simulated = in->r->simulated || t.node[i].simulated;
	}
	if (t.n_runs && t.run[0].started)
		in->r->when = pp_reading_printf(
			in, "%s", pp_clock_format(t.run[0].started, when, sizeof(when)));
	for (size_t m = 0; m < t.canary.n_metrics; m++)
		add_metric(in, &t, m, in->r->n_nodes);
	pp_trial_done(&t);
}

/* A node's name within a text that is the result's. */
struct name {
	const char *text;
	size_t len;
};

static int by_name(const void *a, const void *b)
{
	const struct name *x = a, *y = b;
	int r = memcmp(x->text, y->text, x->len < y->len ? x->len : y->len);

	return r ? r : (x->len > y->len) - (x->len < y->len);
}

/* "a b", "a c": each node once. @known: names so far. */
static void add_nodes(struct pp_reading *in, void **known, const char *names)
{
	struct name name, *own;
	struct pp_result_node *n;

	for (; *names && !in->failed; names += name.len) {
		names += strspn(names, " ");
		name = (struct name){names, strcspn(names, " ")};
		if (!name.len || tfind(&name, known, by_name))
			continue;
		n = pp_reading_add_node(in);
		own = n ? pp_arena_alloc(&in->r->arena, sizeof(*own)) : NULL;
		if (own)
			*own = name;
		if (!own || !tsearch(own, known, by_name))
			pp_reading_refuse(in, -ENOMEM, "the result", "does not fit into memory");
		if (n)
			n->host = pp_reading_printf(in, "%.*s", (int)name.len, names);
	}
}

static void add_row_nodes(struct pp_reading *in, void **known, const json_t *row)
{
	const json_t *blocks = pp_reading_list(in, row, "nodes", BLOCKS), *one;
	const char *names;
	size_t i;

	json_array_foreach(blocks, i, one)
	{
		names = pp_reading_text(in, one, "nodes");
		if (names)
			add_nodes(in, known, names);
	}
}

static void add_row(struct pp_reading *in, const json_t *doc, const json_t *row)
{
	const char *direction = pp_reading_text(in, row, "direction");
	const char *metric = pp_reading_text(in, row, "metric");
	const char *change = pp_reading_text(in, row, "change"), *before;
	struct pp_result_gain *g;

	if (in->failed || !metric || !change || !strcmp(change, "missing"))
		return;
	g = pp_reading_add_gain(in);
	if (!g)
		return;
	g->what = pp_reading_printf(in, "canary %s (%s)", metric, change);
	g->unit = pp_reading_text(in, row, "unit");
	g->way = pp_reading_text(in, doc, "path_after");
	before = pp_reading_text(in, doc, "path_before");
	g->against = pp_reading_printf(in, "before: %s", before ? before : "not told");
	g->with = pp_reading_number(in, row, "median_after");
	g->without = pp_reading_number(in, row, "median_before");
	g->ratio = g->without > 0 ? g->with / g->without : NAN;
	g->higher_is_better = !direction || !strcmp(direction, "higher");
	g->proven = json_is_true(json_object_get(doc, "mechanism_proven"));
}

/* What the index points to is the result's. */
static void keep(void *name)
{
	(void)name;
}

static void add_rows(struct pp_reading *in, const json_t *doc, bool with_nodes)
{
	const json_t *rows = pp_reading_list(in, doc, "metrics", PP_CANARY_METRICS), *row;
	void *known = NULL;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		if (with_nodes)
			add_row_nodes(in, &known, row);
		add_row(in, doc, row);
	}
	tdestroy(known, keep);
}

void pp_result_comparison(struct pp_reading *in, const json_t *doc)
{
	in->r->simulated = pp_reading_truth(in, doc, "simulated");
	in->r->judged = pp_reading_verdict(in, doc, "verdict", &in->r->verdict);
	in->r->sentence = pp_reading_text(in, doc, "sentence");
	add_rows(in, doc, true);
}

/* What a trial wrote there is all of a trial but the name of its document. */
static void add_trial(struct pp_reading *in, const json_t *canary)
{
	json_t *doc = json_copy((json_t *)(uintptr_t)canary);
	struct pp_trial t;

	if (!doc || json_object_set_new(doc, "schema", json_string("peerpath.canary/1"))) {
		json_decref(doc);
		in->failed = pp_error_set(in->err, -ENOMEM, "out of memory");
		return;
	}
	if (read_trial(in, doc, &t)) {
		for (size_t m = 0; m < t.canary.n_metrics; m++)
			add_metric(in, &t, m, 1);
		pp_trial_done(&t);
	}
	json_decref(doc);
}

void pp_result_application(struct pp_reading *in, const json_t *doc)
{
	const json_t *canary = json_object_get(doc, "canary");
	const json_t *comparison = json_object_get(doc, "comparison");

	/* Figures of the software device are none of a node whose other gates are real. */
	if (!in->r->simulated && (json_is_true(json_object_get(canary, "simulated")) ||
				  json_is_true(json_object_get(comparison, "simulated"))))
		return;
	if (json_is_object(canary))
		add_trial(in, canary);
	if (json_is_object(comparison) && !in->failed)
		add_rows(in, comparison, false);
}
