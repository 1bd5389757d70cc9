/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that share UDP 4791 at one address: each gets what is for its slot, steered by the
 * kernel once they know each other, over a hop until then; whoever dies or sleeps.
 */
#include "unit.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "soft/link/parts.h"
#include "soft/link/probe.h"
#include "soft_net.h"

enum {
	MEMBERS = 4,
	TRAINS = 6,
	TRAIN = 10, /* packets */
	PAYLOAD = 1000,
	WAIT_MS = 10000,
	ROUNDS_TO_SETTLE = 40,
	FLOWS = 15, /* fewer than make somebody ask who hands them on */
};

/* What a process tells about itself. */
struct member {
	pid_t pid;	   /* 0: none */
	_Atomic int slot;  /* -1: not ready */
	_Atomic bool held; /* ready, and does nothing yet */
	_Atomic uint64_t right, wrong, handed_on;
};

static struct member *members; /* shared memory; the last is this process */
static struct member *sleeper; /* stopped, gets nothing */
static struct soft_slot *slot;
static struct soft_link *link_;
static struct soft_gid lo;
static uint32_t psn;

static void see(void *arg, const struct soft_datagram *d)
{
	struct member *m = arg;
	struct soft_icrc_flow flow;
	struct soft_packet p;

	soft_icrc_flow_init(&flow, &d->src, &d->dst, d->sport);
	if (soft_packet_decode(d->bytes, d->len, &p) == 0 && p.payload_bytes == PAYLOAD &&
	    (int)(p.dest_qp >> SOFT_SLOT_SHIFT) == m->slot && p.payload[PAYLOAD - 1] == 0xa5 &&
	    soft_gid_equal(&d->dst, &lo) && soft_icrc_check(&flow, d->place, d->bytes, d->len))
		m->right++;
	else
		m->wrong++;
}

/* One turn of an engine, at most @wait_ms long. */
static void turn(struct member *m, int wait_ms)
{
	int fds[SOFT_LINK_FDS_MAX];
	struct pollfd p[2] = {{.fd = soft_slot_fd(slot), .events = POLLIN}, {.events = POLLIN}};

	(void)soft_link_fds(link_, fds);
	p[1].fd = fds[0];
	(void)poll(p, 2, wait_ms);
	(void)soft_link_receive(link_, SIZE_MAX, see, m);
	if (soft_slot_receive(slot, SIZE_MAX, see, m))
		(void)soft_link_receive(link_, SIZE_MAX, see, m);
	m->handed_on = soft_link_stats(link_)->handed_on;
}

static int join(struct member *m)
{
	struct soft_link_config config = {.gids = {lo}, .num_gids = 1};
	struct pp_error err = {0};
	int rc = slot ? 0 : soft_slot_take(&slot, &err);

	if (rc < 0)
		return rc;
	config.slot = soft_slot_number(slot);
	config.handover = slot;
	rc = soft_link_open(&config, &link_, &err);
	if (rc == 0)
		m->slot = (int)config.slot;
	return rc;
}

static void start_held(struct member *m, bool held)
{
	pp_ns end = pp_clock_monotonic() + WAIT_MS * PP_MILLISECOND;
	pid_t pid;

	memset(m, 0, sizeof(*m));
	m->slot = -1;
	m->held = held;
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		/* A test that fails must not leave it behind. */
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		slot = NULL; /* the parent's */
		if (join(m) < 0)
			_exit(1);
		while (m->held)
			(void)sched_yield();
		for (;;)
			turn(m, 100);
	}
	m->pid = pid;
	while (m->slot < 0 && pp_clock_monotonic() < end)
		if (link_)
			turn(&members[MEMBERS - 1], 1);
		else
			(void)sched_yield();
	assert_true(m->slot >= 0);
}

static void start(struct member *m)
{
	start_held(m, false);
}

static void end_process(struct member *m)
{
	int status;

	assert_true(m->pid > 0);
	assert_int_equal(kill(m->pid, SIGKILL), 0);
	assert_int_equal(waitpid(m->pid, &status, 0), m->pid);
	m->pid = 0;
}

static void send_train(unsigned int to)
{
	static uint8_t payload[PAYLOAD] = {[PAYLOAD - 1] = 0xa5};
	struct soft_path path;

	assert_int_equal(soft_link_path(link_, &lo, &lo, psn, &path), 0);
	for (int i = 0; i < TRAIN; i++) {
		struct soft_packet p = {.opcode = SOFT_SEND_ONLY,
					.pkey = 0xffff,
					.dest_qp = to << SOFT_SLOT_SHIFT | 0x11,
					.psn = psn++ & 0xffffff,
					.payload_bytes = PAYLOAD};
		struct iovec piece = {payload, PAYLOAD};

		soft_link_send(link_, &path, &p, &piece, 1);
	}
	soft_link_flush(link_);
}

/* Sends trains to every running process, one at a time, and waits for each to arrive. */
static void one_round(void)
{
	for (int i = 0; i < MEMBERS; i++) {
		struct member *m = &members[i];
		uint64_t want = m->right;

		for (int t = 0; m->pid && m != sleeper && t < TRAINS; t++) {
			pp_ns end = pp_clock_monotonic() + WAIT_MS * PP_MILLISECOND;

			send_train((unsigned int)m->slot);
			want += TRAIN;
			while (m->right < want && pp_clock_monotonic() < end)
				turn(&members[MEMBERS - 1], 1);
			assert_int_equal(m->right, want);
			assert_int_equal(m->wrong, 0);
		}
	}
}

static uint64_t handed_on(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < MEMBERS; i++)
		sum += members[i].pid ? members[i].handed_on : 0;
	return sum;
}

/* Rounds until one comes through without a hop: everybody's place is known again. */
static void settle(void)
{
	for (int i = 0; i < ROUNDS_TO_SETTLE; i++) {
		uint64_t before;

		/* Asking again is not done at once. */
		for (int ms = 0; ms < 30; ms += 3)
			turn(&members[MEMBERS - 1], 3);
		before = handed_on();
		one_round();
		if (handed_on() == before)
			return;
	}
	fail_msg("datagrams are still handed on");
}

/* Three processes bind before this one does. */
static int set_up(void **state)
{
	for (int i = 0; i < MEMBERS - 1; i++)
		start(&members[i]);
	memset(&members[MEMBERS - 1], 0, sizeof(members[0]));
	members[MEMBERS - 1].pid = getpid();
	return join(&members[MEMBERS - 1]);
}

static int tear_down(void **state)
{
	for (int i = 0; i < MEMBERS - 1; i++)
		if (members[i].pid)
			end_process(&members[i]);
	soft_link_close(link_);
	soft_slot_free(slot);
	link_ = NULL;
	slot = NULL;
	sleeper = NULL;
	return 0;
}

static void test_each_gets_its_own(void **state)
{
	one_round();
	settle();
}

/* Who bound first has the group's place 0; the last one moves there. */
static void test_first_dies(void **state)
{
	settle();
	end_process(&members[0]);
	one_round();
	settle();
	start(&members[0]); /* takes the slot again, and the last place */
	one_round();
	settle();
}

static void test_one_is_left(void **state)
{
	end_process(&members[1]);
	end_process(&members[0]);
	end_process(&members[2]);
	one_round();
	settle();
}

/* A process that is stopped answers no probe, and holds up nobody who joins. */
static void test_one_sleeps(void **state)
{
	end_process(&members[0]);
	settle();
	assert_int_equal(kill(members[1].pid, SIGSTOP), 0);
	sleeper = &members[1];
	start(&members[0]);
	one_round();
	assert_int_equal(kill(members[1].pid, SIGCONT), 0);
	sleeper = NULL;
	one_round();
	settle();
}

/* A datagram for this process from each of FLOWS ports, so that the kernel's hash meets everybody.
 */
static void send_to_self(const int *fds)
{
	uint8_t bytes[SOFT_BTH_BYTES + SOFT_ICRC_BYTES] = {
		SOFT_SEND_ONLY, 0, 0xff, 0xff, [SOFT_SLOT_AT] = (uint8_t)members[MEMBERS - 1].slot};
	union soft_sockaddr at;
	socklen_t len = soft_sockaddr_make(&lo, SOFT_UDP_PORT, &at);

	for (int i = 0; i < FLOWS; i++)
		assert_int_equal(sendto(fds[i], bytes, sizeof(bytes), 0, &at.any, len),
				 sizeof(bytes));
}

/*
 * Two that join at once, the second with the lower slot: each has asked before the other answers.
 * What either attaches in the end must be right at once: one_round() sends less than makes anybody
 * ask again.
 */
static void test_two_at_once(void **state)
{
	struct member *other = &members[0], *me = &members[MEMBERS - 1];
	struct pp_error err = {0};
	uint64_t before;

	memset(members, 0, MEMBERS * sizeof(*members));
	assert_int_equal(soft_slot_take(&slot, &err), 0);
	start_held(other, true);
	me->pid = getpid();
	assert_int_equal(join(me), 0);
	assert_true(me->slot < other->slot);
	other->held = false;
	for (int ms = 0; ms < 150; ms += 3)
		turn(me, 3);
	before = handed_on();
	one_round();
	assert_int_equal(handed_on(), before);
}

/*
 * Who moves in the group while another is stopped: what the kernel's hash brings to the stopped one
 * is lost and nobody tells. Who misses an answer asks, and then gets all.
 */
static void test_doubt(void **state)
{
	struct member *me = &members[MEMBERS - 1];
	int fds[FLOWS];
	uint64_t before;

	settle();
	for (int i = 0; i < FLOWS; i++) {
		fds[i] = socket(soft_gid_is_ipv4(&lo) ? AF_INET : AF_INET6,
				SOCK_DGRAM | SOCK_CLOEXEC, 0);
		assert_true(fds[i] >= 0);
	}
	assert_int_equal(kill(members[1].pid, SIGSTOP), 0);
	end_process(&members[0]);
	for (int ms = 0; ms < 300; ms += 3)
		turn(me, 3);
	soft_link_doubt(link_);
	for (int ms = 0; ms < 150; ms += 3)
		turn(me, 3);
	before = me->wrong;
	send_to_self(fds);
	for (int ms = 0; ms < 300 && me->wrong < before + FLOWS; ms += 3)
		turn(me, 3);
	assert_int_equal(me->wrong, before + FLOWS);
	for (int i = 0; i < FLOWS; i++)
		close(fds[i]);
	assert_int_equal(kill(members[1].pid, SIGCONT), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_each_gets_its_own, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_first_dies, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_one_is_left, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_one_sleeps, set_up, tear_down),
		cmocka_unit_test_teardown(test_two_at_once, tear_down),
		cmocka_unit_test_setup_teardown(test_doubt, set_up, tear_down),
	};
	int rc;

	if (net_own() < 0) {
		printf("skipped: no network namespace may be made, and others may use UDP 4791\n");
		return 77;
	}
	members = mmap(NULL, MEMBERS * sizeof(*members), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (members == MAP_FAILED)
		return 1;
	lo = net_ipv4(127, 0, 0, 1);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	if (rc)
		return rc;
	memset(&lo, 0, sizeof(lo));
	lo.raw[15] = 1;
	return cmocka_run_group_tests_name("ipv6", tests, NULL, NULL);
}
