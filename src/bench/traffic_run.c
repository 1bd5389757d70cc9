/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all timed loops share: bounds, clocks, the look between turns.
 */
#include "bench/traffic_run.h"

#include <errno.h>
#include <time.h>

#include "base/banned.h"

enum { LARGE_BYTES = 64 << 10, SILENCE_BYTES = 64 << 20 };

static int check(const struct pp_traffic *t, struct pp_error *err)
{
	const struct pp_endpoint *e = t->endpoint;

	if ((unsigned int)t->op >= PP_OPERATIONS || !t->n_slots || !t->slots)
		return pp_error_set(err, -EINVAL, "traffic without an operation or without slots");
	if (t->depth > e->options.depth)
		return pp_error_set(err, -EINVAL, "depth %u: the queue pairs have %u", t->depth,
				    e->options.depth);
	if (t->size > e->port.max_msg_sz)
		return pp_error_set(err, -EMSGSIZE, "%s port %u: a message has %u bytes at most",
				    e->options.device, e->options.port, e->port.max_msg_sz);
	if (!t->messages && (t->op == PP_SEND || t->duration <= 0))
		return pp_error_set(err, -EINVAL, "how many messages was not said%s",
				    t->op == PP_SEND ? ": the receiver of SEND must know" : "");
	if (t->op == PP_READ && !e->rd_atomic)
		return pp_error_set(err, -EOPNOTSUPP, "%s, or the peer's device, takes no READ",
				    e->options.device);
	return 0;
}

/*
 * A power of two: at least four completions to a depth. Of messages of 64 KiB and more each asks
 * for its own: there it costs nothing, and the queue is refilled as it empties.
 */
static unsigned int period_of(const struct pp_traffic *t, unsigned int depth)
{
	unsigned int period = t->size < LARGE_BYTES ? PP_CHAIN : 1;

	while (period > 1 && period > depth / 4)
		period /= 2;
	return period;
}

int pp_run_init(struct pp_run *r, const struct pp_traffic *t, struct pp_error *err)
{
	int bad = check(t, err);

	if (bad)
		return bad;
	r->t = t;
	r->e = t->endpoint;
	r->qps = r->e->options.qps;
	r->depth = t->depth ? t->depth : r->e->options.depth;
	r->period = period_of(t, r->depth);
	r->grant = (r->depth + 1) / 2;
	r->step = r->qps % t->n_slots;
	r->flags = t->by_processor && t->op != PP_READ && t->size <= r->e->max_inline
			   ? IBV_SEND_INLINE
			   : 0;
	r->silence = t->silence ? t->silence
				: 3 * PP_SECOND + (pp_ns)(t->size / SILENCE_BYTES) * PP_SECOND;
	for (unsigned int q = 0; q < r->qps; q++)
		r->flow[q].slot = r->flow[q].receive_slot = q % t->n_slots;
	return 0;
}

uint64_t pp_run_share(const struct pp_run *r, unsigned int q, uint64_t messages)
{
	return messages / r->qps + (q < messages % r->qps);
}

static pp_ns cpu_now(void)
{
	struct timespec ts = {0};

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * PP_SECOND + ts.tv_nsec;
}

void pp_run_start(struct pp_run *r)
{
	r->cpu = cpu_now();
	r->started = r->last = pp_clock_monotonic();
	r->deadline = r->t->messages ? INT64_MAX : r->started + r->t->duration;
}

void pp_run_end(const struct pp_run *r, uint64_t messages, struct pp_traffic_done *ret)
{
	*ret = (struct pp_traffic_done){
		.messages = messages,
		.bytes = messages * r->t->size,
		.took = pp_clock_monotonic() - r->started,
		.cpu = cpu_now() - r->cpu,
		.failure = r->failure,
	};
}

int pp_run_look(struct pp_run *r, bool *ret_over, struct pp_error *err)
{
	pp_ns now = pp_clock_monotonic();

	if (r->events != r->seen) {
		r->seen = r->events;
		r->last = now;
	}
	if (now - r->last > r->silence)
		return pp_run_silent(r, err);
	if (r->t->stopped && r->t->stopped())
		return pp_error_set(err, -EINTR, "interrupted");
	*ret_over = now >= r->deadline;
	return 0;
}
