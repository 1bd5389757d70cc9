/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The window: round trip times by the arithmetic of RFC 6298 section 2, increase and decrease as
 * RFC 5681 has them in bytes.
 */
#include "unit.h"

#include "soft/qp/window.h"

#include "base/banned.h"

#define MS PP_MILLISECOND

static void retransmission_time(void **state)
{
	struct soft_window w;

	(void)state;
	soft_window_init(&w, 1 << 20);
	assert_int_equal(soft_window_rto(&w), 20 * MS);
	/* 2.2: SRTT = R, RTTVAR = R/2, RTO = SRTT + 4 RTTVAR */
	soft_window_acked(&w, 0, 10 * MS);
	assert_int_equal(w.srtt, 10 * MS);
	assert_int_equal(w.rttvar, 5 * MS);
	assert_int_equal(soft_window_rto(&w), 30 * MS);
	/* 2.3: RTTVAR = 3/4 * 5 + 1/4 * |10 - 20|, SRTT = 7/8 * 10 + 1/8 * 20 */
	soft_window_acked(&w, 0, 20 * MS);
	assert_int_equal(w.rttvar, 6250000);
	assert_int_equal(w.srtt, 11250000);
	assert_int_equal(soft_window_rto(&w), 36250000);
	/* Unknown: no sample. */
	soft_window_acked(&w, 0, 0);
	assert_int_equal(w.srtt, 11250000);
	for (int i = 0; i < 300; i++)
		soft_window_acked(&w, 0, 1000);
	assert_int_equal(soft_window_rto(&w), SOFT_RTO_MIN);
	soft_window_acked(&w, 0, INT64_MAX);
	assert_int_equal(soft_window_rto(&w), SOFT_RTO_MAX);
}

static void counting(void **state)
{
	struct soft_window w;

	(void)state;
	soft_window_init(&w, 1 << 20);
	assert_int_equal(w.limit, 256 << 10);
	assert_true(soft_window_open(&w, UINT64_MAX)); /* nothing under way: one packet may */
	soft_window_sent(&w, 200 << 10);
	assert_true(soft_window_open(&w, 56 << 10));
	assert_false(soft_window_open(&w, (56 << 10) + 1));
	assert_false(soft_window_open(&w, UINT64_MAX));
	soft_window_dropped(&w, 100 << 10);
	assert_int_equal(w.in_flight, 100 << 10);
	/* Never below nothing, whatever is acknowledged. */
	soft_window_acked(&w, UINT64_MAX, 0);
	assert_int_equal(w.in_flight, 0);
	soft_window_sent(&w, UINT64_MAX);
	soft_window_sent(&w, UINT64_MAX);
	assert_int_equal(w.in_flight, UINT64_MAX);

	/* A tiny receive buffer: four packets of 4096 at least. */
	soft_window_init(&w, 0);
	assert_true(w.limit >= 4 * 4096 && w.limit < 6 * 4096);
	soft_window_init(&w, 100 << 10);
	assert_int_equal(w.limit, 100 << 10);
}

/* One round trip of a sender that keeps the window full. */
static void round_trip(struct soft_window *w, pp_ns now)
{
	uint64_t full = w->limit;

	soft_window_sent(w, full);
	for (uint64_t left = full, part = full / 16 + 1; left > 0; left -= part) {
		if (part > left)
			part = left;
		soft_window_acked(w, part, MS);
		soft_window_sent(w, w->limit - w->in_flight);
	}
	soft_window_dropped(w, w->in_flight);
}

static void growing(void **state)
{
	struct soft_window w;
	uint64_t before;

	(void)state;
	soft_window_init(&w, 4 << 20);
	/* Slow start: more than half again within a round trip, never beyond the maximum. */
	before = w.limit;
	round_trip(&w, 0);
	assert_true(w.limit > before * 3 / 2 && w.limit <= before * 2);
	for (int i = 0; i < 20; i++)
		round_trip(&w, 0);
	assert_int_equal(w.limit, 4 << 20);
	/* A loss halves, once a round trip. */
	soft_window_lost(&w, 100 * MS);
	assert_int_equal(w.limit, 2 << 20);
	soft_window_lost(&w, 100 * MS + MS / 2);
	assert_int_equal(w.limit, 2 << 20);
	soft_window_lost(&w, 200 * MS);
	assert_int_equal(w.limit, 1 << 20);
	/* Then a few packets a round trip. */
	before = w.limit;
	round_trip(&w, 300 * MS);
	assert_true(w.limit >= before + 4096 && w.limit <= before + 8 * 4096);
	/* What is not used does not grow. */
	before = w.limit;
	for (int i = 0; i < 1000; i++) {
		soft_window_sent(&w, 4096);
		soft_window_acked(&w, 4096, MS);
	}
	assert_int_equal(w.limit, before);
	for (int i = 0; i < 100; i++)
		soft_window_lost(&w, (1000 + i * 100) * MS);
	assert_int_equal(w.limit, w.limit_min);
	for (int i = 0; i < 2000; i++)
		round_trip(&w, 0);
	assert_int_equal(w.limit, 4 << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(retransmission_time),
		cmocka_unit_test(counting),
		cmocka_unit_test(growing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
