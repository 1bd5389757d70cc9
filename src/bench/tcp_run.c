/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops over an open connection. Each direction is a stream of messages, one behind the other;
 * behind its last byte comes one byte that says: all that you sent is here. So a sender's time ends
 * when the peer has the data, not when the kernel took it.
 */
#include "bench/tcp.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/compiler.h"
#include "base/banned.h"

enum { SLICE_MS = 50, LOOK_EVERY = 1024 };

/* One direction: where in its stream it is. */
struct flow {
	const uint64_t *offset;
	uint64_t message, within, messages;
	bool tail, tailed; /* the byte behind: is there one, is it through */
};

static bool flow_over(const struct flow *f)
{
	return f->message == f->messages && (!f->tail || f->tailed);
}

static pp_ns silence_of(const struct pp_tcp_run *t)
{
	return t->silence ? t->silence : 3 * PP_SECOND;
}

static int gone(struct pp_error *err, int error)
{
	char name[96];

	return pp_error_set(err, error ? -error : -ECONNRESET, "TCP: the connection ended: %s",
			    error ? pp_errno_text(error, name, sizeof(name))
				  : "closed by the peer");
}

/* The piece of a flow that is next; the byte behind lies in @tail. */
static void *next(const struct pp_tcp_run *t, const struct flow *f, uint8_t *tail, size_t *ret_len)
{
	if (f->message == f->messages) {
		*ret_len = 1;
		return tail;
	}
	*ret_len = (size_t)(t->size - f->within);
	return t->memory + f->offset[f->message % t->n_slots] + f->within;
}

static void advance(const struct pp_tcp_run *t, struct flow *f, size_t n)
{
	if (f->message == f->messages) {
		f->tailed = true;
		return;
	}
	f->within += n;
	if (f->within == t->size) {
		f->within = 0;
		f->message++;
	}
}

/* One call of send() or recv(). 1: moved; 0: would block. */
static int move(const struct pp_tcp_run *t, struct flow *f, bool out, struct pp_error *err)
{
	uint8_t tail = 1;
	size_t len;
	void *at = next(t, f, &tail, &len);
	ssize_t n = out ? send(t->fd, at, len, MSG_DONTWAIT | MSG_NOSIGNAL)
			: recv(t->fd, at, len, MSG_DONTWAIT);

	if (n > 0) {
		advance(t, f, (size_t)n);
		return 1;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return gone(err, n < 0 ? errno : 0);
}

/* May the flow's next byte go? The one behind waits until the other direction is all here. */
static bool ready(const struct flow *f, const struct flow *in)
{
	return !flow_over(f) && (f->message < f->messages || in->message == in->messages);
}

int pp_tcp_stream(const struct pp_tcp_run *t, struct pp_traffic_done *ret, struct pp_error *err)
{
	struct flow out = {.offset = t->out, .messages = t->out_messages, .tail = t->in_messages},
		    in = {.offset = t->in, .messages = t->in_messages, .tail = t->out_messages};
	pp_ns start = pp_clock_monotonic(), cpu = pp_cpu_used(), moved = start;
	struct pollfd p = {.fd = t->fd};
	unsigned int turns = 0;
	int r = 0, n;

	while (!flow_over(&out) || !flow_over(&in)) {
		n = 0;
		if (ready(&out, &in))
			n = r = move(t, &out, true, err);
		if (r >= 0 && !flow_over(&in)) {
			r = move(t, &in, false, err);
			n |= r;
		}
		if (r < 0)
			return r;
		if (n > 0)
			moved = 0;
		if (n > 0 && ++turns % LOOK_EVERY)
			continue;
		if (t->stopped && t->stopped())
			return pp_error_set(err, -EINTR, "TCP: interrupted");
		if (n > 0)
			continue;
		moved = moved ? moved : pp_clock_monotonic();
		p.events =
			(short)((ready(&out, &in) ? POLLOUT : 0) | (flow_over(&in) ? 0 : POLLIN));
		(void)poll(&p, 1, SLICE_MS);
		if (pp_clock_monotonic() - moved > silence_of(t))
			return pp_error_set(err, -ETIMEDOUT, "TCP: nothing moves");
	}
	*ret = (struct pp_traffic_done){
		.messages = t->out_messages + t->in_messages,
		.bytes = (t->out_messages ? t->out_messages : t->in_messages) * t->size,
		.took = pp_clock_monotonic() - start,
		.cpu = pp_cpu_used() - cpu};
	return 0;
}

/* All of one message; sleeps in the kernel, as programs do. */
static int whole(const struct pp_tcp_run *t, uint8_t *at, bool out, struct pp_error *err)
{
	pp_ns end = pp_clock_monotonic() + silence_of(t);
	struct pollfd p = {.fd = t->fd, .events = out ? POLLOUT : POLLIN};
	uint64_t have = 0;
	ssize_t n;

	while (have < t->size) {
		n = out ? send(t->fd, at + have, t->size - have, MSG_DONTWAIT | MSG_NOSIGNAL)
			: recv(t->fd, at + have, t->size - have, MSG_DONTWAIT);
		if (n > 0) {
			have += (uint64_t)n;
			continue;
		}
		if (!n || (errno != EAGAIN && errno != EINTR))
			return gone(err, n ? errno : 0);
		(void)poll(&p, 1, SLICE_MS);
		if (t->stopped && t->stopped())
			return pp_error_set(err, -EINTR, "TCP: interrupted");
		if (pp_clock_monotonic() > end)
			return pp_error_set(err, -ETIMEDOUT, "TCP: nothing moves");
	}
	return 0;
}

int pp_tcp_ping(const struct pp_tcp_run *t, bool first, struct pp_traffic_done *ret,
		struct pp_error *err)
{
	pp_ns start = pp_clock_monotonic(), cpu = pp_cpu_used(), began;
	pp_ns *latency = calloc(t->out_messages, sizeof(*latency));
	int r = latency ? 0 : pp_error_set(err, -ENOMEM, "out of memory");

	for (uint64_t i = 0; !r && i < t->out_messages; i++) {
		uint8_t *out = t->memory + t->out[i % t->n_slots];
		uint8_t *in = t->memory + t->in[i % t->n_slots];

		began = pp_clock_monotonic();
		r = first ? whole(t, out, true, err) : whole(t, in, false, err);
		if (!r)
			r = first ? whole(t, in, false, err) : whole(t, out, true, err);
		if (!r)
			latency[i] = (pp_clock_monotonic() - began) / 2;
	}
	if (r) {
		free(latency);
		return r;
	}
	*ret = (struct pp_traffic_done){.messages = t->out_messages,
					.bytes = t->out_messages * t->size,
					.took = pp_clock_monotonic() - start,
					.cpu = pp_cpu_used() - cpu,
					.latency = latency,
					.n_latency = t->out_messages};
	if (!first) {
		free(latency);
		ret->latency = NULL;
		ret->n_latency = 0;
	}
	return 0;
}
