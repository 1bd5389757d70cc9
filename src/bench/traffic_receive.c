/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiving half of a run: receives ahead, credits behind. A credit says that the receives
 * are posted which it allows, so it goes out after them.
 */
#include <errno.h>

#include "bench/traffic_run.h"
#include "base/banned.h"

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Posted by _ready(), of @all. */
static uint64_t first(const struct pp_run *r, uint64_t all)
{
	return least(all, 2 * (uint64_t)r->depth);
}

uint64_t pp_receive_credits(const struct pp_run *r, uint64_t all)
{
	return (all - first(r, all) + r->grant - 1) / r->grant;
}

int pp_receive_ready(struct pp_run *r, struct pp_error *err)
{
	int e = 0;

	pp_post_prepare(r, IBV_WR_SEND);
	for (unsigned int q = 0; q < r->qps && !e; q++)
		e = pp_post_receives(r, q, first(r, pp_run_share(r, q, r->t->messages)), err);
	return e;
}

void pp_receive_begin(struct pp_run *r, bool credited)
{
	r->credits = credited;
	r->batch = (unsigned int)least(PP_CHAIN, r->grant);
	for (unsigned int q = 0; q < r->qps; q++) {
		struct pp_flow *f = &r->flow[q];

		f->to_receive = pp_run_share(r, q, r->t->messages);
		f->receives_posted = first(r, f->to_receive);
		f->receive_slot =
			(unsigned int)((q + f->receives_posted * r->step) % r->t->n_slots);
		f->credits = credited ? pp_receive_credits(r, f->to_receive) : 0;
	}
}

static int tend(struct pp_run *r, unsigned int q, struct pp_error *err)
{
	struct pp_flow *f = &r->flow[q];
	uint64_t due =
		least(f->to_receive, f->received + 2 * (uint64_t)r->depth) - f->receives_posted;
	bool credit = r->credits && f->granted < f->credits &&
		      f->received >= (f->granted + 1) * r->grant &&
		      f->granted - f->credits_done < r->depth;
	int e = 0;

	if (due && (credit || due >= r->batch || f->receives_posted + due == f->to_receive))
		e = pp_post_receives(r, q, due, err);
	if (!e && credit)
		e = pp_post_credit(r, q, err);
	return e;
}

int pp_receive_tend(struct pp_run *r, struct pp_error *err)
{
	int e = 0;

	for (unsigned int q = 0; q < r->qps && !e; q++)
		e = tend(r, q, err);
	return e;
}

int pp_traffic_receive_ready(const struct pp_traffic *t, struct pp_error *err)
{
	struct pp_run r = {0};
	int e = pp_run_init(&r, t, err);

	if (e)
		return e;
	if (t->op != PP_SEND)
		return pp_error_set(err, -EINVAL, "only SEND has a receiver");
	return pp_receive_ready(&r, err);
}

int pp_traffic_receive(const struct pp_traffic *t, struct pp_traffic_done *ret,
		       struct pp_error *err)
{
	struct pp_run r = {0};
	uint64_t received = 0;
	int e = pp_run_init(&r, t, err);

	if (!e && t->op != PP_SEND)
		e = pp_error_set(err, -EINVAL, "only SEND has a receiver");
	if (e)
		return e;
	pp_post_prepare(&r, IBV_WR_SEND);
	pp_receive_begin(&r, /* credited= */ true);
	pp_run_start(&r);
	e = pp_run_loop(&r, err);
	for (unsigned int q = 0; q < r.qps; q++)
		received += r.flow[q].received;
	pp_run_end(&r, received, ret);
	return e;
}
