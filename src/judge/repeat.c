/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/repeat.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "judge/repeat_parts.h"
#include "judge/transfer_parts.h"
#include "base/banned.h"

enum { ARENA_LIMIT = 256 << 20 };

const char *pp_repeat_state_name(enum pp_repeat_state s)
{
	static const char *const names[PP_REPEAT_STATES] = {"same", "better", "worse", "gone"};

	return names[s];
}

static struct pp_repeat_row *add(struct pp_repeat_case *c, unsigned int pair, enum pp_rung rung,
				 enum pp_repeat_state state, bool decides)
{
	struct pp_repeat_row *row = &c->r->rows[c->r->n_rows++];

	*row = (struct pp_repeat_row){
		.pair = pair, .rung = rung, .state = state, .decides = decides, .ratio = NAN};
	return row;
}

static bool ran(const struct pp_bench_cell *cell)
{
	return cell->state == PP_BENCH_RUN && cell->n_samples;
}

static const char *cell_text(struct pp_repeat_case *c, const struct pp_bench_cell *cell)
{
	return pp_arena_printf(c->arena, "%s of %s, %s by %s%s", pp_measure_name(cell->measure),
			       pp_operation_name(cell->op), pp_size_text(c->arena, cell->size),
			       pp_rung_name(cell->rung), cell->together ? ", together" : "");
}

/* What is more for bandwidth is less for latency. */
static enum pp_repeat_state speed_of(const struct pp_repeat_case *c,
				     const struct pp_bench_cell *cell, double ratio)
{
	double gain = cell->measure == PP_LATENCY && ratio > 0 ? 1 / ratio : ratio;

	if (gain > 1 + c->margins->spread)
		return PP_REPEAT_BETTER;
	return gain < 1 - c->margins->spread ? PP_REPEAT_WORSE : PP_REPEAT_SAME;
}

static void compare_cell(struct pp_repeat_case *c, unsigned int pair,
			 const struct pp_bench_cell *before, const struct pp_bench_cell *after)
{
	bool judged = pp_cell_is_bandwidth(before) && before->size >= c->margins->from;
	double was = pp_median(before->sample, before->n_samples);
	double is = pp_median(after->sample, after->n_samples);
	struct pp_repeat_row *row;

	if (!ran(before) && !ran(after))
		return;
	row = add(c, pair, before->rung, PP_REPEAT_SAME, true);
	row->before = before;
	row->after = after;
	if (!ran(before)) {
		row->state = PP_REPEAT_BETTER;
	} else if (!ran(after)) {
		row->state = PP_REPEAT_GONE;
		row->why = after->why;
	} else if (after->wrong) {
		row->state = PP_REPEAT_WORSE;
		row->why = "wrong bytes";
	} else {
		row->ratio = was > 0 ? is / was : NAN;
		row->decides = judged;
		row->state = isnan(row->ratio) ? PP_REPEAT_SAME : speed_of(c, before, row->ratio);
		if (isnan(row->ratio))
			pp_repeat_differ(c, "%s has no number in one of the runs",
					 cell_text(c, before));
	}
}

/* Both runs' cells of one rung in one order: what only one of them has is a difference. */
static void compare_cells(struct pp_repeat_case *c, unsigned int pair,
			  const struct pp_bench_cell **was, size_t n_was,
			  const struct pp_bench_cell **is, size_t n_is)
{
	size_t i = 0, k = 0;

	while (i < n_was || k < n_is) {
		int order = i == n_was ? 1 : k == n_is ? -1 : pp_cell_order(&was[i], &is[k]);

		if (!order)
			compare_cell(c, pair, was[i++], is[k++]);
		else if (order < 0)
			pp_repeat_differ(c, "%s was asked for before only", cell_text(c, was[i++]));
		else
			pp_repeat_differ(c, "%s was asked for after only", cell_text(c, is[k++]));
	}
}

/* The cells of @rung, sorted; NULL with *ret_n 0 when there is no memory for them. */
static const struct pp_bench_cell **
cells_of(struct pp_repeat_case *c, const struct pp_bench_pair *p, enum pp_rung rung, size_t *ret_n)
{
	const struct pp_bench_cell **list =
		pp_arena_array(c->arena, (size_t)p->n_cells + 1, sizeof(*list));
	size_t n = 0;

	for (unsigned int i = 0; list && i < p->n_cells; i++)
		if (p->cells[i].rung == rung)
			list[n++] = &p->cells[i];
	if (n)
		qsort(list, n, sizeof(*list), pp_cell_order);
	*ret_n = n;
	return list;
}

static void compare_rung(struct pp_repeat_case *c, unsigned int pair,
			 const struct pp_bench_pair *was, const struct pp_bench_pair *is,
			 enum pp_rung rung)
{
	const struct pp_bench_rung *a = &was->rung[rung], *b = &is->rung[rung];
	const struct pp_bench_cell **before, **after;
	size_t n_before, n_after;

	if (a->state != PP_BENCH_RUN && b->state != PP_BENCH_RUN)
		return;
	if (a->state == PP_BENCH_RUN && b->state == PP_BENCH_SKIPPED) {
		pp_repeat_differ(c, "%s was run before only", pp_rung_name(rung));
		return;
	}
	if (a->state == PP_BENCH_SKIPPED) {
		pp_repeat_differ(c, "%s was run after only", pp_rung_name(rung));
		return;
	}
	if (a->state != PP_BENCH_RUN || b->state != PP_BENCH_RUN) {
		struct pp_repeat_row *row =
			add(c, pair, rung,
			    a->state == PP_BENCH_RUN ? PP_REPEAT_GONE : PP_REPEAT_BETTER, true);

		row->why = b->why ? b->why : b->call;
		return;
	}
	if (a->memory != b->memory)
		pp_repeat_differ(c, "memory of %s: %s before, %s after", pp_rung_name(rung),
				 pp_memory_kind_name(a->memory), pp_memory_kind_name(b->memory));
	before = cells_of(c, was, rung, &n_before);
	after = cells_of(c, is, rung, &n_after);
	compare_cells(c, pair, before, n_before, after, n_after);
}

static const struct pp_repeat_row *worst_row(const struct pp_repeat *r, enum pp_repeat_state state)
{
	const struct pp_repeat_row *worst = NULL;

	for (unsigned int i = 0; i < r->n_rows; i++) {
		const struct pp_repeat_row *row = &r->rows[i];

		if (row->state != state || !row->decides)
			continue;
		/* a row without a ratio has no bytes, or wrong ones: nothing is worse */
		if (!worst || (isnan(row->ratio) && !isnan(worst->ratio)) ||
		    row->ratio < worst->ratio)
			worst = row;
	}
	return worst;
}

static const char *row_text(struct pp_repeat_case *c, const struct pp_repeat_row *row)
{
	const char *what = row->before ? cell_text(c, row->before) : pp_rung_name(row->rung);

	if (row->why)
		return pp_arena_printf(c->arena, "%s: %s", what, row->why);
	return isnan(row->ratio)
		       ? what
		       : pp_arena_printf(c->arena, "%s at %.2f of before", what, row->ratio);
}

static void conclude(struct pp_repeat_case *c)
{
	struct pp_repeat *r = c->r;
	const struct pp_repeat_row *gone = worst_row(r, PP_REPEAT_GONE);
	const struct pp_repeat_row *worse = worst_row(r, PP_REPEAT_WORSE);
	unsigned int decide = 0;

	for (unsigned int i = 0; i < r->n_rows; i++)
		r->count[r->rows[i].state] += r->rows[i].decides;
	for (unsigned int i = 0; i < PP_REPEAT_STATES; i++)
		decide += r->count[i];
	r->alike = !r->n_differences;
	if (!r->alike) {
		r->verdict = PP_UNKNOWN;
		r->sentence =
			pp_arena_printf(c->arena, "unlike, and so not compared: %s%s",
					r->difference[0], r->n_differences > 1 ? "; and more" : "");
	} else if (gone || (worse && worse->why)) {
		r->verdict = PP_FAIL;
		r->sentence = pp_arena_printf(c->arena, "%s: %s", gone ? "gone" : "worse",
					      row_text(c, gone ? gone : worse));
	} else if (worse) {
		r->verdict = PP_DEGRADED;
		r->sentence = pp_arena_printf(
			c->arena, "worse: %u of %u measurements by more than %.1f %%; %s",
			r->count[PP_REPEAT_WORSE], decide, 100 * c->margins->spread,
			row_text(c, worse));
	} else if (!decide) {
		r->verdict = PP_UNKNOWN;
		r->sentence = pp_arena_printf(c->arena, "no size of %s or more was measured twice",
					      pp_size_text(c->arena, c->margins->from));
	} else {
		r->verdict = PP_PASS;
		r->sentence = pp_arena_printf(
			c->arena, "as before: %u measurements, none worse by more than %.1f %%%s",
			decide, 100 * c->margins->spread,
			r->count[PP_REPEAT_BETTER] ? ", some better" : "");
	}
}

static const char *software_of(const struct pp_bench *b)
{
	const char *name = NULL;

	for (unsigned int i = 0; i < b->n_pairs; i++)
		for (unsigned int k = 0; k < 2 && !name; k++)
			name = pp_bench_software(&b->pairs[i].end[k]);
	return name;
}

/* Nothing that is no hardware passes, nor is worse. */
static void cap(struct pp_repeat_case *c)
{
	struct pp_repeat *r = c->r;
	const char *software = software_of(c->before);

	software = software ? software : software_of(c->after);
	if ((!r->simulated && !software) || r->verdict >= PP_UNKNOWN)
		return;
	r->verdict = PP_UNKNOWN;
	r->sentence = r->simulated ? pp_arena_printf(c->arena, "in simulation, %s", r->sentence)
				   : pp_arena_printf(c->arena, "on %s, software in the kernel, %s",
						     software, r->sentence);
}

static bool is_simulated(const struct pp_bench *b)
{
	bool yes = b->simulated;

	for (unsigned int i = 0; i < b->n_nodes; i++)
		yes |= b->nodes[i].simulated;
	for (unsigned int i = 0; i < b->n_pairs; i++)
		for (unsigned int k = 0; k < 2; k++)
			yes |= b->pairs[i].end[k].simulated;
	return yes;
}

int pp_repeat_compare(const struct pp_bench *before, const struct pp_bench *after,
		      const struct pp_margins *margins, struct pp_repeat *ret)
{
	struct pp_repeat r = {0};
	struct pp_repeat_case c = {before, after, margins, &r, &r.arena};
	size_t rows = 1;

	r.arena = PP_ARENA(ARENA_LIMIT);
	r.simulated = is_simulated(before) || is_simulated(after);
	for (unsigned int i = 0; i < before->n_pairs; i++)
		rows += before->pairs[i].n_cells + PP_RUNGS;
	r.rows = pp_arena_array(&r.arena, rows, sizeof(*r.rows));
	if (!r.rows) {
		pp_arena_done(&r.arena);
		return -ENOMEM;
	}
	pp_repeat_nodes(&c);
	for (unsigned int i = 0; i < before->n_pairs; i++) {
		const struct pp_bench_pair *now = pp_repeat_partner(&c, &before->pairs[i]);

		for (unsigned int k = 0; now && k < PP_RUNGS; k++)
			compare_rung(&c, i, &before->pairs[i], now, (enum pp_rung)k);
	}
	if (!before->whole || !after->whole)
		pp_repeat_differ(&c, "the run %s is not whole", before->whole ? "after" : "before");
	conclude(&c);
	cap(&c);
	if (r.arena.failed) {
		pp_arena_done(&r.arena);
		return -ENOMEM;
	}
	*ret = r;
	return 0;
}

void pp_repeat_done(struct pp_repeat *r)
{
	pp_arena_done(&r->arena);
	*r = (struct pp_repeat){0};
}

static void write_row(struct pp_json *j, const struct pp_repeat_row *row)
{
	const struct pp_bench_cell *cell = row->before;

	pp_json_object(j, NULL);
	pp_json_u64(j, "pair", row->pair);
	pp_json_str(j, "rung", pp_rung_name(row->rung));
	pp_json_str(j, "operation", cell ? pp_operation_name(cell->op) : NULL);
	pp_json_str(j, "measure", cell ? pp_measure_name(cell->measure) : NULL);
	if (cell)
		pp_json_u64(j, "size_bytes", cell->size);
	else
		pp_json_null(j, "size_bytes");
	pp_json_str(j, "state", pp_repeat_state_name(row->state));
	pp_json_bool(j, "decides", row->decides);
	pp_json_double(j, "after_to_before_ratio", row->ratio);
	pp_json_str(j, "why", row->why);
	pp_json_end_object(j);
}

void pp_repeat_write(struct pp_json *j, const char *key, const struct pp_repeat *r)
{
	pp_json_object(j, key);
	pp_json_str(j, "verdict", pp_verdict_name(r->verdict));
	pp_json_str(j, "sentence", r->sentence);
	pp_json_bool(j, "alike", r->alike);
	pp_json_bool(j, "simulated", r->simulated);
	pp_json_array(j, "differences");
	for (unsigned int i = 0; i < r->n_differences; i++)
		pp_json_str(j, NULL, r->difference[i]);
	pp_json_end_array(j);
	pp_json_u64(j, "more_differences", r->more_differences);
	for (unsigned int i = 0; i < PP_REPEAT_STATES; i++)
		pp_json_u64(j, pp_repeat_state_name((enum pp_repeat_state)i), r->count[i]);
	pp_json_array(j, "rows");
	for (unsigned int i = 0; i < r->n_rows; i++)
		write_row(j, &r->rows[i]);
	pp_json_end_array(j);
	pp_json_end_object(j);
}
