/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of a pair's cells, each beside the like cell of other rungs.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "judge/transfer_parts.h"
#include "base/banned.h"

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

int pp_cell_order(const void *a, const void *b)
{
	const struct pp_bench_cell *x = *(const struct pp_bench_cell *const *)a;
	const struct pp_bench_cell *y = *(const struct pp_bench_cell *const *)b;
	int r = compare(x->rung, y->rung);

	r = r ? r : compare(x->measure, y->measure);
	r = r ? r : compare(x->op, y->op);
	r = r ? r : compare(x->together, y->together);
	r = r ? r : compare(x->size, y->size);
	r = r ? r : compare(x->qps, y->qps);
	return r ? r : compare(x->depth, y->depth);
}

const struct pp_bench_cell *pp_cell_like(const struct pp_transfer_case *c,
					 const struct pp_bench_cell *cell, enum pp_rung rung)
{
	struct pp_bench_cell like = *cell;
	const struct pp_bench_cell *key = &like, **found;

	like.rung = rung;
	found = bsearch(&key, c->sorted, c->p->n_cells, sizeof(*c->sorted), pp_cell_order);
	return found ? *found : NULL;
}

bool pp_cell_is_bandwidth(const struct pp_bench_cell *cell)
{
	return cell->measure != PP_LATENCY;
}

bool pp_cell_is_judged(const struct pp_transfer_case *c, const struct pp_bench_cell *cell)
{
	return pp_cell_is_bandwidth(cell) && !cell->together && cell->size >= c->margins->from;
}

bool pp_rung_is_direct(enum pp_rung r)
{
	return r == PP_RUNG_DMABUF || r == PP_RUNG_PEERMEM || r == PP_RUNG_DATA_DIRECT;
}

static bool has_samples(const struct pp_bench_cell *cell)
{
	return cell && cell->state == PP_BENCH_RUN && cell->n_samples;
}

/* Repeats are pairs only where each has its partner; else the medians are compared. */
static double beside(const struct pp_bench_cell *a, const struct pp_bench_cell *b,
		     struct pp_interval *ret)
{
	double lower;

	*ret = (struct pp_interval){NAN, NAN};
	if (!has_samples(a) || !has_samples(b))
		return NAN;
	if (a->n_samples == b->n_samples)
		return pp_ratio(a->sample, b->sample, a->n_samples, ret);
	lower = pp_median(b->sample, b->n_samples);
	return lower > 0 ? pp_median(a->sample, a->n_samples) / lower : NAN;
}

static struct pp_figure figure_of(const struct pp_transfer_case *c,
				  const struct pp_bench_cell *cell)
{
	struct pp_figure f = {.pair = c->pair, .cell = cell, .host = NAN, .staged = NAN};
	const char *name;
	double cap = pp_hop_narrowest(c, cell->rung, &name);

	f.median = pp_median(cell->sample, cell->n_samples);
	f.spread = pp_spread(cell->sample, cell->n_samples);
	f.interval = pp_median_interval(cell->sample, cell->n_samples);
	f.host_interval = f.staged_interval = (struct pp_interval){NAN, NAN};
	if (cell->rung != PP_RUNG_HOST)
		f.host = beside(cell, pp_cell_like(c, cell, PP_RUNG_HOST), &f.host_interval);
	if (pp_rung_is_direct(cell->rung))
		f.staged = beside(cell, pp_cell_like(c, cell, PP_RUNG_STAGED), &f.staged_interval);
	f.hop = pp_cell_is_bandwidth(cell) && !cell->together && cap > 0
			? f.median / (cell->measure == PP_BIDIRECTIONAL ? 2 * cap : cap)
			: NAN;
	return f;
}

int pp_transfer_figures(struct pp_transfer_case *c, unsigned int *n)
{
	c->sorted = pp_arena_array(c->arena, c->p->n_cells + 1, sizeof(*c->sorted));
	c->figures = c->t->figures + *n;
	if (!c->sorted)
		return -ENOMEM;
	for (unsigned int i = 0; i < c->p->n_cells; i++)
		c->sorted[i] = &c->p->cells[i];
	if (c->p->n_cells)
		qsort(c->sorted, c->p->n_cells, sizeof(*c->sorted), pp_cell_order);
	for (unsigned int i = 0; i < c->p->n_cells; i++)
		if (has_samples(&c->p->cells[i]))
			c->t->figures[(*n)++] = figure_of(c, &c->p->cells[i]);
	c->t->n_figures = *n;
	return 0;
}

/* Figures stand in the order of their cells in memory. */
static int by_cell(const void *key, const void *figure)
{
	const struct pp_bench_cell *a = key, *b = ((const struct pp_figure *)figure)->cell;

	return a < b ? -1 : a > b;
}

const struct pp_figure *pp_figure_of(const struct pp_transfer_case *c,
				     const struct pp_bench_cell *cell)
{
	size_t n = c->t->n_figures - (size_t)(c->figures - c->t->figures);

	return n ? bsearch(cell, c->figures, n, sizeof(*c->figures), by_cell) : NULL;
}

const struct pp_figure *pp_figure_largest(const struct pp_transfer_case *c, enum pp_rung rung)
{
	const struct pp_figure *best = NULL;

	for (unsigned int i = 0; i < c->p->n_cells; i++) {
		const struct pp_bench_cell *cell = &c->p->cells[i];
		const struct pp_figure *f = pp_figure_of(c, cell);

		if (f && cell->rung == rung && cell->measure == PP_BANDWIDTH && !cell->together &&
		    (!best || cell->size > best->cell->size))
			best = f;
	}
	return best;
}

static int by_address(const void *a, const void *b)
{
	const struct pp_figure *x = *(const struct pp_figure *const *)a;
	const struct pp_figure *y = *(const struct pp_figure *const *)b;

	return x->cell < y->cell ? -1 : x->cell > y->cell;
}

int pp_transfer_index(struct pp_transfer *t)
{
	t->by_cell = pp_arena_array(&t->arena, (size_t)t->n_figures + 1, sizeof(*t->by_cell));
	if (!t->by_cell)
		return -ENOMEM;
	for (unsigned int i = 0; i < t->n_figures; i++)
		t->by_cell[i] = &t->figures[i];
	if (t->n_figures)
		qsort(t->by_cell, t->n_figures, sizeof(*t->by_cell), by_address);
	return 0;
}

const struct pp_figure *pp_transfer_figure(const struct pp_transfer *t,
					   const struct pp_bench_cell *cell)
{
	const struct pp_figure like = {.cell = cell}, *key = &like, **found = NULL;

	if (t->n_figures)
		found = bsearch(&key, t->by_cell, t->n_figures, sizeof(*t->by_cell), by_address);
	return found ? *found : NULL;
}
