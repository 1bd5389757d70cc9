/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plots of one pair: a group of cells (operation, measure, alone or together) gives one of
 * its medians, and for bandwidth one of processor time.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/order.h"
#include "bundle/page_parts.h"
#include "bundle/plot.h"
#include "base/banned.h"

enum kind { MEDIANS, PROCESSOR };

static struct pp_plot_point point_of(const struct pp_transfer *t, const struct pp_bench_cell *c,
				     enum kind kind)
{
	const struct pp_figure *f = pp_transfer_figure(t, c);
	struct pp_plot_point at = {c->size, NAN, NAN, NAN};

	if (kind == PROCESSOR && f) /* of both ends: what the transfer costs */
		at.value = c->cpu_seconds_per_gb[0] + c->cpu_seconds_per_gb[1];
	if (kind == MEDIANS && f)
		at = (struct pp_plot_point){c->size, f->median, f->interval.low, f->interval.high};
	return at;
}

/* In MB/s: what the slower port carries in the directions of the measure. */
static double port_limit(const struct pp_bench_pair *pair, enum pp_measure m)
{
	double least = INFINITY;

	for (unsigned int i = 0; i < 2; i++)
		if (pair->end[i].port_mbps > 0)
			least = fmin(least, (double)pair->end[i].port_mbps / 8);
	if (m == PP_LATENCY || isinf(least))
		return NAN;
	return m == PP_BIDIRECTIONAL ? 2 * least : least;
}

static void plot(struct pp_page *p, const struct pp_bench_pair *pair,
		 const struct pp_bench_cell *const *cell, unsigned int n, enum kind kind)
{
	struct pp_plot_series series[PP_RUNGS] = {0};
	struct pp_plot_point *PP_AUTO_FREE all = calloc((size_t)n + 1, sizeof(*all));
	const struct pp_bench_cell *first = cell[0];
	char title[160];
	struct pp_plot picture = {.title = title, .series = series, .line = NAN};
	unsigned int used = 0;

	if (!all) {
		p->out->failed = p->out->failed ? p->out->failed : -ENOMEM;
		return;
	}
	for (unsigned int r = 0; r < PP_RUNGS; r++) {
		struct pp_plot_series *s = &series[picture.n];

		*s = (struct pp_plot_series){pp_rung_name((enum pp_rung)r), r, all + used, 0};
		for (unsigned int i = 0; i < n; i++)
			if (cell[i]->rung == r)
				all[used + s->n++] = point_of(p->t, cell[i], kind);
		used += s->n;
		picture.n += s->n > 0;
	}
	(void)snprintf(title, sizeof(title), "%s of %s%s%s",
		       kind == PROCESSOR		    ? "Processor time"
		       : first->measure == PP_LATENCY	    ? "Latency"
		       : first->measure == PP_BIDIRECTIONAL ? "Bandwidth, both directions,"
							    : "Bandwidth",
		       pp_operation_name(first->op), first->qps == 1 ? "" : ", several queue pairs",
		       first->together ? ", all pairs at once" : "");
	picture.unit = kind == PROCESSOR	      ? "CPU s/GB, both ends"
		       : first->measure == PP_LATENCY ? "us"
						      : "MB/s";
	if (kind == MEDIANS && !p->t->simulated && !p->t->software) {
		picture.line = port_limit(pair, first->measure);
		picture.line_name = "port";
	}
	if (pp_plot_has(&picture)) {
		pp_sheet_text(p->out, "h3", "%s", title);
		pp_plot_write(p->out, &picture);
	}
}

void pp_page_plots(struct pp_page *p, const struct pp_bench_pair *pair)
{
	const struct pp_bench_cell **cell = NULL;
	unsigned int at = 0, n;

	if (pp_bench_order(pair, &cell)) {
		p->out->failed = p->out->failed ? p->out->failed : -ENOMEM;
		return;
	}
	for (; at < pair->n_cells; at += n) {
		for (n = 1; at + n < pair->n_cells; n++)
			if (!pp_bench_same_group(cell[at], cell[at + n]))
				break;
		plot(p, pair, cell + at, n, MEDIANS);
		if (cell[at]->measure == PP_BANDWIDTH && !cell[at]->together)
			plot(p, pair, cell + at, n, PROCESSOR);
	}
	free(cell);
}
