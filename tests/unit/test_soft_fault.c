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
	unsigned int packets, icrc_bad, backwards, longest_wait, changed;
	bool compares; /* all of them carry @sent */
	uint32_t last_psn;
	uint8_t times[PACKETS];
};

enum { PAYLOAD = 1000, BTH = 12 };
static const uint8_t sent[PAYLOAD] = {1, 2, 3};

static unsigned int bits_changed(const uint8_t *payload)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < PAYLOAD; i++)
		n += (unsigned int)__builtin_popcount(payload[i] ^ sent[i]);
	return n;
}

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
	if (seen->compares) {
		assert_in_range(bits_changed(d->bytes + BTH), 0, 1);
		seen->changed += bits_changed(d->bytes + BTH);
	}
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
static void carry(struct soft_fault *fault, struct seen *seen, struct soft_link_stats *stats)
{
	struct soft_link *sender, *receiver;
	struct soft_path path;
	uint8_t payload[PAYLOAD];
	int fds[SOFT_LINK_FDS_MAX];
	struct pollfd p = {.events = POLLIN};

	*seen = (struct seen){.compares = true};
	memcpy(payload, sent, sizeof(payload));
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

static void run(const struct soft_fault_plan *plan, struct soft_fault *fault, struct seen *seen,
		struct soft_link_stats *stats)
{
	soft_fault_init(fault, plan);
	carry(fault, seen, stats);
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

/* The checksum is right, the payload is not: nobody but who compares it can know. */
static void test_spoiled(void **state)
{
	struct soft_fault_plan plan = {.seed = 3};
	struct soft_link_stats stats;
	struct soft_fault_spec spec;
	struct soft_fault fault;
	struct pp_error err;
	static struct seen seen;

	soft_fault_init(&fault, &plan);
	assert_int_equal(soft_fault_spec_parse("spoil=send@10%", &spec, &err), 0);
	assert_int_equal(soft_fault_apply(&fault, &spec, &err), 0);
	carry(&fault, &seen, &stats);
	assert_rate(fault.spoiled, PACKETS, 0.1);
	assert_int_equal(seen.icrc_bad, 0);
	assert_int_equal(seen.changed, fault.spoiled);
	assert_int_equal(with_times(&seen, 1), PACKETS);
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

static void set(struct soft_fault *fault, const char *text)
{
	struct soft_fault_spec spec;
	struct pp_error err = {0};

	if (soft_fault_spec_parse(text, &spec, &err) || soft_fault_apply(fault, &spec, &err))
		fail_msg("%s: %s", text, err.text);
}

static struct soft_fault_fate draw(struct soft_fault *fault, uint8_t opcode, uint8_t syndrome,
				   uint32_t psn)
{
	struct soft_fault_packet p = {&nobody, &nobody, psn, opcode, syndrome};

	return soft_fault_draw(fault, &p);
}

/* The second acknowledge, the third packet of any kind, and nothing else; it is written down. */
static void test_named_packets(void **state)
{
	struct soft_fault_plan plan = {0};
	struct soft_fault f;

	soft_fault_init(&f, &plan);
	set(&f, "loss=ack@2");
	set(&f, "duplicate=@3");
	assert_false(draw(&f, SOFT_ACKNOWLEDGE, 0x1f, 1).lost);
	assert_false(draw(&f, SOFT_ACKNOWLEDGE, 0x60, 2).lost); /* a NAK */
	assert_true(draw(&f, SOFT_SEND_ONLY, 0, 3).duplicated);
	assert_true(draw(&f, SOFT_ACKNOWLEDGE, 0x1f, 4).lost);
	assert_false(draw(&f, SOFT_ACKNOWLEDGE, 0x1f, 5).lost);
	assert_int_equal(f.logged, 2);
	assert_true(f.log[0].packet == 3 && f.log[0].noun == SOFT_FAULT_DUPLICATE);
	assert_true(f.log[1].packet == 4 && f.log[1].psn == 4 && f.log[1].opcode == 0x11 &&
		    f.log[1].noun == SOFT_FAULT_LOSS);
	assert_int_equal(f.set.rules[0].seen, 3);
	assert_int_equal(f.set.rules[0].fired, 1);
	set(&f, "loss=off");
	set(&f, "duplicate=off");
	assert_false(soft_fault_active(&f));
}

static void test_replay(void **state)
{
	static const char *const faults[] = {"loss=2%", "reorder=write|send@5%", "corrupt=ack@3%",
					     "delay=1ms~1ms@10%", "ecn=1%"};
	uint64_t hashes[4];
	struct soft_fault_plan plan = {.seed = 99};
	struct soft_fault f;

	soft_fault_init(&f, &plan);
	for (unsigned int i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		set(&f, faults[i]);
	for (unsigned int k = 0; k < 4; k++) {
		set(&f, k == 2 ? "seed=100" : "seed=99");
		assert_int_equal(f.logged, 0);
		for (unsigned int i = 0; i < 5000; i++)
			(void)draw(&f, (uint8_t)(i % 3 ? SOFT_WRITE_MIDDLE : SOFT_ACKNOWLEDGE), 0,
				   i);
		assert_in_range(f.logged, 100, 5000);
		hashes[k] = f.hash;
	}
	assert_true(hashes[0] == hashes[1] && hashes[0] == hashes[3]);
	assert_true(hashes[0] != hashes[2]);
}

static void test_partitions(void **state)
{
	struct soft_gid a = net_ipv4(10, 9, 0, 1), b = net_ipv4(10, 9, 0, 2),
			c = net_ipv4(10, 9, 0, 3);
	struct soft_fault_packet to_b = {&a, &b, 0, SOFT_SEND_ONLY, 0};
	struct soft_fault_packet to_c = {&a, &c, 0, SOFT_SEND_ONLY, 0};
	struct soft_fault_plan plan = {0};
	struct soft_fault f;

	soft_fault_init(&f, &plan);
	set(&f, "partition_out=10.9.0.2");
	assert_true(soft_fault_draw(&f, &to_b).lost && !soft_fault_draw(&f, &to_c).lost);
	assert_false(soft_fault_refuses(&f, &b, &a));
	set(&f, "partition_in=10.9.0.3");
	assert_true(soft_fault_refuses(&f, &c, &a) && !soft_fault_refuses(&f, &b, &a));
	assert_false(soft_fault_draw(&f, &to_c).lost);
	set(&f, "partition=all");
	assert_true(soft_fault_refuses(&f, &b, &a) && soft_fault_draw(&f, &to_c).lost);
	soft_fault_clear(&f);
	assert_false(soft_fault_active(&f));
	soft_fault_set_dead(&f, &a, true);
	assert_true(soft_fault_draw(&f, &to_b).lost && soft_fault_refuses(&f, &b, &a));
	assert_false(soft_fault_refuses(&f, &b, &c));
	soft_fault_set_dead(&f, &a, false);
	soft_fault_set_port(&f, true);
	assert_true(soft_fault_draw(&f, &to_b).lost && soft_fault_refuses(&f, &b, &c));
	soft_fault_set_port(&f, false);
	assert_false(soft_fault_active(&f));
}

static void give(struct soft_link *link, const struct soft_path *path, uint32_t psn)
{
	struct soft_packet packet = {
		.opcode = SOFT_SEND_ONLY, .pkey = 0xffff, .dest_qp = 1 << 16, .psn = psn};

	soft_link_send(link, path, &packet, NULL, 0);
}

/* Nothing arrives before its time, all does after it, in its order; and what is under way when the
 * fault ends arrives at once. */
static void test_delays(void **state)
{
	const pp_ns delay = 30 * PP_MILLISECOND;
	struct soft_fault_plan plan = {.seed = 5};
	struct soft_link *sender, *receiver;
	static struct seen seen;
	struct soft_fault fault;
	struct soft_path path;
	pp_ns began, due;

	memset(&seen, 0, sizeof(seen));
	soft_fault_init(&fault, &plan);
	set(&fault, "delay=30ms~10ms");
	sender = open_link(0, &fault);
	receiver = open_link(1, NULL);
	assert_int_equal(soft_link_path(sender, &lo, &lo, 1, &path), 0);
	began = pp_clock_monotonic();
	for (uint32_t psn = 0; psn < 40; psn++)
		give(sender, &path, psn);
	due = soft_link_flush(sender);
	assert_true(due >= began + delay);
	while ((due = soft_link_flush(sender)) != 0) {
		(void)soft_link_receive(receiver, SIZE_MAX, see, &seen);
		assert_true(!seen.packets || pp_clock_monotonic() >= began + delay);
		(void)poll(NULL, 0, 1);
	}
	for (uint32_t psn = 40; psn < 50; psn++)
		give(sender, &path, psn);
	soft_fault_clear(&fault);
	assert_int_equal(soft_link_set_fault(sender, &fault), 0);
	assert_true(soft_link_flush(sender) == 0);
	for (int i = 0; i < WAIT_MS && seen.packets < 50; i++) {
		(void)soft_link_receive(receiver, SIZE_MAX, see, &seen);
		(void)poll(NULL, 0, 1);
	}
	assert_int_equal(seen.packets, 50);
	assert_int_equal(seen.backwards, 0);
	assert_int_equal(fault.delayed, 50);
	soft_link_close(sender);
	soft_link_close(receiver);
}

/* A queue before a slow wire holds so much, and no more. */
static void test_bandwidth(void **state)
{
	struct soft_fault_plan plan = {0};
	struct soft_link *sender;
	struct soft_fault fault;
	struct soft_path path;
	uint8_t payload[4000] = {0};
	struct soft_packet packet = {.opcode = SOFT_SEND_ONLY,
				     .pkey = 0xffff,
				     .dest_qp = 1 << 16,
				     .payload_bytes = sizeof(payload)};
	struct iovec piece = {payload, sizeof(payload)};
	pp_ns due, began, gone;

	soft_fault_init(&fault, &plan);
	set(&fault, "bandwidth=1M");
	sender = open_link(0, &fault);
	assert_int_equal(soft_link_path(sender, &lo, &lo, 1, &path), 0);
	began = pp_clock_monotonic();
	for (int i = 0; i < 200; i++)
		soft_link_send(sender, &path, &packet, &piece, 1);
	/* 256 KiB of 4 KiB packets wait, 4058 bytes each with all around them; one leaves in 32 ms.
	 */
	gone = (pp_clock_monotonic() - began) / (32 * PP_MILLISECOND);
	assert_in_range(fault.lost, gone < 200 - 66 ? 200 - 66 - gone : 0, 200 - 64);
	due = soft_link_flush(sender);
	assert_true(due > 0);
	soft_link_close(sender); /* with all that waits */
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
		cmocka_unit_test(test_generator),     cmocka_unit_test(test_edges_of_a_rate),
		cmocka_unit_test(test_rates),	      cmocka_unit_test(test_same_seed_same_fates),
		cmocka_unit_test(test_loss),	      cmocka_unit_test(test_duplicates),
		cmocka_unit_test(test_corruption),    cmocka_unit_test(test_spoiled),
		cmocka_unit_test(test_reordering),    cmocka_unit_test(test_same_seed_same_wire),
		cmocka_unit_test(test_named_packets), cmocka_unit_test(test_replay),
		cmocka_unit_test(test_partitions),    cmocka_unit_test(test_delays),
		cmocka_unit_test(test_bandwidth),     cmocka_unit_test(test_sound_wire),
	};

	lo = net_own() == 0 ? net_ipv4(127, 0, 0, 1)
			    : net_ipv4(127, 78, (uint8_t)(getpid() >> 8), (uint8_t)getpid());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
