/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ping-pong: one message under way at a time.
 *
 * Both ends poll one completion queue that also brings completions of their own sends, which are
 * asked for now and then so that the send queue never fills.
 */
#include <errno.h>
#include <stdlib.h>

#include "bench/traffic_run.h"
#include "base/banned.h"

enum { SAMPLES = 1 << 20, LOOK = 64 };

struct ping {
	struct pp_run run;
	struct pp_traffic_done done; /* latency, n_latency */
	uint64_t every;		     /* messages to a sample */
	pp_ns sent;
	bool first;
};

static int begin(struct ping *p, const struct pp_traffic *t, struct pp_error *err)
{
	static const enum ibv_wr_opcode opcodes[PP_OPERATIONS] = {
		[PP_WRITE] = IBV_WR_RDMA_WRITE_WITH_IMM,
		[PP_READ] = IBV_WR_RDMA_READ,
		[PP_SEND] = IBV_WR_SEND,
	};
	int e = pp_run_init(&p->run, t, err);

	if (!e && !t->messages)
		e = pp_error_set(err, -EINVAL, "a ping-pong of how many messages was not said");
	if (e)
		return e;
	pp_post_prepare(&p->run, opcodes[t->op]);
	/* A READ's completion is what is waited for. */
	if (t->op == PP_READ)
		p->run.period = 1;
	for (unsigned int q = 0; q < p->run.qps; q++)
		p->run.flow[q].all = pp_run_share(&p->run, q, t->messages);
	return 0;
}

int pp_traffic_ping_ready(const struct pp_traffic *t, struct pp_error *err)
{
	struct ping p = {0};
	int e = begin(&p, t, err);

	return e || t->op == PP_READ ? e : pp_receive_ready(&p.run, err);
}

/* Polls until @count of the flow is above @until. */
static int wait(struct pp_run *r, const uint64_t *count, uint64_t until, struct pp_error *err)
{
	unsigned int n = 0, empty = 0;
	bool over;
	int e = 0;

	while (!e && *count <= until) {
		e = pp_poll(r, &n, err);
		empty = n ? 0 : empty + 1;
		if (!e && empty >= LOOK) {
			empty = 0;
			e = pp_run_look(r, &over, err);
		}
	}
	return e;
}

static int send_one(struct pp_run *r, unsigned int q, struct pp_error *err)
{
	struct pp_flow *f = &r->flow[q];
	int e = 0;

	if (f->posted - f->done >= r->depth)
		e = wait(r, &f->done, f->posted - r->depth, err);
	return e ? e : pp_post(r, q, 1, err);
}

static void sample(struct ping *p, uint64_t m, unsigned int halves)
{
	pp_ns now = pp_clock_monotonic();

	if (p->done.latency && m % p->every == 0 && p->done.n_latency < SAMPLES)
		p->done.latency[p->done.n_latency++] = (now - p->sent) / halves;
	p->sent = now;
}

static int rounds(struct ping *p, struct pp_error *err)
{
	struct pp_run *r = &p->run;
	uint64_t all = r->t->messages;
	unsigned int q = 0;
	bool over;
	int e = 0;

	p->sent = pp_clock_monotonic();
	for (uint64_t m = 0; m < all && !e; m++) {
		struct pp_flow *f = &r->flow[q];
		uint64_t number = m / r->qps;

		if (p->first)
			e = send_one(r, q, err);
		if (!e)
			e = wait(r, r->t->op == PP_READ ? &f->done : &f->received, number, err);
		if (!e && r->batch)
			e = pp_receive_tend(r, err);
		if (!e && !p->first)
			e = send_one(r, q, err);
		if (!e)
			sample(p, m, r->t->op == PP_READ ? 1 : 2);
		if (!e && m % 1024 == 1023)
			e = pp_run_look(r, &over, err);
		q = q + 1 == r->qps ? 0 : q + 1;
	}
	/* Nothing of this run may be left in the completion queue. */
	for (q = 0; q < r->qps && !e; q++)
		if (r->flow[q].all)
			e = wait(r, &r->flow[q].done, r->flow[q].all - 1, err);
	return e;
}

static int make_samples(struct ping *p, struct pp_error *err)
{
	uint64_t all = p->run.t->messages;

	p->every = (all + SAMPLES - 1) / SAMPLES;
	p->done.latency = malloc((size_t)(all < SAMPLES ? all : SAMPLES) * sizeof(pp_ns));
	return p->done.latency ? 0 : pp_error_set(err, -ENOMEM, "no memory for latencies");
}

int pp_traffic_ping(const struct pp_traffic *t, bool first, struct pp_traffic_done *ret,
		    struct pp_error *err)
{
	struct ping p = {.first = first};
	uint64_t done = 0;
	int e = begin(&p, t, err);

	if (!e && first)
		e = make_samples(&p, err);
	if (e)
		return e;
	pp_run_start(&p.run);
	if (t->op != PP_READ)
		pp_receive_begin(&p.run, /* credited= */ false);
	if (first || t->op != PP_READ)
		e = rounds(&p, err);
	for (unsigned int q = 0; q < p.run.qps; q++)
		done += t->op == PP_READ ? p.run.flow[q].done : p.run.flow[q].received;
	pp_run_end(&p.run, done, ret);
	ret->latency = p.done.latency;
	ret->n_latency = p.done.n_latency;
	return e;
}
