/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults: the generator against published numbers, rates against what a binomial distribution
 * allows, and a link with each fault against what the receiver gets.
 */
#include "unit.h"

#include <math.h>
#include <poll.h>

#include "base/clock.h"
#include "soft/link/parts.h"
#include "soft_net.h"

enum { DRAWS = 1000000, PACKETS = 2000, WAIT_MS = 200 };

static const struct soft_gid nobody;
static const struct soft_fault_packet any_packet = {.src = &nobody, .dst = &nobody};

/*
 * The first five of seed 1234567 as the reference implementation prints them; each fate takes
 * five.
 */
static void test_generator(void **state)
{
	struct soft_fault_plan plan = {.seed = 1234567};
	struct soft_fault fault;
	struct soft_fault_fate fate;

	soft_fault_init(&fault, &plan);
	assert_false(soft_fault_active(&fault));
	fate = soft_fault_draw(&fault, &any_packet);
	assert_int_equal(fate.corrupt_bit, (uint32_t)9817491932198370423u);
	assert_int_equal(fate.behind, 1 + (9817491932198370423u >> 32) * 3 / 4294967296u);
}

/* The low half of 6457827717110365317, of a million, is 980605. */
static void test_edges_of_a_rate(void **state)
{
	struct soft_fault_plan plan = {.seed = 1234567, .loss_ppm = 980605};
	struct soft_fault fault;

	soft_fault_init(&fault, &plan);
	assert_true(soft_fault_active(&fault));
	assert_false(soft_fault_draw(&fault, &any_packet).lost);
	plan.loss_ppm++;
	soft_fault_init(&fault, &plan);
	assert_true(soft_fault_draw(&fault, &any_packet).lost);
	plan.loss_ppm = 1000000;
	soft_fault_init(&fault, &plan);
	for (int i = 0; i < 1000; i++)
		assert_true(soft_fault_draw(&fault, &any_packet).lost);
}

/* Five standard deviations of a binomial distribution: one run in two million fails by chance, and
 * the seed is fixed. */
static void assert_rate(uint64_t count, double n, double p)
{
	double sigma = sqrt(n * p * (1 - p));

	if (fabs((double)count - n * p) > 5 * sigma)
		fail_msg("%llu of %.0f, expected %.0f +- %.0f", (unsigned long long)count, n, n * p,
			 5 * sigma);
}

static void test_rates(void **state)
{
	struct soft_fault_plan plan = {.seed = 42,
				       .loss_ppm = 10000,
				       .duplicate_ppm = 250000,
				       .reorder_ppm = 1000,
				       .corrupt_ppm = 500000};
	struct soft_fault fault;
	uint64_t both = 0, behind[5] = {0};

	soft_fault_init(&fault, &plan);
	for (int i = 0; i < DRAWS; i++) {
		struct soft_fault_fate fate = soft_fault_draw(&fault, &any_packet);

		if (fate.lost) {
			assert_false(fate.duplicated || fate.reordered || fate.corrupted);
			continue;
		}
		both += fate.duplicated && fate.corrupted;
		assert_in_range(fate.behind, 1, 3);
		behind[fate.behind]++;
	}
	assert_rate(fault.lost, DRAWS, 0.01);
	assert_rate(fault.duplicated, DRAWS, 0.99 * 0.25);
	assert_rate(fault.reordered, DRAWS, 0.99 * 0.001);
	assert_rate(fault.corrupted, DRAWS, 0.99 * 0.5);
	assert_rate(both, DRAWS, 0.99 * 0.125); /* faults are independent */
	for (int i = 1; i <= 3; i++)
		assert_rate(behind[i], (double)(DRAWS - fault.lost), 1.0 / 3);
}

static void test_same_seed_same_fates(void **state)
{
	struct soft_fault_plan plan = {
		.seed = 7, .loss_ppm = 200000, .reorder_ppm = 300000, .corrupt_ppm = 400000};
	struct soft_fault a, b, c, d;
	unsigned int differ = 0;

	soft_fault_init(&a, &plan);
	soft_fault_init(&b, &plan);
	plan.seed = 8;
	soft_fault_init(&c, &plan);
	plan = (struct soft_fault_plan){.seed = 7, .loss_ppm = 200000};
	soft_fault_init(&d, &plan);
	for (int i = 0; i < 1000; i++) {
		struct soft_fault_fate x = soft_fault_draw(&a, &any_packet),
				       y = soft_fault_draw(&b, &any_packet);
		struct soft_fault_fate z = soft_fault_draw(&c, &any_packet),
				       w = soft_fault_draw(&d, &any_packet);

		assert_true(x.lost == y.lost && x.reordered == y.reordered &&
			    x.corrupted == y.corrupted && x.behind == y.behind &&
			    x.corrupt_bit == y.corrupt_bit);
		differ += x.lost != z.lost;
		/* The same packets are lost, whatever else is wrong with the wire. */
		assert_true(x.lost == w.lost);
	}
	assert_in_range(differ, 200, 440); /* 2 * 0.2 * 0.8 of 1000, +- 120 */
}

/* What a receiver saw of PACKETS packets, each of one PSN. */
struct seen {
	unsigned int packets, icrc_bad, backwards, longest_wait;
	uint32_t last_psn;
	uint8_t times[PACKETS];
};

static void see(void *arg, const struct soft_datagram *d)
{
	struct seen *seen = arg;
	struct soft_icrc_flow flow;
	struct soft_packet p;

	seen->packets++;
	soft_icrc_flow_init(&flow, &d->src, &d->dst, d->sport);
	if (!soft_icrc_check(&flow, d->place, d->bytes, d->len)) {
		seen->icrc_bad++;
		return;
	}
	assert_int_equal(soft_packet_decode(d->bytes, d->len, &p), 0);
	assert_true(p.psn < PACKETS);
	seen->times[p.psn]++;
	if (p.psn < seen->last_psn) {
		seen->backwards++;
		if (seen->last_psn - p.psn > seen->longest_wait)
			seen->longest_wait = seen->last_psn - p.psn;
		return;
	}
	seen->last_psn = p.psn;
}

static struct soft_gid lo;

static struct soft_link *open_link(unsigned int slot, struct soft_fault *fault)
{
	struct soft_link_config config = {
		.gids = {lo}, .num_gids = 1, .slot = slot, .fault = fault};
	struct soft_link *link = NULL;
	struct pp_error err = {0};

	if (soft_link_open(&config, &link, &err) < 0)
		fail_msg("%s", err.text);
	return link;
}

/* Sends PACKETS packets over an ill wire, with a flush after every tenth. */
static void run(const struct soft_fault_plan *plan, struct soft_fault *fault, struct seen *seen,
		struct soft_link_stats *stats)
{
	struct soft_link *sender, *receiver;
	struct soft_path path;
	uint8_t payload[1000] = {1, 2, 3};
	int fds[SOFT_LINK_FDS_MAX];
	struct pollfd p = {.events = POLLIN};

	memset(seen, 0, sizeof(*seen));
	soft_fault_init(fault, plan);
	sender = open_link(0, fault);
	receiver = open_link(1, NULL);
	(void)soft_link_fds(receiver, fds);
	p.fd = fds[0];
	assert_int_equal(soft_link_path(sender, &lo, &lo, 1, &path), 0);
	for (uint32_t psn = 0; psn < PACKETS + 50; psn++) {
		struct soft_packet packet = {.opcode = SOFT_SEND_ONLY,
					     .pkey = 0xffff,
					     .dest_qp = 1 << 16,
					     .psn = psn,
					     .payload_bytes = sizeof(payload)};
		struct iovec piece = {payload, sizeof(payload)};

		/* Nothing more to send: flushes alone let go what is still held. */
		if (psn < PACKETS)
			soft_link_send(sender, &path, &packet, &piece, 1);
		if (psn % 10 == 9) {
			soft_link_flush(sender);
			(void)soft_link_receive(receiver, SIZE_MAX, see, seen);
		}
	}
	while (poll(&p, 1, WAIT_MS) == 1)
		(void)soft_link_receive(receiver, SIZE_MAX, see, seen);
	*stats = *soft_link_stats(sender);
	soft_link_close(sender);
	soft_link_close(receiver);
}

static unsigned int with_times(const struct seen *seen, unsigned int times)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < PACKETS; i++)
		n += seen->times[i] == times;
	return n;
}

static void test_loss(void **state)
{
	struct soft_fault_plan plan = {.seed = 3, .loss_ppm = 100000};
	struct soft_link_stats stats;
	struct soft_fault fault;
	static struct seen seen;

	run(&plan, &fault, &seen, &stats);
	assert_rate(fault.lost, PACKETS, 0.1);
	assert_int_equal(seen.packets, PACKETS - fault.lost);
	assert_int_equal(seen.icrc_bad, 0);
	assert_int_equal(seen.backwards, 0);
	assert_int_equal(with_times(&seen, 0), fault.lost);
}

static void test_duplicates(void **state)
{
	struct soft_fault_plan plan = {.seed = 3, .duplicate_ppm = 100000};
	struct soft_link_stats stats;
	struct soft_fault fault;
	static struct seen seen;

	run(&plan, &fault, &seen, &stats);
	assert_rate(fault.duplicated, PACKETS, 0.1);
	assert_int_equal(with_times(&seen, 2), fault.duplicated);
	assert_int_equal(with_times(&seen, 1), PACKETS - fault.duplicated);
	assert_int_equal(stats.sent_packets, PACKETS + fault.duplicated);
}

static void test_corruption(void **state)
{
	struct soft_fault_plan plan = {.seed = 3, .corrupt_ppm = 100000};
	struct soft_link_stats stats;
	struct soft_fault fault;
	static struct seen seen;
	unsigned int slot_bits;

	run(&plan, &fault, &seen, &stats);
	assert_rate(fault.corrupted, PACKETS, 0.1);
	/* Whose slot is hit goes to another socket; whose masked byte is hit stays right. */
	slot_bits = PACKETS - seen.packets;
	assert_in_range(slot_bits, 0, 10);
	assert_in_range(seen.icrc_bad, fault.corrupted - slot_bits - 10,
			fault.corrupted - slot_bits);
}

static void test_reordering(void **state)
{
	struct soft_fault_plan plan = {.seed = 3, .reorder_ppm = 100000};
	struct soft_link_stats stats;
	struct soft_fault fault;
	static struct seen seen;

	run(&plan, &fault, &seen, &stats);
	assert_rate(fault.reordered, PACKETS, 0.1);
	assert_int_equal(with_times(&seen, 1), PACKETS); /* held back, none lost */
	assert_true(seen.backwards > 0 && seen.backwards <= fault.reordered);
	/* Three packets later, and those that were held meanwhile. */
	assert_in_range(seen.longest_wait, 1, 3 + SOFT_HELD_MAX);
}

static void test_same_seed_same_wire(void **state)
{
	struct soft_fault_plan plan = {.seed = 11,
				       .loss_ppm = 50000,
				       .duplicate_ppm = 50000,
				       .reorder_ppm = 50000,
				       .corrupt_ppm = 50000};
	static struct seen a, b;
	struct soft_link_stats stats;
	struct soft_fault fault;

	run(&plan, &fault, &a, &stats);
	run(&plan, &fault, &b, &stats);
	assert_memory_equal(a.times, b.times, sizeof(a.times));
	assert_int_equal(a.icrc_bad, b.icrc_bad);
	assert_int_equal(a.backwards, b.backwards);
	assert_true(with_times(&a, 0) > 0);
}

static void test_sound_wire(void **state)
{
	struct soft_fault_plan plan = {.seed = 3};
	struct soft_link_stats stats;
	struct soft_fault fault;
	static struct seen seen;

	run(&plan, &fault, &seen, &stats);
	assert_int_equal(seen.packets, PACKETS);
	assert_int_equal(stats.sent_trains, PACKETS / 10); /* no rate: trains stay whole */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_generator),
		cmocka_unit_test(test_edges_of_a_rate),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_same_seed_same_fates),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_duplicates),
		cmocka_unit_test(test_corruption),
		cmocka_unit_test(test_reordering),
		cmocka_unit_test(test_same_seed_same_wire),
		cmocka_unit_test(test_sound_wire),
	};

	lo = net_own() == 0 ? net_ipv4(127, 0, 0, 1)
			    : net_ipv4(127, 78, (uint8_t)(getpid() >> 8), (uint8_t)getpid());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
