/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the requester does when it must wait (RNR, silence, fence, window, drain) and when this side
 * is at fault, against a scripted peer. Times and statuses are those of the InfiniBand Architecture
 * Specification (volume 1, release 1.4, chapters 9 to 11), written out by hand.
 */
#include "unit.h"

#include "soft_rig.h"

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

/* Annex A17.9.3: who gets a congestion notification sends less. */
static void congestion_notification(void **state)
{
	struct soft_packet p = {.opcode = SOFT_CNP};
	struct soft_sim_attr attr = soft_sim_attr();
	uint64_t limit;
	struct rig r;

	(void)state;
	rig_open(&r, &attr, 1 << 20);
	limit = r.node.window.limit;
	give(&r, &p);
	give(&r, &p); /* of one round trip */
	assert_int_equal(r.node.counters.rp_cnp_handled, 2);
	assert_int_equal(r.node.window.limit, limit / 2);
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
		/* where an answer goes is looked at when it comes */
		{SOFT_WR_READ, 0, 1, false, false, false, 0},
		{SOFT_WR_READ, 0, 0, false, false, true, 0},
		{SOFT_WR_WRITE, 0, 0, false, false, true, 0},
		{SOFT_WR_FETCH_ADD, 0, 0, false, false, true, 0},
		{SOFT_WR_FETCH_ADD, 0, 1, false, false, false, 1},
		{SOFT_WR_LOCAL_INVALIDATE, 0, 0, false, false, false, 6}, /* no window */
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

/* As google/rdma-unit-test has it (ReadInvalidRKeyAndInvalidLKey, CompareSwapInvalidLKey): what was
 * asked for is executed, or refused, by the peer; only its answer finds no place. */
static void answers_without_a_place(void **state)
{
	static const uint8_t opcodes[] = {SOFT_WR_READ, SOFT_WR_FETCH_ADD, SOFT_WR_COMPARE_SWAP};

	(void)state;
	for (size_t i = 0; i < sizeof(opcodes); i++)
		for (int refused = 0; refused < 2; refused++) {
			bool read = opcodes[i] == SOFT_WR_READ;
			struct soft_packet p = {.opcode = read ? SOFT_READ_RESPONSE_ONLY
							       : SOFT_ATOMIC_ACKNOWLEDGE,
						.syndrome = 0x1f,
						.psn = 100,
						.payload = (const uint8_t *)"12345678",
						.payload_bytes = read ? 8 : 0};
			struct soft_sim_attr attr = soft_sim_attr();
			struct rig r;

			attr.sq_psn = 100;
			rig_open(&r, &attr, 1 << 20);
			r.key ^= 0x100;
			post(&r, 1, opcodes[i], 8);
			assert_int_equal(r.end.num_sent, 1);
			none_done(&r);
			if (refused)
				answer(&r, SOFT_AETH_NAK_ACCESS, 100);
			else
				give(&r, &p);
			done(&r, 1, refused ? SOFT_WC_REM_ACCESS_ERR : SOFT_WC_LOC_PROT_ERR);
			assert_int_equal(r.end.qp.state, SOFT_QP_ERR);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rnr_waits_by_the_table),
		cmocka_unit_test(rnr_retries),
		cmocka_unit_test(silence_ends_by_the_standards_time),
		cmocka_unit_test(one_packet_after_silence),
		cmocka_unit_test(fence_waits_for_reads),
		cmocka_unit_test(the_window_paces),
		cmocka_unit_test(congestion_notification),
		cmocka_unit_test(local_errors),
		cmocka_unit_test(answers_without_a_place),
		cmocka_unit_test(memory_gone_under_way),
		cmocka_unit_test(inline_bytes_are_kept),
		cmocka_unit_test(drain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
