/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_run: one timed loop while it runs. Private to bench/traffic*.c and ping.c.
 *
 * Message m travels on queue pair m % qps, as that one's number m / qps, and between the slots
 * m % n_slots. A request's wr_id says what it is, its queue pair and its number there, so that a
 * completion with an error names its message. Only every @period-th message asks for a
 * completion: those before it are done then too.
 *
 * SEND's receiver posts receives in the order of the numbers, twice the depth ahead, and after
 * every @grant of them tells the sender by an empty message (a credit). Both ends count how many
 * credits a run takes, so that none is left in a queue.
 */
#ifndef PP_BENCH_TRAFFIC_RUN_H
#define PP_BENCH_TRAFFIC_RUN_H

#include "bench/traffic.h"

enum { PP_CHAIN = 16, PP_POLL = 32 };

enum pp_request { PP_REQUEST_MESSAGE, PP_REQUEST_RECEIVE, PP_REQUEST_CREDIT, PP_REQUEST_GRANTED };

/* What bounds the sends of a queue pair besides its depth. */
enum pp_clocking {
	PP_FREE,      /* nothing */
	PP_CREDITED,  /* the receiver's credits */
	PP_EXCHANGED, /* what came from the peer, which sends as much */
};

struct pp_flow {					/* one queue pair */
	uint64_t all, posted, done;			/* messages sent */
	uint64_t to_receive, receives_posted, received; /* messages received */
	uint64_t credits, granted, credits_done;	/* of the run; sent or come; completed */
	uint64_t grants_posted;				/* receives for credits to come */
	unsigned int slot, receive_slot;		/* of the next one */
};

struct pp_chain {
	struct ibv_send_wr wr[PP_CHAIN];
	struct ibv_sge sge[PP_CHAIN];
	struct ibv_recv_wr receive[PP_CHAIN];
	struct ibv_sge receive_sge[PP_CHAIN];
};

struct pp_run {
	const struct pp_traffic *t;
	struct pp_endpoint *e;
	unsigned int qps, depth, period, grant, step; /* step: qps % n_slots */
	unsigned int flags;			      /* of each send request */
	enum pp_clocking clocking;
	unsigned int batch; /* receives are posted when so many are due; 0: none are taken */
	bool credits;	    /* this end gives them */
	pp_ns silence, last, started, deadline, cpu;
	unsigned int turns, idle;
	uint64_t events, seen; /* completions, and how many of them when last looked */
	struct pp_traffic_failure failure;
	struct pp_flow flow[PP_ENDPOINT_QPS];
	struct pp_chain chain;
};

/* What does not depend on the direction. -EINVAL, -EOPNOTSUPP. */
int pp_run_init(struct pp_run *r, const struct pp_traffic *t, struct pp_error *err);
void pp_run_start(struct pp_run *r);
/* Writes what is known so far; for the end of a run, good or bad. */
void pp_run_end(const struct pp_run *r, uint64_t messages, struct pp_traffic_done *ret);
/* Messages of queue pair @q, of @messages in all. */
uint64_t pp_run_share(const struct pp_run *r, unsigned int q, uint64_t messages);

/* Called between turns: -ETIMEDOUT, -EINTR; *ret_over: the duration is. */
int pp_run_look(struct pp_run *r, bool *ret_over, struct pp_error *err);

/* Requests are made here, before the clock starts. */
void pp_post_prepare(struct pp_run *r, enum ibv_wr_opcode opcode);
/* The next @n messages (at most PP_CHAIN) of queue pair @q. */
int pp_post(struct pp_run *r, unsigned int q, unsigned int n, struct pp_error *err);
/* An empty message: credit number @number. */
int pp_post_credit(struct pp_run *r, unsigned int q, struct pp_error *err);
/* The next @n receives for messages, or for credits, of queue pair @q. */
int pp_post_receives(struct pp_run *r, unsigned int q, uint64_t n, struct pp_error *err);
int pp_post_grants(struct pp_run *r, unsigned int q, uint64_t n, struct pp_error *err);

/* Takes what has completed and counts it; *ret_n completions. -EIO: one of them is an error. */
int pp_poll(struct pp_run *r, unsigned int *ret_n, struct pp_error *err);

/*
 * The receiving half. _begin(): what _ready() has posted already; _ready(): posts it. _tend():
 * posts receives that are due, and sends credits when the run is credited.
 */
void pp_receive_begin(struct pp_run *r, bool credited);
int pp_receive_ready(struct pp_run *r, struct pp_error *err);
int pp_receive_tend(struct pp_run *r, struct pp_error *err);
uint64_t pp_receive_credits(const struct pp_run *r, uint64_t all);

/* Turns until everything that was begun is done. */
int pp_run_loop(struct pp_run *r, struct pp_error *err);

/* One line for what the run failed of: a completion, silence. Looks for what the device says. */
int pp_run_failed(struct pp_run *r, const struct ibv_wc *wc, struct pp_error *err);
int pp_run_silent(struct pp_run *r, struct pp_error *err);

#define PP_REQUEST_NUMBER_BITS 54
#define PP_REQUEST_QP_BITS     8

static inline uint64_t pp_request_id(enum pp_request kind, unsigned int q, uint64_t number)
{
	return (uint64_t)kind << (PP_REQUEST_NUMBER_BITS + PP_REQUEST_QP_BITS) |
	       (uint64_t)q << PP_REQUEST_NUMBER_BITS | number;
}

static inline enum pp_request pp_request_kind(uint64_t id)
{
	return (enum pp_request)(id >> (PP_REQUEST_NUMBER_BITS + PP_REQUEST_QP_BITS));
}

static inline unsigned int pp_request_qp(uint64_t id)
{
	return (unsigned int)(id >> PP_REQUEST_NUMBER_BITS) & ((1U << PP_REQUEST_QP_BITS) - 1);
}

static inline uint64_t pp_request_number(uint64_t id)
{
	return id & ((UINT64_C(1) << PP_REQUEST_NUMBER_BITS) - 1);
}

#endif
