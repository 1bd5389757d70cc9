/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second witness: perftest between the same two ports, host memory, the largest size. What it
 * says stands beside the median of our own cell; a large difference is for people to look at.
 */
#include <stdio.h>

#include "base/statistics.h"
#include "bench/coordinator_state.h"
#include "base/banned.h"

enum { SECONDS = 2, FIRST_PORT = 18600, PORTS = 900 };

static const pp_ns LIMIT = 40 * PP_SECOND;

static uint64_t largest(const struct pp_bench_options *o)
{
	uint64_t most = 0;

	for (unsigned int i = 0; i < o->n_sizes; i++)
		most = o->size[i] > most ? o->size[i] : most;
	return most;
}

static double own_figure(const struct pp_climber *m, uint64_t size)
{
	for (unsigned int i = 0; i < m->pair->n_cells; i++) {
		const struct pp_bench_cell *c = &m->pair->cells[i];

		if (c->rung != PP_RUNG_HOST || c->op != PP_WRITE || c->measure != PP_BANDWIDTH ||
		    c->size != size || c->together || !c->n_samples)
			continue;
		return pp_median(c->sample, c->n_samples);
	}
	return 0;
}

static void order_one(struct pp_climb *c, struct pp_climber *m, unsigned int e, uint64_t size,
		      struct pp_order *o)
{
	const struct pp_bench_end *end = &m->pair->end[e];
	struct pp_json *j = pp_order_begin(o, &m->seat[PP_RUNG_HOST][e], PP_DO_WITNESS);

	pp_json_str(j, "device", end->device);
	pp_json_i64(j, "port", end->port);
	pp_json_i64(j, "gid_index", end->gid_index);
	pp_json_u64(j, "size", size);
	pp_json_i64(j, "tcp_port", FIRST_PORT + (int64_t)(c->turn % PORTS));
	pp_json_i64(j, "seconds", SECONDS);
	if (!e)
		pp_json_str(j, "peer", m->address[1]);
}

static void note(struct pp_climb *c, const char *name, const char *text)
{
	c->b->second =
		c->b->second ? pp_arena_printf(c->b->arena, "%s; %s: %s", c->b->second, name, text)
			     : pp_arena_printf(c->b->arena, "%s: %s", name, text);
}

void pp_climb_witness(struct pp_climb *c, struct pp_climber *m)
{
	uint64_t size = largest(c->o);
	struct pp_order o[2];
	unsigned int bad;
	char text[640];
	double mbytes;

	if (!pp_rung_is_open(m, PP_RUNG_HOST) || !m->address[1]) {
		note(c, m->pair->name, "perftest was not run: no host rung, or no address");
		return;
	}
	for (unsigned int e = 0; e < 2; e++)
		order_one(c, m, e, size, &o[e]);
	if (!pp_climb_do(c, o, 2, LIMIT)) {
		/* the end that connects has the figure; the other one may fail at leaving */
		mbytes = json_real_value(json_object_get(o[0].answer, "mbytes_per_s"));
		if (o[0].outcome == PP_ORDER_DONE && mbytes > 0)
			(void)snprintf(text, sizeof(text),
				       "ib_write_bw %.0f MB/s at %llu bytes, bench %.0f MB/s",
				       mbytes, (unsigned long long)size, own_figure(m, size));
		else
			(void)snprintf(text, sizeof(text), "perftest: %s",
				       pp_orders_good(o, 2, &bad) ? "no figure" : o[bad].why);
		note(c, m->pair->name, text);
	}
	pp_orders_free(o, 2);
}
