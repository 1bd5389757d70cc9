/* SPDX-License-Identifier: Apache-2.0 */
/*
 * READ and atomics, asked for once and again (InfiniBand Architecture Specification, volume 1,
 * 9.7.4.3, 9.7.4.4, 9.7.5.1): a rule a script.
 */
#include "unit.h"

#include "soft_script.h"

#include "base/banned.h"

static const struct row rows[] = {
	/* 9.7.4.3: READ */
	{"read in packets takes their numbers",
	 {IN(READ_REQUEST, P, .va = 50, .rlen = 600), TURN,
	  OUT(READ_RESPONSE_FIRST, P, 1, .len = 256, .va = 50),
	  OUT(READ_RESPONSE_MIDDLE, P + 1, 0, .len = 256, .va = 306),
	  OUT(READ_RESPONSE_LAST, P + 2, 1, .len = 88, .va = 562),
	  IN(WRITE_ONLY, P + 3, .len = 4, .rlen = 4, .ack = true), TURN,
	  OUT(ACKNOWLEDGE, P + 3, 2)}},
	{"read of one packet, of exactly two, of nothing",
	 {IN(READ_REQUEST, P, .rlen = 256, .key = KEY_READ), TURN,
	  OUT(READ_RESPONSE_ONLY, P, 1, .len = 256), IN(READ_REQUEST, P + 1, .rlen = 512), TURN,
	  OUT(READ_RESPONSE_FIRST, P + 1, 2, .len = 256),
	  OUT(READ_RESPONSE_LAST, P + 2, 2, .len = 256, .va = 256),
	  IN(READ_REQUEST, P + 3, .rlen = 0, .key = KEY_GONE), TURN,
	  OUT(READ_RESPONSE_ONLY, P + 3, 3)}},
	{"read beyond the processor's reach",
	 {IN(READ_REQUEST, P, .rlen = 9, .key = KEY_INDIRECT), TURN,
	  OUT(READ_RESPONSE_ONLY, P, 1, .len = 9)}},
	{"read that the memory refuses",
	 {IN(READ_REQUEST, P, .rlen = 9, .key = KEY_BROKEN), TURN, LAST_NAK(0x63, P, 1),
	  EVENT(FATAL)}},
	{"an acknowledge does not overtake a read, whatever the budget",
	 {IN(WRITE_ONLY, P, .len = 4, .rlen = 4, .ack = true), IN(READ_REQUEST, P + 1, .rlen = 512),
	  IN(WRITE_ONLY, P + 3, .len = 4, .rlen = 4, .va = 1024, .ack = true), TURN_OF(1),
	  OUT(READ_RESPONSE_FIRST, P + 1, 2, .len = 256), TURN,
	  OUT(READ_RESPONSE_LAST, P + 2, 2, .len = 256, .va = 256), OUT(ACKNOWLEDGE, P + 3, 3)}},
	{"what was asked before a read is acknowledged by its answer",
	 {IN(WRITE_ONLY, P, .len = 4, .rlen = 4, .va = 1024, .ack = true),
	  IN(READ_REQUEST, P + 1, .rlen = 1), TURN, OUT(READ_RESPONSE_ONLY, P + 1, 2, .len = 1),
	  TURN}},
	{"a NAK of sequence does not overtake a read",
	 {IN(READ_REQUEST, P, .rlen = 512), IN(READ_REQUEST, P + 3, .rlen = 1), TURN_OF(1),
	  OUT(READ_RESPONSE_FIRST, P, 1, .len = 256), TURN,
	  OUT(READ_RESPONSE_LAST, P + 1, 1, .len = 256, .va = 256), NAK(0x60, P + 2, 1)}},
	{"a fatal NAK does not overtake a read, and nothing comes in after it",
	 {IN(READ_REQUEST, P, .rlen = 512),
	  IN(WRITE_ONLY, P + 2, .len = 4, .rlen = 4, .key = KEY_GONE),
	  IN(WRITE_ONLY, P + 2, .len = 4, .rlen = 4, .va = 1024), STATE(RTS), TURN_OF(1),
	  OUT(READ_RESPONSE_FIRST, P, 1, .len = 256), TURN,
	  OUT(READ_RESPONSE_LAST, P + 1, 1, .len = 256, .va = 256), LAST_NAK(0x62, P + 2, 1),
	  EVENT(ACCESS), OLD(1024, 4)}},
	{"more reads than promised: invalid, after the answers of those that were",
	 {IN(READ_REQUEST, P, .rlen = 1), IN(READ_REQUEST, P + 1, .rlen = 1),
	  IN(READ_REQUEST, P + 2, .rlen = 1), TURN, OUT(READ_RESPONSE_ONLY, P, 1, .len = 1),
	  OUT(READ_RESPONSE_ONLY, P + 1, 2, .len = 1), LAST_NAK(0x61, P + 2, 2), EVENT(REQUEST)}},
	{"region gone before the answer",
	 {IN(READ_REQUEST, P, .rlen = 512), IN(READ_REQUEST, P + 2, .rlen = 8), TURN_OF(1),
	  OUT(READ_RESPONSE_FIRST, P, 1, .len = 256), ERASE(KEY_ALL), TURN,
	  LAST_NAK(0x62, P + 1, 2), EVENT(ACCESS)}},

	/* 9.7.5.1.4, C9-107: READ again */
	{"read again, whole and from the middle",
	 {IN(READ_REQUEST, P, .rlen = 600), TURN, OUT(READ_RESPONSE_FIRST, P, 1, .len = 256),
	  OUT(READ_RESPONSE_MIDDLE, P + 1, 0, .len = 256, .va = 256),
	  OUT(READ_RESPONSE_LAST, P + 2, 1, .len = 88, .va = 512), IN(READ_REQUEST, P, .rlen = 600),
	  TURN, OUT(READ_RESPONSE_FIRST, P, 1, .len = 256),
	  OUT(READ_RESPONSE_MIDDLE, P + 1, 0, .len = 256, .va = 256),
	  OUT(READ_RESPONSE_LAST, P + 2, 1, .len = 88, .va = 512),
	  IN(READ_REQUEST, P + 2, .va = 512, .rlen = 88), TURN,
	  OUT(READ_RESPONSE_ONLY, P + 2, 1, .len = 88, .va = 512)}},
	{"read again goes before later answers",
	 {IN(READ_REQUEST, P, .rlen = 1), TURN, OUT(READ_RESPONSE_ONLY, P, 1, .len = 1),
	  IN(READ_REQUEST, P + 1, .rlen = 2), IN(READ_REQUEST, P, .rlen = 1), TURN,
	  OUT(READ_RESPONSE_ONLY, P, 2, .len = 1), OUT(READ_RESPONSE_ONLY, P + 1, 2, .len = 2)}},
	{"read again that waits to be answered is answered once",
	 {IN(READ_REQUEST, P, .rlen = 300), IN(READ_REQUEST, P, .rlen = 300), TURN_OF(1),
	  OUT(READ_RESPONSE_FIRST, P, 1, .len = 256),
	  IN(READ_REQUEST, P + 1, .va = 256, .rlen = 44), TURN,
	  OUT(READ_RESPONSE_LAST, P + 1, 1, .len = 44, .va = 256)}},
	{"read again from before where the answer is starts there",
	 {IN(READ_REQUEST, P, .rlen = 600), TURN_OF(310),
	  OUT(READ_RESPONSE_FIRST, P, 1, .len = 256),
	  OUT(READ_RESPONSE_MIDDLE, P + 1, 0, .len = 256, .va = 256),
	  IN(READ_REQUEST, P + 1, .va = 256, .rlen = 344), TURN,
	  OUT(READ_RESPONSE_FIRST, P + 1, 1, .len = 256, .va = 256),
	  OUT(READ_RESPONSE_LAST, P + 2, 1, .len = 88, .va = 512)}},
	{"read again does not count among the promised",
	 {IN(READ_REQUEST, P, .rlen = 1), TURN, OUT(READ_RESPONSE_ONLY, P, 1, .len = 1),
	  IN(READ_REQUEST, P, .rlen = 1), IN(READ_REQUEST, P + 1, .rlen = 1),
	  IN(READ_REQUEST, P + 2, .rlen = 1), TURN, OUT(READ_RESPONSE_ONLY, P, 1, .len = 1),
	  OUT(READ_RESPONSE_ONLY, P + 1, 2, .len = 1),
	  OUT(READ_RESPONSE_ONLY, P + 2, 3, .len = 1)}},
	{"read again whose region goes before the answer: silence, and the connection lives",
	 {IN(READ_REQUEST, P, .rlen = 300), TURN, OUT(READ_RESPONSE_FIRST, P, 1, .len = 256),
	  OUT(READ_RESPONSE_LAST, P + 1, 1, .len = 44, .va = 256), IN(READ_REQUEST, P, .rlen = 300),
	  TURN_OF(1), OUT(READ_RESPONSE_FIRST, P, 1, .len = 256), ERASE(KEY_ALL), TURN, STATE(RTS),
	  IN(WRITE_ONLY, P + 2, .ack = true), TURN, OUT(ACKNOWLEDGE, P + 2, 2)}},
	{"read again of what was never asked for, or may not be read: silence (class D)",
	 {IN(READ_REQUEST, P, .rlen = 1), TURN, OUT(READ_RESPONSE_ONLY, P, 1, .len = 1),
	  IN(READ_REQUEST, P, .rlen = 257), IN(READ_REQUEST, P, .rlen = 1, .key = KEY_GONE),
	  IN(READ_REQUEST, P, .rlen = UINT32_MAX), IN(FETCH_ADD, P, .add = 1), TURN, STATE(RTS)}},

	/* 9.7.4.4, 9.4.5: atomics */
	{"fetch and add",
	 {POKE(16, 5), IN(FETCH_ADD, P, .va = 16, .add = 3), VALUE(16, 8), TURN,
	  OUT(ATOMIC_ACKNOWLEDGE, P, 1, .add = 5),
	  IN(FETCH_ADD, P + 1, .va = 16, .add = UINT64_MAX), VALUE(16, 7), TURN,
	  OUT(ATOMIC_ACKNOWLEDGE, P + 1, 2, .add = 8)}},
	{"compare and swap, equal and not",
	 {POKE(16, 5), IN(COMPARE_SWAP, P, .va = 16, .compare = 5, .add = 9), VALUE(16, 9), TURN,
	  OUT(ATOMIC_ACKNOWLEDGE, P, 1, .add = 5),
	  IN(COMPARE_SWAP, P + 1, .va = 16, .compare = 5, .add = 1), VALUE(16, 9), TURN,
	  OUT(ATOMIC_ACKNOWLEDGE, P + 1, 2, .add = 9)}},
	{"atomics beyond the processor's reach",
	 {POKE(16, 5), IN(FETCH_ADD, P, .va = 16, .add = 3, .key = KEY_INDIRECT), VALUE(16, 8),
	  IN(COMPARE_SWAP, P + 1, .va = 16, .compare = 8, .add = 1, .key = KEY_INDIRECT),
	  VALUE(16, 1), TURN, OUT(ATOMIC_ACKNOWLEDGE, P, 1, .add = 5),
	  OUT(ATOMIC_ACKNOWLEDGE, P + 1, 2, .add = 8)}},
	{"atomic again: the same answer, not executed",
	 {POKE(16, 5), IN(FETCH_ADD, P, .va = 16, .add = 3), TURN,
	  OUT(ATOMIC_ACKNOWLEDGE, P, 1, .add = 5), IN(FETCH_ADD, P, .va = 16, .add = 3),
	  IN(FETCH_ADD, P, .va = 16, .add = 3), TURN, OUT(ATOMIC_ACKNOWLEDGE, P, 1, .add = 5),
	  VALUE(16, 8)}},
	{"atomic again after as many as may be open",
	 {POKE(16, 0),
	  {.what = ATOMS_, .psn = P, .len = 17, .va = 16},
	  IN(FETCH_ADD, P, .va = 16, .add = 1),
	  TURN,
	  OUT(ATOMIC_ACKNOWLEDGE, P, 17, .add = 0),
	  VALUE(16, 17)}},
	{"atomic again whose answer is forgotten: silence, not executed",
	 {POKE(16, 0),
	  {.what = ATOMS_, .psn = P, .len = SOFT_ATOMICS_KEPT + 1, .va = 16},
	  IN(FETCH_ADD, P, .va = 16, .add = 1),
	  TURN,
	  VALUE(16, SOFT_ATOMICS_KEPT + 1),
	  STATE(RTS)}},
	{"an atomic's answer keeps its place behind a read",
	 {POKE(600, 5), IN(READ_REQUEST, P, .rlen = 512), IN(FETCH_ADD, P + 2, .va = 600, .add = 1),
	  TURN_OF(1), OUT(READ_RESPONSE_FIRST, P, 1, .len = 256), TURN,
	  OUT(READ_RESPONSE_LAST, P + 1, 1, .len = 256, .va = 256),
	  OUT(ATOMIC_ACKNOWLEDGE, P + 2, 2, .add = 5)}},
	{"atomic not aligned: invalid",
	 {IN(FETCH_ADD, P, .va = 20, .add = 1), LAST_NAK(0x61, P, 0), EVENT(REQUEST), OLD(16, 16)}},
	{"atomic over the end",
	 {IN(FETCH_ADD, P, .va = STAGE_BYTES, .add = 1), LAST_NAK(0x62, P, 0), EVENT(ACCESS)}},
};

static void scripts(void **state)
{
	(void)state;
	play_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

/* Never more answers than fit, whatever duplicates come. */
static void storm_of_duplicates(void **state)
{
	struct stage *s = stage_open(SOFT_RC);

	(void)state;
	rule = "storm of duplicates";
	s->qp.attr.max_dest_rd_atomic = 255;
	for (uint32_t i = 0; i < 64; i++) {
		struct step in = IN(READ_REQUEST, P + i, .rlen = 1);

		give(s, &in);
		(void)soft_qp_pump(&s->qp, 1 << 20, 1);
	}
	assert_int_equal(s->num_sent, 64);
	for (uint32_t i = 0; i < 16; i++) {
		struct step in = IN(READ_REQUEST, P + 64 + i, .rlen = 1);

		give(s, &in);
	}
	for (uint32_t i = 0; i < 200; i++) {
		struct step in = IN(READ_REQUEST, P + (i * 29) % 64, .rlen = 1 + i % 3);

		give(s, &in);
		assert_true(s->qp.resp.num_answers <= SOFT_ANSWERS_MAX);
	}
	assert_int_equal(s->qp.resp.num_answers, SOFT_ANSWERS_MAX);
	(void)soft_qp_pump(&s->qp, 1 << 20, 1);
	/* In the order of their numbers. */
	for (unsigned int i = 65; i < s->num_sent; i++)
		assert_true(soft_psn_diff(s->sent[i].p.psn, s->sent[i - 1].p.psn) > 0);
	assert_int_equal(s->num_sent, 64 + SOFT_ANSWERS_MAX);
	assert_int_equal(s->qp.state, SOFT_QP_RTS);
	stage_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scripts),
		cmocka_unit_test(storm_of_duplicates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
