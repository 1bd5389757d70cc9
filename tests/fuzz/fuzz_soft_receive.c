/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may come from the network, against a set of live queue pairs: RC connected to each other, RC
 * connected to itself, UD, two of them on a shared receive queue, all in whatever states the input
 * brings them to. Input is steps of a byte and its arguments: datagrams raw or made by fields,
 * packets of our own ends delivered, lost, doubled and damaged, work requests, states, time. They
 * go the engine's way: decoding, number, address, key, ICRC.
 *
 * Registered memory ends at pages that nobody may touch; what may only be read cannot be written.
 * For every input: each request completes at most once, sends in their order; nothing is sent in
 * answer to a READ but bytes that a peer may read; running counts keep their order; what was
 * counted in a window leaves it.
 */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "soft/engine/parts.h"
#include "soft/qp/parts.h"
#include "soft/wire/crc32.h"
#include "soft/wire/psn.h"

enum {
	QPS = 6,
	SELF = 4, /* connected to itself */
	UD = 5,
	PAGE = 4096,
	BYTES = 2 * PAGE,
	DEPTH = 8,
	STEPS = 300,
	FLIGHTS = 64,
	PACKET_MAX = SOFT_HEADER_MAX + SOFT_MTU_MAX + 3 + SOFT_ICRC_BYTES,
	QKEY = 0x1234,
};

enum kind { REMOTE, READABLE, LOCAL, SECRET, KINDS };

static const struct {
	uint32_t access;
	int protection;
} kinds[KINDS] = {
	[REMOTE] = {SOFT_ACCESS_LOCAL_WRITE | SOFT_ACCESS_REMOTE_WRITE | SOFT_ACCESS_REMOTE_READ |
			    SOFT_ACCESS_REMOTE_ATOMIC,
		    PROT_READ | PROT_WRITE},
	[READABLE] = {SOFT_ACCESS_REMOTE_READ, PROT_READ},
	[LOCAL] = {SOFT_ACCESS_LOCAL_WRITE, PROT_READ | PROT_WRITE},
	[SECRET] = {0, PROT_READ},
};

struct end {
	struct soft_qp qp;
	struct soft_cq send_cq, recv_cq;
	uint64_t posted, completed, receives;
	bool received[STEPS + 1];
};

struct flight {
	unsigned int to;
	size_t len;
	uint8_t bytes[PACKET_MAX];
};

struct scene {
	struct soft_engine engine; /* without thread, sockets and slot */
	struct soft_wire wire;
	struct end ends[QPS];
	struct soft_region region[KINDS];
	struct soft_recv_queue shared;
	uint64_t shared_receives;
	bool shared_received[STEPS + 1];
	struct soft_window window;
	struct soft_path path;
	pp_ns now;
	const uint8_t *data;
	size_t left;
	unsigned int head, tail; /* of flights */
};

/* Large, and empty after each input. */
static struct flight flights[FLIGHTS];
static struct soft_qp_table table;
static uint8_t *memory[KINDS]; /* mapped once, between pages that nobody may touch */

static void memory_map(void)
{
	for (unsigned int i = 0; i < KINDS && !memory[KINDS - 1]; i++) {
		uint8_t *at =
			mmap(NULL, BYTES + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		assert(at != MAP_FAILED);
		assert(!mprotect(at + PAGE, BYTES, PROT_READ | PROT_WRITE));
		memset(at + PAGE, (int)i + 1, BYTES);
		assert(!mprotect(at + PAGE, BYTES, kinds[i].protection));
		memory[i] = at + PAGE;
	}
}

static uint32_t take(struct scene *s, unsigned int bytes)
{
	uint32_t value = 0;

	for (; bytes && s->left; bytes--, s->left--)
		value = value << 8 | *s->data++;
	return value;
}

static bool within(const struct iovec *piece, enum kind kind)
{
	const uint8_t *at = piece->iov_base;

	return at >= memory[kind] && at + piece->iov_len <= memory[kind] + BYTES;
}

static void check_pieces(const struct soft_packet *p, const struct iovec *pieces, unsigned int n)
{
	bool answers = soft_opcode_find(p->opcode)->flags & SOFT_IS_RESPONSE;
	size_t sum = 0;

	for (unsigned int i = 0; i < n; i++) {
		assert(!answers || within(&pieces[i], REMOTE) || within(&pieces[i], READABLE));
		sum += pieces[i].iov_len;
	}
	assert(n <= SOFT_PIECES_MAX && sum == p->payload_bytes);
}

static void on_send(struct soft_qp *qp, const struct soft_path *path, const struct soft_packet *p,
		    const struct iovec *pieces, unsigned int num_pieces)
{
	struct scene *s = qp->owner;
	unsigned int from = (unsigned int)((struct end *)(void *)qp - s->ends);
	struct flight *f = &flights[s->head++ % FLIGHTS];

	(void)path;
	assert(soft_opcode_find(p->opcode)->name && p->payload_bytes <= SOFT_MTU_MAX);
	check_pieces(p, pieces, num_pieces);
	f->to = from < SELF ? from ^ 1 : from;
	f->len = soft_packet_encode(p, f->bytes);
	for (unsigned int i = 0; i < num_pieces; i++) {
		memcpy(f->bytes + f->len, pieces[i].iov_base, pieces[i].iov_len);
		f->len += pieces[i].iov_len;
	}
	memset(f->bytes + f->len, 0, 8);
	f->len += soft_packet_pad(p->payload_bytes) + SOFT_ICRC_BYTES;
	if (s->head - s->tail > FLIGHTS)
		s->tail = s->head - FLIGHTS;
}

static void on_event(struct soft_qp *qp, enum soft_qp_event event)
{
	(void)qp;
	assert(event <= SOFT_QP_EVENT_LAST_WQE);
}

static const struct soft_qp_ops ops = {.send = on_send, .event = on_event};

/* The end's QP comes first in it: on_send() counts on that. */
_Static_assert(offsetof(struct end, qp) == 0, "a queue pair begins its end");

static void connect_end(struct scene *s, unsigned int i)
{
	struct end *e = &s->ends[i];
	unsigned int peer = i < SELF ? i ^ 1 : i;

	e->qp.attr = (struct soft_qp_attr){
		.remote_qpn = s->ends[peer].qp.num,
		.sq_psn = i == SELF ? 0x700 : 0xfffff0 + i,
		.rq_psn = i == SELF ? 0x700 : 0xfffff0 + peer,
		.mtu = 256u << (i % 5),
		.qkey = QKEY,
		.pkey = 0xffff,
		.timeout = 8,
		.retry_cnt = 2,
		.rnr_retry = i & 1 ? 7 : 1,
		.min_rnr_timer = 1,
		.max_rd_atomic = 1 + i,
		.max_dest_rd_atomic = 1 + i,
		.access = i == 2 ? 0 : kinds[REMOTE].access,
	};
	if (i < SELF)
		e->qp.attr.mtu = 256u << (i / 2 * 2);
	e->qp.window = &s->window;
	e->qp.path = s->path;
	e->qp.state = SOFT_QP_INIT;
	soft_qp_to_rtr(&e->qp);
}

static void end_make(struct scene *s, unsigned int i)
{
	const struct soft_qp_caps caps = {DEPTH, DEPTH, 4, 4, 32};
	struct end *e = &s->ends[i];

	assert(soft_cq_init(&e->send_cq, 64) == 0 && soft_cq_init(&e->recv_cq, 64) == 0);
	e->qp = (struct soft_qp){.transport = i == UD ? SOFT_UD : SOFT_RC,
				 .pd = s,
				 .regions = s->engine.regions,
				 .send_cq = &e->send_cq,
				 .recv_cq = &e->recv_cq,
				 .counters = &s->wire.counters,
				 .ops = &ops,
				 .owner = s};
	assert(soft_qp_init(&e->qp, &caps, i == 1 || i == SELF ? &s->shared : NULL, true) == 0);
	assert(soft_qp_table_add(&s->engine.table, 7, &s->wire, &e->qp) == 0);
}

static struct scene *scene_new(void)
{
	struct scene *s = aligned_alloc(64, (sizeof(*s) + 63) / 64 * 64);
	struct soft_gid lo = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};

	assert(s);
	memset(s, 0, sizeof(*s));
	memory_map();
	s->now = PP_SECOND;
	s->wire.engine = &s->engine;
	s->wire.config.gids[0] = lo;
	s->wire.config.num_gids = 1;
	/* The engine has no slot, which lanes are found by. */
	s->wire.config.wire_only = true;
	s->engine.wires = &s->wire;
	soft_icrc_flow_init(&s->path.flow, &lo, &lo, 0xc001);
	s->path.hop_limit = 64;
	assert(soft_regions_new(&s->engine.regions) == 0 &&
	       soft_recv_queue_init(&s->shared, DEPTH, 4) == 0 &&
	       (table.by_index || soft_qp_table_init(&table) == 0));
	s->engine.table = table;
	s->engine.table.next = 2; /* the same numbers each time */
	soft_window_init(&s->window, 1 << 16);
	for (unsigned int i = 0; i < KINDS; i++) {
		s->region[i] = (struct soft_region){.access = kinds[i].access,
						    .pd = s,
						    .iova = (uint64_t)(uintptr_t)memory[i],
						    .length = BYTES,
						    .base = memory[i],
						    .ops = &soft_region_host};
		assert(soft_regions_add(s->engine.regions, &s->region[i]) == 0);
	}
	for (unsigned int i = 0; i < QPS; i++)
		end_make(s, i);
	for (unsigned int i = 0; i < QPS; i++) {
		connect_end(s, i);
		if (i != 3) /* one stays in RTR until the input moves it */
			soft_qp_to_rts(&s->ends[i].qp);
	}
	return s;
}

/* Mostly memory that fits; now and then its end lies within two bytes of the region's. */
static struct soft_sge piece(struct scene *s, uint32_t length)
{
	uint32_t pick = take(s, 1);
	enum kind kind = pick & 0x40 ? (pick >> 4) % KINDS : pick & 1 ? LOCAL : REMOTE;
	uint64_t addr = (uint64_t)(uintptr_t)memory[kind] + (pick & 0xe) * 512;

	if (pick & 0x80)
		addr = (uint64_t)(uintptr_t)memory[kind] + BYTES - length + (pick >> 1 & 3) - 1;
	return (struct soft_sge){addr, length, s->region[kind].key ^ (pick == 0xff)};
}

static void post(struct scene *s)
{
	uint32_t which = take(s, 1), length = take(s, 2) % BYTES, kind = take(s, 1);
	struct end *e = &s->ends[which % QPS];
	struct soft_send_wr *wr = soft_send_queue_next(&e->qp.req.sq);

	if (!wr || (e->qp.state < SOFT_QP_RTS))
		return;
	*wr = (struct soft_send_wr){.id = e->posted, .opcode = kind & 15};
	wr->flags = kind >> 4 & (SOFT_WR_FENCE | SOFT_WR_SOLICITED | SOFT_WR_INLINE);
	wr->length =
		wr->opcode == SOFT_WR_FETCH_ADD || wr->opcode == SOFT_WR_COMPARE_SWAP ? 8 : length;
	if (wr->flags & SOFT_WR_INLINE) {
		wr->length = wr->length % (e->qp.req.sq.max_inline + 1);
		memset(soft_send_wr_inline(wr), 0x33, wr->length);
	} else {
		wr->num_sge = 2;
		soft_send_wr_sges(wr)[0] = piece(s, wr->length / 3);
		soft_send_wr_sges(wr)[1] = piece(s, wr->length - wr->length / 3);
	}
	if (e->qp.transport == SOFT_UD) {
		wr->ud.path = s->path;
		wr->ud.remote_qpn = e->qp.num;
		wr->ud.qkey = which & 0x80 ? 1 : QKEY;
	} else {
		struct soft_sge remote = piece(s, wr->length);

		wr->rc.remote_addr = remote.addr;
		wr->rc.rkey = remote.lkey;
		wr->rc.compare_add = kind;
	}
	e->posted++;
	e->qp.req.sq.posted++;
	soft_engine_ready(&s->engine, &e->qp);
}

static void post_receive(struct scene *s)
{
	struct end *e = &s->ends[take(s, 1) % QPS];
	struct soft_sge sge = piece(s, take(s, 2) % BYTES);
	bool shared = e->qp.resp.rq == &s->shared;
	uint64_t *count = shared ? &s->shared_receives : &e->receives;

	if (e->qp.state >= SOFT_QP_INIT &&
	    soft_recv_queue_post(e->qp.resp.rq, *count, &sge, 1) == 0)
		++*count;
	soft_engine_ready(&s->engine, &e->qp);
}

static void reap(struct scene *s)
{
	for (unsigned int i = 0; i < QPS; i++) {
		struct end *e = &s->ends[i];
		bool shared = e->qp.resp.rq == &s->shared;
		bool *seen = shared ? s->shared_received : e->received;
		const struct soft_send_queue *q = &e->qp.req.sq;
		struct soft_cqe cqe;

		while (soft_cq_pop(&e->send_cq, &cqe, 1)) {
			assert(cqe.wr_id == e->completed && e->completed < e->posted);
			e->completed++;
		}
		while (soft_cq_pop(&e->recv_cq, &cqe, 1)) {
			assert(cqe.wr_id < (shared ? s->shared_receives : e->receives));
			assert(!seen[cqe.wr_id]);
			seen[cqe.wr_id] = true;
		}
		assert(q->posted - q->retired <= q->depth && q->started - q->retired <= q->depth);
		assert(e->qp.resp.rq->posted - e->qp.resp.rq->taken <= e->qp.resp.rq->depth);
		assert(!e->send_cq.overrun && !e->recv_cq.overrun);
	}
}

static void change_state(struct scene *s)
{
	uint32_t what = take(s, 1);
	unsigned int i = what % QPS;
	struct soft_qp *qp = &s->ends[i].qp;

	switch (what / QPS % 5) {
	case 0:
		soft_qp_to_error(qp);
		break;
	case 1: /* what was posted is gone without a word */
		reap(s);
		soft_qp_reset(qp);
		s->ends[i].completed = s->ends[i].posted;
		connect_end(s, i);
		break;
	case 2:
		if (qp->state == SOFT_QP_RTR || qp->state == SOFT_QP_SQD)
			soft_qp_to_rts(qp);
		break;
	case 3:
		if (qp->state == SOFT_QP_RTS)
			soft_qp_to_sqd(qp, true);
		break;
	default: /* a region goes and comes again, with another key */
		i = what % KINDS;
		soft_regions_remove(s->engine.regions, &s->region[i]);
		assert(soft_regions_add(s->engine.regions, &s->region[i]) == 0);
		break;
	}
	soft_engine_ready(&s->engine, qp);
}

static void input(struct scene *s, const uint8_t *bytes, size_t len)
{
	struct soft_engine_input in = {&s->engine, &s->wire, s->now};
	struct soft_datagram d = {.bytes = bytes,
				  .len = len,
				  .src = s->path.flow.src,
				  .dst = s->path.flow.src,
				  .sport = s->path.flow.sport,
				  .hop_limit = 64};
	uint8_t *exact = malloc(len ? len : 1);

	/* A block of its size, for the sanitizer. */
	assert(exact);
	memcpy(exact, bytes, len);
	d.bytes = exact;
	soft_engine_input(&in, &d);
	free(exact);
}

static void seal(struct scene *s, uint8_t *bytes, size_t len)
{
	uint32_t state;

	if (len < SOFT_BTH_BYTES + SOFT_ICRC_BYTES)
		return;
	state = soft_icrc_begin(&s->path.flow, 0, len, bytes, SOFT_BTH_BYTES);
	state = soft_crc32(state, bytes + SOFT_BTH_BYTES, len - SOFT_BTH_BYTES - SOFT_ICRC_BYTES);
	soft_icrc_final(state, bytes + len - SOFT_ICRC_BYTES);
}

static void raw_datagram(struct scene *s)
{
	uint8_t bytes[PACKET_MAX];
	uint32_t word = take(s, 2);
	size_t len = word % PACKET_MAX;

	len = len < s->left ? len : s->left;
	memcpy(bytes, s->data, len);
	s->data += len;
	s->left -= len;
	if (word & 0x8000)
		seal(s, bytes, len);
	input(s, bytes, len);
}

/* Near what the queue pair expects, so that most of them get to where the work is done. */
static void made_packet(struct scene *s)
{
	uint8_t bytes[PACKET_MAX] = {0};
	unsigned int i = take(s, 1) % QPS, mix = take(s, 1);
	struct soft_qp *qp = &s->ends[i].qp;
	struct soft_packet p = {.opcode = (uint8_t)(qp->transport | (take(s, 1) & 0x1f)),
				.dest_qp = qp->num,
				.pkey = 0xffff};
	unsigned int flags = soft_opcode_find(p.opcode)->flags;
	struct soft_sge remote;
	size_t len;

	if (!soft_opcode_find(p.opcode)->name)
		return;
	p.psn = flags & SOFT_IS_RESPONSE ? qp->req.una_psn : qp->resp.expected_psn;
	p.psn = soft_psn_add(p.psn, (mix & 7) == 7 ? take(s, 3) : (mix & 7) - 2) & SOFT_PSN_MASK;
	if (mix & 8)
		p.psn = flags & SOFT_IS_RESPONSE ? qp->req.una_psn : qp->resp.expected_psn;
	p.syndrome = mix & 0x20 ? (uint8_t)take(s, 1) : SOFT_AETH_ACK;
	p.msn = qp->resp.msn;
	p.ack_request = mix & 0x40;
	p.length = mix & 0x80 ? take(s, 4) : take(s, 2) % BYTES;
	if (flags & SOFT_HAS_PAYLOAD) {
		p.payload_bytes = mix & 0x20 ? take(s, 2) % (SOFT_MTU_MAX + 1) : qp->attr.mtu;
		if ((flags & SOFT_HAS_RETH) && (flags & SOFT_IS_LAST) && (mix & 0x10))
			p.payload_bytes = p.length = p.length % (qp->attr.mtu + 1);
	}
	remote = piece(s, flags & SOFT_HAS_ATOMIC ? 8 : p.length);
	p.va = remote.addr;
	p.rkey = remote.lkey;
	p.qkey = mix & 0x80 ? take(s, 1) : QKEY;
	p.src_qp = 3;
	len = soft_packet_encode(&p, bytes) + p.payload_bytes + soft_packet_pad(p.payload_bytes) +
	      SOFT_ICRC_BYTES;
	seal(s, bytes, len);
	input(s, bytes, len);
}

/* What one of our own ends sent: on its way it may be lost, doubled, overtaken or damaged. */
static void deliver(struct scene *s)
{
	uint32_t fate = take(s, 1);
	struct flight *f;

	if (s->head == s->tail)
		return;
	f = &flights[s->tail % FLIGHTS];
	if (fate & 0x40 && s->head - s->tail > 1) {
		struct flight other = flights[(s->tail + 1) % FLIGHTS];

		flights[(s->tail + 1) % FLIGHTS] = *f;
		*f = other;
	}
	if ((fate & 0x30) == 0x30)
		f->bytes[take(s, 2) % f->len] ^= (uint8_t)take(s, 1);
	seal(s, f->bytes, f->len);
	if (fate & 0x80) {
		struct flight same = *f;

		input(s, same.bytes, same.len);
	}
	if ((fate & 15) != 15) {
		struct flight same = *f;

		s->tail++;
		input(s, same.bytes, same.len);
	} else {
		s->tail++;
	}
}

static void pass_time(struct scene *s)
{
	uint32_t word = take(s, 2);

	s->now += (pp_ns)(word & 0x7fff) * (word & 0x8000 ? 100000 : 1000);
	for (unsigned int i = 0; i < QPS; i++) {
		pp_ns deadline = soft_qp_deadline(&s->ends[i].qp);

		assert(deadline >= 0);
		if (deadline && deadline <= s->now)
			soft_qp_tick(&s->ends[i].qp, s->now);
		soft_engine_ready(&s->engine, &s->ends[i].qp);
	}
}

static void step(struct scene *s)
{
	static void (*const steps[])(struct scene *) = {
		post,	     post_receive, pass_time, raw_datagram, made_packet, change_state,
		deliver,     deliver,	   post,      made_packet,  deliver,	 deliver,
		made_packet, deliver,	   deliver,   post_receive,
	};

	steps[take(s, 1) & 15](s);
	soft_engine_send_ready(&s->engine, s->now);
	reap(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct scene *s = scene_new();

	s->data = data;
	s->left = size;
	for (unsigned int i = 0; i < STEPS && s->left; i++)
		step(s);
	for (unsigned int i = 0; i < QPS; i++)
		soft_qp_to_error(&s->ends[i].qp);
	reap(s);
	for (unsigned int i = 0; i < QPS; i++) {
		struct end *e = &s->ends[i];

		assert(e->completed == e->posted);
		soft_engine_unready(&s->engine, &e->qp);
		soft_qp_table_remove(&s->engine.table, &e->qp);
		soft_qp_done(&e->qp);
		soft_cq_done(&e->send_cq);
		soft_cq_done(&e->recv_cq);
	}
	assert(s->window.in_flight == 0);
	for (unsigned int i = 0; i < KINDS; i++)
		soft_regions_remove(s->engine.regions, &s->region[i]);
	soft_regions_free(s->engine.regions);
	soft_recv_queue_done(&s->shared);
	assert(!s->engine.table.all);
	free(s);
	return 0;
}
