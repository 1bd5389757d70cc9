/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/coordinator_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/compiler.h"
#include "rdma/silence.h"
#include "base/banned.h"

static const pp_ns EACH = 200 * PP_MILLISECOND;

/* What is 0 in the options, as the header says. */
static struct pp_bench_options effective(const struct pp_bench_options *given)
{
	struct pp_bench_options o = *given;

	o.repeats = o.repeats ? o.repeats : 5;
	if (o.repeats > PP_CLIMB_REPEATS)
		o.repeats = PP_CLIMB_REPEATS;
	o.each = o.each ? o.each : EACH;
	o.latency_messages = o.latency_messages ? o.latency_messages : 1000;
	o.qps = o.qps ? o.qps : 1;
	o.depth = o.depth ? o.depth : 128;
	if (!o.seed && getrandom(&o.seed, sizeof(o.seed), 0) != sizeof(o.seed))
		o.seed = (uint64_t)pp_clock_wall();
	return o;
}

static unsigned int count(const bool *set, unsigned int n)
{
	unsigned int all = 0;

	for (unsigned int i = 0; i < n; i++)
		all += set[i];
	return all;
}

/* Of one pair: every operation, measure and size on each rung, alone and together. */
unsigned int pp_climb_cells_of(const struct pp_bench_options *o)
{
	return count(o->rung, PP_RUNGS) * count(o->op, PP_OPERATIONS) *
	       count(o->measure, PP_MEASURES) * o->n_sizes * 2;
}

double pp_bench_budget(const struct pp_bench_options *options, unsigned int pairs)
{
	struct pp_bench_options o = effective(options);
	/* filling, checking and telling take their time beside the messages */
	double repeat = 3.0 * (double)o.each / (double)PP_SECOND + 1.0;
	double cells = pp_climb_cells_of(&o) * (pairs > 1 || o.all_rails ? 1.0 : 0.5);

	return 60 + pairs * (30 + cells * (o.repeats + 1) * repeat);
}

void pp_climb_end(struct pp_climb *c, const char *why)
{
	c->over = true;
	if (!c->b->ended)
		c->b->ended = pp_arena_str(c->b->arena, why);
}

static void lose(struct pp_climb *c, unsigned int node, const char *why)
{
	char text[640];

	(void)snprintf(text, sizeof(text), "node %s was lost: %.500s",
		       pp_party_node(c->party, node)->id, why);
	pp_climb_end(c, text);
}

/* Also one that has no part in what runs now: what is left would not be whole. */
static bool find_lost(struct pp_climb *c)
{
	unsigned int node;
	char why[640];

	if (!pp_party_lost(c->party, &node, why, sizeof(why)))
		return false;
	lose(c, node, why);
	return true;
}

bool pp_climb_over(struct pp_climb *c)
{
	if (c->over)
		return true;
	if (c->o->stopped && c->o->stopped())
		pp_climb_end(c, "interrupted");
	else if (pp_clock_monotonic() > c->end)
		pp_climb_end(c, "the time of the run is used up");
	else
		(void)find_lost(c);
	return c->over;
}

/* Does a node still answer? An agent may end by itself; a node that gives no new one is lost. */
static void look_for(struct pp_climb *c, unsigned int node, const char *why)
{
	struct pp_channel *channel;
	struct pp_error err = {0};

	if (find_lost(c))
		return;
	if (!pp_party_agent(c->party, node, &channel, &err)) {
		pp_channel_free(channel);
		return;
	}
	if (!find_lost(c))
		lose(c, node, why);
}

/* While others answer: not so often that it would be seen in what is measured. */
static bool look_around(void *climb)
{
	struct pp_climb *c = climb;
	pp_ns now = pp_clock_monotonic();

	if (now - c->looked < PP_SILENCE_LOOK)
		return false;
	c->looked = now;
	return find_lost(c);
}

int pp_climb_do(struct pp_climb *c, struct pp_order *o, unsigned int n, pp_ns limit)
{
	const struct pp_orders_watch watch = {
		.stopped = c->o->stopped, .look = look_around, .arg = c};
	int r = pp_orders_do(o, n, limit, &watch);

	if (r == -EINTR && !c->over)
		pp_climb_end(c, "interrupted");
	else if (r && !c->over)
		pp_climb_end(c, "out of memory");
	for (unsigned int i = 0; i < n && !c->over; i++)
		if (o[i].outcome == PP_ORDER_LOST)
			look_for(c, o[i].seat->node, o[i].why);
	return c->over ? -ECANCELED : 0;
}

/* All cells of a group, sizes innermost. */
static void climb_group(struct pp_climb *c, const struct pp_group *g)
{
	for (unsigned int op = 0; op < PP_OPERATIONS; op++)
		for (unsigned int m = 0; c->o->op[op] && m < PP_MEASURES; m++)
			for (unsigned int s = 0; c->o->measure[m] && s < c->o->n_sizes; s++)
				if (!pp_climb_over(c))
					pp_climb_cells(c, g, (enum pp_operation)op,
						       (enum pp_measure)m, c->o->size[s]);
}

static void climb_alone(struct pp_climb *c, struct pp_climber *m)
{
	const struct pp_group g = {.member = &m, .n = 1};

	pp_climb_open(c, m);
	climb_group(c, &g);
	if (c->o->negative && !pp_climb_over(c))
		pp_climb_negative(c, m);
	if (c->o->second_witness && !pp_climb_over(c))
		pp_climb_witness(c, m);
	pp_climb_close(c, m);
}

static void climb_together(struct pp_climb *c, unsigned int first, unsigned int n)
{
	struct pp_climber **PP_AUTO_FREE member = calloc(n, sizeof(*member));
	const struct pp_group g = {.member = member, .n = n, .together = true};

	if (!member) {
		pp_climb_end(c, "out of memory");
		return;
	}
	for (unsigned int i = 0; i < n; i++) {
		member[i] = &c->climber[first + i];
		if (!pp_climb_over(c))
			pp_climb_open(c, member[i]);
	}
	climb_group(c, &g);
	for (unsigned int i = 0; i < n; i++)
		pp_climb_close(c, member[i]);
}

/* Each pair alone, then what goes at once, round by round. */
static void climb(struct pp_climb *c)
{
	unsigned int n;

	for (unsigned int i = 0; i < c->n && !pp_climb_over(c); i++)
		if (c->climber[i].alone)
			climb_alone(c, &c->climber[i]);
	for (unsigned int i = 0; i < c->n && !pp_climb_over(c); i += n) {
		for (n = 1; i + n < c->n && c->climber[i + n].round == c->climber[i].round;)
			n++;
		if (c->climber[i].together)
			climb_together(c, i, n);
	}
}

/* What was never begun says why: the run ended, or its rung did. */
static void mark_rest(struct pp_climb *c, struct pp_bench_pair *p)
{
	for (unsigned int r = 0; r < PP_RUNGS; r++)
		if (p->rung[r].state == PP_BENCH_NOT_REACHED && !p->rung[r].why)
			p->rung[r].why = c->b->ended;
	for (unsigned int i = 0; i < p->n_cells; i++) {
		struct pp_bench_cell *cell = &p->cells[i];

		if (cell->state != PP_BENCH_NOT_REACHED)
			continue;
		if (p->rung[cell->rung].state == PP_BENCH_SKIPPED ||
		    p->rung[cell->rung].state == PP_BENCH_FAILED) {
			cell->state = PP_BENCH_SKIPPED;
			cell->why = p->rung[cell->rung].why;
		} else {
			cell->why = c->b->ended;
		}
	}
}

static void finish(struct pp_climb *c)
{
	for (unsigned int i = 0; i < c->n; i++) {
		pp_climb_close(c, &c->climber[i]);
		mark_rest(c, c->climber[i].pair);
	}
	pp_climb_end_late(c);
	for (unsigned int i = 0; i < c->b->n_nodes; i++)
		json_decref(c->look[i]);
	free(c->look);
	free(c->climber);
	c->b->whole = !c->over;
	c->b->took = pp_clock_wall() - c->b->started;
}

int pp_bench_run(struct pp_party *party, const struct pp_bench_options *options,
		 struct pp_bench **ret, struct pp_error *err)
{
	struct pp_bench_options o = effective(options);
	struct pp_climb *c;
	int r;

	if (!pp_climb_cells_of(&o))
		return pp_error_set(err, -EINVAL,
				    "no way, operation, measure or size was asked for");
	c = calloc(1, sizeof(*c));
	r = c ? pp_bench_new(&c->b) : -ENOMEM;
	if (r) {
		free(c);
		return pp_error_set(err, r, "out of memory");
	}
	c->party = party;
	c->o = &o;
	c->seed = o.seed;
	c->b->started = pp_clock_wall();
	c->b->version = PEERPATH_VERSION;
	c->b->repeats = o.repeats;
	c->b->pattern = o.pattern;
	r = pp_climb_look(c, err);
	if (!r) {
		c->end = pp_clock_monotonic() +
			 (pp_ns)(pp_bench_budget(&o, c->n) * (double)PP_SECOND);
		climb(c);
	}
	finish(c);
	if (!r && c->b->arena->failed)
		r = pp_error_set(err, -ENOMEM, "out of memory");
	if (r)
		pp_bench_free(c->b);
	else
		*ret = c->b;
	free(c);
	return r;
}
