/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unreliable connections by the InfiniBand Architecture Specification (volume 1, 9.8.2, 9.8.3 and
 * the UC columns of 9.9.3): what leaves, when it is done, and which messages a responder takes when
 * packets are missing, wrong, or come for nothing.
 */
#include "unit.h"

#include "soft_sim.h"

#include "soft/wire/psn.h"

enum { BYTES = 64 * 1024, PSN = 0xfffffe, MTU = 1024 };

struct pair {
	struct soft_sim sim;
	struct soft_sim_node node;
	struct soft_sim_end a;
	uint8_t *memory;
	uint32_t key;
};

static void open_at(struct pair *p, uint64_t window)
{
	struct soft_sim_attr attr = soft_sim_attr();

	memset(p, 0, sizeof(*p));
	attr.sq_psn = attr.rq_psn = PSN;
	soft_sim_init(&p->sim, 1);
	soft_sim_node_init(&p->node, window);
	p->memory = calloc(1, BYTES);
	assert_non_null(p->memory);
	p->key = soft_sim_register(&p->node, p->memory, BYTES,
				   SOFT_ACCESS_LOCAL_WRITE | SOFT_ACCESS_REMOTE_WRITE, soft_sim_pd);
	soft_sim_end_init(&p->sim, &p->a, &p->node, &attr);
	p->a.qp.transport = SOFT_UC;
	soft_sim_alone(&p->a);
}

static void close_it(struct pair *p)
{
	soft_sim_end_done(&p->a);
	soft_sim_node_done(&p->node);
	soft_sim_done(&p->sim);
	free(p->memory);
}

/* ---- Out ---- */

static void post(struct pair *p, uint64_t id, uint8_t opcode, uint32_t length)
{
	struct soft_sge sge = {(uint64_t)(uintptr_t)p->memory, length, p->key};
	struct soft_send_wr wr = {.id = id,
				  .opcode = opcode,
				  .flags = SOFT_WR_SIGNALED | SOFT_WR_SOLICITED,
				  .num_sge = length ? 1 : 0,
				  .imm_be = 0x11223344,
				  .rc = {.remote_addr = 0x5000, .rkey = 0xabcd}};

	assert_true(soft_sim_post(&p->a, &wr, &sge));
}

static void expect_done(struct pair *p, uint64_t id, unsigned int status)
{
	struct soft_cqe cqe;

	assert_true(soft_sim_poll(&p->a.send_cq, &cqe));
	assert_int_equal(cqe.wr_id, id);
	assert_int_equal(cqe.status, status);
}

/* 9.2.1: opcodes of UC are those of RC with 001 in front. */
static void test_packets(void **state)
{
	static const struct {
		uint8_t wr;
		uint32_t bytes;
		uint8_t opcodes[3];
		unsigned int packets;
	} rows[] = {
		{SOFT_WR_SEND, 0, {0x24}, 1},
		{SOFT_WR_SEND, 1024, {0x24}, 1},
		{SOFT_WR_SEND_IMM, 8, {0x25}, 1},
		{SOFT_WR_SEND, 3000, {0x20, 0x21, 0x22}, 3},
		{SOFT_WR_SEND_IMM, 1025, {0x20, 0x23}, 2},
		{SOFT_WR_WRITE, 0, {0x2a}, 1},
		{SOFT_WR_WRITE_IMM, 5, {0x2b}, 1},
		{SOFT_WR_WRITE, 2049, {0x26, 0x27, 0x28}, 3},
		{SOFT_WR_WRITE_IMM, 3072, {0x26, 0x27, 0x29}, 3},
	};
	struct pair p;
	unsigned int seen = 0;

	(void)state;
	open_at(&p, 1 << 20);
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		post(&p, i, rows[i].wr, rows[i].bytes);
		soft_sim_pump(&p.a);
		expect_done(&p, i, SOFT_WC_SUCCESS);
		for (unsigned int n = 0; n < rows[i].packets; n++) {
			const struct soft_packet *s = &p.a.sent[seen].p;

			assert_int_equal(s->opcode, rows[i].opcodes[n]);
			assert_int_equal(s->psn, (PSN + seen) & SOFT_PSN_MASK);
			assert_false(s->ack_request);
			if (n == 0 && rows[i].wr <= SOFT_WR_WRITE_IMM) {
				assert_int_equal(s->length, rows[i].bytes);
				assert_int_equal(s->va, 0x5000);
			}
			seen++;
		}
		assert_int_equal(p.a.num_sent, seen);
	}
	/* nothing waits for an answer: no time makes it act */
	assert_int_equal(soft_qp_deadline(&p.a.qp), 0);
	close_it(&p);
}

/* READs, atomics and what wants memory that is not there: completed, the queue stops (SQE), what is
 * behind is flushed, and it goes on where it was when the client says so. */
static void test_wrong_request(void **state)
{
	struct pair p;

	(void)state;
	open_at(&p, 1 << 20);
	post(&p, 1, SOFT_WR_SEND, 4);
	post(&p, 2, SOFT_WR_READ, 4);
	post(&p, 3, SOFT_WR_SEND, 4);
	soft_sim_pump(&p.a);
	expect_done(&p, 1, SOFT_WC_SUCCESS);
	expect_done(&p, 2, SOFT_WC_LOC_QP_OP_ERR);
	expect_done(&p, 3, SOFT_WC_WR_FLUSH_ERR);
	assert_int_equal(p.a.qp.state, SOFT_QP_SQE);
	post(&p, 4, SOFT_WR_SEND, 4);
	soft_sim_pump(&p.a);
	expect_done(&p, 4, SOFT_WC_WR_FLUSH_ERR);
	soft_qp_to_rts(&p.a.qp);
	p.key ^= 1;
	post(&p, 5, SOFT_WR_SEND, 4);
	soft_sim_pump(&p.a);
	expect_done(&p, 5, SOFT_WC_LOC_PROT_ERR);
	soft_qp_to_rts(&p.a.qp);
	p.key ^= 1;
	post(&p, 6, SOFT_WR_SEND, 4);
	soft_sim_pump(&p.a);
	expect_done(&p, 6, SOFT_WC_SUCCESS);
	assert_int_equal(p.a.num_sent, 2);
	assert_int_equal(p.a.sent[1].p.psn, (PSN + 1) & SOFT_PSN_MASK);
	close_it(&p);
}

/* SQD: what was begun is sent to its end, then the event; nothing new begins. */
static void test_drain(void **state)
{
	struct pair p;

	(void)state;
	open_at(&p, 64 * 1024);
	post(&p, 1, SOFT_WR_SEND, BYTES);
	post(&p, 2, SOFT_WR_SEND, 4);
	soft_sim_pump(&p.a); /* stops for its pace: half of the window */
	assert_true(p.a.num_sent < BYTES / MTU);
	assert_true(soft_qp_deadline(&p.a.qp) > p.sim.now);
	soft_qp_to_sqd(&p.a.qp, /* notify= */ true);
	assert_int_equal(p.a.events[SOFT_QP_EVENT_SQ_DRAINED], 0);
	for (int i = 0; i < 100 && soft_qp_deadline(&p.a.qp); i++) {
		p.sim.now = soft_qp_deadline(&p.a.qp);
		soft_qp_tick(&p.a.qp, p.sim.now);
		soft_sim_pump(&p.a);
	}
	assert_int_equal(p.a.num_sent, BYTES / MTU);
	assert_int_equal(p.a.events[SOFT_QP_EVENT_SQ_DRAINED], 1);
	expect_done(&p, 1, SOFT_WC_SUCCESS);
	assert_true(soft_cq_empty(&p.a.send_cq));
	soft_qp_to_rts(&p.a.qp);
	p.sim.now += PP_SECOND;
	soft_sim_pump(&p.a);
	expect_done(&p, 2, SOFT_WC_SUCCESS);
	close_it(&p);
}

/* The rule of window.h: in no millisecond more than one and a half windows, and no idling either.
 */
static void test_pace(void **state)
{
	const uint64_t window = 256 * 1024;
	struct pair p;
	pp_ns begin;

	(void)state;
	open_at(&p, window);
	begin = p.sim.now;
	for (unsigned int i = 0; i < 48; i++)
		post(&p, i, SOFT_WR_WRITE, BYTES);
	soft_sim_pump(&p.a);
	assert_true(p.a.num_sent * (uint64_t)MTU <= window / 2 + MTU);
	assert_true(p.a.num_sent * (uint64_t)MTU * 5 / 4 >= window / 2 - 2 * MTU);
	while (soft_qp_deadline(&p.a.qp)) {
		p.sim.now = soft_qp_deadline(&p.a.qp);
		soft_qp_tick(&p.a.qp, p.sim.now);
		soft_sim_pump(&p.a);
	}
	for (unsigned int i = 0; i < 48; i++)
		expect_done(&p, i, SOFT_WC_SUCCESS);
	assert_int_equal(p.a.num_sent, 48 * BYTES / MTU);
	/* 48 * 64 KiB with a quarter of headers at 256 KiB a millisecond */
	assert_in_range(p.sim.now - begin, 11 * PP_MILLISECOND, 16 * PP_MILLISECOND);
	close_it(&p);
}

/* ---- In ---- */

struct in {
	uint8_t op; /* without the transport; 0xff: end */
	int psn;    /* from the first expected one */
	uint32_t bytes, length;
	bool bad_key;
};

#define END                      \
	{                        \
		0xff, 0, 0, 0, 0 \
	}

struct arrival {
	const char *rule;
	struct in in[8];
	uint32_t receives; /* posted before, of 3000 bytes each */
	uint32_t got[4];   /* byte_len of each completion; 0: none */
	bool write_imm;	   /* of the last one */
	uint64_t sequence, no_buffer, access;
};

static const struct arrival arrivals[] = {
	{"whole messages",
	 {{SOFT_SEND_ONLY, 0, 10, 0, 0},
	  {SOFT_SEND_FIRST, 1, MTU, 0, 0},
	  {SOFT_SEND_LAST, 2, 5, 0, 0},
	  END},
	 2,
	 {10, MTU + 5},
	 false,
	 0,
	 0,
	 0},
	{"9.8.3.1: a middle is missing, the next FIRST begins anew in the same receive request",
	 {{SOFT_SEND_FIRST, 0, MTU, 0, 0},
	  {SOFT_SEND_LAST, 2, 7, 0, 0},
	  {SOFT_SEND_MIDDLE, 3, MTU, 0, 0},
	  {SOFT_SEND_FIRST, 4, MTU, 0, 0},
	  {SOFT_SEND_LAST, 5, 3, 0, 0},
	  END},
	 1,
	 {MTU + 3},
	 false,
	 1,
	 0,
	 0},
	{"the end is missing: the next message is taken",
	 {{SOFT_SEND_FIRST, 0, MTU, 0, 0}, {SOFT_SEND_ONLY, 2, 9, 0, 0}, END},
	 1,
	 {9},
	 false,
	 1,
	 0,
	 0},
	{"the beginning is missing",
	 {{SOFT_SEND_LAST, 1, 9, 0, 0}, {SOFT_SEND_ONLY, 2, 8, 0, 0}, END},
	 1,
	 {8},
	 false,
	 1,
	 0,
	 0},
	{"a message begins in another",
	 {{SOFT_SEND_FIRST, 0, MTU, 0, 0}, {SOFT_SEND_ONLY, 1, 4, 0, 0}, END},
	 1,
	 {4},
	 false,
	 0,
	 0,
	 0},
	{"a write's middle in a send",
	 {{SOFT_SEND_FIRST, 0, MTU, 0, 0},
	  {SOFT_WRITE_MIDDLE, 1, MTU, 0, 0},
	  {SOFT_SEND_LAST, 2, 4, 0, 0},
	  {SOFT_SEND_ONLY, 3, 6, 0, 0},
	  END},
	 1,
	 {6},
	 false,
	 0,
	 0,
	 0},
	{"a FIRST that is not full",
	 {{SOFT_SEND_FIRST, 0, 100, 0, 0},
	  {SOFT_SEND_LAST, 1, 4, 0, 0},
	  {SOFT_SEND_ONLY, 2, 6, 0, 0},
	  END},
	 1,
	 {6},
	 false,
	 0,
	 0,
	 0},
	{"a LAST of nothing",
	 {{SOFT_SEND_FIRST, 0, MTU, 0, 0},
	  {SOFT_SEND_LAST, 1, 0, 0, 0},
	  {SOFT_SEND_ONLY, 2, 6, 0, 0},
	  END},
	 1,
	 {6},
	 false,
	 0,
	 0,
	 0},
	{"longer than the buffer",
	 {{SOFT_SEND_FIRST, 0, MTU, 0, 0},
	  {SOFT_SEND_MIDDLE, 1, MTU, 0, 0},
	  {SOFT_SEND_MIDDLE, 2, MTU, 0, 0},
	  {SOFT_SEND_LAST, 3, 1, 0, 0},
	  {SOFT_SEND_ONLY, 4, 6, 0, 0},
	  END},
	 1,
	 {6},
	 false,
	 0,
	 0,
	 0},
	{"no receive request: dropped whole",
	 {{SOFT_SEND_FIRST, 0, MTU, 0, 0}, {SOFT_SEND_LAST, 1, 4, 0, 0}, END},
	 0,
	 {0},
	 false,
	 0,
	 1,
	 0},
	{"a duplicate is a message like any other",
	 {{SOFT_SEND_ONLY, 0, 4, 0, 0}, {SOFT_SEND_ONLY, 0, 4, 0, 0}, END},
	 2,
	 {4, 4},
	 false,
	 1,
	 0,
	 0},
	{"write with immediate",
	 {{SOFT_WRITE_FIRST, 0, MTU, MTU + 8, 0}, {SOFT_WRITE_LAST_IMM, 1, 8, 0, 0}, END},
	 1,
	 {MTU + 8},
	 true,
	 0,
	 0,
	 0},
	{"write with immediate, its middle missing",
	 {{SOFT_WRITE_FIRST, 0, MTU, 2 * MTU + 8, 0},
	  {SOFT_WRITE_LAST_IMM, 2, 8, 0, 0},
	  {SOFT_WRITE_ONLY_IMM, 3, 2, 2, 0},
	  END},
	 1,
	 {2},
	 true,
	 1,
	 0,
	 0},
	{"write with immediate, no receive request",
	 {{SOFT_WRITE_ONLY_IMM, 0, 2, 2, 0}, END},
	 0,
	 {0},
	 true,
	 0,
	 1,
	 0},
	{"write with immediate takes what a broken send left",
	 {{SOFT_SEND_FIRST, 0, MTU, 0, 0}, {SOFT_WRITE_ONLY_IMM, 2, 2, 2, 0}, END},
	 1,
	 {2},
	 true,
	 1,
	 0,
	 0},
	{"write with a key of nothing",
	 {{SOFT_WRITE_FIRST, 0, MTU, MTU + 8, true},
	  {SOFT_WRITE_LAST_IMM, 1, 8, 0, 0},
	  {SOFT_SEND_ONLY, 2, 6, 0, 0},
	  END},
	 1,
	 {6},
	 false,
	 0,
	 0,
	 1},
	{"write of another length than it says",
	 {{SOFT_WRITE_FIRST, 0, MTU, 2 * MTU + 8, 0},
	  {SOFT_WRITE_LAST_IMM, 1, 8, 0, 0},
	  {SOFT_SEND_ONLY, 2, 6, 0, 0},
	  END},
	 1,
	 {6},
	 false,
	 0,
	 0,
	 0},
};

static void give(struct pair *p, const struct in *in, const uint8_t *payload)
{
	struct soft_packet packet = {
		.opcode = (uint8_t)(SOFT_UC | in->op),
		.psn = (PSN + (uint32_t)in->psn) & SOFT_PSN_MASK,
		.payload = payload,
		.payload_bytes = in->bytes,
		.va = (uint64_t)(uintptr_t)p->memory,
		.rkey = in->bad_key ? p->key ^ 1 : p->key,
		.length = in->length,
		.imm_be = 42,
	};

	soft_qp_receive(&p->a.qp, &packet, &p->a.qp.path, 0, p->sim.now);
	soft_sim_pump(&p->a);
}

static void test_arrivals(void **state)
{
	static uint8_t payload[MTU];

	(void)state;
	for (unsigned int i = 0; i < sizeof(arrivals) / sizeof(arrivals[0]); i++) {
		const struct arrival *t = &arrivals[i];
		struct soft_cqe cqe;
		struct pair p;

		open_at(&p, 1 << 20);
		for (uint32_t n = 0; n < t->receives; n++) {
			struct soft_sge sge = {(uint64_t)(uintptr_t)p.memory + 4096, 3000, p.key};

			assert_int_equal(soft_recv_queue_post(&p.a.qp.resp.own_rq, n + 1, &sge, 1),
					 0);
		}
		for (const struct in *in = t->in; in->op != 0xff; in++)
			give(&p, in, payload);
		for (unsigned int n = 0; n < 4 && t->got[n]; n++) {
			if (!soft_sim_poll(&p.a.recv_cq, &cqe))
				fail_msg("%s: completion %u is missing", t->rule, n);
			assert_int_equal(cqe.status, SOFT_WC_SUCCESS);
			assert_int_equal(cqe.byte_len, t->got[n]);
			assert_int_equal(cqe.wr_id, n + 1);
		}
		if (t->write_imm && t->got[0]) {
			assert_int_equal(cqe.opcode, SOFT_WC_RECV_WRITE_IMM);
			assert_int_equal(cqe.imm_be, 42);
		}
		if (!soft_cq_empty(&p.a.recv_cq))
			fail_msg("%s: one completion too many", t->rule);
		/* nobody answers, nobody falls */
		assert_int_equal(p.a.num_sent, 0);
		assert_int_equal(p.a.qp.state, SOFT_QP_RTS);
		assert_int_equal(p.node.counters.out_of_sequence, t->sequence);
		assert_int_equal(p.node.counters.out_of_buffer, t->no_buffer);
		assert_int_equal(p.node.counters.resp_remote_access_errors, t->access);
		close_it(&p);
	}
}

/* 9.9.3: memory of this side that may not be written: the client learns of it. */
static void test_own_memory(void **state)
{
	struct soft_sge sge = {4096, 100, 0x1234};
	struct in in = {SOFT_SEND_ONLY, 0, 10, 0, 0};
	uint8_t payload[10] = {0};
	struct soft_cqe cqe;
	struct pair p;

	(void)state;
	open_at(&p, 1 << 20);
	assert_int_equal(soft_recv_queue_post(&p.a.qp.resp.own_rq, 1, &sge, 1), 0);
	give(&p, &in, payload);
	assert_true(soft_sim_poll(&p.a.recv_cq, &cqe));
	assert_int_equal(cqe.status, SOFT_WC_LOC_PROT_ERR);
	assert_int_equal(p.a.qp.state, SOFT_QP_ERR);
	assert_int_equal(p.a.num_sent, 0);
	close_it(&p);
}

/* The access that the QP gives its peer; a receive request that is held when the QP falls. */
static void test_access_and_flush(void **state)
{
	struct soft_sge sge = {4096, 3000, 0x1234};
	struct in write = {SOFT_WRITE_ONLY, 0, 8, 8, 0}, first = {SOFT_SEND_FIRST, 1, MTU, 0, 0};
	static uint8_t payload[MTU] = {1, 2, 3};
	struct soft_cqe cqe;
	struct pair p;

	(void)state;
	open_at(&p, 1 << 20);
	p.a.qp.attr.access = 0;
	give(&p, &write, payload);
	assert_int_equal(p.memory[0], 0);
	p.a.qp.attr.access = SOFT_ACCESS_REMOTE_WRITE;
	give(&p, &write, payload);
	assert_int_equal(p.memory[2], 3);
	sge.addr = (uint64_t)(uintptr_t)p.memory;
	sge.lkey = p.key;
	assert_int_equal(soft_recv_queue_post(&p.a.qp.resp.own_rq, 7, &sge, 1), 0);
	give(&p, &first, payload);
	soft_qp_to_error(&p.a.qp);
	assert_true(soft_sim_poll(&p.a.recv_cq, &cqe));
	assert_int_equal(cqe.wr_id, 7);
	assert_int_equal(cqe.status, SOFT_WC_WR_FLUSH_ERR);
	assert_true(soft_cq_empty(&p.a.recv_cq));
	close_it(&p);
}

/* Both ends over a wire that loses: what arrives is whole, in order, and nothing hangs. */
static void test_loss(void **state)
{
	struct soft_sim_attr attr = soft_sim_attr();
	struct soft_sim sim;
	struct soft_sim_node nodes[2];
	struct soft_sim_end a, b;
	static uint8_t from[BYTES], to[BYTES];
	unsigned int done = 0, got = 0, last = 0, wrong = 0;
	struct soft_cqe cqe;
	uint32_t key, rkey;

	(void)state;
	attr.max_send_wr = attr.max_recv_wr = 512;
	soft_sim_init(&sim, 7);
	sim.plan.loss_ppm = 30000;
	for (int i = 0; i < 2; i++)
		soft_sim_node_init(&nodes[i], 1 << 20);
	key = soft_sim_register(&nodes[0], from, BYTES, 0, soft_sim_pd);
	rkey = soft_sim_register(&nodes[1], to, BYTES, SOFT_ACCESS_LOCAL_WRITE, soft_sim_pd);
	soft_sim_end_init(&sim, &a, &nodes[0], &attr);
	soft_sim_end_init(&sim, &b, &nodes[1], &attr);
	a.qp.transport = b.qp.transport = SOFT_UC;
	soft_sim_connect(&a, &b);
	for (unsigned int i = 0; i < 500; i++) {
		struct soft_sge in = {(uint64_t)(uintptr_t)to, 5000, rkey};
		struct soft_sge out = {(uint64_t)(uintptr_t)from, 4500, key};
		struct soft_send_wr wr = {.id = i,
					  .opcode = SOFT_WR_SEND_IMM,
					  .flags = SOFT_WR_SIGNALED,
					  .num_sge = 1,
					  .imm_be = i + 1};

		assert_int_equal(soft_recv_queue_post(&b.qp.resp.own_rq, i, &in, 1), 0);
		assert_true(soft_sim_post(&a, &wr, &out));
	}
	while (soft_sim_step(&sim))
		;
	while (soft_sim_poll(&a.send_cq, &cqe))
		done += cqe.status == SOFT_WC_SUCCESS;
	while (soft_sim_poll(&b.recv_cq, &cqe)) {
		wrong += cqe.status || cqe.byte_len != 4500 || cqe.imm_be <= last ||
			 cqe.wr_id != got;
		last = cqe.imm_be;
		got++;
	}
	assert_int_equal(done, 500);
	assert_int_equal(wrong, 0);
	/* five packets a message, 3 in 100 lost: 0.97^5 = 0.859 of them come through */
	assert_in_range(got, 500 * 78 / 100, 500 * 92 / 100);
	soft_sim_end_done(&a);
	soft_sim_end_done(&b);
	for (int i = 0; i < 2; i++)
		soft_sim_node_done(&nodes[i]);
	soft_sim_done(&sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packets),
		cmocka_unit_test(test_wrong_request),
		cmocka_unit_test(test_drain),
		cmocka_unit_test(test_pace),
		cmocka_unit_test(test_arrivals),
		cmocka_unit_test(test_own_memory),
		cmocka_unit_test(test_access_and_flush),
		cmocka_unit_test(test_loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
