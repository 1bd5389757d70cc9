/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters of the expected port: those of loss must be seen and must not grow, and those of data
 * must account for the bytes, or they went another way. Of no hardware none is asked for.
 */
#include <inttypes.h>
#include <string.h>

#include "judge/transfer_parts.h"
#include "base/banned.h"

static const char NEXT_COUNTERS[] = "peerpath identity --facts";

/* Octets in a unit of the counters that drivers count data in. */
static unsigned int data_unit(const char *name)
{
	static const struct {
		const char *name;
		unsigned int octets;
	} units[] = {{"port_xmit_data", 4}, {"port_rcv_data", 4}, {"tx_bytes", 1},
		     {"rx_bytes", 1},	    {"ip4OutOctets", 1},  {"ip4InOctets", 1},
		     {"ip6OutOctets", 1},   {"ip6InOctets", 1}};

	for (size_t i = 0; i < PP_ARRAY_LEN(units); i++)
		if (!strcmp(units[i].name, name))
			return units[i].octets;
	return 0;
}

struct seen {
	unsigned int kinds[2][PP_LOSSES], losses[2]; /* how many counters of loss */
	double octets[2];			     /* most that a counter of data moved by */
};

static struct seen look(const struct pp_bench_cell *cell)
{
	struct seen s = {0};

	for (unsigned int i = 0; i < cell->n_counters; i++) {
		const struct pp_bench_counter *k = &cell->counters[i];
		enum pp_loss loss = k->name ? pp_counter_loss(k->name) : PP_LOSSES;
		unsigned int end = k->end < 2 ? k->end : 0, unit = k->name ? data_unit(k->name) : 0;

		if (loss < PP_LOSSES) {
			s.kinds[end][loss]++;
			s.losses[end]++;
		}
		if (unit && (double)k->delta * unit > s.octets[end])
			s.octets[end] = (double)k->delta * unit;
	}
	return s;
}

static void grown(struct pp_transfer_case *c, const struct pp_bench_cell *cell)
{
	for (unsigned int i = 0; i < cell->n_counters; i++) {
		const struct pp_bench_counter *k = &cell->counters[i];

		if (!k->name || !k->delta || pp_counter_loss(k->name) == PP_LOSSES)
			continue;
		pp_remark(c, cell->rung, PP_DEGRADED, PP_REMARK_SPEED, "peerpath check --details",
			  "%s at %s grew by %" PRIi64 " (%s of %s)", k->name,
			  pp_end_name(c, k->end < 2 ? k->end : 0), k->delta,
			  pp_measure_name(cell->measure), pp_size_text(c->arena, cell->size));
		if (!c->rung[cell->rung].counter)
			c->rung[cell->rung].counter = k->name;
	}
}

static void missing(struct pp_transfer_case *c, const struct pp_bench_cell *cell,
		    const struct seen *s, const struct seen *usual)
{
	for (unsigned int end = 0; end < 2; end++) {
		for (unsigned int i = 0; i < PP_LOSSES; i++)
			if (!s->kinds[end][i])
				pp_remark(c, cell->rung, PP_UNKNOWN, PP_REMARK_SOUND, NEXT_COUNTERS,
					  "no %s counter of the port at %s could be read",
					  pp_loss_name((enum pp_loss)i), pp_end_name(c, end));
		if (s->losses[end] != usual->losses[end])
			pp_remark(c, cell->rung, PP_UNKNOWN, PP_REMARK_SOUND, NEXT_COUNTERS,
				  "not every counter of the port at %s was read in every cell",
				  pp_end_name(c, end));
		if (pp_cell_is_judged(c, cell) && s->octets[end] < 0.5 * (double)cell->bytes)
			pp_remark(c, cell->rung, PP_UNKNOWN, PP_REMARK_SOUND, NEXT_COUNTERS,
				  "the data counters of the port at %s account for less than half "
				  "of the bytes: they may have gone another way",
				  pp_end_name(c, end));
	}
}

void pp_transfer_losses(struct pp_transfer_case *c, enum pp_rung rung)
{
	struct seen usual = {0};
	bool any = false;

	for (unsigned int i = 0; i < c->p->n_cells; i++) {
		const struct pp_bench_cell *cell = &c->p->cells[i];
		struct seen s;

		if (cell->state != PP_BENCH_RUN || cell->rung == PP_RUNG_TCP ||
		    cell->rung == PP_RUNG_STAGED)
			continue;
		s = look(cell);
		if (!any)
			usual = s;
		any = true;
		if (cell->rung != rung)
			continue;
		grown(c, cell);
		if (!c->simulated)
			missing(c, cell, &s, &usual);
	}
}
