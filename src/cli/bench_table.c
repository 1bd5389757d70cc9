/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of one pair as perftest prints them, the rungs of the ladder side by side; a column for
 * each rung that has any. Made to fit 80 columns.
 */
#include "cli/bench_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "bench/order.h"
#include "base/banned.h"

enum { REASONS = 16 };

struct group {
	const struct pp_bench_cell *const *cell;
	unsigned int n;
	bool has[PP_RUNGS];
};

static const char *const heads[PP_RUNGS] = {
	[PP_RUNG_TCP] = "     tcp",	    [PP_RUNG_HOST] = "    host",
	[PP_RUNG_DMABUF] = "  dmabuf",	    [PP_RUNG_PEERMEM] = " peermem",
	[PP_RUNG_DATA_DIRECT] = "d-direct", [PP_RUNG_STAGED] = "  staged",
};

static void number(struct pp_out *o, int width, int digits, double value)
{
	if (isnan(value))
		pp_out_cellf(o, "%*s", width, "-");
	else if (width <= 5 && value >= 1000) /* more than any use of it */
		pp_out_cellf(o, "%*s", width, ">999");
	else
		pp_out_cellf(o, "%*.*f", width, digits, value);
}

static unsigned int row_length(const struct group *g, unsigned int at)
{
	unsigned int n = 1;

	while (at + n < g->n && pp_bench_same_row(g->cell[at], g->cell[at + n]))
		n++;
	return n;
}

static const struct pp_bench_cell *in_row(const struct group *g, unsigned int at, unsigned int n,
					  enum pp_rung rung)
{
	for (unsigned int i = at; i < at + n; i++)
		if (g->cell[i]->rung == rung)
			return g->cell[i];
	return NULL;
}

/* What stands in place of a number says why there is none. */
static void median_cell(struct pp_out *o, const struct pp_transfer *t,
			const struct pp_bench_cell *cell)
{
	static const char *const words[] = {
		[PP_BENCH_RUN] = "no data",	  [PP_BENCH_SKIPPED] = "skipped",
		[PP_BENCH_FAILED] = "failed",	  [PP_BENCH_VOID] = "void",
		[PP_BENCH_NOT_REACHED] = "ended",
	};
	const struct pp_figure *f = cell ? pp_transfer_figure(t, cell) : NULL;

	if (f)
		number(o, 8, cell->measure == PP_LATENCY ? 2 : 0, f->median);
	else
		pp_out_cellf(o, "%8s", cell ? words[cell->state] : "-");
}

/* Of the ways to GPU memory the one with the most: what a ratio in this row is about. */
static const struct pp_figure *best_direct(const struct pp_transfer *t, const struct group *g,
					   unsigned int at, unsigned int n)
{
	const struct pp_figure *best = NULL;

	for (unsigned int i = at; i < at + n; i++) {
		const struct pp_figure *f = pp_transfer_figure(t, g->cell[i]);
		bool latency = g->cell[i]->measure == PP_LATENCY;

		if (f && pp_rung_is_direct(g->cell[i]->rung) &&
		    (!best || (latency ? f->median < best->median : f->median > best->median)))
			best = f;
	}
	return best;
}

static void side_by_side(struct pp_out *o, const struct pp_transfer *t, const struct group *g)
{
	struct pp_out_column columns[PP_RUNGS + 3] = {{NULL, "    #bytes", false}};
	unsigned int n = 1, length;
	bool staged;

	for (unsigned int i = 0; i < PP_RUNGS; i++)
		if (g->has[i])
			columns[n++] = (struct pp_out_column){NULL, heads[i], false};
	columns[n++] = (struct pp_out_column){NULL, "GPU/host", false};
	/* all six and both ratios would not fit 80 columns */
	staged = n < PP_RUNGS + 2;
	if (staged)
		columns[n++] = (struct pp_out_column){NULL, "/staged", false};
	pp_out_table(o, NULL, columns, n);
	for (unsigned int at = 0; at < g->n; at += length) {
		const struct pp_figure *direct;

		length = row_length(g, at);
		direct = best_direct(t, g, at, length);
		pp_out_cellf(o, "%10" PRIu64, g->cell[at]->size);
		for (unsigned int i = 0; i < PP_RUNGS; i++)
			if (g->has[i])
				median_cell(o, t, in_row(g, at, length, (enum pp_rung)i));
		number(o, 8, 2, direct ? direct->host : NAN);
		if (staged)
			number(o, 7, 2, direct ? direct->staged : NAN);
	}
	pp_out_table_end(o);
}

/* Half of the interval's width, in percent of the median. */
static double half_width(const struct pp_figure *f)
{
	return f->median > 0 ? 50 * (f->interval.high - f->interval.low) / f->median : NAN;
}

static double most(const struct pp_bench_cell *c)
{
	double best = NAN;

	for (unsigned int i = 0; i < c->n_samples; i++)
		if (!(c->sample[i] <= best) && !isnan(c->sample[i]))
			best = c->sample[i];
	return best;
}

static void bandwidth_rows(struct pp_out *o, const struct pp_transfer *t, const struct group *g)
{
	static const struct pp_out_column columns[] = {
		{NULL, "rung", false},	  {NULL, "    #bytes", false}, {NULL, "    #iter", false},
		{NULL, "BW peak", false}, {NULL, "BW median", false},  {NULL, "+-95%", false},
		{NULL, "Mmsg/s", false},  {NULL, " CPU s/GB", false}};

	pp_out_table(o, NULL, columns, PP_ARRAY_LEN(columns));
	for (unsigned int i = 0; i < g->n; i++) {
		const struct pp_bench_cell *c = g->cell[i];
		const struct pp_figure *f = pp_transfer_figure(t, c);

		if (!f)
			continue;
		pp_out_cell(o, pp_rung_name(c->rung));
		pp_out_cellf(o, "%10" PRIu64, c->size);
		pp_out_cellf(o, "%9" PRIu64, c->messages);
		number(o, 7, 0, most(c));
		number(o, 9, 0, f->median);
		number(o, 5, 1, half_width(f));
		number(o, 6, 3, c->size ? f->median / (double)c->size : NAN);
		if (isnan(c->cpu_seconds_per_gb[0]) && isnan(c->cpu_seconds_per_gb[1]))
			pp_out_cell(o, "        -");
		else
			pp_out_cellf(o, "%4.2f %4.2f", c->cpu_seconds_per_gb[0],
				     c->cpu_seconds_per_gb[1]);
	}
	pp_out_table_end(o);
}

static void latency_rows(struct pp_out *o, const struct pp_transfer *t, const struct group *g)
{
	static const struct pp_out_column columns[] = {
		{NULL, "rung", false},	   {NULL, "    #bytes", false}, {NULL, "    #iter", false},
		{NULL, "+-95%", false},	   {NULL, "     p50", false},	{NULL, "     p99", false},
		{NULL, "   p99.9", false}, {NULL, "/host", false}};

	pp_out_table(o, NULL, columns, PP_ARRAY_LEN(columns));
	for (unsigned int i = 0; i < g->n; i++) {
		const struct pp_bench_cell *c = g->cell[i];
		const struct pp_figure *f = pp_transfer_figure(t, c);

		if (!f)
			continue;
		pp_out_cell(o, pp_rung_name(c->rung));
		pp_out_cellf(o, "%10" PRIu64, c->size);
		pp_out_cellf(o, "%9" PRIu64, c->messages);
		number(o, 5, 1, half_width(f));
		number(o, 8, 2, c->p50 > 0 ? c->p50 : NAN);
		number(o, 8, 2, c->p99 > 0 ? c->p99 : NAN);
		number(o, 8, 2, c->p999 > 0 ? c->p999 : NAN);
		number(o, 5, 2, f->host);
	}
	pp_out_table_end(o);
}

static void group_tables(struct pp_out *o, const struct pp_transfer *t, const struct group *g)
{
	const struct pp_bench_cell *c = g->cell[0];
	bool latency = c->measure == PP_LATENCY;
	char head[160];

	(void)snprintf(head, sizeof(head), "%s of %s, %s; %u queue pair%s%s",
		       latency				? "Latency"
		       : c->measure == PP_BIDIRECTIONAL ? "Bandwidth, both directions,"
							: "Bandwidth",
		       pp_operation_name(c->op), latency ? "us" : "MB/s (10^6)", c->qps,
		       c->qps == 1 ? "" : "s", c->together ? ", all pairs at once" : "");
	pp_out_heading(o, head);
	side_by_side(o, t, g);
	pp_out_raw(o, "\n");
	if (latency)
		latency_rows(o, t, g);
	else
		bandwidth_rows(o, t, g);
}

struct reason {
	enum pp_rung rung;
	const char *why;
};

/* Why there is no number, each reason once; that a rung was not run at all is said elsewhere. */
static void reasons(struct pp_out *o, const struct pp_bench_pair *pair)
{
	struct reason shown[REASONS];
	unsigned int n = 0, k;

	for (unsigned int i = 0; i < pair->n_cells && n < REASONS; i++) {
		const struct pp_bench_cell *c = &pair->cells[i];

		if (c->state == PP_BENCH_RUN || !c->why ||
		    pair->rung[c->rung].state == PP_BENCH_SKIPPED)
			continue;
		for (k = 0; k < n; k++)
			if (shown[k].rung == c->rung && !strcmp(shown[k].why, c->why))
				break;
		if (k < n)
			continue;
		shown[n++] = (struct reason){c->rung, c->why};
		pp_out_para(o, 4, "  %s %s: %s", pp_rung_name(c->rung),
			    pp_bench_state_name(c->state), c->why);
	}
}

void pp_bench_tables(struct pp_out *o, const struct pp_bench_pair *pair,
		     const struct pp_transfer *t)
{
	const struct pp_bench_cell **cell = NULL;
	unsigned int at = 0;

	if (pp_bench_order(pair, &cell)) {
		pp_out_para(o, 2, "  out of memory: the numbers are left out");
		return;
	}
	while (at < pair->n_cells) {
		struct group g = {.cell = &cell[at]};

		while (at < pair->n_cells && pp_bench_same_group(cell[at], g.cell[0])) {
			g.has[cell[at]->rung] |= cell[at]->state != PP_BENCH_SKIPPED;
			g.n++;
			at++;
		}
		group_tables(o, t, &g);
	}
	reasons(o, pair);
	free(cell);
}
