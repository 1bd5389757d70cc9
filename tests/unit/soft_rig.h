/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A requester whose peer is the test: what it sends is read one packet after the other, answers are
 * given by hand.
 */
#ifndef PP_TESTS_SOFT_RIG_H
#define PP_TESTS_SOFT_RIG_H

#include "soft/wire/psn.h"
#include "soft_sim.h"

enum { MEMORY = 256 * 1024, REMOTE_VA = 0x10000000, RKEY = 0xabcd1234 };

struct rig {
	struct soft_sim sim;
	struct soft_sim_node node;
	struct soft_sim_end end;
	uint8_t *memory;
	uint32_t key;
	unsigned int seen; /* of what it sent */
};

static inline void rig_open(struct rig *r, const struct soft_sim_attr *attr, uint64_t window)
{
	memset(r, 0, sizeof(*r));
	soft_sim_init(&r->sim, 1);
	soft_sim_node_init(&r->node, window);
	r->memory = malloc(MEMORY);
	assert_non_null(r->memory);
	for (unsigned int i = 0; i < MEMORY; i++)
		r->memory[i] = (uint8_t)(i * 7 + i / 251);
	r->key = soft_sim_register(&r->node, r->memory, MEMORY, SOFT_ACCESS_LOCAL_WRITE,
				   soft_sim_pd);
	soft_sim_end_init(&r->sim, &r->end, &r->node, attr);
	soft_sim_alone(&r->end);
}

static inline void rig_close(struct rig *r)
{
	assert_int_equal(r->end.over_window, 0);
	soft_sim_end_done(&r->end);
	assert_int_equal(r->node.window.in_flight, 0);
	soft_sim_node_done(&r->node);
	soft_sim_done(&r->sim);
	free(r->memory);
}

static inline struct soft_sge piece(const struct rig *r, uint32_t offset, uint32_t length)
{
	return (struct soft_sge){(uint64_t)(uintptr_t)r->memory + offset, length, r->key};
}

static inline void post_flags(struct rig *r, uint64_t id, uint8_t opcode, uint32_t length,
			      uint8_t flags)
{
	struct soft_sge sge = piece(r, 0, length);
	struct soft_send_wr wr = {
		.id = id,
		.opcode = opcode,
		.flags = flags,
		.num_sge = length ? 1 : 0,
		.imm_be = 0x11223344,
		.rc = {.remote_addr = REMOTE_VA, .rkey = RKEY, .compare_add = 5, .swap = 9},
	};

	assert_true(soft_sim_post(&r->end, &wr, &sge));
	soft_sim_pump(&r->end);
}

static inline void post(struct rig *r, uint64_t id, uint8_t opcode, uint32_t length)
{
	post_flags(r, id, opcode, length, SOFT_WR_SIGNALED);
}

/* The next packet that was sent. */
static inline struct soft_sim_sent *sent(struct rig *r)
{
	assert_true(r->seen < r->end.num_sent);
	return &r->end.sent[r->seen++];
}

static inline void expect(struct rig *r, uint8_t opcode, uint32_t psn, bool ack_request,
			  uint32_t bytes)
{
	struct soft_sim_sent *s = sent(r);

	assert_int_equal(s->p.opcode, opcode);
	assert_int_equal(s->p.psn, psn & SOFT_PSN_MASK);
	assert_int_equal(s->p.ack_request, ack_request);
	assert_int_equal(s->p.payload_bytes, bytes);
	assert_int_equal(s->p.dest_qp, 0x777);
	assert_int_equal(s->p.pkey, 0xffff);
}

static inline void expect_silence(const struct rig *r)
{
	assert_int_equal(r->seen, r->end.num_sent);
}

static inline void give(struct rig *r, const struct soft_packet *p)
{
	soft_qp_receive(&r->end.qp, p, &r->end.qp.path, 0, r->sim.now);
	soft_sim_pump(&r->end);
}

static inline void answer(struct rig *r, uint8_t syndrome, uint32_t psn)
{
	struct soft_packet p = {
		.opcode = SOFT_ACKNOWLEDGE, .syndrome = syndrome, .psn = psn & SOFT_PSN_MASK};

	give(r, &p);
}

static inline void ack(struct rig *r, uint32_t psn)
{
	answer(r, 0x1f, psn);
}

static inline void give_read(struct rig *r, uint8_t opcode, uint32_t psn, const uint8_t *payload,
			     uint32_t bytes)
{
	struct soft_packet p = {.opcode = opcode,
				.syndrome = 0x1f,
				.psn = psn & SOFT_PSN_MASK,
				.payload = payload,
				.payload_bytes = bytes};

	give(r, &p);
}

static inline void done(struct rig *r, uint64_t id, unsigned int status)
{
	struct soft_cqe cqe;

	assert_true(soft_sim_poll(&r->end.send_cq, &cqe));
	assert_int_equal(cqe.wr_id, id);
	assert_int_equal(cqe.status, status);
	assert_int_equal(cqe.qp_num, r->end.qp.num);
}

static inline void none_done(struct rig *r)
{
	assert_true(soft_cq_empty(&r->end.send_cq));
}

static inline void later(struct rig *r, pp_ns ns)
{
	r->sim.now += ns;
	soft_qp_tick(&r->end.qp, r->sim.now);
	soft_sim_pump(&r->end);
}

#endif
