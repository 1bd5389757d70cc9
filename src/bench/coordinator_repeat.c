/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One repeat of a rung by a group of pairs: fill, ready, run, check, each step by all ends at once.
 *
 * A pair whose end fails leaves the group; the others finish the repeat. Ends that are passive run
 * nothing: what they spent is asked for when the messages have gone.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "bench/coordinator_state.h"
#include "base/banned.h"

static const pp_ns FILL = 60 * PP_SECOND, READY = 30 * PP_SECOND, RUN = 10 * PP_SECOND;

struct repeat {
	struct pp_climb *c;
	const struct pp_group *g;
	enum pp_rung rung;
	bool measured;
	struct pp_order *order;	    /* 2 * g->n */
	unsigned int *member, *end; /* whose each order is */
	unsigned int n;
	int64_t seed[2];
};

/* Both ends work, whatever the operation. */
static bool is_two_sided(const struct pp_bench_cell *cell)
{
	return cell->rung == PP_RUNG_TCP || cell->rung == PP_RUNG_STAGED;
}

static enum pp_role role_of(const struct pp_bench_cell *cell, unsigned int end)
{
	static const enum pp_role bandwidth[PP_OPERATIONS][2] = {
		[PP_WRITE] = {PP_ROLE_ACTIVE, PP_ROLE_PASSIVE},
		[PP_READ] = {PP_ROLE_PASSIVE, PP_ROLE_ACTIVE},
		[PP_SEND] = {PP_ROLE_ACTIVE, PP_ROLE_RECEIVE},
	};
	static const enum pp_role latency[PP_OPERATIONS][2] = {
		[PP_WRITE] = {PP_ROLE_PING, PP_ROLE_PONG},
		[PP_READ] = {PP_ROLE_PASSIVE, PP_ROLE_PING},
		[PP_SEND] = {PP_ROLE_PING, PP_ROLE_PONG},
	};
	enum pp_operation op = is_two_sided(cell) ? PP_SEND : cell->op;

	if (cell->measure == PP_BIDIRECTIONAL)
		return PP_ROLE_ACTIVE;
	return (cell->measure == PP_LATENCY ? latency : bandwidth)[op][end];
}

/* Does anything come to this end? */
static bool is_target(const struct pp_bench_cell *cell, unsigned int end)
{
	if (cell->measure == PP_BIDIRECTIONAL)
		return true;
	if (cell->measure == PP_LATENCY && (cell->op != PP_READ || is_two_sided(cell)))
		return true;
	return end == 1;
}

static struct pp_gathering *now(const struct repeat *r, unsigned int i)
{
	struct pp_gathering *g = &r->g->member[i]->now[r->rung];

	return g->cell && g->cell->state == PP_BENCH_RUN &&
			       pp_rung_is_open(r->g->member[i], r->rung)
		       ? g
		       : NULL;
}

static void cell_fail(struct repeat *r, unsigned int i, unsigned int end, const struct pp_order *o)
{
	struct pp_climber *m = r->g->member[i];
	struct pp_bench_cell *cell = m->now[r->rung].cell;

	/* its rung ends with it: queue pairs are in error, and what is outstanding is not known */
	pp_rung_fail(r->c, m, r->rung, o, end);
	cell->state = PP_BENCH_FAILED;
	cell->why = m->pair->rung[r->rung].why;
	cell->error = m->pair->rung[r->rung].error;
	cell->status = m->pair->rung[r->rung].status;
	cell->end = end;
}

/* Forgets the last step's orders. */
static void begin_step(struct repeat *r)
{
	pp_orders_free(r->order, r->n);
	r->n = 0;
}

static struct pp_json *order(struct repeat *r, unsigned int i, unsigned int end, enum pp_do what)
{
	r->member[r->n] = i;
	r->end[r->n] = end;
	return pp_order_begin(&r->order[r->n++], &r->g->member[i]->seat[r->rung][end], what);
}

/*
 * Of two ends of which one failed the other fails too, a little later and for another reason: that
 * its peer is silent. The one with a reason of its own is told.
 */
static bool is_cause(const struct pp_order *o)
{
	int64_t error = pp_climb_number(o->answer, "error", 0);

	return o->outcome == PP_ORDER_LOST ||
	       (o->outcome == PP_ORDER_REFUSED && error != ETIMEDOUT && error != ECONNRESET);
}

/* A seat that was given up is not open any more: it is the cell that tells who takes part. */
static bool takes_part(const struct repeat *r, unsigned int i)
{
	const struct pp_bench_cell *cell = r->g->member[i]->now[r->rung].cell;

	return cell && cell->state == PP_BENCH_RUN;
}

static void blame(struct repeat *r)
{
	for (unsigned int pass = 0; pass < 2; pass++)
		for (unsigned int k = 0; k < r->n; k++)
			if (r->order[k].outcome != PP_ORDER_DONE && takes_part(r, r->member[k]) &&
			    (pass || is_cause(&r->order[k])))
				cell_fail(r, r->member[k], r->end[k], &r->order[k]);
}

static bool do_step(struct repeat *r, pp_ns limit)
{
	bool go_on = !pp_climb_do(r->c, r->order, r->n, limit);

	if (go_on || !r->c->over)
		blame(r);
	return !r->c->over;
}

static bool fill(struct repeat *r)
{
	begin_step(r);
	for (unsigned int i = 0; i < r->g->n; i++)
		for (unsigned int e = 0; now(r, i) && e < 2; e++)
			pp_json_i64(order(r, i, e, PP_DO_FILL), "seed", r->seed[e]);
	return do_step(r, FILL);
}

/* How late each end was, by this process's clock, behind the first of all. */
static void note_arrivals(struct repeat *r)
{
	pp_ns first = INT64_MAX;

	for (unsigned int k = 0; k < r->n; k++)
		if (r->order[k].outcome == PP_ORDER_DONE && r->order[k].arrived < first)
			first = r->order[k].arrived;
	for (unsigned int k = 0; r->measured && k < r->n; k++) {
		struct pp_gathering *g = now(r, r->member[k]);
		double late = (double)(r->order[k].arrived - first) / 1000;

		if (!g || r->order[k].outcome != PP_ORDER_DONE)
			continue;
		pp_climb_note_late(r->c, r->order[k].seat->node, late);
		/* of a pair the later end */
		if (r->end[k] && g->n_skew && late > g->skew[g->n_skew - 1])
			g->skew[g->n_skew - 1] = late;
		else if (!r->end[k] && g->n_skew < PP_CLIMB_REPEATS)
			g->skew[g->n_skew++] = late;
	}
}

static bool ready(struct repeat *r)
{
	struct pp_gathering *g;
	struct pp_json *j;
	bool go_on;

	begin_step(r);
	for (unsigned int i = 0; i < r->g->n; i++) {
		for (unsigned int e = 0; (g = now(r, i)) && e < 2; e++) {
			j = order(r, i, e, PP_DO_READY);
			pp_json_str(j, "op", pp_operation_name(g->cell->op));
			pp_json_str(j, "measure", pp_measure_name(g->cell->measure));
			pp_json_str(j, "role", pp_role_name(role_of(g->cell, e)));
			pp_json_u64(j, "size", g->cell->size);
			pp_json_u64(j, "messages", g->messages);
		}
	}
	go_on = do_step(r, READY);
	if (go_on)
		note_arrivals(r);
	return go_on;
}

static void take_counters(struct pp_climb *c, struct pp_bench_cell *cell, unsigned int end,
			  json_t *counters)
{
	const char *name;
	json_t *v;

	json_object_foreach(counters, name, v)
	{
		if (json_is_integer(v))
			pp_climb_count(c, cell, end, name, json_integer_value(v));
	}
}

static void take_gpu(struct pp_climb *c, struct pp_bench_cell *cell, unsigned int end,
		     const json_t *answer)
{
	int64_t mhz = pp_climb_number(answer, "gpu_mhz", -1);

	if (mhz >= 0 && (cell->gpu_mhz[end] < 0 || mhz < cell->gpu_mhz[end]))
		cell->gpu_mhz[end] = mhz;
	if (json_object_get(answer, "throttle"))
		cell->throttle[end] = pp_climb_text(c, answer, "throttle");
}

static void take_run(struct repeat *r, unsigned int k, double *rate)
{
	struct pp_order *o = &r->order[k];
	struct pp_gathering *g = now(r, r->member[k]);
	unsigned int end = r->end[k];
	double bytes = (double)pp_climb_amount(o->answer, "bytes");
	double took = (double)pp_climb_amount(o->answer, "took_ns");
	enum pp_role role;

	if (!g || o->outcome != PP_ORDER_DONE)
		return;
	role = role_of(g->cell, end);
	if ((role == PP_ROLE_ACTIVE || role == PP_ROLE_PING) && took > 0) {
		rate[r->member[k]] += bytes / took * 1000; /* bytes a ns to MB/s */
		g->expected = (pp_ns)took;
	}
	if (!r->measured)
		return;
	if (role == PP_ROLE_ACTIVE || role == PP_ROLE_PING) {
		g->cell->bytes += (uint64_t)bytes;
		g->cell->messages += g->messages;
	}
	g->cpu[end] += (double)pp_climb_amount(o->answer, "cpu_ns") / (double)PP_SECOND;
	g->cell->copies += pp_climb_amount(o->answer, "copies");
	take_counters(r->c, g->cell, end, json_object_get(o->answer, "counters"));
	take_gpu(r->c, g->cell, end, o->answer);
	if (role == PP_ROLE_PING)
		pp_climb_take_latencies(g, json_object_get(o->answer, "latency_ns"));
}

static pp_ns longest(const struct repeat *r)
{
	struct pp_gathering *g;
	pp_ns most = 0;

	for (unsigned int i = 0; i < r->g->n; i++) {
		g = now(r, i);
		if (g && g->expected > most)
			most = g->expected;
	}
	return most;
}

static bool run_step(struct repeat *r, bool passive, double *rate)
{
	struct pp_gathering *g;

	begin_step(r);
	for (unsigned int i = 0; i < r->g->n; i++)
		for (unsigned int e = 0; (g = now(r, i)) && e < 2; e++)
			if ((role_of(g->cell, e) == PP_ROLE_PASSIVE) == passive)
				(void)order(r, i, e, PP_DO_RUN);
	if (!do_step(r, RUN + 20 * longest(r)))
		return false;
	for (unsigned int k = 0; k < r->n; k++)
		take_run(r, k, rate);
	return true;
}

static bool check(struct repeat *r)
{
	struct pp_gathering *g;
	struct pp_json *j;

	begin_step(r);
	for (unsigned int i = 0; i < r->g->n; i++) {
		for (unsigned int e = 0; (g = now(r, i)) && e < 2; e++) {
			if (!is_target(g->cell, e))
				continue;
			j = order(r, i, e, PP_DO_CHECK);
			pp_json_i64(j, "seed", r->seed[!e]);
			pp_json_i64(j, "own", r->seed[e]);
			pp_json_u64(j, "size", g->cell->size);
			pp_json_i64(j, "way", !e);
		}
	}
	if (!do_step(r, FILL))
		return false;
	for (unsigned int k = 0; k < r->n; k++) {
		const json_t *a = r->order[k].answer;
		uint64_t wrong = pp_climb_amount(a, "wrong");

		g = now(r, r->member[k]);
		if (!g || r->order[k].outcome != PP_ORDER_DONE)
			continue;
		if (wrong && !g->cell->wrong) {
			g->cell->first_wrong = pp_climb_amount(a, "first");
			g->cell->end = r->end[k];
		}
		g->cell->wrong += wrong;
		g->cell->checked += pp_climb_amount(a, "bytes");
	}
	return true;
}

static bool all_steps(struct repeat *r, double *rate)
{
	if (r->measured && !fill(r))
		return false;
	return ready(r) && run_step(r, false, rate) && run_step(r, true, rate) &&
	       (!r->measured || check(r));
}

void pp_climb_repeat(struct pp_climb *c, const struct pp_group *g, enum pp_rung rung, bool measured)
{
	struct pp_order *PP_AUTO_FREE orders = calloc((size_t)2 * g->n, sizeof(*orders));
	unsigned int *PP_AUTO_FREE whose = calloc((size_t)4 * g->n, sizeof(*whose));
	double *PP_AUTO_FREE rate = calloc(g->n, sizeof(*rate));
	struct repeat r = {.c = c, .g = g, .rung = rung, .measured = measured, .order = orders};

	if (!orders || !whose || !rate) {
		pp_climb_end(c, "out of memory");
		return;
	}
	r.member = whose;
	r.end = whose + (size_t)2 * g->n;
	for (unsigned int e = 0; e < 2; e++)
		r.seed[e] = pp_climb_seed(c);
	if (all_steps(&r, rate) && measured)
		for (unsigned int i = 0; i < g->n; i++)
			if (now(&r, i))
				pp_climb_sample(now(&r, i), rate[i]);
	begin_step(&r);
}
