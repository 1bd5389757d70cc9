/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerpath.bench/1: of each pair's ends the bandwidth of writes at the largest size, by every way
 * that was climbed; and what the direct ways gained over the one through the host.
 */
#include "store/result_read.h"

#include <errno.h>
#include <math.h>
#include <search.h>
#include <string.h>

#include "base/banned.h"

enum { PAIRS = 4096, FIGURES = 65536, ROWS = 65536 };

static const char *const direct[] = {"dmabuf", "peermem", "data-direct"};

/*
 * What is looked up for each figure is indexed once: a document has as many figures as rows, and
 * whoever wrote it may have wanted the product of both.
 */
struct bench {
	struct pp_reading *in;
	const json_t *doc, *transfer;
	size_t first;		     /* where the document's nodes begin among the result's */
	void *places;		     /* struct place: the figures of rails so far */
	unsigned char proven[PAIRS]; /* a bit for each of the direct ways */
};

struct place {
	size_t node;
	int rail;
	const char *what;
	size_t figure;
};

static int by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	if (x->rail != y->rail)
		return x->rail < y->rail ? -1 : 1;
	return strcmp(x->what, y->what);
}

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

/* Which of the direct ways it is; as many as there are: none. */
static unsigned int direct_of(const char *rung)
{
	unsigned int i = 0;

	while (i < PP_ARRAY_LEN(direct) && strcmp(direct[i], rung) != 0)
		i++;
	return i;
}

/* Of which pairs and ways a witness has seen the registration. */
static void read_proven(struct bench *b)
{
	const json_t *rows = json_object_get(b->transfer, "rows"), *row;
	const char *rung, *state;
	json_int_t pair;
	size_t i;

	if (json_array_size(rows) > ROWS)
		return;
	json_array_foreach(rows, i, row)
	{
		rung = json_string_value(json_object_get(row, "rung"));
		state = json_string_value(json_object_get(row, "registration_state"));
		pair = json_integer_value(json_object_get(row, "pair"));
		if (rung && state && !strcmp(state, "proven") && pair >= 0 && pair < PAIRS)
			b->proven[pair] |= (unsigned char)(1U << direct_of(rung));
	}
}

static bool is_proven(const struct bench *b, const struct figure *f)
{
	return f->pair < PAIRS && (b->proven[f->pair] & (1U << direct_of(f->rung)));
}

static void add_gain(struct bench *b, const struct figure *f, const char *against, double ratio)
{
	struct pp_reading *in = b->in;
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
	g->proven = is_proven(b, f);
}

/* The figure of that rail and way; a new one of no size, NULL behind a fault. */
static struct pp_result_figure *figure_of(struct bench *b, const struct place *at)
{
	struct pp_result *r = b->in->r;
	struct place *const *found = tfind(at, &b->places, by_place), *own;
	struct pp_result_figure *f;

	if (found)
		return &r->figure[(*found)->figure];
	f = pp_reading_add_figure(b->in);
	own = f ? pp_arena_alloc(&r->arena, sizeof(*own)) : NULL;
	if (own) {
		*own = *at;
		own->figure = r->n_figures - 1;
	}
	if (own && tsearch(own, &b->places, by_place))
		return f;
	pp_reading_refuse(b->in, -ENOMEM, "the result", "does not fit into memory");
	return NULL;
}

/* Keeps the largest size of each rung and pair: figures come in any order. */
static void add_rail(struct bench *b, const struct figure *f)
{
	const json_t *pair = json_array_get(json_object_get(b->doc, "pairs"), f->pair);
	const char *what = pp_reading_printf(b->in, "%s write bandwidth", f->rung);
	int64_t rail = pp_reading_count(b->in, pair, "rail");

	for (size_t i = 0; i < 2; i++) {
		const json_t *end = ends_of(b->doc, f->pair, i);
		struct place at = {.rail = (int)rail, .what = what};
		struct pp_result_figure *to;

		if (rail < 0 || rail > 255 || !node_of(b->in, end, b->first, &at.node))
			continue;
		to = figure_of(b, &at);
		if (!to)
			return;
		if (to->size_bytes >= f->size)
			continue;
		*to = (struct pp_result_figure){.node = at.node,
						.rail = at.rail,
						.hca = pp_reading_text(b->in, end, "hca"),
						.gpu = pp_reading_text(b->in, end, "gpu"),
						.what = what,
						.unit = f->unit,
						.size_bytes = f->size,
						.value = f->median};
	}
}

static void read_figures(struct bench *b)
{
	const json_t *figures = pp_reading_list(b->in, b->transfer, "figures", FIGURES), *one;
	struct figure f;
	size_t i;

	json_array_foreach(figures, i, one)
	{
		if (b->in->failed)
			return;
		if (!read_figure(b->in, one, &f))
			continue;
		if (!strcmp(f.operation, "write") && !strcmp(f.measure, "bandwidth"))
			add_rail(b, &f);
		if (direct_of(f.rung) == PP_ARRAY_LEN(direct))
			continue;
		add_gain(b, &f, "host-staged", f.staged);
		add_gain(b, &f, "host memory", f.host);
	}
}

/* What the index points to is the result's. */
static void keep(void *place)
{
	(void)place;
}

void pp_result_bench(struct pp_reading *in, const json_t *doc)
{
	struct bench b = {.in = in,
			  .doc = doc,
			  .transfer = json_object_get(doc, "transfer"),
			  .first = in->r->n_nodes};

	read_nodes(in, doc);
	read_parts(in, doc, b.first);
	if (!in->r->when)
		in->r->when = pp_reading_text(in, doc, "started");
	/* A device of the kernel's that is no hardware is no measurement of hardware either. */
	in->r->simulated = in->r->simulated || json_is_true(json_object_get(doc, "simulated")) ||
			   json_is_string(json_object_get(b.transfer, "software"));
	read_proven(&b);
	read_figures(&b);
	tdestroy(b.places, keep);
}
