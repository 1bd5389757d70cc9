/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/perf.h"

#include <errno.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "nccl/payload.h"
#include "nccl/perf_state.h"
#include "base/banned.h"

enum { ARENA_MOST = 64 << 20 };

/* Communicators are given back so fast, or their processes are ended. */
#define CLOSE_LIMIT (20 * PP_SECOND)

static int check(unsigned int ranks, const struct pp_perf_options *o, struct pp_error *err)
{
	struct pp_payload_kind k = {
		.element = o->element, .reduction = o->reduction, .ranks = ranks};
	int r = 0;

	if (!ranks || ranks > PP_PERF_RANKS || !o->n_sizes || o->n_sizes > PP_PERF_SIZES)
		return pp_error_set(err, -EINVAL, "more ranks or sizes than can be");
	for (unsigned int i = 0; i < o->n_collectives && !r; i++) {
		k.reduced = pp_collective_reduces(o->collective[i]);
		r = o->checks ? pp_payload_possible(&k, err) : 0;
	}
	return r;
}

static int make(struct pp_party *party, const struct pp_perf_options *o, struct pp_perf **ret,
		struct pp_error *err)
{
	struct pp_perf *p = calloc(1, sizeof(*p));

	if (!p)
		return pp_error_set(err, -ENOMEM, "out of memory");
	p->arena = PP_ARENA(ARENA_MOST);
	p->started = pp_clock_wall();
	p->options = *o;
	p->n_ranks = pp_party_size(party);
	p->verdict = PP_UNKNOWN;
	p->rank = pp_arena_array(&p->arena, p->n_ranks, sizeof(*p->rank));
	if (!p->rank) {
		pp_perf_free(p);
		return pp_error_set(err, -ENOMEM, "out of memory");
	}
	*ret = p;
	return 0;
}

struct pp_perf *pp_perf_free(struct pp_perf *p)
{
	if (!p)
		return NULL;
	pp_arena_done(&p->arena);
	free(p);
	return NULL;
}

static void sum_up(struct pp_perf_run *run)
{
	double sum = 0;
	unsigned int n = 0;

	run->out_of_bounds = 0;
	for (unsigned int i = 0; i < run->n; i++) {
		for (unsigned int k = 0; k < PP_PERF_PLACES; k++) {
			const struct pp_perf_place *place = &run->row[i].place[k];

			run->out_of_bounds += place->wrong != 0;
			sum += place->measured ? place->bus_gbps : 0;
			n += place->measured;
		}
	}
	run->average_bus_gbps = n ? sum / n : 0;
}

static int run_one(struct pp_perf_course *c, enum pp_collective collective, struct pp_error *err)
{
	const struct pp_perf_options *o = &c->p->options;
	struct pp_perf_run *run = &c->p->run[c->p->n_runs];
	int r;

	run->collective = collective;
	run->row = pp_arena_array(&c->p->arena, o->n_sizes, sizeof(*run->row));
	if (!run->row)
		return pp_error_set(err, -ENOMEM, "out of memory");
	c->p->n_runs++;
	if (c->watch->begin)
		c->watch->begin(c->watch->arg, c->p, run);
	r = pp_perf_warm(c, collective, err);
	for (unsigned int i = 0; i < o->n_sizes && !r; i++) {
		struct pp_perf_row *row = &run->row[i];

		row->shape = pp_collective_shape(collective, o->element, o->size[i], c->n);
		r = pp_perf_size(c, run, o->size[i], row, err);
		if (r)
			break;
		run->n++;
		sum_up(run);
		if (c->watch->row)
			c->watch->row(c->watch->arg, c->p, row);
	}
	if (!r && c->watch->end)
		c->watch->end(c->watch->arg, c->p, run);
	return r;
}

static int run_all(struct pp_perf_course *c, struct pp_error *err)
{
	struct pp_buf text;
	struct pp_json j;
	int r = 0;

	for (unsigned int i = 0; i < c->p->options.n_collectives && !r; i++)
		r = run_one(c, c->p->options.collective[i], err);
	if (!r)
		r = pp_perf_clocks(c, true, err);
	if (r)
		return r;
	pp_perf_order_begin(&j, &text, "close");
	return pp_perf_order(c, &j, &text, -1, CLOSE_LIMIT, "giving the communicator back", err);
}

static void judge(struct pp_perf *p)
{
	bool verified = !p->ended;

	p->verdict = PP_UNKNOWN;
	for (unsigned int i = 0; i < p->n_runs; i++) {
		for (unsigned int k = 0; k < p->run[i].n; k++)
			verified &= p->run[i].row[k].place[PP_PERF_OUT_OF_PLACE].verified;
		if (p->run[i].out_of_bounds)
			p->verdict = PP_FAIL;
	}
	if (p->ended && !p->interrupted)
		p->verdict = PP_FAIL;
	else if (verified && p->verdict != PP_FAIL)
		p->verdict = PP_PASS;
}

static void leave(struct pp_perf_course *c)
{
	for (unsigned int i = 0; c->seat && i < c->n; i++) {
		(void)pp_channel_free(c->seat[i].channel);
		json_decref(c->seat[i].answer);
	}
	free(c->seat);
	free(c->first_offset);
}

int pp_perf_run(struct pp_party *party, const struct pp_perf_options *options,
		const struct pp_perf_watch *watch, struct pp_perf **ret, struct pp_error *err)
{
	static const struct pp_perf_watch none;
	struct pp_perf_course c = {.party = party, .watch = watch ? watch : &none};
	int r = check(pp_party_size(party), options, err);

	c.n = pp_party_size(party);
	c.end = options->deadline ? pp_clock_monotonic() + options->deadline : INT64_MAX;
	c.salt = (uint64_t)pp_clock_wall() >> 1 & 0xffffffff;
	r = r ? r : make(party, options, &c.p, err);
	if (r)
		return r;
	c.seat = calloc(c.n, sizeof(*c.seat));
	c.first_offset = calloc(c.n, sizeof(*c.first_offset));
	r = c.seat && c.first_offset ? pp_perf_begin(&c, err)
				     : pp_error_set(err, -ENOMEM, "out of memory");
	if (r && !c.p->began) {
		leave(&c);
		pp_perf_free(c.p);
		return r;
	}
	r = r ? r : run_all(&c, err);
	leave(&c);
	if (r) {
		c.p->ended = pp_arena_printf(&c.p->arena, "%s", err->text);
		c.p->ended = c.p->ended ? c.p->ended : "out of memory";
		c.p->interrupted = r == -EINTR;
	}
	judge(c.p);
	*ret = c.p;
	return 0;
}
