/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerpath.bench/1: of each pair's ends the bandwidth of writes at the largest size, by every way
 * that was climbed; and what the direct ways gained over the one through the host.
 */
#include "store/result_read.h"

#include <math.h>
#include <string.h>

#include "base/banned.h"

enum { PAIRS = 4096, FIGURES = 65536, ROWS = 65536 };

static void read_nodes(struct pp_reading *in, const json_t *doc)
{
	const json_t *nodes = pp_reading_list(in, doc, "nodes", PP_RESULT_NODES), *one;
	size_t i;

	json_array_foreach(nodes, i, one)
	{
		struct pp_result_node *n = pp_reading_add_node(in);

		if (!n)
			return;
		n->host = pp_reading_text(in, one, "host");
		n->software = pp_reading_text(in, one, "software_fingerprint");
		n->topology = pp_reading_text(in, one, "topology_class");
	}
}

/* @first: where the document's nodes begin among the result's. */
static struct pp_result_node *node_of(struct pp_reading *in, const json_t *end, size_t first,
				      size_t *ret)
{
	int64_t i = pp_reading_count(in, end, "node");

	if (i < 0 || (uint64_t)i >= in->r->n_nodes - first)
		return NULL;
	*ret = first + (size_t)i;
	return &in->r->node[*ret];
}

static const json_t *ends_of(const json_t *doc, size_t pair, size_t i)
{
	const json_t *one = json_array_get(json_object_get(doc, "pairs"), pair);

	return json_array_get(json_object_get(one, "ends"), i);
}

static void read_parts(struct pp_reading *in, const json_t *doc, size_t first)
{
	const json_t *pairs = pp_reading_list(in, doc, "pairs", PAIRS);
	struct pp_result_node *n;
	size_t at;

	for (size_t p = 0; p < json_array_size(pairs) && !in->failed; p++) {
		for (size_t i = 0; i < 2; i++) {
			const json_t *end = ends_of(doc, p, i);

			n = node_of(in, end, first, &at);
			if (n)
				pp_reading_add_part(in, n, "gpu",
						    pp_reading_text(in, end, "gpu_uuid"));
		}
	}
}

struct figure {
	const char *rung, *operation, *measure, *unit;
	size_t pair;
	int64_t size;
	double median, staged, host;
};

/* False: one that is not kept. */
static bool read_figure(struct pp_reading *in, const json_t *from, struct figure *f)
{
	int64_t pair = pp_reading_count(in, from, "pair");

	f->rung = pp_reading_text(in, from, "rung");
	f->operation = pp_reading_text(in, from, "operation");
	f->measure = pp_reading_text(in, from, "measure");
	f->size = pp_reading_count(in, from, "size_bytes");
	if (in->failed || !f->rung || !f->operation || !f->measure || pair < 0 || f->size < 0 ||
	    json_is_true(json_object_get(from, "together")))
		return false;
	f->pair = (size_t)pair;
	f->unit = strcmp(f->measure, "latency") ? "MB/s" : "us";
	f->median = pp_reading_number(
		in, from, strcmp(f->measure, "latency") ? "median_mb_per_s" : "median_us");
	f->staged = pp_reading_number(in, from, "direct_to_staged_ratio");
	f->host = pp_reading_number(in, from, "to_host_ratio");
	return !in->failed && isfinite(f->median) && f->median > 0;
}

static bool is_direct(const char *rung)
{
	return !strcmp(rung, "dmabuf") || !strcmp(rung, "peermem") || !strcmp(rung, "data-direct");
}

/* The registration of that pair and rung was seen by a witness. */
static bool is_proven(const json_t *transfer, const struct figure *f)
{
	const json_t *rows = json_object_get(transfer, "rows"), *row;
	const char *rung, *state;
	size_t i;

	if (json_array_size(rows) > ROWS)
		return false;
	json_array_foreach(rows, i, row)
	{
		rung = json_string_value(json_object_get(row, "rung"));
		state = json_string_value(json_object_get(row, "registration_state"));
		if (rung && state && !strcmp(rung, f->rung) && !strcmp(state, "proven") &&
		    json_integer_value(json_object_get(row, "pair")) == (json_int_t)f->pair)
			return true;
	}
	return false;
}

static void add_gain(struct pp_reading *in, const json_t *transfer, const struct figure *f,
		     const char *against, double ratio)
{
	struct pp_result_gain *g;

	if (!isfinite(ratio) || ratio <= 0)
		return;
	g = pp_reading_add_gain(in);
	if (!g)
		return;
	g->what = pp_reading_printf(in, "%s %s", f->operation, f->measure);
	g->unit = f->unit;
	g->way = f->rung;
	g->against = against;
	g->size_bytes = f->size;
	g->with = f->median;
	g->without = f->median / ratio;
	g->ratio = ratio;
	g->higher_is_better = strcmp(f->measure, "latency") != 0;
	g->proven = is_proven(transfer, f);
}

/* Keeps the largest size of each rung and pair: figures come in any order. */
static void add_rail(struct pp_reading *in, const json_t *doc, size_t first, const struct figure *f)
{
	const json_t *pair = json_array_get(json_object_get(doc, "pairs"), f->pair);
	const char *what = pp_reading_printf(in, "%s write bandwidth", f->rung);
	int64_t rail = pp_reading_count(in, pair, "rail");
	size_t at;

	for (size_t i = 0; i < 2; i++) {
		const json_t *end = ends_of(doc, f->pair, i);
		struct pp_result_figure *to = NULL;

		if (rail < 0 || rail > 255 || !node_of(in, end, first, &at))
			continue;
		for (size_t k = 0; k < in->r->n_figures && !to; k++) {
			struct pp_result_figure *old = &in->r->figure[k];

			if (old->node == at && old->rail == rail && !strcmp(old->what, what))
				to = old;
		}
		if (to && to->size_bytes >= f->size)
			continue;
		to = to ? to : pp_reading_add_figure(in);
		if (!to)
			return;
		*to = (struct pp_result_figure){.node = at,
						.rail = (int)rail,
						.hca = pp_reading_text(in, end, "hca"),
						.gpu = pp_reading_text(in, end, "gpu"),
						.what = what,
						.unit = f->unit,
						.size_bytes = f->size,
						.value = f->median};
	}
}

void pp_result_bench(struct pp_reading *in, const json_t *doc)
{
	const json_t *transfer = json_object_get(doc, "transfer"), *figures, *one;
	size_t first = in->r->n_nodes, i;
	struct figure f;

	read_nodes(in, doc);
	read_parts(in, doc, first);
	if (!in->r->when)
		in->r->when = pp_reading_text(in, doc, "started");
	/* A device of the kernel's that is no hardware is no measurement of hardware either. */
	in->r->simulated = in->r->simulated || json_is_true(json_object_get(doc, "simulated")) ||
			   json_is_string(json_object_get(transfer, "software"));
	figures = pp_reading_list(in, transfer, "figures", FIGURES);
	json_array_foreach(figures, i, one)
	{
		if (!read_figure(in, one, &f))
			continue;
		if (!strcmp(f.operation, "write") && !strcmp(f.measure, "bandwidth"))
			add_rail(in, doc, first, &f);
		if (!is_direct(f.rung))
			continue;
		add_gain(in, transfer, &f, "host-staged", f.staged);
		add_gain(in, transfer, &f, "host memory", f.host);
	}
}
