/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The responder of a reliable connection: each rule of the InfiniBand Architecture Specification
 * (volume 1, 9.7.4, 9.7.5, 9.9.3) for SEND, WRITE and packet numbers as a script. READ and
 * atomics: test_soft_answer.c; what Linux answers: test_soft_responder_rxe.c.
 */
#include "unit.h"

#include "soft_script.h"

#include "base/banned.h"

static const struct row rows[] = {
	/* 9.7.5.1.2: acknowledges are asked for by the A bit, and coalesced. */
	{"send, acknowledged when asked",
	 {RECEIVE(1, 64), IN(SEND_ONLY, P, .len = 20, .ack = true), CQE(1, 20), BUFFER(0, 20, P),
	  TURN, OUT(ACKNOWLEDGE, P, 1), TURN}},
	{"send, not asked", {RECEIVE(1, 64), IN(SEND_ONLY, P, .len = 20), CQE(1, 20), TURN}},
	{"send of nothing into nothing",
	 {RECEIVE(1, 0), IN(SEND_ONLY, P, .ack = true), CQE(1, 0), TURN, OUT(ACKNOWLEDGE, P, 1)}},
	{"send in packets, one acknowledge a turn for all",
	 {RECEIVE(1, 1000), RECEIVE(2, 10), IN(SEND_FIRST, P, .len = 256, .ack = true),
	  IN(SEND_MIDDLE, P + 1, .len = 256, .ack = true),
	  IN(SEND_LAST, P + 2, .len = 3, .ack = true), CQE(1, 515),
	  IN(SEND_ONLY, P + 3, .len = 1, .ack = true), CQE(2, 1), TURN, OUT(ACKNOWLEDGE, P + 3, 2),
	  BUFFER(0, 256, P), BUFFER(256, 256, P + 1), BUFFER(512, 3, P + 2)}},
	{"one acknowledge in every turn that was asked",
	 {RECEIVE(1, 600), IN(SEND_FIRST, P, .len = 256, .ack = true), TURN, OUT(ACKNOWLEDGE, P, 0),
	  IN(SEND_LAST, P + 1, .len = 1, .ack = true), CQE(1, 257), TURN,
	  OUT(ACKNOWLEDGE, P + 1, 1)}},
	{"immediate is opaque, solicited is told",
	 {RECEIVE(1, 64), IN(SEND_ONLY_IMM, P, .len = 4, .imm = 0x01020304, .solicited = true),
	  CQE(1, 4, .imm = 0x01020304, .solicited = true)}},

	/* 9.7.5.2.8, 9.9.3 class B: not ready */
	{"no receive request: RNR NAK, silence, then once",
	 {IN(SEND_ONLY, P, .len = 20, .ack = true), TURN, NAK(0x20 | 12, P, 0),
	  IN(SEND_ONLY, P + 1, .len = 20, .ack = true), TURN, RECEIVE(1, 64),
	  IN(SEND_ONLY, P, .len = 20, .ack = true), CQE(1, 20), TURN, OUT(ACKNOWLEDGE, P, 1)}},
	{"not ready twice: asked again twice",
	 {IN(SEND_ONLY, P, .len = 20), TURN, NAK(0x20 | 12, P, 0), IN(SEND_ONLY, P, .len = 20),
	  TURN, NAK(0x20 | 12, P, 0)}},
	{"not ready in the middle of others: they are acknowledged by it",
	 {RECEIVE(1, 64), IN(SEND_ONLY, P, .len = 20, .ack = true), CQE(1, 20),
	  IN(SEND_ONLY, P + 1, .len = 20, .ack = true), TURN, NAK(0x20 | 12, P + 1, 1)}},
	{"write with immediate, not ready: only its last packet comes again, one completion",
	 {IN(WRITE_FIRST, P, .len = 256, .va = 8, .rlen = 300),
	  IN(WRITE_LAST_IMM, P + 1, .len = 44, .imm = 7), TURN, NAK(0x20 | 12, P + 1, 0),
	  HELD(8, 256, P), OLD(264, 44), RECEIVE(1, 0),
	  IN(WRITE_LAST_IMM, P + 1, .len = 44, .imm = 7, .ack = true), CQE_WRITE(1, 300, 7),
	  HELD(264, 44, P + 1), TURN, OUT(ACKNOWLEDGE, P + 1, 1),
	  IN(WRITE_LAST_IMM, P + 1, .len = 44, .imm = 7), TURN, OUT(ACKNOWLEDGE, P + 1, 1)}},
	{"write of nothing with immediate needs no key and takes a receive request",
	 {RECEIVE(1, 0), IN(WRITE_ONLY_IMM, P, .key = KEY_GONE, .imm = 9), CQE_WRITE(1, 0, 9)}},

	/* 9.7.4.1.2, C9-105 ..: duplicates and gaps */
	{"ahead: one NAK of sequence until the expected packet comes, then another may",
	 {IN(WRITE_ONLY, P + 1, .len = 4, .rlen = 4, .ack = true),
	  IN(WRITE_ONLY, P + 2, .len = 4, .rlen = 4, .ack = true), TURN, NAK(0x60, P, 0),
	  IN(WRITE_ONLY, P + 1, .len = 4, .rlen = 4, .ack = true), TURN, OLD(0, 4),
	  IN(WRITE_ONLY, P, .len = 4, .rlen = 4), IN(WRITE_ONLY, P + 2, .len = 4, .rlen = 4), TURN,
	  NAK(0x60, P + 1, 1), HELD(0, 4, P)}},
	{"ahead and healed within a turn: no NAK",
	 {IN(WRITE_ONLY, P + 1, .len = 4, .rlen = 4),
	  IN(WRITE_ONLY, P, .len = 4, .rlen = 4, .ack = true), TURN, OUT(ACKNOWLEDGE, P, 1)}},
	{"duplicate send: acknowledged again though not asked, not executed",
	 {RECEIVE(1, 64), RECEIVE(2, 64), IN(SEND_ONLY, P, .len = 20), CQE(1, 20),
	  IN(SEND_ONLY, P + 1, .len = 5), CQE(2, 5), TURN, IN(SEND_ONLY, P, .len = 20), TURN,
	  OUT(ACKNOWLEDGE, P + 1, 2)}},
	{"duplicate write: not executed",
	 {IN(WRITE_ONLY, P, .len = 8, .rlen = 8), POKE(0, 42),
	  IN(WRITE_ONLY, P, .len = 8, .rlen = 8), TURN, OUT(ACKNOWLEDGE, P, 1), VALUE(0, 42)}},
	{"duplicate in the middle of a message",
	 {RECEIVE(1, 600), IN(SEND_FIRST, P, .len = 256), IN(SEND_MIDDLE, P + 1, .len = 256),
	  IN(SEND_FIRST, P, .len = 256), TURN, OUT(ACKNOWLEDGE, P + 1, 0),
	  IN(SEND_LAST, P + 2, .len = 1), CQE(1, 513)}},
	{"duplicate after a NAK of sequence does not break the silence",
	 {IN(WRITE_ONLY, P, .len = 4, .rlen = 4), IN(WRITE_ONLY, P + 2, .len = 4, .rlen = 4), TURN,
	  NAK(0x60, P + 1, 1), IN(WRITE_ONLY, P, .len = 4, .rlen = 4), TURN, OUT(ACKNOWLEDGE, P, 1),
	  IN(WRITE_ONLY, P + 2, .len = 4, .rlen = 4), TURN}},

	/* 9.7.4.1.5 .. 9.7.4.1.7: WRITE */
	{"write in packets",
	 {IN(WRITE_FIRST, P, .len = 256, .va = 100, .rlen = 600),
	  IN(WRITE_MIDDLE, P + 1, .len = 256), IN(WRITE_LAST, P + 2, .len = 88, .ack = true), TURN,
	  OUT(ACKNOWLEDGE, P + 2, 1), OLD(0, 100), HELD(100, 256, P), HELD(356, 256, P + 1),
	  HELD(612, 88, P + 2), OLD(700, 1000)}},
	{"write to the last byte",
	 {IN(WRITE_ONLY, P, .len = 10, .va = STAGE_BYTES - 10, .rlen = 10),
	  HELD(STAGE_BYTES - 10, 10, P)}},
	{"write beyond the processor's reach",
	 {IN(WRITE_ONLY, P, .len = 9, .rlen = 9, .key = KEY_INDIRECT), HELD(0, 9, P)}},
	{"write that the memory refuses: remote operational error",
	 {IN(WRITE_ONLY, P, .len = 9, .rlen = 9, .key = KEY_BROKEN), LAST_NAK(0x63, P, 0),
	  EVENT(FATAL)}},
	{"write of nothing needs no key",
	 {IN(WRITE_ONLY, P, .key = KEY_GONE, .va = 1 << 30, .ack = true), TURN,
	  OUT(ACKNOWLEDGE, P, 1)}},
	{"region gone between the packets of a write",
	 {IN(WRITE_FIRST, P, .len = 256, .rlen = 300), ERASE(KEY_ALL),
	  IN(WRITE_LAST, P + 1, .len = 44), LAST_NAK(0x62, P + 1, 0), EVENT(ACCESS), OLD(256, 44)}},

	/* 9.9.3 class A: the receive request in progress tells */
	{"send longer than the buffers; what waits is flushed, in order",
	 {RECEIVE(1, 300), RECEIVE(2, 300), RECEIVE(3, 300), IN(SEND_FIRST, P, .len = 256),
	  IN(SEND_LAST, P + 1, .len = 45), LAST_NAK(0x61, P + 1, 0), CQE_BAD(1, LOC_LEN_ERR),
	  CQE_BAD(2, WR_FLUSH_ERR), CQE_BAD(3, WR_FLUSH_ERR), BUFFER(0, 256, P)}},
	{"last of nothing in it",
	 {RECEIVE(1, 600), IN(SEND_FIRST, P, .len = 256), IN(SEND_LAST, P + 1),
	  LAST_NAK(0x61, P + 1, 0), CQE_BAD(1, REM_INV_REQ_ERR)}},
	{"send into memory that may not be written",
	 {RECEIVE_BY(KEY_SEALED, 1, 300), IN(SEND_ONLY, P, .len = 5), LAST_NAK(0x63, P, 0),
	  CQE_BAD(1, LOC_PROT_ERR)}},
	{"send into memory of another domain",
	 {RECEIVE_BY(KEY_FOREIGN, 1, 300), IN(SEND_ONLY, P, .len = 5), LAST_NAK(0x63, P, 0),
	  CQE_BAD(1, LOC_PROT_ERR)}},
	{"a write breaks into a send",
	 {RECEIVE(1, 600), RECEIVE(2, 1), IN(SEND_FIRST, P, .len = 256),
	  IN(WRITE_ONLY, P + 1, .len = 4, .rlen = 4), LAST_NAK(0x61, P + 1, 0),
	  CQE_BAD(1, REM_INV_REQ_ERR), CQE_BAD(2, WR_FLUSH_ERR), OLD(0, 4)}},
	{"class J: a peer may not invalidate a registered region's key; it hears nothing",
	 {RECEIVE(1, 600), IN(SEND_ONLY_INVALIDATE, P, .len = 4), CQE_BAD(1, REM_INV_REQ_ERR),
	  STATE(ERR), TURN}},

	/* States and packet numbers */
	{"the first packet in RTR is told, once",
	 {{.what = RTR_},
	  IN(WRITE_ONLY, P + 1, .len = 4, .rlen = 4),
	  IN(WRITE_ONLY, P, .len = 4, .rlen = 4),
	  EVENT(ESTABLISHED),
	  IN(WRITE_ONLY, P + 1, .len = 4, .rlen = 4),
	  TURN}},
	{"a QP in error is silent",
	 {IN(SEND_LAST, P, .len = 4), LAST_NAK(0x61, P, 0), EVENT(REQUEST),
	  IN(SEND_ONLY, P, .len = 4), IN(READ_REQUEST, P, .rlen = 4), TURN}},
	{"reset in the middle of everything leaves nothing behind",
	 {RECEIVE(1, 600),
	  RECEIVE(2, 600),
	  IN(SEND_FIRST, P, .len = 256, .ack = true),
	  IN(SEND_LAST, P + 1, .len = 1),
	  CQE(1, 257),
	  IN(SEND_FIRST, P + 2, .len = 256, .ack = true),
	  {.what = RESET_},
	  TURN,
	  IN(SEND_ONLY, P, .len = 4),
	  TURN,
	  NAK(0x20 | 12, P, 0),
	  RECEIVE(3, 9),
	  IN(SEND_ONLY, P, .len = 4),
	  CQE(3, 4)}},
	{"reset forgets the message and its receive request, and what waits to be answered",
	 {RECEIVE(1, 600),
	  IN(READ_REQUEST, P, .rlen = 4),
	  IN(SEND_FIRST, P + 1, .len = 256),
	  {.what = RESET_},
	  TURN,
	  IN(SEND_LAST, P, .len = 1),
	  LAST_NAK(0x61, P, 0),
	  EVENT(REQUEST)}},
	{"congestion marks are counted and told of, not each, others not",
	 {IN(WRITE_ONLY, P, .tc = 3), OUT(CNP, 0, 0), IN(WRITE_ONLY, P + 1, .tc = 2),
	  IN(WRITE_ONLY, P + 1, .tc = 0xff), TURN, OUT(ACKNOWLEDGE, P + 1, 2)}},
};

static void scripts(void **state)
{
	(void)state;
	play_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

static void packet_numbers_come_round(void **state)
{
	struct stage *s = stage_open(SOFT_RC);
	const struct step steps[] = {
		IN(READ_REQUEST, 0xfffffe, .rlen = 600),
		TURN,
		OUT(READ_RESPONSE_FIRST, 0xfffffe, 1, .len = 256),
		OUT(READ_RESPONSE_MIDDLE, 0xffffff, 0, .len = 256, .va = 256),
		OUT(READ_RESPONSE_LAST, 0, 1, .len = 88, .va = 512),
		IN(WRITE_ONLY, 1, .len = 4, .rlen = 4, .ack = true),
		TURN,
		OUT(ACKNOWLEDGE, 1, 2),
		/* behind and ahead, over the seam */
		IN(READ_REQUEST, 0xffffff, .va = 256, .rlen = 344),
		TURN,
		OUT(READ_RESPONSE_FIRST, 0xffffff, 2, .len = 256, .va = 256),
		OUT(READ_RESPONSE_LAST, 0, 2, .len = 88, .va = 512),
		IN(WRITE_ONLY, 3, .len = 4, .rlen = 4),
		TURN,
		NAK(0x60, 2, 2),
		/* half the circle away: behind */
		IN(WRITE_ONLY, 0x800002, .len = 4, .rlen = 4),
		TURN,
		OUT(ACKNOWLEDGE, 1, 2),
	};

	(void)state;
	rule = "packet numbers come round";
	s->qp.attr.rq_psn = 0xfffffe;
	restart(s, false);
	for (step_number = 0; step_number < sizeof(steps) / sizeof(steps[0]); step_number++)
		play(s, &steps[step_number]);
	nothing_else(s);
	stage_close(s);
}

static void counted(void **state)
{
	struct stage *s = stage_open(SOFT_RC);
	const struct step steps[] = {
		RECEIVE(1, 64),
		IN(SEND_ONLY, P, .len = 20),
		CQE(1, 20),
		IN(SEND_ONLY, P + 1, .len = 20),
		IN(WRITE_FIRST, P + 1, .len = 256, .rlen = 257, .tc = 3),
		IN(WRITE_LAST, P + 2, .len = 1),
		IN(READ_REQUEST, P + 3, .rlen = 300, .tc = 1),
		IN(FETCH_ADD, P + 5, .add = 1, .tc = 7),
		IN(FETCH_ADD, P + 5, .add = 1),
		IN(FETCH_ADD, P + 7, .add = 1),
		IN(FETCH_ADD, P + 8, .add = 1),
	};

	(void)state;
	rule = "counted";
	for (step_number = 0; step_number < sizeof(steps) / sizeof(steps[0]); step_number++)
		play(s, &steps[step_number]);
	(void)soft_qp_pump(&s->qp, 1 << 20, 1);
	assert_int_equal(s->counters.rx_sends, 1);
	assert_int_equal(s->counters.out_of_buffer, 1);
	assert_int_equal(s->counters.rx_write_requests, 1);
	assert_int_equal(s->counters.rx_read_requests, 1);
	assert_int_equal(s->counters.rx_atomic_requests, 1);
	assert_int_equal(s->counters.duplicate_request, 1);
	assert_int_equal(s->counters.out_of_sequence, 2);
	assert_int_equal(s->counters.np_ecn_marked_roce_packets, 2);
	assert_int_equal(s->counters.np_cnp_sent, 1);
	assert_int_equal(s->counters.received_data_bytes, 20 + 257);
	assert_int_equal(s->counters.sent_data_bytes, 300);
	stage_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scripts),
		cmocka_unit_test(packet_numbers_come_round),
		cmocka_unit_test(counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
