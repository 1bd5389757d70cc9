/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wires of a process: one for each set of addresses, whoever opens the device how often.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft/engine/board.h"
#include "soft/engine/parts.h"

#include "base/banned.h"

static struct soft_wire *find_wire(struct soft_engine *e, const struct soft_link_config *config)
{
	for (struct soft_wire *w = e->wires; w; w = w->next)
		if (w->config.num_gids == config->num_gids &&
		    !memcmp(w->config.gids, config->gids, config->num_gids * sizeof(*config->gids)))
			return w;
	return NULL;
}

static struct soft_wire *make_wire(struct soft_engine *e, const struct soft_link_config *config,
				   const struct soft_fault_plan *faults, struct soft_board *board)
{
	static const struct soft_fault_plan none;
	struct soft_wire *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->engine = e;
	w->config = *config;
	w->config.slot = soft_engine_slot(e);
	w->config.handover = e->slot;
	soft_fault_init(&w->fault, faults ? faults : &none);
	w->config.fault = &w->fault;
	w->board = board;
	w->next = e->wires;
	e->wires = w;
	return w;
}

int soft_engine_open_wire(struct soft_engine *e, const struct soft_link_config *config,
			  const struct soft_fault_plan *faults, struct soft_board *board,
			  struct soft_wire **ret)
{
	struct soft_wire *w;

	soft_engine_lock(e);
	w = find_wire(e, config);
	if (!w)
		w = make_wire(e, config, faults, board);
	if (w)
		w->users++;
	soft_engine_unlock(e);
	if (!w || w->board != board)
		soft_board_close(board);
	if (!w)
		return -ENOMEM;
	*ret = w;
	return 0;
}

void soft_engine_close_wire(struct soft_engine *e, struct soft_wire *wire)
{
	bool last;

	soft_engine_lock(e);
	last = --wire->users == 0;
	for (struct soft_wire **at = &e->wires; last && *at; at = &(*at)->next) {
		if (*at == wire) {
			*at = wire->next;
			break;
		}
	}
	/* Under the lock: a child forked after it would keep sockets that nobody reads. */
	if (last) {
		if (wire->board)
			(void)soft_board_write(wire->board, wire, pp_clock_monotonic(),
					       /* at_once= */ true);
		soft_reader_forget(e, wire);
		soft_writer_end(wire, e->inherited);
		soft_link_close(wire->link);
		soft_board_close(wire->board);
		soft_cq_late_drop(&wire->late);
	}
	soft_engine_unlock(e);
	if (!last)
		return;
	free(wire);
	/* The thread may sleep on these sockets: it looks again. */
	if (!e->inherited)
		soft_engine_thread_wake(e);
}

const struct soft_counters *soft_wire_counters(const struct soft_wire *wire)
{
	return &wire->counters;
}

const struct soft_link_stats *soft_wire_stats(const struct soft_wire *wire)
{
	return wire->link ? soft_link_stats(wire->link) : &wire->no_stats;
}

const struct soft_drops *soft_wire_drops(const struct soft_wire *wire)
{
	return &wire->drops;
}
