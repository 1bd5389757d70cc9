/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requester against a scripted peer: the test reads what it sends and answers. Sequences, PSNs,
 * statuses and times are those of the InfiniBand Architecture Specification (volume 1, release
 * 1.4, chapter 9 and 11), written out by hand.
 */
#include "unit.h"

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

static void rig_open(struct rig *r, const struct soft_sim_attr *attr, uint64_t window)
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

static void rig_close(struct rig *r)
{
	assert_int_equal(r->end.over_window, 0);
	soft_sim_end_done(&r->end);
	assert_int_equal(r->node.window.in_flight, 0);
	soft_sim_node_done(&r->node);
	soft_sim_done(&r->sim);
	free(r->memory);
}

static struct soft_sge piece(const struct rig *r, uint32_t offset, uint32_t length)
{
	return (struct soft_sge){(uint64_t)(uintptr_t)r->memory + offset, length, r->key};
}

static void post_flags(struct rig *r, uint64_t id, uint8_t opcode, uint32_t length, uint8_t flags)
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

static void post(struct rig *r, uint64_t id, uint8_t opcode, uint32_t length)
{
	post_flags(r, id, opcode, length, SOFT_WR_SIGNALED);
}

/* The next packet that was sent. */
static struct soft_sim_sent *sent(struct rig *r)
{
	assert_true(r->seen < r->end.num_sent);
	return &r->end.sent[r->seen++];
}

static void expect(struct rig *r, uint8_t opcode, uint32_t psn, bool ack_request, uint32_t bytes)
{
	struct soft_sim_sent *s = sent(r);

	assert_int_equal(s->p.opcode, opcode);
	assert_int_equal(s->p.psn, psn & SOFT_PSN_MASK);
	assert_int_equal(s->p.ack_request, ack_request);
	assert_int_equal(s->p.payload_bytes, bytes);
	assert_int_equal(s->p.dest_qp, 0x777);
	assert_int_equal(s->p.pkey, 0xffff);
}

static void expect_silence(const struct rig *r)
{
	assert_int_equal(r->seen, r->end.num_sent);
}

static void give(struct rig *r, const struct soft_packet *p)
{
	soft_qp_receive(&r->end.qp, p, &r->end.qp.path, 0, r->sim.now);
	soft_sim_pump(&r->end);
}

static void answer(struct rig *r, uint8_t syndrome, uint32_t psn)
{
	struct soft_packet p = {
		.opcode = SOFT_ACKNOWLEDGE, .syndrome = syndrome, .psn = psn & SOFT_PSN_MASK};

	give(r, &p);
}

static void ack(struct rig *r, uint32_t psn)
{
	answer(r, 0x1f, psn);
}

static void give_read(struct rig *r, uint8_t opcode, uint32_t psn, const uint8_t *payload,
		      uint32_t bytes)
{
	struct soft_packet p = {.opcode = opcode,
				.syndrome = 0x1f,
				.psn = psn & SOFT_PSN_MASK,
				.payload = payload,
				.payload_bytes = bytes};

	give(r, &p);
}

static void done(struct rig *r, uint64_t id, unsigned int status)
{
	struct soft_cqe cqe;

	assert_true(soft_sim_poll(&r->end.send_cq, &cqe));
	assert_int_equal(cqe.wr_id, id);
	assert_int_equal(cqe.status, status);
	assert_int_equal(cqe.qp_num, r->end.qp.num);
}

static void none_done(struct rig *r)
{
	assert_true(soft_cq_empty(&r->end.send_cq));
}

static void later(struct rig *r, pp_ns ns)
{
	r->sim.now += ns;
	soft_qp_tick(&r->end.qp, r->sim.now);
	soft_sim_pump(&r->end);
}

/* 9.7.2, table of opcodes: how a message becomes packets. PSN 0xfffffd on, MTU 1024. */
static const struct {
	uint8_t wr;
	uint32_t length;
	struct {
		uint8_t opcode;
		uint32_t bytes;
	} packets[4];
} messages[] = {
	{SOFT_WR_SEND, 0, {{0x04, 0}}},
	{SOFT_WR_SEND, 1, {{0x04, 1}}},
	{SOFT_WR_SEND, 1024, {{0x04, 1024}}},
	{SOFT_WR_SEND, 1025, {{0x00, 1024}, {0x02, 1}}},
	{SOFT_WR_SEND, 3072, {{0x00, 1024}, {0x01, 1024}, {0x02, 1024}}},
	{SOFT_WR_SEND_IMM, 0, {{0x05, 0}}},
	{SOFT_WR_SEND_IMM, 2049, {{0x00, 1024}, {0x01, 1024}, {0x03, 1}}},
	{SOFT_WR_SEND_INVALIDATE, 16, {{0x17, 16}}},
	{SOFT_WR_SEND_INVALIDATE, 2048, {{0x00, 1024}, {0x16, 1024}}},
	{SOFT_WR_WRITE, 0, {{0x0a, 0}}},
	{SOFT_WR_WRITE, 1024, {{0x0a, 1024}}},
	{SOFT_WR_WRITE, 4096, {{0x06, 1024}, {0x07, 1024}, {0x07, 1024}, {0x08, 1024}}},
	{SOFT_WR_WRITE_IMM, 8, {{0x0b, 8}}},
	{SOFT_WR_WRITE_IMM, 1100, {{0x06, 1024}, {0x09, 76}}},
};

static void messages_become_packets(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		struct soft_sim_attr attr = soft_sim_attr();
		uint32_t psn = attr.sq_psn, at = 0;
		struct rig r;
		unsigned int n = 0;

		rig_open(&r, &attr, 1 << 20);
		post_flags(&r, i, messages[i].wr, messages[i].length,
			   SOFT_WR_SIGNALED | SOFT_WR_SOLICITED);
		while (n < 4 && messages[i].packets[n].opcode | messages[i].packets[n].bytes) {
			unsigned int flags = soft_opcode_find(messages[i].packets[n].opcode)->flags;
			struct soft_packet *p = &r.end.sent[n].p;
			bool last = flags & SOFT_IS_LAST;

			expect(&r, messages[i].packets[n].opcode, psn + n, last,
			       messages[i].packets[n].bytes);
			/* The event bit is of a message that consumes a receive. */
			assert_int_equal(p->solicited, last && messages[i].wr != SOFT_WR_WRITE);
			if (flags & SOFT_HAS_RETH) {
				assert_int_equal(p->va, REMOTE_VA);
				assert_int_equal(p->rkey, RKEY);
				assert_int_equal(p->length, messages[i].length);
			}
			if (flags & SOFT_HAS_IMM)
				assert_int_equal(p->imm_be, 0x11223344);
			if (flags & SOFT_HAS_IETH)
				assert_int_equal(p->invalidate_rkey, 0x11223344);
			assert_memory_equal(r.end.sent[n].payload, r.memory + at, p->payload_bytes);
			at += p->payload_bytes;
			n++;
		}
		expect_silence(&r);
		assert_int_equal(at, messages[i].length);
		none_done(&r);
		ack(&r, psn + n - 1);
		done(&r, i, SOFT_WC_SUCCESS);
		rig_close(&r);
	}
}

/* A READ takes as many PSNs as it has responses, an atomic one (9.7.4.1.1 and 9.4.5). */
static void reads_take_their_responses_psns(void **state)
{
	struct soft_sim_attr attr = soft_sim_attr();
	struct rig r;
	uint8_t *data;

	(void)state;
	attr.sq_psn = 0xfffffe;
	rig_open(&r, &attr, 1 << 20);
	data = malloc(MEMORY);
	memset(data, 0x5a, MEMORY);
	post(&r, 1, SOFT_WR_READ, 2049);
	post(&r, 2, SOFT_WR_SEND, 4);
	post(&r, 3, SOFT_WR_READ, 0);
	assert_int_equal(r.end.sent[0].p.va, REMOTE_VA);
	assert_int_equal(r.end.sent[0].p.rkey, RKEY);
	assert_int_equal(r.end.sent[0].p.length, 2049);
	expect(&r, 0x0c, 0xfffffe, true, 0);
	expect(&r, 0x04, 1, true, 4);
	expect_silence(&r); /* one READ at a time */
	give_read(&r, 0x0d, 0xfffffe, data, 1024);
	give_read(&r, 0x0e, 0xffffff, data, 1024);
	none_done(&r);
	assert_memory_equal(r.memory, data, 2048);
	give_read(&r, 0x0f, 0, data, 1);
	done(&r, 1, SOFT_WC_SUCCESS);
	expect(&r, 0x0c, 2, true, 0);
	/* The response of a later READ acknowledges the SEND. */
	give_read(&r, 0x10, 2, NULL, 0);
	done(&r, 2, SOFT_WC_SUCCESS);
	done(&r, 3, SOFT_WC_SUCCESS);
	assert_int_equal(r.memory[2049], (uint8_t)(2049 * 7 + 2049 / 251));
	free(data);
	rig_close(&r);
}

static void give_original(struct rig *r, uint32_t psn, uint64_t original)
{
	struct soft_packet p = {.opcode = SOFT_ATOMIC_ACKNOWLEDGE,
				.syndrome = 0x1f,
				.psn = psn & SOFT_PSN_MASK,
				.original = original};

	give(r, &p);
}

static void atomics(void **state)
{
	struct soft_sim_attr attr = soft_sim_attr();
	struct rig r;
	uint64_t got;

	(void)state;
	attr.sq_psn = 10;
	attr.max_rd_atomic = 2;
	rig_open(&r, &attr, 1 << 20);
	post(&r, 1, SOFT_WR_FETCH_ADD, 8);
	post(&r, 2, SOFT_WR_COMPARE_SWAP, 8);
	post(&r, 3, SOFT_WR_FETCH_ADD, 8);
	assert_int_equal(r.end.sent[0].p.swap_add, 5);
	assert_int_equal(r.end.sent[0].p.va, REMOTE_VA);
	assert_int_equal(r.end.sent[1].p.swap_add, 9);
	assert_int_equal(r.end.sent[1].p.compare, 5);
	expect(&r, 0x14, 10, true, 0);
	expect(&r, 0x13, 11, true, 0);
	expect_silence(&r);
	give_original(&r, 10, 0x0102030405060708);
	memcpy(&got, r.memory, 8);
	assert_true(got == 0x0102030405060708);
	done(&r, 1, SOFT_WC_SUCCESS);
	expect(&r, 0x14, 12, true, 0);
	/* A second answer is to nothing. */
	give_original(&r, 10, 1);
	memcpy(&got, r.memory, 8);
	assert_true(got == 0x0102030405060708);
	assert_int_equal(r.node.counters.ghost_responses, 1);
	give_original(&r, 11, 2);
	give_original(&r, 12, 3);
	done(&r, 2, SOFT_WC_SUCCESS);
	done(&r, 3, SOFT_WC_SUCCESS);
	rig_close(&r);
}

/* 9.7.5.1.2: an acknowledge is of all before it. Places of unsignalled requests become free. */
static void acknowledges_are_cumulative(void **state)
{
	struct soft_sim_attr attr = soft_sim_attr();
	struct rig r;

	(void)state;
	attr.sq_psn = 0xffffff;
	rig_open(&r, &attr, 1 << 20);
	for (unsigned int i = 0; i < 5; i++)
		post_flags(&r, i, SOFT_WR_WRITE, 8, i % 2 ? 0 : SOFT_WR_SIGNALED);
	ack(&r, 1);
	done(&r, 0, SOFT_WC_SUCCESS);
	done(&r, 2, SOFT_WC_SUCCESS);
	none_done(&r);
	assert_int_equal(r.end.qp.req.sq.posted - r.end.qp.req.sq.retired, 2);
	ack(&r, 0); /* an old one */
	ack(&r, 0x400000);
	none_done(&r);
	ack(&r, 3);
	done(&r, 4, SOFT_WC_SUCCESS);
	assert_int_equal(soft_qp_deadline(&r.end.qp), 0);
	assert_int_equal(r.node.counters.ghost_responses, 2);
	rig_close(&r);
}

/* 9.7.5.2.8 and 9.7.5.1.3: a NAK acknowledges what lies before and asks for the rest. */
static void sequence_nak_goes_back(void **state)
{
	struct soft_sim_attr attr = soft_sim_attr();
	struct rig r;

	(void)state;
	attr.sq_psn = 100;
	rig_open(&r, &attr, 1 << 20);
	post(&r, 1, SOFT_WR_WRITE, 2048);
	post(&r, 2, SOFT_WR_WRITE, 3072);
	r.seen = r.end.num_sent;
	answer(&r, SOFT_AETH_NAK_SEQUENCE, 103);
	done(&r, 1, SOFT_WC_SUCCESS);
	none_done(&r);
	expect(&r, 0x07, 103, false, 1024);
	expect(&r, 0x08, 104, true, 1024);
	assert_memory_equal(r.end.sent[r.seen - 1].payload, r.memory + 2048, 1024);
	expect_silence(&r);
	ack(&r, 104);
	done(&r, 2, SOFT_WC_SUCCESS);
	assert_int_equal(r.node.counters.packet_seq_err, 1);
	assert_int_equal(r.node.counters.retransmitted_packets, 2);
	rig_close(&r);
}

/* 9.7.6.1.3: sequence NAKs without progress are charged to the retry counter. */
static void sequence_naks_are_charged(void **state)
{
	struct soft_sim_attr attr = soft_sim_attr();
	struct rig r;

	(void)state;
	attr.sq_psn = 100;
	attr.retry_cnt = 2;
	rig_open(&r, &attr, 1 << 20);
	post(&r, 1, SOFT_WR_WRITE, 8);
	post(&r, 2, SOFT_WR_WRITE, 8);
	answer(&r, SOFT_AETH_NAK_SEQUENCE, 100);
	answer(&r, SOFT_AETH_NAK_SEQUENCE, 100);
	none_done(&r);
	answer(&r, SOFT_AETH_NAK_SEQUENCE, 100);
	done(&r, 1, SOFT_WC_RETRY_EXC_ERR);
	done(&r, 2, SOFT_WC_WR_FLUSH_ERR);
	assert_int_equal(r.end.moved, 1);
	rig_close(&r);
}

/* 9.7.5.1.4: an acknowledge beyond an open READ says that its response was lost. */
static void implied_nak_of_a_read(void **state)
{
	struct soft_sim_attr attr = soft_sim_attr();
	struct rig r;

	(void)state;
	attr.sq_psn = 100;
	rig_open(&r, &attr, 1 << 20);
	post(&r, 1, SOFT_WR_WRITE, 8);
	post(&r, 2, SOFT_WR_READ, 8);
	post(&r, 3, SOFT_WR_WRITE, 8);
	r.seen = r.end.num_sent;
	ack(&r, 102);
	done(&r, 1, SOFT_WC_SUCCESS);
	none_done(&r);
	expect(&r, 0x0c, 101, true, 0);
	expect(&r, 0x0a, 102, true, 8);
	ack(&r, 102);
	expect_silence(&r); /* asked for already */
	assert_int_equal(r.node.counters.implied_nak_seq_err, 2);
	give_read(&r, 0x10, 101, r.memory + 64, 8);
	ack(&r, 102);
	done(&r, 2, SOFT_WC_SUCCESS);
	done(&r, 3, SOFT_WC_SUCCESS);
	rig_close(&r);
}

static void lost_response_is_asked_for_again(void **state)
{
	struct soft_sim_attr attr = soft_sim_attr();
	uint8_t data[1024];
	struct rig r;

	(void)state;
	attr.sq_psn = 100;
	rig_open(&r, &attr, 1 << 20);
	memset(data, 0x77, sizeof(data));
	post(&r, 1, SOFT_WR_READ, 4096);
	r.seen = r.end.num_sent;
	give_read(&r, 0x0d, 100, data, 1024);
	give_read(&r, 0x0e, 102, data, 1024);
	expect(&r, 0x0c, 101, true, 0);
	assert_int_equal(r.end.sent[r.seen - 1].p.va, REMOTE_VA + 1024);
	assert_int_equal(r.end.sent[r.seen - 1].p.length, 3072);
	give_read(&r, 0x0f, 103, data, 1024);
	expect_silence(&r);
	none_done(&r);
	give_read(&r, 0x0d, 101, data, 1024);
	give_read(&r, 0x0e, 102, data, 1024);
	give_read(&r, 0x0f, 103, data, 1024);
	done(&r, 1, SOFT_WC_SUCCESS);
	rig_close(&r);
}

/* Large READs are asked for in parts; PSNs are those of one READ of that length. */
static void large_reads_are_asked_for_in_parts(void **state)
{
	struct soft_sim_attr attr = soft_sim_attr();
	uint32_t psn = 0, wanted = 0, got = 0;
	struct rig r;
	uint8_t *data;

	(void)state;
	attr.sq_psn = 0;
	attr.max_rd_atomic = 16;
	rig_open(&r, &attr, 1 << 20);
	data = calloc(1, 1024);
	post(&r, 1, SOFT_WR_READ, 200 * 1024 + 1);
	while (r.seen < r.end.num_sent) {
		struct soft_packet p = sent(&r)->p;
		uint32_t n = (p.length + 1023) / 1024;

		assert_int_equal(p.opcode, 0x0c);
		assert_int_equal(p.psn, psn);
		assert_int_equal(p.va, REMOTE_VA + wanted);
		wanted += p.length;
		psn += n;
		assert_true(r.end.qp.req.read_bytes <= 128 * 1024);
		while (got < wanted && r.seen == r.end.num_sent) {
			uint32_t index = got / 1024,
				 bytes = wanted - got < 1024 ? wanted - got : 1024;
			bool first = index % 32 == 0;
			bool last = index % 32 == 31 || got + bytes == 200 * 1024 + 1;

			give_read(&r, first ? (last ? 0x10 : 0x0d) : (last ? 0x0f : 0x0e), index,
				  data, bytes);
			got += bytes;
		}
	}
	assert_int_equal(wanted, 200 * 1024 + 1);
	assert_int_equal(psn, 201);
	done(&r, 1, SOFT_WC_SUCCESS);
	free(data);
	rig_close(&r);
}

/* 9.9.2.4.1 and 11.6.2: what a NAK makes of the work request, the rest, and the QP. */
static const struct {
	uint8_t syndrome;
	unsigned int status;
} naks[] = {
	{SOFT_AETH_NAK_INVALID, 9},
	{SOFT_AETH_NAK_ACCESS, 10},
	{SOFT_AETH_NAK_OPERATION, 11},
};

static void naks_end_the_queue_pair(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(naks) / sizeof(naks[0]); i++) {
		struct soft_sim_attr attr = soft_sim_attr();
		struct rig r;

		attr.sq_psn = 100;
		rig_open(&r, &attr, 1 << 20);
		post(&r, 1, SOFT_WR_WRITE, 8);
		post_flags(&r, 2, SOFT_WR_WRITE, 2048, 0);
		post_flags(&r, 3, SOFT_WR_SEND, 8, 0);
		answer(&r, naks[i].syndrome, 102);
		done(&r, 1, SOFT_WC_SUCCESS);
		done(&r, 2, naks[i].status); /* errors complete, asked for or not */
		done(&r, 3, SOFT_WC_WR_FLUSH_ERR);
		none_done(&r);
		assert_int_equal(r.end.qp.state, SOFT_QP_ERR);
		assert_int_equal(r.end.moved, 1);
		assert_int_equal(r.node.counters.req_cqe_error, 1);
		/* What is posted from now on is flushed. */
		post(&r, 4, SOFT_WR_SEND, 8);
		done(&r, 4, SOFT_WC_WR_FLUSH_ERR);
		r.seen = r.end.num_sent;
		later(&r, PP_SECOND);
		expect_silence(&r);
		rig_close(&r);
	}
}

/* Table of RNR NAK timers (9.7.5.2.8), milliseconds x 100. */
static const struct {
	uint8_t timer;
	uint32_t hundredths;
} rnr_timers[] = {{0, 65536}, {1, 1},	 {2, 2},     {3, 3},	 {5, 6},     {8, 16},
		  {12, 64},   {14, 128}, {20, 1024}, {25, 6144}, {31, 49152}};

static void rnr_waits_by_the_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rnr_timers) / sizeof(rnr_timers[0]); i++) {
		struct soft_sim_attr attr = soft_sim_attr();
		pp_ns wait = (pp_ns)rnr_timers[i].hundredths * 10000;
		struct rig r;

		attr.sq_psn = 100;
		rig_open(&r, &attr, 1 << 20);
		post(&r, 1, SOFT_WR_WRITE, 8);
		post(&r, 2, SOFT_WR_SEND, 8);
		post(&r, 3, SOFT_WR_WRITE, 8);
		r.seen = r.end.num_sent;
		answer(&r, (uint8_t)(0x20 | rnr_timers[i].timer), 101);
		done(&r, 1, SOFT_WC_SUCCESS);
		assert_int_equal(soft_qp_deadline(&r.end.qp), r.sim.now + wait);
		later(&r, wait - 1);
		expect_silence(&r);
		later(&r, 1);
		expect(&r, 0x04, 101, true, 8);
		expect_silence(&r); /* until it was taken */
		ack(&r, 101);
		expect(&r, 0x0a, 102, true, 8);
		ack(&r, 102);
		rig_close(&r);
	}
}

static void rnr_retries(void **state)
{
	(void)state;
	for (unsigned int allowed = 0; allowed <= 7; allowed++) {
		struct soft_sim_attr attr = soft_sim_attr();
		unsigned int naks_given = 0;
		struct rig r;

		attr.sq_psn = 100;
		attr.rnr_retry = (uint8_t)allowed;
		rig_open(&r, &attr, 1 << 20);
		post(&r, 1, SOFT_WR_SEND, 8);
		while (naks_given < 50 && r.end.qp.state == SOFT_QP_RTS) {
			answer(&r, 0x20 | 1, 100);
			answer(&r, 0x20 | 1, 100); /* doubled on the way */
			naks_given++;
			later(&r, 10000);
		}
		if (allowed == 7) { /* for ever */
			assert_int_equal(naks_given, 50);
			ack(&r, 100);
			done(&r, 1, SOFT_WC_SUCCESS);
		} else {
			assert_int_equal(naks_given, allowed + 1);
			done(&r, 1, SOFT_WC_RNR_RETRY_EXC_ERR);
		}
		rig_close(&r);
	}
}

/* 9.7.6.1.3: 4.096 us * 2^timeout, retry_cnt more times. */
static void silence_ends_by_the_standards_time(void **state)
{
	(void)state;
	for (unsigned int timeout = 1; timeout <= 31; timeout += 6) {
		struct soft_sim_attr attr = soft_sim_attr();
		pp_ns began, interval = (pp_ns)4096 * ((pp_ns)1 << timeout);
		struct soft_cqe cqe;
		struct rig r;

		attr.timeout = (uint8_t)timeout;
		attr.retry_cnt = 3;
		rig_open(&r, &attr, 1 << 20);
		began = r.sim.now;
		post(&r, 1, SOFT_WR_WRITE, 8);
		while (soft_cq_empty(&r.end.send_cq)) {
			assert_true(soft_qp_deadline(&r.end.qp) > r.sim.now);
			later(&r, soft_qp_deadline(&r.end.qp) - r.sim.now);
			r.end.num_sent = 0;
		}
		assert_true(soft_sim_poll(&r.end.send_cq, &cqe));
		assert_int_equal(cqe.status, SOFT_WC_RETRY_EXC_ERR);
		assert_true(r.sim.now - began == 4 * interval);
		assert_int_equal(r.node.counters.local_ack_timeout_err, 4);
		rig_close(&r);
	}
}

/* After silence one packet goes out; an answer that says nothing new brings the rest. */
static void one_packet_after_silence(void **state)
{
	struct soft_sim_attr attr = soft_sim_attr();
	struct rig r;

	(void)state;
	attr.sq_psn = 100;
	attr.timeout = 0; /* for ever */
	rig_open(&r, &attr, 1 << 20);
	post(&r, 1, SOFT_WR_WRITE, 4096);
	r.seen = r.end.num_sent;
	for (unsigned int i = 0; i < 20; i++) {
		later(&r, soft_qp_deadline(&r.end.qp) - r.sim.now);
		expect(&r, 0x06, 100, true, 1024);
		expect_silence(&r);
	}
	assert_int_equal(r.node.counters.early_retransmits, 20);
	assert_int_equal(r.node.counters.local_ack_timeout_err, 0);
	ack(&r, 100);
	expect(&r, 0x07, 101, false, 1024);
	expect(&r, 0x07, 102, false, 1024);
	expect(&r, 0x08, 103, true, 1024);
	/* A peer that was slow: nothing more is sent. */
	later(&r, soft_qp_deadline(&r.end.qp) - r.sim.now);
	expect(&r, 0x07, 101, true, 1024);
	ack(&r, 103);
	expect_silence(&r);
	done(&r, 1, SOFT_WC_SUCCESS);
	rig_close(&r);
}

static void fence_waits_for_reads(void **state)
{
	struct soft_sim_attr attr = soft_sim_attr();
	struct rig r;

	(void)state;
	attr.sq_psn = 100;
	rig_open(&r, &attr, 1 << 20);
	post(&r, 1, SOFT_WR_READ, 8);
	post_flags(&r, 2, SOFT_WR_WRITE, 8, SOFT_WR_FENCE);
	expect(&r, 0x0c, 100, true, 0);
	expect_silence(&r);
	give_read(&r, 0x10, 100, r.memory + 64, 8);
	expect(&r, 0x0a, 101, true, 8);
	ack(&r, 101);
	rig_close(&r);
}

/* A train asks for an acknowledge at least every 64 KiB, at its end, and when the window closes;
 * the window is never exceeded (checked at every packet by the rig). */
static void the_window_paces(void **state)
{
	struct soft_sim_attr attr = soft_sim_attr();
	uint32_t next = 0, unasked = 0;
	struct rig r;

	(void)state;
	attr.sq_psn = 0;
	rig_open(&r, &attr, 40 * 1024);
	post(&r, 1, SOFT_WR_WRITE, 250 * 1024);
	while (r.seen < r.end.num_sent) {
		struct soft_packet p = sent(&r)->p;

		assert_int_equal(p.psn, next++);
		unasked = p.ack_request ? 0 : unasked + p.payload_bytes;
		assert_true(unasked < 64 * 1024);
		if (r.seen == r.end.num_sent) { /* it waits: so it must have asked */
			assert_true(p.ack_request);
			assert_true(r.node.window.in_flight <= r.node.window.limit);
			r.sim.now += 50000;
			ack(&r, p.psn);
		}
	}
	assert_int_equal(next, 250);
	done(&r, 1, SOFT_WC_SUCCESS);
	rig_close(&r);
}

/* Errors of this side come in order, behind what was posted before. */
static void local_errors(void **state)
{
	static const struct {
		uint8_t opcode;
		int32_t shift, longer; /* of the piece, against the region's end */
		bool bad_key, other_pd, read_only;
		unsigned int status;
	} cases[] = {
		{SOFT_WR_WRITE, 0, 0, false, false, false, 0},
		{SOFT_WR_READ, 0, 0, false, false, false, 0},
		{SOFT_WR_WRITE, 0, 0, true, false, false, 4},
		{SOFT_WR_SEND, 0, 0, false, true, false, 4},
		{SOFT_WR_WRITE, 0, 1, false, false, false, 4},
		{SOFT_WR_WRITE, 1, 0, false, false, false, 4},
		{SOFT_WR_READ, 0, 1, false, false, false, 4},
		{SOFT_WR_READ, 0, 0, false, false, true, 4},
		{SOFT_WR_WRITE, 0, 0, false, false, true, 0},
		{SOFT_WR_FETCH_ADD, 0, 0, false, false, true, 4},
		{SOFT_WR_FETCH_ADD, 0, 1, false, false, false, 1},
		{SOFT_WR_LOCAL_INVALIDATE, 0, 0, false, false, false, 2},
		{77, 0, 0, false, false, false, 2},
	};
	static const int other_pd;
	static uint8_t small[64];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct soft_sim_attr attr = soft_sim_attr();
		struct soft_send_wr wr = {.id = 2,
					  .opcode = cases[i].opcode,
					  .num_sge = 3,
					  .flags = SOFT_WR_SIGNALED,
					  .rc = {.remote_addr = REMOTE_VA, .rkey = RKEY}};
		struct soft_sge sges[3] = {{0}};
		struct rig r;

		attr.sq_psn = 100;
		rig_open(&r, &attr, 1 << 20);
		/* Pieces of no bytes need no key (11.4.1.1). */
		sges[1].addr = (uint64_t)(uintptr_t)small + 56 + (uint64_t)cases[i].shift;
		sges[1].length = 8 + (uint32_t)cases[i].longer;
		sges[1].lkey = soft_sim_register(&r.node, small, sizeof(small),
						 cases[i].read_only ? 0 : SOFT_ACCESS_LOCAL_WRITE,
						 cases[i].other_pd ? (const void *)&other_pd
								   : soft_sim_pd);
		if (cases[i].bad_key)
			sges[1].lkey ^= 1;
		post(&r, 1, SOFT_WR_WRITE, 8);
		assert_true(soft_sim_post(&r.end, &wr, sges));
		post(&r, 3, SOFT_WR_WRITE, 8);
		none_done(&r);
		ack(&r, 100);
		done(&r, 1, SOFT_WC_SUCCESS);
		if (cases[i].status) {
			assert_int_equal(r.end.num_sent, 1);
			done(&r, 2, cases[i].status);
			done(&r, 3, SOFT_WC_WR_FLUSH_ERR);
			assert_int_equal(r.end.qp.state, SOFT_QP_ERR);
		} else {
			assert_int_equal(r.end.num_sent, 3);
			none_done(&r);
		}
		rig_close(&r);
	}
}

static void memory_gone_under_way(void **state)
{
	struct soft_sim_attr attr = soft_sim_attr();
	uint8_t data[1024] = {0};
	struct rig r;

	(void)state;
	attr.sq_psn = 100;
	rig_open(&r, &attr, 1 << 20);
	post(&r, 1, SOFT_WR_READ, 4096);
	give_read(&r, 0x0d, 100, data, 1024);
	soft_regions_remove(r.node.regions, &r.node.region[0]);
	r.node.num_regions = 0;
	memset(r.memory, 0xee, MEMORY);
	give_read(&r, 0x0e, 101, data, 1024);
	done(&r, 1, SOFT_WC_LOC_PROT_ERR);
	for (unsigned int i = 0; i < 8192; i++)
		assert_int_equal(r.memory[i], 0xee);
	rig_close(&r);
}

/* Inline bytes are the queue's: the application's may change at once (11.4.1.1). */
static void inline_bytes_are_kept(void **state)
{
	struct soft_sim_attr attr = soft_sim_attr();
	uint8_t bytes[48], want[48];
	struct soft_sge sges[2] = {{(uint64_t)(uintptr_t)bytes, 40, 0},
				   {(uint64_t)(uintptr_t)bytes + 40, 8, 0}};
	struct soft_send_wr wr = {.id = 1,
				  .opcode = SOFT_WR_SEND,
				  .num_sge = 2,
				  .flags = SOFT_WR_INLINE | SOFT_WR_SIGNALED};
	struct rig r;

	(void)state;
	attr.sq_psn = 100;
	rig_open(&r, &attr, 1 << 20);
	for (unsigned int i = 0; i < sizeof(bytes); i++)
		want[i] = bytes[i] = (uint8_t)(i + 1);
	assert_true(soft_sim_post(&r.end, &wr, sges));
	memset(bytes, 0, sizeof(bytes));
	soft_sim_pump(&r.end);
	assert_memory_equal(r.end.sent[0].payload, want, 48);
	answer(&r, SOFT_AETH_NAK_SEQUENCE, 100);
	assert_memory_equal(r.end.sent[1].payload, want, 48);
	ack(&r, 100);
	done(&r, 1, SOFT_WC_SUCCESS);
	rig_close(&r);
}

/* 10.3.1.6: in SQD what was begun ends, nothing new begins. */
static void drain(void **state)
{
	struct soft_sim_attr attr = soft_sim_attr();
	struct rig r;

	(void)state;
	attr.sq_psn = 100;
	rig_open(&r, &attr, 1 << 20);
	post(&r, 1, SOFT_WR_WRITE, 8);
	soft_qp_to_sqd(&r.end.qp, true);
	post(&r, 2, SOFT_WR_WRITE, 8);
	r.seen = 1;
	expect_silence(&r);
	assert_int_equal(r.end.events[SOFT_QP_EVENT_SQ_DRAINED], 0);
	ack(&r, 100);
	done(&r, 1, SOFT_WC_SUCCESS);
	assert_int_equal(r.end.events[SOFT_QP_EVENT_SQ_DRAINED], 1);
	soft_qp_to_rts(&r.end.qp);
	soft_sim_pump(&r.end);
	expect(&r, 0x0a, 101, true, 8);
	ack(&r, 101);
	done(&r, 2, SOFT_WC_SUCCESS);
	soft_qp_to_sqd(&r.end.qp, true);
	assert_int_equal(r.end.events[SOFT_QP_EVENT_SQ_DRAINED], 2);
	rig_close(&r);
}

/* Responses that no READ asked for in this shape: the work request fails (9.9.2.4.1, bad response)
 * and nothing lands. */
static void bad_responses(void **state)
{
	static const struct {
		uint8_t wr, opcode;
		uint32_t bytes;
	} cases[] = {
		{SOFT_WR_READ, 0x0d, 1023},   {SOFT_WR_READ, 0x0d, 0},
		{SOFT_WR_READ, 0x0e, 1024},   {SOFT_WR_READ, 0x0f, 1024},
		{SOFT_WR_READ, 0x10, 1024},   {SOFT_WR_READ, 0x12, 0},
		{SOFT_WR_WRITE, 0x10, 8},     {SOFT_WR_WRITE, 0x12, 0},
		{SOFT_WR_FETCH_ADD, 0x10, 8},
	};
	uint8_t data[2048];

	(void)state;
	memset(data, 0xee, sizeof(data));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct soft_sim_attr attr = soft_sim_attr();
		uint8_t *before = malloc(MEMORY);
		struct rig r;

		attr.sq_psn = 100;
		rig_open(&r, &attr, 1 << 20);
		memcpy(before, r.memory, MEMORY);
		post(&r, 1, cases[i].wr, cases[i].wr == SOFT_WR_FETCH_ADD ? 8 : 4096);
		give_read(&r, cases[i].opcode, 100, data, cases[i].bytes);
		done(&r, 1, SOFT_WC_BAD_RESP_ERR);
		assert_memory_equal(r.memory, before, MEMORY);
		free(before);
		rig_close(&r);
	}
}

/* Any response at all, by seed: only the piece may change, every request completes once. */
static void random_responses(void **state)
{
	static const uint8_t opcodes[] = {0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x11, 0x11, 0x12};
	static const uint8_t syndromes[] = {0x1f, 0x1f, 0x1f, 0x21, 0x60, 0x61,
					    0x62, 0x63, 0x64, 0x40, 0x80, 0xff};
	uint8_t data[SOFT_MTU_MAX];

	(void)state;
	memset(data, 0xee, sizeof(data));
	for (unsigned int seed = 0; seed < 1500; seed++) {
		struct soft_sim_attr attr = soft_sim_attr();
		unsigned int posted = 0, completed = 0;
		struct soft_cqe cqe;
		struct rig r;

		attr.max_rd_atomic = 4;
		rig_open(&r, &attr, 1 << 20);
		r.sim.random = seed;
		memset(r.memory, 0x11, MEMORY);
		for (; posted < 6; posted++) {
			static const uint8_t kinds[] = {SOFT_WR_READ, SOFT_WR_WRITE,
							SOFT_WR_FETCH_ADD, SOFT_WR_READ};
			uint8_t kind = kinds[soft_sim_random(&r.sim, 4)];

			post(&r, posted, kind,
			     kind == SOFT_WR_FETCH_ADD ? 8 : soft_sim_random(&r.sim, 5000));
		}
		for (unsigned int i = 0; i < 40; i++) {
			struct soft_packet p = {
				.opcode = opcodes[soft_sim_random(&r.sim, sizeof(opcodes))],
				.syndrome = syndromes[soft_sim_random(&r.sim, sizeof(syndromes))],
				.psn = soft_psn_add(attr.sq_psn - 2, soft_sim_random(&r.sim, 30)),
				.original = ~0ull,
				.payload = data,
				.payload_bytes = soft_sim_random(&r.sim, 2)
							 ? 1024
							 : soft_sim_random(&r.sim, 4097),
			};

			give(&r, &p);
			if (soft_sim_random(&r.sim, 4) == 0)
				later(&r, PP_MILLISECOND);
			r.end.num_sent = 0;
		}
		soft_qp_to_error(&r.end.qp);
		while (soft_sim_poll(&r.end.send_cq, &cqe))
			assert_int_equal(cqe.wr_id, completed++);
		assert_int_equal(completed, posted);
		for (unsigned int i = 5000; i < 12000; i++)
			assert_int_equal(r.memory[i], 0x11);
		rig_close(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_become_packets),
		cmocka_unit_test(reads_take_their_responses_psns),
		cmocka_unit_test(atomics),
		cmocka_unit_test(acknowledges_are_cumulative),
		cmocka_unit_test(sequence_nak_goes_back),
		cmocka_unit_test(sequence_naks_are_charged),
		cmocka_unit_test(implied_nak_of_a_read),
		cmocka_unit_test(lost_response_is_asked_for_again),
		cmocka_unit_test(large_reads_are_asked_for_in_parts),
		cmocka_unit_test(naks_end_the_queue_pair),
		cmocka_unit_test(rnr_waits_by_the_table),
		cmocka_unit_test(rnr_retries),
		cmocka_unit_test(silence_ends_by_the_standards_time),
		cmocka_unit_test(one_packet_after_silence),
		cmocka_unit_test(fence_waits_for_reads),
		cmocka_unit_test(the_window_paces),
		cmocka_unit_test(local_errors),
		cmocka_unit_test(memory_gone_under_way),
		cmocka_unit_test(inline_bytes_are_kept),
		cmocka_unit_test(drain),
		cmocka_unit_test(bad_responses),
		cmocka_unit_test(random_responses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
