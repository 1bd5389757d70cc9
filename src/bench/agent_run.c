/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ready, run: one repeat of a cell.
 *
 * ready lays the slots out, posts receives, and reads counters and clocks; run moves the messages
 * that ready spoke of, as its role says, and answers "messages", "bytes", "took_ns", "cpu_ns",
 * "latency_ns", "copies", "counters", "gpu_mhz", "throttle". The passive end's run comes when the
 * other's is over, and has the CPU time since ready.
 */
#include <errno.h>
#include <stdlib.h>

#include "bench/agent_state.h"
#include "base/banned.h"

enum { LATENCIES_MOST = 1 << 20, LATENCIES_TOLD = 20000 };

/* What an end sends goes way 0 from end 0, way 1 from end 1. */
static unsigned int way_out(const struct pp_agent *a)
{
	return a->end;
}

static unsigned int way_in(const struct pp_agent *a)
{
	return !a->end;
}

int pp_agent_lay(struct pp_agent *a, uint64_t size, struct pp_error *err)
{
	const struct pp_part *own, *peer;
	int r;

	if (a->slots.size == size)
		return 0;
	r = pp_slots_lay(a->own, a->n_own, a->peer, a->n_peer, size, &a->slots, err);
	if (r)
		return r;
	for (unsigned int w = 0; w < 2; w++) {
		for (unsigned int i = 0; i < a->slots.n; i++) {
			uint64_t offset = a->slots.offset[w][i];

			own = pp_part_of(a->own, a->n_own, offset, size);
			peer = pp_part_of(a->peer, a->n_peer, offset, size);
			if (!own || !peer)
				return pp_error_set(err, -ERANGE, "a slot lies under no key");
			a->way[w][i] =
				(struct pp_slot){.local = own->address + (offset - own->start),
						 .remote = peer->address + (offset - peer->start),
						 .lkey = own->key,
						 .rkey = peer->key};
		}
	}
	return 0;
}

/* READ fetches what the peer's way brings; all else sends one's own. */
static struct pp_traffic traffic_of(struct pp_agent *a)
{
	const struct pp_ready_command *c = &a->cell;
	bool incoming = c->op == PP_READ || c->role == PP_ROLE_RECEIVE;

	return (struct pp_traffic){
		.endpoint = &a->endpoint,
		.slots = a->way[incoming ? way_in(a) : way_out(a)],
		.into = a->way[way_in(a)],
		.n_slots = a->slots.n,
		.op = (enum pp_operation)c->op,
		.size = (uint32_t)c->size,
		.messages = (uint64_t)c->messages,
		.silence = c->silence_ns,
		.by_processor = a->memory->options.kind == PP_MEMORY_HOST,
		.stopped = pp_agent_left,
	};
}

static bool latency(const struct pp_ready_command *c)
{
	return c->role == PP_ROLE_PING || c->role == PP_ROLE_PONG;
}

static bool receives(const struct pp_ready_command *c)
{
	return c->role == PP_ROLE_RECEIVE ||
	       (c->op == PP_SEND && c->measure == PP_BIDIRECTIONAL && c->role == PP_ROLE_ACTIVE);
}

static struct pp_staged_run staged_of(struct pp_agent *a)
{
	const struct pp_ready_command *c = &a->cell;
	bool both = latency(c) || c->measure == PP_BIDIRECTIONAL;
	uint64_t n = (uint64_t)c->messages;

	return (struct pp_staged_run){
		.out = a->slots.offset[way_out(a)],
		.in = a->slots.offset[way_in(a)],
		.n_slots = a->slots.n,
		.op = (enum pp_operation)c->op,
		.size = (uint64_t)c->size,
		.out_messages = both || c->role == PP_ROLE_ACTIVE ? n : 0,
		.in_messages = both || c->role != PP_ROLE_ACTIVE ? n : 0,
		.ping = latency(c),
		.first = c->role == PP_ROLE_PING,
		.silence = c->silence_ns,
		.stopped = pp_agent_left,
	};
}

static int make_ready(struct pp_agent *a, struct pp_error *err)
{
	const struct pp_ready_command *c = &a->cell;
	struct pp_traffic t;
	struct pp_staged_run s;

	if (a->rung == PP_RUNG_TCP)
		return 0;
	if (a->staged) {
		s = staged_of(a);
		return pp_staged_ready(a->staged, &s, err);
	}
	t = traffic_of(a);
	if (latency(c))
		return pp_traffic_ping_ready(&t, err);
	return receives(c) ? pp_traffic_receive_ready(&t, err) : 0;
}

int pp_agent_ready(struct pp_agent *a, const struct pp_command *c, struct pp_json *out,
		   struct pp_error *err)
{
	int r;

	(void)out;
	a->ready = false;
	if (!a->open || !a->n_peer)
		return pp_error_set(err, -EINVAL, "ready: no peer is connected");
	a->cell = c->ready;
	if (latency(&a->cell) && a->cell.messages > LATENCIES_MOST)
		return pp_error_set(err, -EINVAL, "ready: more than %d messages of latency",
				    LATENCIES_MOST);
	r = pp_agent_lay(a, (uint64_t)a->cell.size, err);
	r = r ? r : make_ready(a, err);
	if (r)
		return r;
	if (a->has_endpoint)
		pp_counters_read(a->device, a->endpoint.options.port, a->netdev, &a->before);
	else
		a->before.n = 0;
	if (a->watch) {
		pp_gpu_watch_reset(a->watch);
		pp_gpu_watch_sample(a->watch);
	}
	a->cpu = pp_cpu_used();
	a->ready = true;
	return 0;
}

static int run_tcp(struct pp_agent *a, struct pp_traffic_done *ret, struct pp_error *err)
{
	const struct pp_ready_command *c = &a->cell;
	bool both = c->measure == PP_BIDIRECTIONAL;
	const struct pp_tcp_run t = {
		.fd = a->tcp.fd,
		.memory = (uint8_t *)(uintptr_t)a->memory->at,
		.out = a->slots.offset[way_out(a)],
		.in = a->slots.offset[way_in(a)],
		.n_slots = a->slots.n,
		.size = (uint64_t)c->size,
		.out_messages = both || a->end == 0 || latency(c) ? (uint64_t)c->messages : 0,
		.in_messages = both || a->end == 1 ? (uint64_t)c->messages : 0,
		.silence = c->silence_ns,
		.stopped = pp_agent_left,
	};

	return latency(c) ? pp_tcp_ping(&t, c->role == PP_ROLE_PING, ret, err)
			  : pp_tcp_stream(&t, ret, err);
}

static int run_rdma(struct pp_agent *a, struct pp_traffic_done *ret, struct pp_error *err)
{
	const struct pp_ready_command *c = &a->cell;
	const struct pp_traffic t = traffic_of(a);

	if (latency(c))
		return pp_traffic_ping(&t, c->role == PP_ROLE_PING, ret, err);
	if (c->role == PP_ROLE_RECEIVE)
		return pp_traffic_receive(&t, ret, err);
	return receives(c) ? pp_traffic_exchange(&t, ret, err) : pp_traffic_send(&t, ret, err);
}

static void write_latencies(const struct pp_traffic_done *done, struct pp_json *out)
{
	size_t step = done->n_latency / LATENCIES_TOLD + 1;

	if (!done->latency)
		return;
	pp_json_array(out, "latency_ns");
	for (size_t i = 0; i < done->n_latency; i += step)
		pp_json_i64(out, NULL, done->latency[i]);
	pp_json_end_array(out);
}

static void write_done(struct pp_agent *a, const struct pp_traffic_done *done, uint64_t copies,
		       struct pp_json *out)
{
	struct pp_counters after = {.n = 0};

	if (a->watch)
		pp_gpu_watch_sample(a->watch);
	/* for the passive end the other one has waited */
	if (a->before.n && a->cell.role != PP_ROLE_PASSIVE)
		pp_counters_settle(a->device, a->endpoint.options.port,
				   pp_verbs_are_software(&a->verbs));
	if (a->has_endpoint)
		pp_counters_read(a->device, a->endpoint.options.port, a->netdev, &after);
	pp_json_u64(out, "messages", done->messages);
	pp_json_u64(out, "bytes", done->bytes);
	pp_json_i64(out, "took_ns", done->took);
	pp_json_i64(out, "cpu_ns", done->cpu);
	pp_json_u64(out, "copies", copies);
	write_latencies(done, out);
	pp_counters_write(out, "counters", &a->before, &after);
	pp_gpu_watch_write(out, a->watch);
}

int pp_agent_run(struct pp_agent *a, const struct pp_command *c, struct pp_json *out,
		 struct pp_error *err)
{
	struct pp_traffic_done done = {0};
	uint64_t copies = 0;
	struct pp_staged_run s;
	int r = 0;

	(void)c;
	if (!a->ready)
		return pp_error_set(err, -EINVAL, "run: not ready");
	a->ready = false;
	if (a->rung == PP_RUNG_TCP) {
		r = run_tcp(a, &done, err);
	} else if (a->staged) {
		s = staged_of(a);
		r = pp_staged_go(a->staged, &s, &done, &copies, err);
	} else if (a->cell.role != PP_ROLE_PASSIVE) {
		r = run_rdma(a, &done, err);
	} else {
		done.cpu = pp_cpu_used() - a->cpu;
	}
	a->status = done.failure.status;
	write_done(a, &done, copies, out);
	pp_traffic_done_free(&done);
	return r;
}
