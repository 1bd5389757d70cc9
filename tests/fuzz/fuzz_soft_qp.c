/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A live queue pair and everything a peer may send it, with work requests and time between: nothing
 * outside the registered bytes changes, each request completes at most once and in order, and what
 * was counted in the window leaves it. One shape in sixteen is an unreliable connection.
 *
 * A step is a byte of kind and what it needs; packets come as raw bytes or, so that most of them
 * get past the decoder and near the right PSN, by fields.
 */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "soft/qp/parts.h"
#include "soft/wire/psn.h"

enum { BYTES = 8192, GUARD = 256, DEPTH = 16, STEPS = 400, FILL = 0x5a };

struct scene {
	uint8_t before[GUARD], local[BYTES], between[GUARD], remote[BYTES], after[GUARD];
	struct soft_regions *regions;
	struct soft_region local_region, remote_region;
	struct soft_mw window_of; /* over the remote one, when bound */
	struct soft_cq send_cq, recv_cq;
	struct soft_window window;
	struct soft_counters counters;
	struct soft_qp qp;
	uint64_t posted, completed, posted_receives, received;
	uint64_t sent;
	pp_ns now;
	const uint8_t *data;
	size_t left;
};

static uint32_t take(struct scene *s, unsigned int bytes)
{
	uint32_t value = 0;

	for (; bytes && s->left; bytes--, s->left--)
		value = value << 8 | *s->data++;
	return value;
}

static void on_send(struct soft_qp *qp, const struct soft_path *path, const struct soft_packet *p,
		    const struct iovec *pieces, unsigned int num_pieces)
{
	struct scene *s = qp->owner;
	size_t sum = 0;

	(void)path;
	assert(soft_opcode_find(p->opcode)->name && num_pieces <= SOFT_PIECES_MAX);
	for (unsigned int i = 0; i < num_pieces; i++) {
		const uint8_t *at = pieces[i].iov_base;

		for (size_t k = 0; k < pieces[i].iov_len; k++)
			s->sent += at[k];
		sum += pieces[i].iov_len;
	}
	assert(sum == p->payload_bytes && sum <= qp->attr.mtu);
}

static void on_event(struct soft_qp *qp, enum soft_qp_event event)
{
	(void)qp;
	(void)event;
}

static const struct soft_qp_ops ops = {.send = on_send, .event = on_event};

static void add_region(struct scene *s, struct soft_region *region, uint8_t *base)
{
	*region = (struct soft_region){
		.access = SOFT_ACCESS_LOCAL_WRITE | SOFT_ACCESS_REMOTE_WRITE |
			  SOFT_ACCESS_REMOTE_READ | SOFT_ACCESS_REMOTE_ATOMIC | SOFT_ACCESS_MW_BIND,
		.pd = s,
		.iova = (uint64_t)(uintptr_t)base,
		.length = BYTES,
		.base = base,
		.ops = &soft_region_host,
	};
	assert(soft_regions_add(s->regions, region) == 0);
}

static struct scene *scene_new(uint8_t shape)
{
	static const uint16_t mtus[] = {256, 512, 1024, 4096};
	struct soft_qp_caps caps = {DEPTH, DEPTH, 4, 4, 32};
	struct scene *s = aligned_alloc(64, (sizeof(*s) + 63) / 64 * 64);

	assert(s);
	memset(s, 0, sizeof(*s));
	memset(s->before, FILL, sizeof(s->before));
	memset(s->between, FILL, sizeof(s->between));
	memset(s->after, FILL, sizeof(s->after));
	assert(soft_regions_new(&s->regions) == 0);
	add_region(s, &s->local_region, s->local);
	add_region(s, &s->remote_region, s->remote);
	assert(soft_mw_add(s->regions, &s->window_of, s, /* type2= */ shape & 4) == 0);
	assert(soft_cq_init(&s->send_cq, 64) == 0 && soft_cq_init(&s->recv_cq, 64) == 0);
	soft_window_init(&s->window, 1 << 16);
	s->now = PP_SECOND;
	s->qp = (struct soft_qp){.num = 0x11,
				 .transport = shape >> 4 == 0xe ? SOFT_UC : SOFT_RC,
				 .pd = s,
				 .regions = s->regions,
				 .send_cq = &s->send_cq,
				 .recv_cq = &s->recv_cq,
				 .window = &s->window,
				 .counters = &s->counters,
				 .ops = &ops,
				 .owner = s};
	assert(soft_qp_init(&s->qp, &caps, /* shared_rq= */ NULL, /* signal_all= */ true) == 0);
	s->qp.attr = (struct soft_qp_attr){.remote_qpn = 0x12,
					   .sq_psn = 0xfffff0,
					   .rq_psn = 0xfffff8,
					   .mtu = mtus[shape & 3],
					   .pkey = 0xffff,
					   .timeout = 8,
					   .retry_cnt = shape >> 2 & 7,
					   .rnr_retry = shape >> 5 & 7,
					   .max_rd_atomic = 1 + (shape & 3),
					   .max_dest_rd_atomic = 1 + (shape >> 2 & 3),
					   .access = s->local_region.access};
	s->qp.state = SOFT_QP_INIT;
	soft_qp_to_rtr(&s->qp);
	soft_qp_to_rts(&s->qp);
	return s;
}

static void post(struct scene *s)
{
	struct soft_send_wr *wr = soft_send_queue_next(&s->qp.req.sq);
	uint32_t length = take(s, 2) % BYTES, kind = take(s, 1);

	if (!wr)
		return;
	*wr = (struct soft_send_wr){.id = s->posted++, .opcode = kind & 15, .flags = kind >> 4};
	wr->flags &= SOFT_WR_FENCE | SOFT_WR_SOLICITED;
	wr->length =
		wr->opcode == SOFT_WR_FETCH_ADD || wr->opcode == SOFT_WR_COMPARE_SWAP ? 8 : length;
	if (wr->opcode == SOFT_WR_BIND_WINDOW) {
		wr->length = 0;
		wr->bind.start = (uint64_t)(uintptr_t)s->remote + take(s, 2) - 64;
		wr->bind.length = length;
		wr->bind.window = s->window_of.entry.key;
		wr->bind.lkey = s->remote_region.key;
		wr->bind.access = take(s, 1);
		wr->bind.key = (uint8_t)take(s, 1);
	} else if (wr->opcode == SOFT_WR_LOCAL_INVALIDATE) {
		wr->length = 0;
		wr->imm_be = s->window_of.entry.key ^ (kind >> 7);
	}
	if (soft_send_wr_is_local(wr)) {
		s->qp.req.sq.posted++;
		return;
	}
	wr->num_sge = 2;
	soft_send_wr_sges(wr)[0] = (struct soft_sge){(uint64_t)(uintptr_t)s->local, wr->length / 3,
						     s->local_region.key};
	soft_send_wr_sges(wr)[1] =
		(struct soft_sge){(uint64_t)(uintptr_t)s->local + wr->length / 3,
				  wr->length - wr->length / 3, s->local_region.key};
	s->qp.req.sq.posted++;
}

static void post_receive(struct scene *s)
{
	struct soft_sge sge = {(uint64_t)(uintptr_t)s->local, take(s, 2) % BYTES,
			       s->local_region.key};

	if (soft_recv_queue_post(s->qp.resp.rq, s->posted_receives, &sge, 1) == 0)
		s->posted_receives++;
}

static void raw_packet(struct scene *s)
{
	size_t len = take(s, 2) % 4200;
	struct soft_packet p;

	len = len < s->left ? len : s->left;
	if (soft_packet_decode(s->data, len, &p) == 0)
		soft_qp_receive(&s->qp, &p, &s->qp.path, 0, s->now);
	s->data += len;
	s->left -= len;
}

static void packet(struct scene *s)
{
	static const uint8_t payload[SOFT_MTU_MAX] = {1, 2, 3};
	struct soft_packet p = {.opcode = (uint8_t)(take(s, 1) & 0x1f), .dest_qp = s->qp.num};
	unsigned int flags, mix = take(s, 1);

	p.opcode |= (uint8_t)s->qp.transport;
	flags = soft_opcode_find(p.opcode)->flags;

	if (!soft_opcode_find(p.opcode)->name)
		return;
	p.psn = flags & SOFT_IS_RESPONSE ? s->qp.req.una_psn : s->qp.resp.expected_psn;
	p.psn = soft_psn_add(p.psn, (uint32_t)(int32_t)(int8_t)(mix & 7 ? (mix >> 3 & 3) - (mix & 1)
									: take(s, 1)));
	p.syndrome = mix & 0x20 ? (uint8_t)take(s, 1) : SOFT_AETH_ACK;
	p.ack_request = mix & 0x40;
	p.rkey = mix & 0x80 ? s->remote_region.key : take(s, 1);
	p.invalidate_rkey = s->window_of.entry.key;
	p.va = (uint64_t)(uintptr_t)s->remote + take(s, 2) - 64;
	if (p.rkey % 4 == 3)
		p.rkey = s->window_of.entry.key;
	p.length = take(s, 2);
	p.original = ~0ull;
	if (flags & SOFT_HAS_PAYLOAD) {
		p.payload_bytes = take(s, 2) % (SOFT_MTU_MAX + 1);
		if (mix & 0x10)
			p.payload_bytes = s->qp.attr.mtu;
		p.payload = p.payload_bytes ? payload : NULL;
	}
	soft_qp_receive(&s->qp, &p, &s->qp.path, 0, s->now);
}

static void reap(struct scene *s)
{
	struct soft_cqe cqe;

	while (soft_cq_pop(&s->send_cq, &cqe, 1)) {
		assert(cqe.wr_id == s->completed && s->completed < s->posted);
		s->completed++;
	}
	while (soft_cq_pop(&s->recv_cq, &cqe, 1)) {
		assert(cqe.wr_id == s->received && s->received < s->posted_receives);
		s->received++;
	}
}

static void step(struct scene *s)
{
	switch (take(s, 1) & 7) {
	case 0:
		post(s);
		break;
	case 1:
		post_receive(s);
		break;
	case 2:
		s->now += (pp_ns)take(s, 2) * 1000;
		soft_qp_tick(&s->qp, s->now);
		if (s->qp.state == SOFT_QP_SQE)
			soft_qp_to_rts(&s->qp);
		break;
	case 3:
		raw_packet(s);
		break;
	default:
		packet(s);
		break;
	}
	for (unsigned int turns = 0; soft_qp_pump(&s->qp, 1 << 16, s->now); turns++)
		assert(turns < 1000);
	reap(s);
}

static void check_guard(const uint8_t *guard)
{
	for (unsigned int i = 0; i < GUARD; i++)
		assert(guard[i] == FILL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct scene *s;

	if (size == 0)
		return 0;
	s = scene_new(data[0]);
	s->data = data + 1;
	s->left = size - 1;
	for (unsigned int i = 0; i < STEPS && s->left; i++)
		step(s);
	soft_qp_to_error(&s->qp);
	reap(s);
	assert(s->completed == s->posted && s->received == s->posted_receives);
	soft_qp_done(&s->qp);
	soft_mw_remove(s->regions, &s->window_of);
	assert(s->remote_region.windows == 0);
	assert(s->window.in_flight == 0);
	check_guard(s->before);
	check_guard(s->between);
	check_guard(s->after);
	soft_cq_done(&s->send_cq);
	soft_cq_done(&s->recv_cq);
	soft_regions_remove(s->regions, &s->local_region);
	soft_regions_remove(s->regions, &s->remote_region);
	soft_regions_free(s->regions);
	free(s);
	return 0;
}
