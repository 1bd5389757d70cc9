/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures of all valid runs, gathered by the set of nodes that they ran on; then a shift.
 *
 * A margin that is a ratio is looked at in logarithms, where 3 % more and 3 % less are as far.
 */
#include "judge/comparison.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge/comparison_parts.h"
#include "base/banned.h"

enum { ARENA = 64 << 20 };
static const double LEVEL = 0.95;

static const char *const changes[PP_CHANGES] = {
	[PP_CHANGE_SAME] = "same",	 [PP_CHANGE_BETTER] = "better",
	[PP_CHANGE_WORSE] = "worse",	 [PP_CHANGE_MORE] = "need more",
	[PP_CHANGE_MISSING] = "missing",
};

const char *pp_change_name(enum pp_change c)
{
	return changes[c];
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *pp_trial_nodes(const struct pp_trial *t, struct pp_arena *arena)
{
	const char **id = pp_arena_array(arena, t->n_nodes ? t->n_nodes : 1, sizeof(*id));
	const char *text = "";

	for (size_t i = 0; id && i < t->n_nodes; i++)
		id[i] = t->node[i].id;
	if (id && t->n_nodes)
		qsort(id, t->n_nodes, sizeof(*id), by_text);
	for (size_t i = 0; id && i < t->n_nodes; i++)
		text = pp_arena_printf(arena, "%s%s%s", text, i ? " " : "", id[i]);
	return text;
}

/* The figures of one metric while they are gathered: the trials of a set of nodes share a block. */
struct gathered {
	struct pp_comparison_block *block;
	double **value[2]; /* of each block */
	size_t n;
	struct pp_arena *arena;
};

static size_t block_of(struct gathered *g, const char *nodes)
{
	size_t i = 0;

	while (i < g->n && strcmp(g->block[i].nodes, nodes) != 0)
		i++;
	if (i == g->n)
		g->block[g->n++] = (struct pp_comparison_block){.nodes = nodes, .shift = NAN};
	return i;
}

/* Index of a metric in a trial's own order; its runs hold figures by that. */
static size_t index_of(const struct pp_trial *t, const char *name)
{
	const struct pp_metric *m = pp_trial_metric(t, name);

	return m ? (size_t)(m - t->canary.metric) : PP_CANARY_METRICS;
}

static int gather_trial(struct gathered *g, int side, const struct pp_trial *t, const char *metric)
{
	size_t at = block_of(g, pp_trial_nodes(t, g->arena)), index = index_of(t, metric);
	size_t n = g->block[at].n[side], room = n + t->n_runs;
	double *value = pp_arena_array(g->arena, room ? room : 1, sizeof(*value));

	if (!value)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		value[i] = g->value[side][at][i];
	for (size_t i = 0; index < PP_CANARY_METRICS && i < t->n_runs; i++)
		if (!t->run[i].void_why && isfinite(t->run[i].value[index]))
			value[n++] = t->run[i].value[index];
	g->value[side][at] = value;
	g->block[at].n[side] = n;
	return 0;
}

static int gather(struct pp_comparison_case *k, const char *metric, struct gathered *g)
{
	size_t most = k->arm[0].n + k->arm[1].n;
	int r = 0;

	*g = (struct gathered){.arena = &k->c->arena};
	g->block = pp_arena_array(g->arena, most, sizeof(*g->block));
	for (int side = 0; side < 2; side++)
		g->value[side] = pp_arena_array(g->arena, most, sizeof(*g->value[side]));
	if (!g->block || !g->value[0] || !g->value[1])
		return -ENOMEM;
	for (int side = 0; side < 2; side++)
		for (size_t t = 0; !r && t < k->arm[side].n; t++)
			r = gather_trial(g, side, k->arm[side].trial[t], metric);
	return r;
}

static double median_of(const struct gathered *g, int side, size_t *ret_n)
{
	size_t n = 0;
	double *all;

	for (size_t i = 0; i < g->n; i++)
		n += g->block[i].n[side];
	all = pp_arena_array(g->arena, n ? n : 1, sizeof(*all));
	*ret_n = n;
	n = 0;
	for (size_t i = 0; all && i < g->n; i++)
		for (size_t s = 0; s < g->block[i].n[side]; s++)
			all[n++] = g->value[side][i][s];
	return all ? pp_median(all, n) : NAN;
}

/* False: a ratio of figures that are not all above 0 is none. */
static bool to_logarithms(struct gathered *g)
{
	for (int side = 0; side < 2; side++)
		for (size_t i = 0; i < g->n; i++)
			for (size_t s = 0; s < g->block[i].n[side]; s++) {
				double *v = &g->value[side][i][s];

				if (!(*v > 0))
					return false;
				*v = log(*v);
			}
	return true;
}

static double shown(const struct pp_metric *m, double shift)
{
	return m->is_ratio ? exp(shift) : shift;
}

static enum pp_change change_of(const struct pp_metric *m, enum pp_shift_verdict v)
{
	switch (v) {
	case PP_SHIFT_SAME:
		return PP_CHANGE_SAME;
	case PP_SHIFT_ABOVE:
		return m->higher_is_better ? PP_CHANGE_BETTER : PP_CHANGE_WORSE;
	case PP_SHIFT_BELOW:
		return m->higher_is_better ? PP_CHANGE_WORSE : PP_CHANGE_BETTER;
	case PP_SHIFT_MORE:
		break;
	}
	return PP_CHANGE_MORE;
}

static int judge(struct gathered *g, struct pp_comparison_row *row)
{
	const struct pp_metric *m = row->metric;
	double margin = m->is_ratio ? log1p(m->margin) : m->margin;
	struct pp_shift_block *block = pp_arena_array(g->arena, g->n, sizeof(*block));
	struct pp_shift s;
	size_t need;
	int r;

	if (!block)
		return -ENOMEM;
	for (size_t i = 0; i < g->n; i++) {
		block[i] = (struct pp_shift_block){g->value[0][i], g->value[1][i], g->block[i].n[0],
						   g->block[i].n[1]};
		if (!pp_shift_estimate(&block[i], 1, LEVEL, &s))
			g->block[i].shift = shown(m, s.shift);
	}
	r = pp_shift_estimate(block, g->n, LEVEL, &s);
	if (r == -ENODATA)
		row->why = "no set of nodes has figures before and after the change";
	if (r)
		return r == -ENODATA ? 0 : r;
	row->change = change_of(m, pp_shift_judge(&s, margin));
	row->shift = shown(m, s.shift);
	row->low = shown(m, s.ci.low);
	row->high = shown(m, s.ci.high);
	if (row->change != PP_CHANGE_MORE)
		return 0;
	need = pp_shift_need(&s, margin);
	row->near_margin = need == PP_SHIFT_NEED_MAX;
	row->more = need > s.smallest ? need - s.smallest : 1;
	return 0;
}

int pp_comparison_measure(struct pp_comparison_case *k, struct pp_comparison_row *row)
{
	const struct pp_metric *m = row->metric;
	struct gathered g;
	int r = gather(k, m->name, &g);

	row->change = PP_CHANGE_MISSING;
	row->shift = row->low = row->high = NAN;
	if (r)
		return r;
	row->block = g.block;
	row->n_blocks = g.n;
	for (int side = 0; side < 2; side++) {
		row->median[side] = median_of(&g, side, &row->n[side]);
		row->slo_known[side] = !isnan(m->slo) && row->n[side];
		row->slo_met[side] =
			row->slo_known[side] && (m->higher_is_better ? row->median[side] >= m->slo
								     : row->median[side] <= m->slo);
	}
	if (!row->n[0] || !row->n[1])
		row->why = row->n[0] ? "no valid run after the change has it"
				     : "no valid run before the change has it";
	else if (m->is_ratio && !to_logarithms(&g))
		row->why = "the margin is a ratio, and not all figures are above 0: "
			   "declare a margin in the unit";
	else
		r = judge(&g, row);
	return r;
}

static void count(struct pp_comparison_case *k)
{
	for (int side = 0; side < 2; side++)
		for (size_t t = 0; t < k->arm[side].n; t++) {
			size_t valid = pp_trial_valid(k->arm[side].trial[t]);

			k->c->valid[side] += valid;
			k->c->voided[side] += k->arm[side].trial[t]->n_runs - valid;
			k->c->simulated |= k->arm[side].trial[t]->simulated;
		}
}

static int measure(struct pp_comparison_case *k)
{
	const struct pp_canary *declared = &k->arm[1].trial[0]->canary;
	struct pp_comparison *c = k->c;
	int r = 0;

	c->row = pp_arena_array(&c->arena, declared->n_metrics ? declared->n_metrics : 1,
				sizeof(*c->row));
	for (size_t i = 0; c->row && !r && i < declared->n_metrics; i++) {
		c->row[i].metric = &declared->metric[i];
		r = pp_comparison_measure(k, &c->row[i]);
		c->n_rows++;
	}
	return r;
}

int pp_comparison_make(const struct pp_trial *const *before, size_t n_before,
		       const struct pp_trial *const *after, size_t n_after,
		       struct pp_comparison *ret)
{
	struct pp_comparison c = {.arena = PP_ARENA(ARENA)};
	struct pp_comparison_case k = {.c = &c, .arm = {{before, n_before}, {after, n_after}}};
	int r = 0;

	if (!n_before || !n_after)
		return -ENODATA;
	if (n_before > PP_COMPARISON_TRIALS || n_after > PP_COMPARISON_TRIALS)
		return -E2BIG;
	c.workload = after[0]->canary.workload;
	count(&k);
	pp_comparison_liken(&k);
	if (c.alike)
		r = measure(&k);
	if (!r)
		pp_comparison_conclude(&k);
	if (!r && c.arena.failed)
		r = -ENOMEM;
	if (r)
		pp_arena_done(&c.arena);
	else
		*ret = c;
	return r;
}

void pp_comparison_done(struct pp_comparison *c)
{
	pp_arena_done(&c->arena);
}
