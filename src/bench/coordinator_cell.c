/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cells of one operation, measure and size: how many messages a repeat has, repeats of all
 * rungs in turn, and what they come to.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/statistics.h"
#include "bench/coordinator_state.h"
#include "bench/slots.h"
#include "base/banned.h"

enum {
	WARM_BYTES = 4 << 20,
	WARM_LEAST = 8,
	WARM_MOST = 2000,
	WARM_PINGS = 16,
	WARM_ROUNDS = 4,
	GROWTH = 8,
	MESSAGES_LEAST = 4, /* fewer tell of the first and the last alone */
	MESSAGES_MOST = 1000000000,
	COUNTERS = 192,
	COUNTERS_STEP = 32,
	NAME_MOST = 63,
	LATE_MOST = 1 << 16,
};

/* A repeat of latency is cut short here, however many messages were asked for. */
static const int LATENCY_TIMES = 2;

int64_t pp_climb_seed(struct pp_climb *c)
{
	/* splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014) */
	uint64_t z = c->seed + ++c->turn * UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (int64_t)((z ^ z >> 31) & INT64_MAX);
}

void pp_climb_note_late(struct pp_climb *c, unsigned int node, double late)
{
	struct pp_lateness *l = &c->late[node];
	unsigned int room = l->room ? 2 * l->room : 64;
	double *more;

	if (l->n == LATE_MOST)
		return;
	if (l->n == l->room) {
		more = realloc(l->us, room * sizeof(*more));
		if (!more)
			return;
		l->us = more;
		l->room = room;
	}
	l->us[l->n++] = late;
}

void pp_climb_end_late(struct pp_climb *c)
{
	for (unsigned int i = 0; c->late && i < c->b->n_nodes; i++) {
		c->b->nodes[i].arrival_skew = pp_median(c->late[i].us, c->late[i].n);
		free(c->late[i].us);
	}
	free(c->late);
	c->late = NULL;
}

/* Each name once for the whole run; NULL: no name of a counter, or one too many of them. */
static const char *intern(struct pp_climb *c, const char *name)
{
	size_t len = strlen(name);

	for (unsigned int i = 0; i < c->n_names; i++)
		if (!strcmp(c->name[i], name))
			return c->name[i];
	if (!len || len > NAME_MOST || !pp_is_text(name, len) || c->n_names == PP_CLIMB_NAMES)
		return NULL;
	return c->name[c->n_names++] = pp_arena_str(c->b->arena, name);
}

static bool make_room(struct pp_climb *c, struct pp_bench_cell *cell)
{
	struct pp_bench_counter *more;

	if (cell->n_counters % COUNTERS_STEP)
		return true;
	if (cell->n_counters >= COUNTERS)
		return false;
	more = pp_arena_array(c->b->arena, cell->n_counters + COUNTERS_STEP, sizeof(*more));
	if (!more)
		return false;
	if (cell->n_counters)
		memcpy(more, cell->counters, cell->n_counters * sizeof(*more));
	cell->counters = more;
	return true;
}

void pp_climb_count(struct pp_climb *c, struct pp_bench_cell *cell, unsigned int end,
		    const char *name, int64_t delta)
{
	const char *kept = intern(c, name);

	if (!kept)
		return;
	for (unsigned int i = 0; i < cell->n_counters; i++) {
		struct pp_bench_counter *k = &cell->counters[i];

		if (k->end != end || k->name != kept)
			continue;
		if (__builtin_add_overflow(k->delta, delta, &k->delta))
			k->delta = INT64_MAX;
		return;
	}
	if (make_room(c, cell))
		cell->counters[cell->n_counters++] =
			(struct pp_bench_counter){.end = end, .name = kept, .delta = delta};
}

void pp_climb_take_latencies(struct pp_gathering *g, const json_t *list)
{
	size_t n = json_array_size(list), i;
	const json_t *v;
	double *more, *own;

	if (!n || n > PP_CLIMB_LATENCIES)
		return;
	own = calloc(n, sizeof(*own));
	if (!own)
		return;
	json_array_foreach(list, i, v)
	{
		own[i] = (double)json_integer_value(v) / 1000;
	}
	if (g->n_latency + n <= PP_CLIMB_LATENCIES) {
		more = realloc(g->latency, (g->n_latency + n) * sizeof(*more));
		if (more) {
			memcpy(more + g->n_latency, own, n * sizeof(*own));
			g->latency = more;
			g->n_latency += n;
		}
	}
	g->median = pp_median(own, n);
	free(own);
}

void pp_climb_sample(struct pp_gathering *g, double mbytes)
{
	g->cell->sample[g->cell->n_samples++] = g->cell->measure == PP_LATENCY ? g->median : mbytes;
}

static struct pp_bench_cell *cell_of(struct pp_bench_pair *p, enum pp_rung rung,
				     const struct pp_bench_cell *like)
{
	for (unsigned int i = 0; i < p->n_cells; i++) {
		struct pp_bench_cell *c = &p->cells[i];

		if (c->rung == rung && c->op == like->op && c->measure == like->measure &&
		    c->size == like->size && c->together == like->together)
			return c;
	}
	return NULL;
}

/* Each slot is to be met at least once. */
static unsigned int slots_of(const struct pp_climber *m, enum pp_rung r, uint64_t size)
{
	struct pp_part part[2][PP_SLOTS_PARTS];
	struct pp_slots slots;
	struct pp_error err = {0};
	unsigned int n[2];

	for (unsigned int e = 0; e < 2; e++)
		if (pp_parts_parse(json_object_get(m->seat[r][e].opened, "keys"), part[e], &n[e],
				   &err))
			return 1;
	return pp_slots_lay(part[0], n[0], part[1], n[1], size, &slots, &err) ? 1 : slots.n;
}

static uint64_t warm_messages(const struct pp_bench_cell *cell)
{
	uint64_t n = WARM_BYTES / cell->size;

	n = n < WARM_LEAST ? WARM_LEAST : n > WARM_MOST ? WARM_MOST : n;
	return cell->measure == PP_LATENCY && n > WARM_PINGS ? WARM_PINGS : n;
}

static void begin_cell(struct pp_climb *c, struct pp_climber *m, enum pp_rung r,
		       const struct pp_bench_cell *like)
{
	struct pp_gathering *g = &m->now[r];
	struct pp_bench_cell *cell = cell_of(m->pair, r, like);

	free(g->latency);
	*g = (struct pp_gathering){.cell = NULL};
	if (!cell || !pp_rung_is_open(m, r))
		return;
	cell->sample = pp_arena_array(c->b->arena, c->o->repeats, sizeof(*cell->sample));
	if (!cell->sample)
		return;
	cell->state = PP_BENCH_RUN;
	g->cell = cell;
	g->messages = warm_messages(cell);
	g->expected = PP_SECOND;
}

/*
 * So many that a repeat takes its time, by how long the last few did; at most GROWTH times as many,
 * since the first ones were slow for reasons of their own. True: another try would tell more.
 */
static bool set_messages(struct pp_climb *c, struct pp_climber *m, enum pp_rung r)
{
	struct pp_gathering *g = &m->now[r];
	double each, wanted, most, time = (double)c->o->each;
	unsigned int least;
	bool again;

	if (!g->cell || !pp_rung_is_open(m, r))
		return false;
	each = (double)g->expected / (double)g->messages;
	least = slots_of(m, r, g->cell->size);
	if (g->cell->measure == PP_LATENCY)
		time *= LATENCY_TIMES;
	wanted = time / (each > 1 ? each : 1);
	if (g->cell->measure == PP_LATENCY && wanted > c->o->latency_messages)
		wanted = c->o->latency_messages;
	if (wanted < least)
		wanted = least;
	if (wanted < MESSAGES_LEAST)
		wanted = MESSAGES_LEAST;
	most = (double)g->messages * GROWTH;
	again = wanted > most;
	g->messages = (uint64_t)(again ? most : wanted);
	g->messages = g->messages < MESSAGES_MOST ? g->messages : MESSAGES_MOST;
	g->expected = (pp_ns)(each * (double)g->messages);
	return again;
}

/* Learns how fast a rung is. */
static void warm_up(struct pp_climb *c, const struct pp_group *g, enum pp_rung r)
{
	bool again = true;

	for (unsigned int k = 0; again && k < WARM_ROUNDS && !pp_climb_over(c); k++) {
		again = false;
		pp_climb_repeat(c, g, r, false);
		for (unsigned int i = 0; i < g->n; i++)
			again |= set_messages(c, g->member[i], r);
	}
}

static void end_cell(struct pp_climb *c, struct pp_climber *m, enum pp_rung r)
{
	struct pp_gathering *g = &m->now[r];
	struct pp_bench_cell *cell = g->cell;
	double gb;

	if (!cell)
		return;
	pp_sort(g->latency, g->n_latency);
	cell->p50 = pp_percentile(g->latency, g->n_latency, 0.50);
	cell->p99 = pp_percentile(g->latency, g->n_latency, 0.99);
	cell->p999 = pp_percentile(g->latency, g->n_latency, 0.999);
	cell->arrival_skew = pp_median(g->skew, g->n_skew);
	gb = (double)cell->bytes / 1e9;
	for (unsigned int e = 0; e < 2 && gb > 0; e++)
		cell->cpu_seconds_per_gb[e] = g->cpu[e] / gb;
	if (cell->state == PP_BENCH_RUN && cell->n_samples < c->o->repeats) {
		/* the run ended in the middle of it; what there is stays */
		cell->state = cell->n_samples ? PP_BENCH_RUN : PP_BENCH_NOT_REACHED;
		cell->why = c->b->ended;
	}
	free(g->latency);
	*g = (struct pp_gathering){.cell = NULL};
}

static void say(struct pp_climb *c, const struct pp_group *g, const struct pp_bench_cell *like,
		unsigned int repeat)
{
	char text[256];

	if (!c->o->progress)
		return;
	(void)snprintf(text, sizeof(text), "%s, %s %s of %llu bytes, repeat %u of %u",
		       g->together ? "all at once" : g->member[0]->pair->name,
		       pp_operation_name(like->op), pp_measure_name(like->measure),
		       (unsigned long long)like->size, repeat + 1, c->o->repeats);
	c->o->progress(c->done, c->all, text);
}

void pp_climb_cells(struct pp_climb *c, const struct pp_group *g, enum pp_operation op,
		    enum pp_measure measure, uint64_t size)
{
	const struct pp_bench_cell like = {
		.op = op, .measure = measure, .size = size, .together = g->together};

	for (unsigned int r = 0; r < PP_RUNGS; r++) {
		for (unsigned int i = 0; i < g->n; i++)
			begin_cell(c, g->member[i], (enum pp_rung)r, &like);
		warm_up(c, g, (enum pp_rung)r);
	}
	for (unsigned int k = 0; k < c->o->repeats && !pp_climb_over(c); k++) {
		say(c, g, &like, k);
		for (unsigned int r = 0; r < PP_RUNGS && !pp_climb_over(c); r++)
			pp_climb_repeat(c, g, (enum pp_rung)r, true);
	}
	for (unsigned int i = 0; i < g->n; i++) {
		for (unsigned int r = 0; r < PP_RUNGS; r++) {
			c->done += cell_of(g->member[i]->pair, (enum pp_rung)r, &like) != NULL;
			end_cell(c, g->member[i], (enum pp_rung)r);
		}
	}
}
