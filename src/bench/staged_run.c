/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pipeline. Chunks are numbered over the whole run, in each direction; every stage takes them
 * in order, so that a stage is one counter:
 *
 *   out: started >= copied >= posted >= completed    a place is used again once completed
 *                             posted >= credited     and posted to once the peer took it
 *   in:  arrived >= fetched >= placed                placed - credited to the peer: to be told
 *
 * What arrives is the chunk, and fetched by that; by READ it is word of it, and fetched once read.
 */
#include "bench/staged_state.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "bench/tcp.h"
#include "base/banned.h"

enum { BATCH = 16, LOOK_EVERY = 4096, IDLE = 256 };
static const uint32_t CREDIT = 1u << 31, NUMBER = (1u << 31) - 1;

struct going {
	struct pp_staged *s;
	const struct pp_staged_run *t;
	struct pp_traffic_failure failure;
	uint64_t chunks_of_one, out_chunks, in_chunks;
	uint64_t started, copied, posted, completed, credited;
	uint64_t arrived, fetched, placed, told;
	unsigned int
		buffer[PP_STAGED_RECEIVES]; /* of receives, of the chunks from placed to arrived */
	bool telling;			    /* a credit is under way */
	uint64_t copies, moves;
	pp_ns *latency, began;
	struct pp_error *err;
};

static uint64_t offset_of(const struct going *g, const uint64_t *slots, uint64_t chunk,
			  size_t *ret_len)
{
	uint64_t message = chunk / g->chunks_of_one;
	uint64_t within = chunk % g->chunks_of_one * PP_STAGED_CHUNK;
	uint64_t left = g->t->size - within;

	*ret_len = (size_t)(left < PP_STAGED_CHUNK ? left : PP_STAGED_CHUNK);
	return slots[message % g->t->n_slots] + within;
}

/* How many chunks may go out by now: all, or as far as the ping-pong came. */
static uint64_t allowed(const struct going *g)
{
	uint64_t messages;

	if (!g->t->ping)
		return g->out_chunks;
	messages = g->placed / g->chunks_of_one + g->t->first;
	if (messages > g->t->out_messages)
		messages = g->t->out_messages;
	return messages * g->chunks_of_one;
}

static int copy_error(struct going *g, int r, const char *which)
{
	char name[96];

	return pp_error_set(g->err, r, "staged: copy %s failed: %s", which,
			    pp_errno_text(r, name, sizeof(name)));
}

/* Where a chunk goes out from: what is to be read lies where the peer may read. */
static uint8_t *place_out(const struct going *g, uint64_t chunk)
{
	size_t place = (size_t)(chunk % PP_STAGED_RING);

	return g->t->op == PP_READ ? g->s->in.at + (PP_STAGED_RING + place) * PP_STAGED_CHUNK
				   : g->s->out.at + place * PP_STAGED_CHUNK;
}

static int start_copies(struct going *g)
{
	uint64_t end = allowed(g);
	size_t len;
	int r;

	while (g->started < end && g->started < g->completed + PP_STAGED_RING &&
	       g->started < g->credited + PP_STAGED_RING) {
		unsigned int place = (unsigned int)(g->started % PP_STAGED_RING);
		uint64_t offset = offset_of(g, g->t->out, g->started, &len);

		if (g->t->ping && g->t->first && g->started % g->chunks_of_one == 0)
			g->began = pp_clock_monotonic();
		r = pp_copy_out(g->s->memory, g->s->ticket_out[place], offset,
				place_out(g, g->started), len);
		if (r)
			return copy_error(g, r, "out");
		g->copies++;
		g->started++;
		g->moves++;
	}
	return 0;
}

static int post(struct going *g, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	char name[96];
	int r = ibv_post_send(g->s->endpoint->qp[0], wr, &bad);

	if (r)
		return pp_error_set(g->err, -r, "ibv_post_send: %s",
				    pp_errno_text(r, name, sizeof(name)));
	g->moves++;
	return 0;
}

static int post_data(struct going *g)
{
	size_t len;
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.wr_id = PP_STAGED_DATA,
				 .sg_list = &sge,
				 .num_sge = g->t->op != PP_READ,
				 .opcode = g->t->op == PP_WRITE ? IBV_WR_RDMA_WRITE_WITH_IMM
								: IBV_WR_SEND_WITH_IMM,
				 .send_flags = IBV_SEND_SIGNALED,
				 .imm_data = htobe32((uint32_t)g->posted & NUMBER)};

	(void)offset_of(g, g->t->out, g->posted, &len);
	sge = (struct ibv_sge){.addr = (uint64_t)(uintptr_t)place_out(g, g->posted),
			       .length = (uint32_t)len,
			       .lkey = g->s->mr_out->lkey};
	if (g->t->op == PP_WRITE) {
		wr.wr.rdma.remote_addr = g->s->peer + g->posted % PP_STAGED_RING * PP_STAGED_CHUNK;
		wr.wr.rdma.rkey = g->s->peer_key;
	}
	g->posted++;
	return post(g, &wr);
}

static int send_out(struct going *g)
{
	int r = start_copies(g), done;

	while (!r && g->copied < g->started) {
		done = pp_copy_done(g->s->memory, g->s->ticket_out[g->copied % PP_STAGED_RING]);
		if (done < 0)
			return copy_error(g, done, "out");
		if (!done)
			break;
		g->copied++;
		r = post_data(g);
	}
	return r;
}

static void note_message(struct going *g)
{
	uint64_t message = g->placed / g->chunks_of_one;

	if (g->latency && g->placed % g->chunks_of_one == 0)
		g->latency[message - 1] = (pp_clock_monotonic() - g->began) / 2;
}

/* Chunks that are in their place: the receive is posted again, then the peer may be told. */
static int place_in(struct going *g)
{
	int r = 0, done;

	while (!r && g->placed < g->fetched) {
		unsigned int k = (unsigned int)(g->placed % PP_STAGED_RECEIVES);

		done = pp_copy_done(g->s->memory, g->s->ticket_in[k]);
		if (done < 0)
			return copy_error(g, done, "in");
		if (!done)
			break;
		if (g->t->op == PP_SEND)
			r = pp_staged_receive(g->s, g->buffer[k], g->err);
		g->placed++;
		g->moves++;
		note_message(g);
	}
	return r;
}

static int tell(struct going *g)
{
	struct ibv_send_wr wr = {.wr_id = PP_STAGED_CREDIT,
				 .opcode = IBV_WR_SEND_WITH_IMM,
				 .send_flags = IBV_SEND_SIGNALED,
				 .imm_data = htobe32(CREDIT | (uint32_t)(g->placed - g->told))};

	if (g->telling || g->placed == g->told)
		return 0;
	g->telling = true;
	g->told = g->placed;
	return post(g, &wr);
}

static int protocol(struct going *g, const char *what, uint32_t imm)
{
	return pp_error_set(g->err, -EPROTO, "staged: the peer sent %s (immediate 0x%x)", what,
			    imm);
}

/* The next chunk is in the bounce buffer: on to the memory. */
static int copy_in(struct going *g)
{
	unsigned int k = (unsigned int)(g->fetched % PP_STAGED_RECEIVES);
	size_t from = g->t->op == PP_SEND ? g->buffer[k] : g->fetched % PP_STAGED_RING, len;
	uint64_t offset = offset_of(g, g->t->in, g->fetched, &len);
	int r = pp_copy_in(g->s->memory, g->s->ticket_in[k], offset,
			   g->s->in.at + from * PP_STAGED_CHUNK, len);

	g->copies++;
	g->fetched++;
	return r ? copy_error(g, r, "in") : 0;
}

/* The peer keeps it until it has credit for it; and so the place it comes to is free. */
static int fetch(struct going *g)
{
	uint64_t place = g->arrived % PP_STAGED_RING;
	size_t len;
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.wr_id = PP_STAGED_READ,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_READ,
				 .send_flags = IBV_SEND_SIGNALED};

	(void)offset_of(g, g->t->in, g->arrived, &len);
	sge = (struct ibv_sge){.addr = (uint64_t)(uintptr_t)g->s->in.at + place * PP_STAGED_CHUNK,
			       .length = (uint32_t)len,
			       .lkey = g->s->mr_in->lkey};
	wr.wr.rdma.remote_addr = g->s->peer + (PP_STAGED_RING + place) * PP_STAGED_CHUNK;
	wr.wr.rdma.rkey = g->s->peer_key;
	return post(g, &wr);
}

static int take_data(struct going *g, unsigned int buffer, uint32_t imm)
{
	/* What is not fetched and placed the peer has no credit for. */
	unsigned int most = g->t->op == PP_READ ? PP_STAGED_RING : PP_STAGED_RECEIVES;
	int r = 0;

	if (g->arrived == g->in_chunks || imm != ((uint32_t)g->arrived & NUMBER) ||
	    g->arrived - g->placed == most)
		return protocol(g, "a chunk that is not its turn", imm);
	g->buffer[g->arrived % PP_STAGED_RECEIVES] = buffer;
	if (g->t->op != PP_SEND)
		r = pp_staged_receive(g->s, buffer, g->err);
	if (!r && g->t->op == PP_READ)
		r = fetch(g);
	g->arrived++;
	return r || g->t->op == PP_READ ? r : copy_in(g);
}

static int take_receive(struct going *g, const struct ibv_wc *wc)
{
	unsigned int buffer = wc->wr_id & 0xff;
	uint32_t imm = be32toh(wc->imm_data), places = imm & NUMBER;

	g->s->receives--;
	if (!(imm & CREDIT))
		return take_data(g, buffer, imm);
	if (places > g->posted - g->credited)
		return protocol(g, "credit for more than it got", imm);
	g->credited += places;
	return pp_staged_receive(g->s, buffer, g->err);
}

static int take(struct going *g, const struct ibv_wc *wc)
{
	g->moves++;
	if (wc->status) {
		g->failure =
			(struct pp_traffic_failure){.status = wc->status,
						    .vendor = wc->vendor_err,
						    .message = g->completed / g->chunks_of_one};
		return pp_error_set(g->err, -EIO, "a completion with status %d", wc->status);
	}
	if (wc->wr_id & PP_STAGED_IN)
		return take_receive(g, wc);
	if (wc->wr_id & PP_STAGED_READ)
		return copy_in(g);
	if (wc->wr_id & PP_STAGED_CREDIT)
		g->telling = false;
	else
		g->completed++;
	return 0;
}

static int poll_all(struct going *g)
{
	struct ibv_wc wc[BATCH];
	int n = ibv_poll_cq(g->s->endpoint->cq, BATCH, wc), r = 0;

	if (n < 0)
		return pp_error_set(g->err, -EIO, "ibv_poll_cq failed");
	for (int i = 0; !r && i < n; i++)
		r = take(g, &wc[i]);
	return r;
}

static bool over(const struct going *g)
{
	return g->completed == g->out_chunks && g->credited == g->out_chunks &&
	       g->placed == g->in_chunks && g->told == g->placed && !g->telling;
}

static int go(struct going *g)
{
	pp_ns silence = g->t->silence ? g->t->silence : 3 * PP_SECOND;
	pp_ns moved = pp_clock_monotonic();
	uint64_t moves = 0, seen = 0;
	unsigned int idle = 0;
	int r = 0;

	for (unsigned int turns = 1; !r && !over(g); turns++) {
		r = send_out(g);
		r = r ? r : poll_all(g);
		r = r ? r : place_in(g);
		r = r ? r : tell(g);
		/* with more ends than processors the peer may wait for this one's */
		idle = g->moves == seen ? idle + 1 : 0;
		seen = g->moves;
		if (idle >= IDLE)
			(void)sched_yield();
		if (r || turns % LOOK_EVERY)
			continue;
		if (g->t->stopped && g->t->stopped())
			return pp_error_set(g->err, -EINTR, "interrupted");
		if (g->moves != moves)
			moved = pp_clock_monotonic();
		moves = g->moves;
		if (pp_clock_monotonic() - moved > silence)
			return pp_error_set(g->err, -ETIMEDOUT,
					    "staged: nothing moves after chunk %" PRIu64
					    " out and %" PRIu64 " in",
					    g->completed, g->placed);
	}
	return r;
}

int pp_staged_go(struct pp_staged *s, const struct pp_staged_run *t, struct pp_traffic_done *ret,
		 uint64_t *ret_copies, struct pp_error *err)
{
	struct going g = {.s = s, .t = t, .err = err};
	pp_ns start = pp_clock_monotonic(), cpu = pp_cpu_used();
	int r = 0;

	g.chunks_of_one = (t->size + PP_STAGED_CHUNK - 1) / PP_STAGED_CHUNK;
	if (__builtin_mul_overflow(t->out_messages, g.chunks_of_one, &g.out_chunks) ||
	    __builtin_mul_overflow(t->in_messages, g.chunks_of_one, &g.in_chunks) ||
	    g.out_chunks > NUMBER || g.in_chunks > NUMBER)
		return pp_error_set(err, -EINVAL, "staged: more chunks than have numbers");
	if (t->ping && t->first) {
		g.latency = calloc(t->in_messages, sizeof(*g.latency));
		if (!g.latency)
			return pp_error_set(err, -ENOMEM, "out of memory");
	}
	r = go(&g);
	*ret = (struct pp_traffic_done){
		.messages = t->out_messages + (t->ping ? 0 : t->in_messages),
		.bytes = (t->out_messages ? t->out_messages : t->in_messages) * t->size,
		.took = pp_clock_monotonic() - start,
		.cpu = pp_cpu_used() - cpu,
		.failure = g.failure};
	if (r) {
		free(g.latency);
		return r;
	}
	ret->latency = g.latency;
	ret->n_latency = g.latency ? t->in_messages : 0;
	*ret_copies = g.copies;
	return 0;
}
