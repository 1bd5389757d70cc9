/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two links of one process in a network namespace of its own, over 127.0.0.1 and ::1: what arrives
 * is what was sent, in trains of the kernel's making, with right ICRCs at the guessed places.
 */
#include "unit.h"

#include <poll.h>

#include "base/clock.h"
#include "soft/link/parts.h"
#include "soft/wire/crc32.h"
#include "soft_net.h"

enum { SENDER, RECEIVER, MTU = 4096, WAIT_MS = 2000 };

struct fixture {
	struct soft_link *links[2]; /* of slots 0 and 1 */
	struct soft_path path;
};

static struct fixture fixture;
static bool own_net;
static const char *skipped; /* why something was not tried */

static struct soft_gid lo4, lo6;
static uint8_t memory[1 << 20];

static struct soft_link *open_link(const struct soft_gid *gid, unsigned int slot,
				   struct soft_fault *fault)
{
	struct soft_link_config config = {
		.gids = {*gid}, .num_gids = 1, .slot = slot, .fault = fault};
	struct soft_link *link = NULL;
	struct pp_error err = {0};

	if (soft_link_open(&config, &link, &err) < 0)
		fail_msg("%s", err.text);
	return link;
}

static void start(const struct soft_gid *gid, struct soft_fault *fault)
{
	fixture.links[SENDER] = open_link(gid, SENDER, fault);
	fixture.links[RECEIVER] = open_link(gid, RECEIVER, NULL);
	assert_int_equal(soft_link_path(fixture.links[SENDER], gid, gid, 0x42, &fixture.path), 0);
	for (size_t i = 0; i < sizeof(memory); i++)
		memory[i] = (uint8_t)(i * 31 + (i >> 8) * 7 + (i >> 16));
}

static void stop(void)
{
	soft_link_close(fixture.links[SENDER]);
	soft_link_close(fixture.links[RECEIVER]);
}

/* What the receiver saw. */
struct seen {
	unsigned int packets, wrong, icrc_at_place, icrc_ok;
	uint32_t next_psn;
	size_t next_byte; /* of memory */
	uint8_t traffic_class, hop_limit;
	uint16_t sport, last_place;
	struct soft_gid src, dst;
};

/* Right for the identification of this very place, without solving for another one. */
static bool right_at_place(const struct soft_icrc_flow *flow, const struct soft_datagram *d)
{
	uint8_t icrc[4];
	uint32_t state = soft_icrc_begin(flow, d->place, d->len, d->bytes, SOFT_BTH_BYTES);

	state = soft_crc32(state, d->bytes + SOFT_BTH_BYTES,
			   d->len - SOFT_BTH_BYTES - SOFT_ICRC_BYTES);
	soft_icrc_final(state, icrc);
	return memcmp(icrc, d->bytes + d->len - sizeof(icrc), sizeof(icrc)) == 0;
}

static void see(void *arg, const struct soft_datagram *d)
{
	struct seen *seen = arg;
	struct soft_icrc_flow flow;
	struct soft_packet p;

	seen->packets++;
	seen->traffic_class = d->traffic_class;
	seen->hop_limit = d->hop_limit;
	seen->sport = d->sport;
	seen->src = d->src;
	seen->dst = d->dst;
	seen->last_place = d->place;
	if (soft_packet_decode(d->bytes, d->len, &p) < 0 || p.psn != seen->next_psn ||
	    (p.payload_bytes &&
	     memcmp(p.payload, memory + seen->next_byte, p.payload_bytes) != 0)) {
		seen->wrong++;
		return;
	}
	seen->next_psn++;
	seen->next_byte += p.payload_bytes;
	soft_icrc_flow_init(&flow, &d->src, &d->dst, d->sport);
	seen->icrc_at_place += right_at_place(&flow, d);
	seen->icrc_ok += soft_icrc_check(&flow, d->place, d->bytes, d->len);
}

static void receive(struct seen *seen, unsigned int packets)
{
	int fds[SOFT_LINK_FDS_MAX];
	pp_ns end = pp_clock_monotonic() + WAIT_MS * PP_MILLISECOND;

	assert_int_equal(soft_link_fds(fixture.links[RECEIVER], fds), 1);
	while (seen->packets < packets && pp_clock_monotonic() < end) {
		struct pollfd p = {.fd = fds[0], .events = POLLIN};

		if (poll(&p, 1, WAIT_MS) == 1)
			(void)soft_link_receive(fixture.links[RECEIVER], SIZE_MAX, see, seen);
	}
}

static void assert_all_right(const struct seen *seen, unsigned int packets)
{
	assert_int_equal(seen->packets, packets);
	assert_int_equal(seen->wrong, 0);
	assert_int_equal(seen->icrc_ok, packets);
	assert_int_equal(seen->icrc_at_place, packets);
}

/* Sends the next @bytes of memory as @num pieces. */
static void send_packet(uint8_t opcode, uint32_t psn, size_t at, uint32_t bytes, unsigned int num)
{
	struct soft_packet p = {.opcode = opcode,
				.pkey = 0xffff,
				.dest_qp = RECEIVER << SOFT_SLOT_SHIFT | 7,
				.psn = psn,
				.payload_bytes = bytes};
	struct iovec pieces[SOFT_PIECES_MAX];

	for (unsigned int i = 0; i < num; i++) {
		size_t from = (size_t)bytes * i / num, to = (size_t)bytes * (i + 1) / num;

		pieces[i] = (struct iovec){memory + at + from, to - from};
	}
	soft_link_send(fixture.links[SENDER], &fixture.path, &p, pieces, num);
}

static const struct soft_link_stats *sent(void)
{
	return soft_link_stats(fixture.links[SENDER]);
}

static const struct soft_link_stats *received(void)
{
	return soft_link_stats(fixture.links[RECEIVER]);
}

/* 65507 bytes hold 15 packets of 12 + 4096 + 4 bytes: 60 packets are four trains. */
static void trains_of_full_packets(const struct soft_gid *gid)
{
	struct seen seen = {0};

	start(gid, NULL);
	for (uint32_t i = 0; i < 60; i++)
		send_packet(SOFT_WRITE_MIDDLE, i, i * MTU, MTU, 1);
	soft_link_flush(fixture.links[SENDER]);
	receive(&seen, 60);
	assert_all_right(&seen, 60);
	assert_int_equal(sent()->sent_trains, 4);
	assert_int_equal(sent()->sent_packets, 60);
	assert_int_equal(sent()->sent_bytes, 60 * (12 + MTU + 4));
	assert_int_equal(received()->received_trains, 4);
	assert_int_equal(received()->received_bytes, 60 * (12 + MTU + 4));
	assert_int_equal(seen.last_place, 14);
	assert_true(soft_gid_equal(&seen.src, gid));
	assert_true(soft_gid_equal(&seen.dst, gid));
	assert_int_equal(seen.sport, fixture.path.flow.sport);
	assert_true(seen.sport >= 0xC000);
	stop();
}

static void test_trains_v4(void **state)
{
	trains_of_full_packets(&lo4);
}

static void test_trains_v6(void **state)
{
	if (!own_net)
		skip();
	trains_of_full_packets(&lo6);
}

/* Every length from 0 to 600 and some beyond, in 1 to 33 pieces. */
static void all_sizes(const struct soft_gid *gid)
{
	struct seen seen = {0};
	uint32_t psn = 0;
	size_t at = 0;

	start(gid, NULL);
	for (uint32_t bytes = 0; bytes <= MTU; bytes += bytes < 600 ? 1 : 499) {
		send_packet(bytes ? SOFT_SEND_LAST : SOFT_SEND_ONLY, psn, at, bytes,
			    1 + psn % SOFT_PIECES_MAX);
		at += bytes;
		if (++psn % 50 == 0) {
			soft_link_flush(fixture.links[SENDER]);
			receive(&seen, psn);
		}
	}
	soft_link_flush(fixture.links[SENDER]);
	receive(&seen, psn);
	assert_all_right(&seen, psn);
	assert_int_equal(sent()->send_errors, 0);
	stop();
}

static void test_sizes(void **state)
{
	all_sizes(&lo4);
	if (own_net)
		all_sizes(&lo6);
}

/* A WRITE of 64 KiB: FIRST is 16 bytes longer than MIDDLE and travels alone, LAST ends the train.
 */
static void test_write_is_two_trains(void **state)
{
	struct seen seen = {0};

	start(&lo4, NULL);
	send_packet(SOFT_WRITE_FIRST, 0, 0, MTU, 1);
	for (uint32_t i = 1; i < 15; i++)
		send_packet(SOFT_WRITE_MIDDLE, i, i * MTU, MTU, 1);
	send_packet(SOFT_WRITE_LAST, 15, 15 * MTU, 1000, 1);
	/* Shorter than the train's: nothing joins it any more. */
	send_packet(SOFT_WRITE_LAST, 16, 15 * MTU + 1000, 1000, 1);
	soft_link_flush(fixture.links[SENDER]);
	receive(&seen, 17);
	assert_all_right(&seen, 17);
	assert_int_equal(sent()->sent_trains, 3);
	stop();
}

/* 64 segments a call is what every kernel with UDP_SEGMENT takes. */
static void test_acknowledges_are_trains(void **state)
{
	struct seen seen = {0};

	start(&lo4, NULL);
	for (uint32_t i = 0; i < 130; i++)
		send_packet(SOFT_ACKNOWLEDGE, i, 0, 0, 0);
	soft_link_flush(fixture.links[SENDER]);
	receive(&seen, 130);
	assert_all_right(&seen, 130);
	assert_int_equal(sent()->sent_trains, 3);
	assert_int_equal(received()->received_trains, 3);
	stop();
}

static void class_and_hops(const struct soft_gid *gid)
{
	struct seen seen = {0};

	start(gid, NULL);
	send_packet(SOFT_SEND_ONLY, 0, 0, 8, 1);
	soft_link_flush(fixture.links[SENDER]);
	receive(&seen, 1);
	assert_int_equal(seen.traffic_class, 0);
	assert_int_equal(seen.hop_limit, 64);

	fixture.path.traffic_class = 0x6a; /* DSCP 26, ECT(0) */
	fixture.path.hop_limit = 3;
	for (uint32_t i = 1; i < 11; i++)
		send_packet(SOFT_SEND_ONLY, i, i * 8, 8, 1);
	soft_link_flush(fixture.links[SENDER]);
	receive(&seen, 11);
	assert_all_right(&seen, 11);
	assert_int_equal(seen.traffic_class, 0x6a);
	assert_int_equal(seen.hop_limit, 3);
	assert_int_equal(sent()->sent_trains, 2);
	stop();
}

static void test_class_and_hops(void **state)
{
	class_and_hops(&lo4);
	if (own_net)
		class_and_hops(&lo6);
}

/* The kernel refuses UDP_SEGMENT on a socket that makes no checksums: EINVAL, as EIO elsewhere. */
static void test_refused_trains_go_singly(void **state)
{
	struct soft_sender *sender;
	struct seen seen = {0};
	const int on = 1;

	start(&lo4, NULL);
	sender = &fixture.links[SENDER]->senders[0][fixture.path.sender];
	assert_int_equal(setsockopt(sender->fd, SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on)), 0);
	for (uint32_t i = 0; i < 10; i++)
		send_packet(SOFT_WRITE_MIDDLE, i, i * MTU, MTU, 3);
	soft_link_flush(fixture.links[SENDER]);
	receive(&seen, 10);
	assert_all_right(&seen, 10);
	assert_int_equal(sent()->sent_trains, 10);
	assert_int_equal(sent()->send_errors, 0);
	assert_true(sender->no_trains);

	for (uint32_t i = 10; i < 14; i++)
		send_packet(SOFT_WRITE_MIDDLE, i, i * MTU, MTU, 1);
	soft_link_flush(fixture.links[SENDER]);
	receive(&seen, 14);
	assert_all_right(&seen, 14);
	assert_int_equal(sent()->sent_trains, 14);
	stop();
}

/* Asked for: no packet waits for another, and each reaches the peer's socket by itself. */
static void test_singly(void **state)
{
	struct soft_link_config config = {.gids = {lo4}, .num_gids = 1, .singly = true};
	struct pp_error err = {0};
	struct seen seen = {0};

	(void)state;
	start(&lo4, NULL);
	stop();
	/* Made anew in this order: places in the port's group are given by it. */
	assert_int_equal(soft_link_open(&config, &fixture.links[SENDER], &err), 0);
	fixture.links[RECEIVER] = open_link(&lo4, RECEIVER, NULL);
	assert_int_equal(soft_link_path(fixture.links[SENDER], &lo4, &lo4, 7, &fixture.path), 0);
	for (uint32_t i = 0; i < 20; i++)
		send_packet(SOFT_WRITE_MIDDLE, i, i * MTU, MTU, 1);
	soft_link_flush(fixture.links[SENDER]);
	receive(&seen, 20);
	assert_all_right(&seen, 20);
	assert_int_equal(seen.last_place, 0);
	assert_int_equal(received()->received_trains, 20);
	stop();
}

/* One path cannot be sent along: counted and lost, and other paths are none the worse. */
static void test_refused_packet_is_lost(void **state)
{
	struct seen seen = {0};
	struct soft_path good;
	struct soft_gid nowhere = net_ipv4(255, 255, 255, 255);

	start(&lo4, NULL);
	good = fixture.path;
	soft_icrc_flow_init(&fixture.path.flow, &lo4, &nowhere, good.flow.sport);
	send_packet(SOFT_SEND_ONLY, 9, 0, 8, 1);
	fixture.path = good;
	send_packet(SOFT_SEND_ONLY, 0, 0, 8, 1);
	soft_link_flush(fixture.links[SENDER]);
	receive(&seen, 1);
	assert_all_right(&seen, 1);
	assert_int_equal(sent()->send_errors, 1);
	assert_int_equal(sent()->last_send_errno, EACCES); /* broadcast without SO_BROADCAST */
	stop();
}

static void test_budget(void **state)
{
	struct seen seen = {0};
	unsigned int n;

	start(&lo4, NULL);
	for (uint32_t i = 0; i < 60; i++)
		send_packet(SOFT_WRITE_MIDDLE, i, i * MTU, MTU, 1);
	soft_link_flush(fixture.links[SENDER]);
	n = soft_link_receive(fixture.links[RECEIVER], 1, see, &seen);
	assert_int_equal(n, 15); /* one train, and no more */
	receive(&seen, 60);
	assert_all_right(&seen, 60);
	/* Nothing waits: returns at once. */
	assert_int_equal(soft_link_receive(fixture.links[RECEIVER], SIZE_MAX, see, &seen), 0);
	stop();
}

static void test_path(void **state)
{
	struct soft_gid other = net_ipv4(192, 0, 2, 1);
	struct soft_path path;
	bool ports[4] = {0};

	start(&lo4, NULL);
	assert_int_equal(soft_link_path(fixture.links[SENDER], &other, &lo4, 1, &path),
			 -EADDRNOTAVAIL);
	assert_int_equal(soft_link_path(fixture.links[SENDER], &lo4, &lo6, 1, &path),
			 -EAFNOSUPPORT);
	for (uint32_t qpn = 0; qpn < 64; qpn++) {
		assert_int_equal(soft_link_path(fixture.links[SENDER], &lo4, &lo4, qpn, &path), 0);
		assert_true(path.sender < 4);
		ports[path.sender] = true;
	}
	for (int i = 0; i < 4; i++)
		assert_true(ports[i]);
	assert_true(soft_link_receive_buffer(fixture.links[SENDER]) >= 100000);
	stop();
}

/* Another user's port: a reason that names what can be done, not only an errno. */
static void test_another_user(void **state)
{
	struct soft_link *link = NULL;
	struct pp_error err = {0};
	int status;
	pid_t pid;

	if (geteuid() != 0) {
		skipped = "another user's port: needs root";
		skip();
	}
	link = open_link(&lo4, 0, NULL);
	pid = fork();
	if (pid == 0) {
		struct soft_link_config config = {.gids = {lo4}, .num_gids = 1};

		if (setresuid(65534, 65534, 65534) < 0)
			_exit(2); /* nobody has no number in this user namespace */
		_exit(soft_link_open(&config, &link, &err) == -EADDRINUSE &&
				      strstr(err.text, "another user")
			      ? 0
			      : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	soft_link_close(link);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 2) {
		skipped = "another user's port: nobody has no number in this user namespace";
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_no_such_address(void **state)
{
	struct soft_link_config config = {.gids = {net_ipv4(192, 0, 2, 1)}, .num_gids = 1};
	struct soft_link *link = NULL;
	struct pp_error err = {0};

	assert_int_equal(soft_link_open(&config, &link, &err), -EADDRNOTAVAIL);
	assert_non_null(strstr(err.text, "192.0.2.1"));
	config.num_gids = 0;
	assert_int_equal(soft_link_open(&config, &link, &err), -EINVAL);
	config.num_gids = SOFT_LINK_GIDS_MAX + 1;
	assert_int_equal(soft_link_open(&config, &link, &err), -EINVAL);
	assert_null(link);
	soft_link_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trains_v4),
		cmocka_unit_test(test_trains_v6),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_write_is_two_trains),
		cmocka_unit_test(test_acknowledges_are_trains),
		cmocka_unit_test(test_class_and_hops),
		cmocka_unit_test(test_refused_trains_go_singly),
		cmocka_unit_test(test_singly),
		cmocka_unit_test(test_refused_packet_is_lost),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_path),
		cmocka_unit_test(test_another_user),
		cmocka_unit_test(test_no_such_address),
	};

	int rc;

	own_net = net_own() == 0;
	if (!own_net)
		skipped = "IPv6: no network namespace may be made";
	lo6.raw[15] = 1;
	/* Without a namespace: an address that no other program of this machine is likely to use.
	 */
	lo4 = own_net ? net_ipv4(127, 0, 0, 1)
		      : net_ipv4(127, 77, (uint8_t)(getpid() >> 8), (uint8_t)getpid());
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	if (rc == 0 && skipped) {
		printf("skipped: %s\n", skipped);
		return 77;
	}
	return rc;
}
