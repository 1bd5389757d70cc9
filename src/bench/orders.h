/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_order: one command to one agent and what became of it. Several go out at once, and are
 * waited for together.
 *
 * An agent that does not answer in time, or whose channel ended, is given up: its channel is
 * closed, which ends it. Clocks of hosts are never compared: @arrived is this process's.
 */
#ifndef PP_BENCH_ORDERS_H
#define PP_BENCH_ORDERS_H

#include <jansson.h>

#include "base/json.h"
#include "bench/command.h"
#include "rdma/channel.h"

/* Where an agent sits; NULL channel: nowhere (not asked for, or given up). */
struct pp_seat {
	struct pp_channel *channel; /* owned */
	unsigned int node;
	bool open;	/* a rung is */
	json_t *opened; /* owned: its answer to open */
};

enum pp_order_outcome {
	PP_ORDER_DONE,	   /* {"ok": true} */
	PP_ORDER_REFUSED,  /* {"ok": false} */
	PP_ORDER_LOST,	   /* the channel ended */
	PP_ORDER_SILENT,   /* no answer in time */
	PP_ORDER_NOT_SENT, /* the seat is empty */
};

struct pp_order {
	struct pp_seat *seat;
	struct pp_buf text;
	struct pp_json json;
	enum pp_order_outcome outcome;
	json_t *answer; /* owned; NULL when there is none */
	pp_ns sent, arrived;
	char why[512]; /* one line, of all but PP_ORDER_DONE */
};

/* Begins the command's object; the caller adds members to the writer that it returns. */
struct pp_json *pp_order_begin(struct pp_order *o, struct pp_seat *seat, enum pp_do what);

/* What ends the waiting for answers; NULL members: nothing. */
struct pp_orders_watch {
	bool (*stopped)(void);
	bool (*look)(void *arg); /* asked now and then, also while others answer */
	void *arg;
};

/*
 * Sends all @n and waits for their answers. -EINTR: @watch (may be NULL) said so; answers are
 * missing then.
 */
int pp_orders_do(struct pp_order *o, unsigned int n, pp_ns limit,
		 const struct pp_orders_watch *watch);
/* All were done; else the first that was not, in *ret_bad. */
bool pp_orders_good(const struct pp_order *o, unsigned int n, unsigned int *ret_bad);
void pp_orders_free(struct pp_order *o, unsigned int n);

/* Ends the agent of a seat. */
void pp_seat_leave(struct pp_seat *s);

#endif
