/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the requester sends and what it makes of answers, against a scripted peer: the test reads
 * what it sends and answers. Sequences, PSNs and statuses are those of the InfiniBand Architecture
 * Specification (volume 1, release 1.4, chapters 9 and 11), written out by hand.
 */
#include "unit.h"

#include <errno.h>

#include "soft_rig.h"

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
	assert_int_equal(r.end.qp.state, SOFT_QP_ERR);
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
	/* A small buffer at the other end, and so at ours: 96 KiB open, in parts of 32. */
	rig_open(&r, &attr, 256 << 10);
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
		assert_true(r.end.qp.req.read_bytes <= 96 * 1024);
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
	/* A checker makes each take many times as long. */
#ifdef __SANITIZE_ADDRESS__
	const unsigned int seeds = 300;
#else
	const unsigned int seeds = getenv("PEERPATH_TEST_SLOW") ? 300 : 1500;
#endif
	uint8_t data[SOFT_MTU_MAX];

	(void)state;
	memset(data, 0xee, sizeof(data));
	for (unsigned int seed = 0; seed < seeds; seed++) {
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

/* Memory that the processor cannot address: bytes go through fetch and store, mixed with others. */
static uint8_t device[8192];
static int device_error;

static uint8_t *device_direct(const struct soft_region *region, uint64_t offset)
{
	(void)region;
	(void)offset;
	return NULL;
}

static int device_fetch(const struct soft_region *region, uint64_t offset, void *to, size_t len)
{
	assert_true(offset + len <= region->length);
	memcpy(to, device + offset, len);
	return device_error;
}

static int device_store(struct soft_region *region, uint64_t offset, const void *from, size_t len)
{
	assert_true(offset + len <= region->length);
	memcpy(device + offset, from, len);
	return device_error;
}

static void memory_behind_a_seam(void **state)
{
	static const struct soft_region_ops ops = {
		.direct = device_direct, .fetch = device_fetch, .store = device_store};
	struct soft_region region = {.access = SOFT_ACCESS_LOCAL_WRITE,
				     .pd = soft_sim_pd,
				     .iova = 0x7f0000000000,
				     .length = sizeof(device),
				     .ops = &ops};
	struct soft_send_wr wr = {.id = 1, .opcode = SOFT_WR_WRITE, .num_sge = 3, .flags = 2};
	struct soft_sim_attr attr = soft_sim_attr();
	uint8_t want[1024], data[1024];
	struct soft_sge sges[3];
	struct rig r;

	(void)state;
	attr.sq_psn = 100;
	rig_open(&r, &attr, 1 << 20);
	assert_int_equal(soft_regions_add(r.node.regions, &region), 0);
	for (unsigned int i = 0; i < sizeof(device); i++)
		device[i] = (uint8_t)(i * 3);
	memset(data, 0x99, sizeof(data));
	sges[0] = (struct soft_sge){region.iova + 10, 300, region.key};
	sges[1] = piece(&r, 5, 200);
	sges[2] = (struct soft_sge){region.iova + 4000, 524, region.key};
	memcpy(want, device + 10, 300);
	memcpy(want + 300, r.memory + 5, 200);
	memcpy(want + 500, device + 4000, 524);
	assert_true(soft_sim_post(&r.end, &wr, sges));
	soft_sim_pump(&r.end);
	assert_memory_equal(r.end.sent[0].payload, want, sizeof(want));
	ack(&r, 100);
	done(&r, 1, SOFT_WC_SUCCESS);

	wr.opcode = SOFT_WR_READ;
	wr.id = 2;
	assert_true(soft_sim_post(&r.end, &wr, sges));
	soft_sim_pump(&r.end);
	give_read(&r, 0x10, 101, data, 1024);
	done(&r, 2, SOFT_WC_SUCCESS);
	assert_memory_equal(device + 10, data, 300);
	assert_memory_equal(r.memory + 5, data, 200);
	assert_memory_equal(device + 4000, data, 524);
	assert_int_equal(device[9], 27);
	assert_int_equal(device[310], (uint8_t)(310 * 3));
	assert_int_equal(device[4524], (uint8_t)(4524 * 3));

	device_error = -EIO;
	wr.id = 3;
	wr.opcode = SOFT_WR_WRITE;
	assert_true(soft_sim_post(&r.end, &wr, sges));
	soft_sim_pump(&r.end);
	done(&r, 3, SOFT_WC_LOC_QP_OP_ERR);
	soft_regions_remove(r.node.regions, &region);
	rig_close(&r);
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
		cmocka_unit_test(bad_responses),
		cmocka_unit_test(random_responses),
		cmocka_unit_test(memory_behind_a_seam),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
