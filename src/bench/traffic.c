/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop that posts and polls, and the ends that run it.
 */
#include "bench/traffic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "bench/traffic_run.h"
#include "base/banned.h"

enum {
	LOOK_IDLE = 64, /* turns without a completion until clocks are looked at */
	LOOK_BUSY = 256,
	GRANTS = 8, /* receives for credits that a sender has posted: more than can be under way */
};

/* No number of a queue pair's messages reaches it. */
#define WITHOUT_END (UINT64_C(1) << 48)

static const char *const names[PP_OPERATIONS] = {
	[PP_WRITE] = "write",
	[PP_READ] = "read",
	[PP_SEND] = "send",
};

static const enum ibv_wr_opcode opcodes[PP_OPERATIONS] = {
	[PP_WRITE] = IBV_WR_RDMA_WRITE,
	[PP_READ] = IBV_WR_RDMA_READ,
	[PP_SEND] = IBV_WR_SEND,
};

const char *pp_operation_name(enum pp_operation op)
{
	return names[op];
}

int pp_operation_parse(const char *text, enum pp_operation *ret)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(names); i++) {
		if (!strcmp(text, names[i])) {
			*ret = (enum pp_operation)i;
			return 0;
		}
	}
	return -EINVAL;
}

void pp_traffic_done_free(struct pp_traffic_done *d)
{
	free(d->latency);
	d->latency = NULL;
	d->n_latency = 0;
}

/* ── the loop ── */

static uint64_t limit_of(const struct pp_run *r, const struct pp_flow *f)
{
	uint64_t limit = f->all;

	if (r->clocking == PP_CREDITED)
		limit = 2 * (uint64_t)r->depth + f->granted * r->grant;
	else if (r->clocking == PP_EXCHANGED)
		limit = f->received + r->depth;
	return limit < f->all ? limit : f->all;
}

/* One chain of each queue pair, up to the next message that asks for a completion. */
static int post_what_fits(struct pp_run *r, struct pp_error *err)
{
	int e = 0;

	for (unsigned int q = 0; q < r->qps && !e; q++) {
		struct pp_flow *f = &r->flow[q];
		uint64_t left = limit_of(r, f) - f->posted;
		unsigned int room = r->depth - (unsigned int)(f->posted - f->done);
		unsigned int chain = r->period - ((unsigned int)f->posted & (r->period - 1));
		unsigned int n;

		/* Where each asks for its completion, as many as there is room for. */
		if (r->period == 1)
			chain = room < PP_CHAIN ? room : PP_CHAIN;
		n = left < chain ? (unsigned int)left : chain;
		if (n && n <= room)
			e = pp_post(r, q, n, err);
	}
	return e;
}

static bool finished(const struct pp_run *r)
{
	for (unsigned int q = 0; q < r->qps; q++) {
		const struct pp_flow *f = &r->flow[q];

		if (f->done != f->all || f->received != f->to_receive ||
		    f->credits_done != f->credits)
			return false;
	}
	return true;
}

/*
 * The time is over: queue pairs stop at the same number, so that what was sent is the first so
 * many messages, whole periods of them, since only those end in a completion.
 */
static void stop_together(struct pp_run *r)
{
	uint64_t most = 0;

	for (unsigned int q = 0; q < r->qps; q++)
		if (r->flow[q].posted > most)
			most = r->flow[q].posted;
	most = (most + r->period - 1) / r->period * r->period;
	for (unsigned int q = 0; q < r->qps; q++)
		r->flow[q].all = most;
	r->deadline = INT64_MAX;
}

int pp_run_loop(struct pp_run *r, struct pp_error *err)
{
	unsigned int n = 0;
	bool over = false;
	int e = 0;

	while (!e && !finished(r)) {
		e = post_what_fits(r, err);
		if (!e)
			e = pp_poll(r, &n, err);
		if (!e && n && r->batch)
			e = pp_receive_tend(r, err);
		r->idle = n ? 0 : r->idle + 1;
		if (!e && (r->idle >= LOOK_IDLE || ++r->turns >= LOOK_BUSY)) {
			r->idle = r->turns = 0;
			e = pp_run_look(r, &over, err);
			if (over)
				stop_together(r);
		}
	}
	return e;
}

/* ── the ends ── */

static int begin_sending(struct pp_run *r, enum pp_clocking clocking, struct pp_error *err)
{
	int e = 0;

	pp_post_prepare(r, opcodes[r->t->op]);
	r->clocking = clocking;
	for (unsigned int q = 0; q < r->qps && !e; q++) {
		struct pp_flow *f = &r->flow[q];
		uint64_t grants;

		f->all = r->t->messages ? pp_run_share(r, q, r->t->messages) : WITHOUT_END;
		if (clocking != PP_CREDITED)
			continue;
		f->credits = pp_receive_credits(r, f->all);
		grants = f->credits < GRANTS ? f->credits : GRANTS;
		if (grants > 2 * (uint64_t)r->depth)
			grants = 2 * (uint64_t)r->depth;
		e = pp_post_grants(r, q, grants, err);
	}
	return e;
}

static int run(struct pp_run *r, struct pp_traffic_done *ret, struct pp_error *err)
{
	uint64_t done = 0;
	int e;

	pp_run_start(r);
	e = pp_run_loop(r, err);
	for (unsigned int q = 0; q < r->qps; q++)
		done += r->flow[q].done;
	pp_run_end(r, done, ret);
	return e;
}

int pp_traffic_send(const struct pp_traffic *t, struct pp_traffic_done *ret, struct pp_error *err)
{
	struct pp_run r = {0};
	int e = pp_run_init(&r, t, err);

	if (!e)
		e = begin_sending(&r, t->op == PP_SEND ? PP_CREDITED : PP_FREE, err);
	return e ? e : run(&r, ret, err);
}

int pp_traffic_exchange(const struct pp_traffic *t, struct pp_traffic_done *ret,
			struct pp_error *err)
{
	struct pp_run r = {0};
	int e = pp_run_init(&r, t, err);

	if (!e && (t->op != PP_SEND || !t->into))
		e = pp_error_set(err, -EINVAL, "an exchange is of SEND, from slots into others");
	if (!e)
		e = begin_sending(&r, PP_EXCHANGED, err);
	if (e)
		return e;
	pp_receive_begin(&r, /* credited= */ false);
	/* Before the peer is told by a message that its receives are there, they are. */
	r.batch = 1;
	return run(&r, ret, err);
}
