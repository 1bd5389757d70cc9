/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identifications of senders. A damaged packet's is a random number: of those that pass the ICRC on
 * a known flow few may fit, 128 of 2^17 where a sender counts within trains.
 */
#include "unit.h"

#include <string.h>

#include "soft/engine/origin.h"

static struct soft_origin table[SOFT_ORIGINS];

static struct soft_icrc_flow flow_of(uint16_t sport, uint8_t host)
{
	struct soft_gid src = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = host}},
			dst = src;
	struct soft_icrc_flow flow;

	dst.raw[15] = 200;
	soft_icrc_flow_init(&flow, &src, &dst, sport);
	return flow;
}

static bool fits(const struct soft_icrc_flow *flow, uint16_t id, bool df, pp_ns now)
{
	return soft_origin_fits(table, flow, &(struct soft_icrc_id){id, df}, now);
}

static int start(void **state)
{
	(void)state;
	memset(table, 0, sizeof(table));
	return 0;
}

/* How many of all identifications fit after a while, each tried against a flow that has shown
 * itself anew, by one identification that came several times. */
static unsigned int fitting(const struct soft_icrc_flow *flow, uint16_t known, int times,
			    pp_ns later)
{
	unsigned int n = 0;

	for (uint32_t id = 0; id < 65536; id++)
		for (int d = 0; d < 2; d++) {
			start(NULL);
			for (int i = 0; i < times; i++)
				assert_true(fits(flow, known, true, 1));
			n += fits(flow, (uint16_t)id, d, 1 + later);
		}
	return n;
}

static void a_train_counts_from_zero(void **state)
{
	struct soft_icrc_flow flow = flow_of(0xc001, 1);

	(void)state;
	for (int train = 0; train < 3; train++)
		for (uint16_t id = 0; id < 64; id++)
			assert_true(fits(&flow, id, true, 1 + train));
	assert_int_equal(fitting(&flow, 0, 5, 1), 128);
	assert_int_equal(fitting(&flow, 0, 5, 9 * PP_SECOND), 128);
}

/* Linux's counter, from anywhere, over its end, and on by what time adds. */
static void a_kernel_counts_on(void **state)
{
	struct soft_icrc_flow flow = flow_of(0xc002, 2);
	uint16_t id = 65000;

	(void)state;
	for (int i = 0; i < 2000; i++)
		assert_true(fits(&flow, id++, true, 1 + i));
	assert_true(fits(&flow, (uint16_t)(id + 2500), true, 9 * PP_SECOND));
	assert_true(fitting(&flow, 30000, 1, 1) <= 16384 + 64);
}

/* What rdma_rxe of Linux 6.1 sent, as captured: the counter was small when the flow began, and is
 * not that of a train. None of them may be lost. */
static void a_kernel_counts_on_from_little(void **state)
{
	static const uint16_t seen[] = {0x7d, 0x7e, 0x7f, 0x81};
	struct soft_icrc_flow flow = flow_of(0xc006, 6);

	(void)state;
	for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++)
		assert_true(fits(&flow, seen[i], true, 1 + i * 4 * PP_MILLISECOND));
	assert_false(fits(&flow, 40000, true, 1 + 12 * PP_MILLISECOND));
	/* Nor when the link has doubled one, and another overtook. */
	start(NULL);
	assert_true(fits(&flow, 0x7d, true, 1));
	assert_true(fits(&flow, 0x7d, true, 1));
	assert_true(fits(&flow, 0x7f, true, 1));
	assert_true(fits(&flow, 0x7e, true, 1));
	assert_true(fits(&flow, 0x80, true, 1));
}

/* Linux counts for the pair of hosts: what went to another process meanwhile was not seen here. */
static void a_kernel_counts_for_others_too(void **state)
{
	struct soft_icrc_flow flow = flow_of(0xc007, 7);
	uint16_t id = 500;

	(void)state;
	for (int i = 0; i < 100; i++) {
		assert_true(fits(&flow, id, true, 1 + i * 50 * PP_MILLISECOND));
		id += 50123; /* a packet a microsecond */
	}
	assert_int_equal(fitting(&flow, 30000, 1, 50 * PP_MILLISECOND), 65536);
}

/* What does not fit is new with its next packet: at worst one is lost. */
static void a_misjudged_flow_recovers(void **state)
{
	struct soft_icrc_flow flow = flow_of(0xc003, 3);

	(void)state;
	assert_true(fits(&flow, 40000, false, 1)); /* damaged, and nothing was known */
	assert_false(fits(&flow, 0, true, 2));
	assert_true(fits(&flow, 0, true, 3));
	assert_true(fits(&flow, 1, true, 4));
	assert_false(fits(&flow, 40000, true, 5));
}

static void time_and_other_flows(void **state)
{
	struct soft_icrc_flow a = flow_of(0xc004, 4), b = flow_of(0xc005, 4);

	(void)state;
	assert_true(fits(&a, 3, true, 1));
	assert_true(fits(&b, 50000, true, 1));
	assert_true(fits(&a, 4, true, 2));
	/* Another host may have the address by then. */
	assert_true(fits(&a, 50000, true, 20 * PP_SECOND));
}

/* IPv6 has no identification. */
static void ipv6_fits(void **state)
{
	struct soft_gid gid = {.raw = {[0] = 0xfd, [15] = 1}};
	struct soft_icrc_flow flow;

	(void)state;
	soft_icrc_flow_init(&flow, &gid, &gid, 1);
	assert_true(fits(&flow, 1, true, 1));
	assert_true(fits(&flow, 60000, false, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_train_counts_from_zero, start),
		cmocka_unit_test_setup(a_kernel_counts_on, start),
		cmocka_unit_test_setup(a_kernel_counts_on_from_little, start),
		cmocka_unit_test_setup(a_kernel_counts_for_others_too, start),
		cmocka_unit_test_setup(a_misjudged_flow_recovers, start),
		cmocka_unit_test_setup(time_and_other_flows, start),
		cmocka_unit_test_setup(ipv6_fits, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
