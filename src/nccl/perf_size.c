/* SPDX-License-Identifier: Apache-2.0 */
/* One size of a collective: timed and checked in both places, sampled out of place. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/statistics.h"
#include "nccl/perf_state.h"
#include "base/banned.h"

/* Samples take at most so long, but are a few at least. */
#define SAMPLING (2 * PP_SECOND)
enum { FEW = 3, DOING = 96 };

struct task {
	enum pp_collective collective;
	uint64_t bytes, salt;
	bool in_place;
	unsigned int iterations, aggregate;
};

/* What a rank may take beyond its own limit: filling and comparing at a slow 200 MB/s. */
static pp_ns limit_of(const struct pp_perf_course *c, const struct task *t)
{
	return 2 * c->p->options.limit + 10 * PP_SECOND + (pp_ns)(t->bytes * 10);
}

static int order(struct pp_perf_course *c, const char *what, const struct task *t,
		 struct pp_error *err)
{
	const struct pp_perf_options *o = &c->p->options;
	struct pp_buf text;
	char doing[DOING];
	struct pp_json j;

	pp_perf_order_begin(&j, &text, what);
	pp_json_u64(&j, "collective", t->collective);
	pp_json_u64(&j, "element", o->element);
	pp_json_u64(&j, "reduction", o->reduction);
	pp_json_u64(&j, "bytes", t->bytes);
	pp_json_bool(&j, "in_place", t->in_place);
	pp_json_u64(&j, "iterations", t->iterations);
	pp_json_u64(&j, "aggregate", t->aggregate);
	pp_json_i64(&j, "limit_ns", o->limit);
	pp_json_u64(&j, "salt", t->salt);
	(void)snprintf(doing, sizeof(doing), "%s of %llu bytes%s",
		       pp_collective_name(t->collective), (unsigned long long)t->bytes,
		       t->in_place ? " in place" : "");
	return pp_perf_order(c, &j, &text, -1, limit_of(c, t), doing, err);
}

static double real_answer(const struct pp_perf_seat *s, const char *key)
{
	double v = json_number_value(json_object_get(s->answer, key));

	return isfinite(v) && v > 0 ? v : 0;
}

static int time_it(struct pp_perf_course *c, const struct task *given, struct pp_perf_row *row,
		   struct pp_error *err)
{
	struct pp_perf_place *place = &row->place[given->in_place];
	double ns = 0, cpu = 0, operations = (double)given->iterations * given->aggregate, gb;
	int r = order(c, "time", given, err);

	if (r || !operations)
		return r;
	for (unsigned int i = 0; i < c->n; i++) {
		ns += (double)pp_perf_answer(&c->seat[i], "ns") / c->n;
		cpu += real_answer(&c->seat[i], "cpu_s");
	}
	gb = (double)row->shape.bytes / 1e9;
	place->measured = true;
	place->time_us = ns / operations / 1e3;
	place->alg_gbps = place->time_us > 0 ? gb / (place->time_us / 1e6) : 0;
	place->bus_gbps = place->alg_gbps * pp_collective_factor(given->collective, c->n);
	place->cpu_s_per_gb = gb > 0 ? cpu / operations / gb : 0;
	return 0;
}

/* Every check another payload, so that what an earlier one left is wrong. */
static int check_it(struct pp_perf_course *c, struct task t, struct pp_perf_row *row,
		    struct pp_error *err)
{
	struct pp_perf_place *place = &row->place[t.in_place];
	uint64_t wrong, checked = 0;
	int r = 0;

	t.iterations = t.aggregate = 1;
	place->wrong_rank = -1;
	for (unsigned int k = 0; k < c->p->options.checks && !r; k++) {
		t.salt = ++c->salt;
		r = order(c, "check", &t, err);
		for (unsigned int i = 0; i < c->n && !r; i++) {
			wrong = (uint64_t)pp_perf_answer(&c->seat[i], "wrong");
			checked = (uint64_t)pp_perf_answer(&c->seat[i], "checked");
			if (checked != row->shape.receive)
				return pp_error_set(err, -EIO,
						    "rank %u compared %llu of %llu elements", i,
						    (unsigned long long)checked,
						    (unsigned long long)row->shape.receive);
			place->checked += checked;
			place->wrong += wrong;
			if (!wrong || place->wrong_rank >= 0)
				continue;
			place->wrong_rank = (int)i;
			place->wrong_at = (uint64_t)pp_perf_answer(&c->seat[i], "first");
		}
	}
	place->verified = !r && c->p->options.checks;
	return r;
}

/* Of rank @i, sample @k: ns; -1 where the answer is none. */
static double sample(const struct pp_perf_course *c, unsigned int i, const char *key,
		     unsigned int k)
{
	const json_t *v = json_array_get(json_object_get(c->seat[i].answer, key), k);

	return json_is_integer(v) ? (double)json_integer_value(v) : -1;
}

/* When it was entered, on the coordinator's clock. */
static double entry(const struct pp_perf_course *c, unsigned int i, unsigned int k)
{
	return sample(c, i, "entered_ns", k) - c->p->rank[i].offset_ns;
}

/* An operation took what its slowest rank took, each by its own clock. */
static int take_times(struct pp_perf_course *c, unsigned int n, struct pp_perf_row *row,
		      struct pp_error *err)
{
	double *PP_AUTO_FREE us = calloc(n, sizeof(*us));

	if (!us)
		return pp_error_set(err, -ENOMEM, "no memory for samples");
	for (unsigned int k = 0; k < n; k++)
		for (unsigned int i = 0; i < c->n; i++)
			us[k] = fmax(us[k], sample(c, i, "took_ns", k) / 1e3);
	pp_sort(us, n);
	row->samples = n;
	row->p50_us = pp_percentile(us, n, 0.5);
	row->p99_us = pp_percentile(us, n, 0.99);
	return 0;
}

static int take_skew(struct pp_perf_course *c, unsigned int n, struct pp_perf_row *row,
		     struct pp_error *err)
{
	double *PP_AUTO_FREE first = calloc(n, sizeof(*first));
	double *PP_AUTO_FREE late = calloc(n, sizeof(*late));

	row->skew = pp_arena_array(&c->p->arena, c->n, sizeof(*row->skew));
	if (!first || !late || !row->skew)
		return pp_error_set(err, -ENOMEM, "no memory for samples");
	for (unsigned int k = 0; k < n; k++) {
		first[k] = INFINITY;
		for (unsigned int i = 0; i < c->n; i++)
			first[k] = fmin(first[k], entry(c, i, k));
	}
	for (unsigned int i = 0; i < c->n; i++) {
		for (unsigned int k = 0; k < n; k++)
			late[k] = (entry(c, i, k) - first[k]) / 1e3;
		pp_sort(late, n);
		row->skew[i] = (struct pp_perf_skew){.p50_us = pp_percentile(late, n, 0.5),
						     .max_us = late[n - 1]};
	}
	return 0;
}

static int sample_it(struct pp_perf_course *c, struct task t, struct pp_perf_row *row,
		     struct pp_error *err)
{
	double us = row->place[PP_PERF_OUT_OF_PLACE].time_us, fit = PP_PERF_SAMPLES;
	unsigned int n = t.iterations < PP_PERF_SAMPLES ? t.iterations : PP_PERF_SAMPLES;
	int r;

	if (us > 0)
		fit = (double)SAMPLING / 1e3 / us;
	if (fit < n)
		n = fit < FEW ? FEW : (unsigned int)fit;
	if (n > t.iterations)
		n = t.iterations;
	if (!n)
		return 0;
	t.iterations = n;
	t.aggregate = 1;
	r = order(c, "sample", &t, err);
	for (unsigned int i = 0; i < c->n && !r; i++)
		if (sample(c, i, "entered_ns", n - 1) < 0 || sample(c, i, "took_ns", n - 1) < 0)
			r = pp_error_set(err, -EPROTO, "rank %u did not tell its samples", i);
	r = r ? r : take_times(c, n, row, err);
	return r ? r : take_skew(c, n, row, err);
}

int pp_perf_size(struct pp_perf_course *c, struct pp_perf_run *run, uint64_t bytes,
		 struct pp_perf_row *row, struct pp_error *err)
{
	const struct pp_perf_options *o = &c->p->options;
	struct task t = {.collective = run->collective,
			 .bytes = bytes,
			 .iterations = o->iterations,
			 .aggregate = o->aggregate};
	int r = time_it(c, &t, row, err);

	r = r ? r : sample_it(c, t, row, err);
	r = r ? r : check_it(c, t, row, err);
	t.in_place = true;
	r = r ? r : time_it(c, &t, row, err);
	if (!r && pp_collective_in_place(run->collective))
		r = check_it(c, t, row, err);
	return r;
}

int pp_perf_warm(struct pp_perf_course *c, enum pp_collective collective, struct pp_error *err)
{
	const struct pp_perf_options *o = &c->p->options;
	struct task t = {.collective = collective, .iterations = o->warmups, .aggregate = 1};
	int r = 0;

	for (int k = 0; k < 2 && o->warmups && !r; k++) {
		t.bytes = o->size[k ? 0 : o->n_sizes - 1];
		r = order(c, "time", &t, err);
	}
	return r;
}
