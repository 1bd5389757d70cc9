/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine over real sockets: queue pairs of one process and of two, a caller that polls and one
 * that never does, a fork, a peer that dies.
 */
#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "soft/qp/status.h"
#include "soft_end.h"
#include "soft_net.h"

static void write_and_read(const char *v4, bool poll_engine)
{
	struct end a, b;

	end_open(&a, v4, SOFT_RC);
	end_open(&b, v4, SOFT_RC);
	end_connect(&a, b.qp.num, PATIENT);
	end_connect(&b, a.qp.num, PATIENT);
	fill(a.buffer, BUFFER, 1);
	post(&a, SOFT_WR_WRITE, b.region.iova, b.region.key, 0, BUFFER);
	await(&a, 0, poll_engine);
	assert_memory_equal(a.buffer, b.buffer, BUFFER);
	fill(b.buffer, BUFFER, 2);
	post(&a, SOFT_WR_READ, b.region.iova + 1, b.region.key, 3, BUFFER - 5);
	await(&a, 0, poll_engine);
	assert_memory_equal(a.buffer + 3, b.buffer + 1, BUFFER - 5);
	end_close(&a);
	end_close(&b);
}

static void polled(void **state)
{
	(void)state;
	write_and_read("127.0.0.1", true);
}

static void polled_ipv6(void **state)
{
	(void)state;
	write_and_read(NULL, true);
}

static void never_polled(void **state)
{
	(void)state;
	write_and_read("127.0.0.1", false);
}

static void to_itself(void **state)
{
	struct end a;

	(void)state;
	end_open(&a, "127.0.0.1", SOFT_RC);
	end_connect(&a, a.qp.num, PATIENT);
	fill(a.buffer, BUFFER / 2, 3);
	post(&a, SOFT_WR_WRITE, a.region.iova + BUFFER / 2, a.region.key, 0, BUFFER / 2);
	await(&a, 0, true);
	assert_memory_equal(a.buffer, a.buffer + BUFFER / 2, BUFFER / 2);
	end_close(&a);
}

struct talk {
	_Atomic uint32_t qpn, key, ready;
	_Atomic uint64_t iova;
};

/* A peer in another process, forked before any engine was made here. */
static pid_t peer_start(struct talk *to_child, struct talk *to_parent)
{
	pid_t child = fork();
	struct end b;

	assert_true(child >= 0);
	if (child)
		return child;
	end_open(&b, "127.0.0.1", SOFT_RC);
	to_parent->key = b.region.key;
	to_parent->iova = b.region.iova;
	to_parent->qpn = b.qp.num;
	while (!to_child->qpn)
		poll(NULL, 0, 1);
	end_connect(&b, to_child->qpn, PATIENT);
	to_parent->ready = 1;
	while (!to_child->ready)
		poll(NULL, 0, 1); /* never polls the engine */
	fill(b.buffer + BUFFER / 2, BUFFER / 2, 7);
	_exit(memcmp(b.buffer, b.buffer + BUFFER / 2, BUFFER / 2) ? 1 : 0);
}

static void two_processes(void **state)
{
	struct talk *talk =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child = peer_start(&talk[0], &talk[1]);
	struct end a;
	int status;

	(void)state;
	end_open(&a, "127.0.0.1", SOFT_RC);
	while (!talk[1].qpn)
		poll(NULL, 0, 1);
	end_connect(&a, talk[1].qpn, PATIENT);
	/* Different processes, different slots: the number's top bits tell. */
	assert_int_not_equal(a.qp.num >> 16, talk[1].qpn >> 16);
	talk[0].qpn = a.qp.num;
	while (!talk[1].ready)
		poll(NULL, 0, 1);
	fill(a.buffer, BUFFER / 2, 7);
	post(&a, SOFT_WR_WRITE, talk[1].iova, talk[1].key, 0, BUFFER / 2);
	await(&a, 0, true);
	talk[0].ready = 1;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	end_close(&a);
	munmap(talk, 4096);
}

static void dead_peer(void **state)
{
	struct talk *talk =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child = peer_start(&talk[0], &talk[1]);
	struct end a;
	pp_ns start, took;

	(void)state;
	end_open(&a, "127.0.0.1", SOFT_RC);
	while (!talk[1].qpn)
		poll(NULL, 0, 1);
	end_connect(&a, talk[1].qpn, 14);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	start = pp_clock_monotonic();
	post(&a, SOFT_WR_WRITE, talk[1].iova, talk[1].key, 0, 4096);
	await(&a, SOFT_WC_RETRY_EXC_ERR, true);
	took = pp_clock_monotonic() - start;
	/* The standard's 4.096 us * 2^14 = 67.1 ms, (2 retries + 1) times; a later end is the
	 * machine's. */
	assert_true(took >= 3 * 67 * PP_MILLISECOND);
	assert_int_equal(a.qp.state, SOFT_QP_ERR);
	end_close(&a);
	munmap(talk, 4096);
}

static void forked(void **state)
{
	struct end a, b;
	pid_t child;
	int status;

	(void)state;
	end_open(&a, "127.0.0.1", SOFT_RC);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		struct pp_error err;

		/* What was inherited answers; what is made anew works. */
		if (!soft_engine_inherited(a.engine) ||
		    soft_engine_add_qp(a.engine, a.wire, &a.qp, &err) != -EIO)
			_exit(1);
		write_and_read("127.0.0.1", true);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	/* And the parent's goes on. */
	end_open(&b, "127.0.0.1", SOFT_RC);
	end_connect(&a, b.qp.num, PATIENT);
	end_connect(&b, a.qp.num, PATIENT);
	post(&a, SOFT_WR_WRITE, b.region.iova, b.region.key, 0, 4096);
	await(&a, 0, true);
	end_close(&a);
	end_close(&b);
}

/* Long enough for the thread to have gone to sleep on the sockets. */
static void let_sleep(void)
{
	poll(NULL, 0, 50);
}

/* More datagrams than one turn sends, and nothing comes back for them: the thread goes on. */
static void left_for_the_thread(void **state)
{
	struct soft_gid nobody;
	struct end e;

	(void)state;
	end_open(&e, "127.0.0.1", SOFT_UD);
	nobody = e.gid;
	nobody.raw[15] = 2; /* what came to ourselves would wake the thread */
	soft_engine_lock(e.engine);
	e.qp.attr = (struct soft_qp_attr){.mtu = 4096, .pkey = 0xffff};
	soft_qp_to_rtr(&e.qp);
	soft_qp_to_rts(&e.qp);
	soft_engine_unlock(e.engine);
	let_sleep();
	soft_engine_lock(e.engine);
	for (unsigned int i = 0; i < DEPTH; i++) {
		struct soft_send_wr *wr = stage(&e, SOFT_WR_SEND, 0, 4096);

		wr->flags = i + 1 < DEPTH ? 0 : SOFT_WR_SIGNALED;
		wr->ud.qkey = 1;
		wr->ud.remote_qpn = e.qp.num ^ 1;
		assert_int_equal(
			soft_engine_path(e.engine, e.wire, &e.gid, &nobody, 0, &wr->ud.path), 0);
	}
	assert_true(DEPTH * 4096 > SOFT_PUMP_BUDGET);
	soft_engine_kick(e.engine, &e.qp);
	soft_engine_unlock(e.engine);
	await(&e, 0, false);
	end_close(&e);
}

/* A caller's turn holds an acknowledge back for a reply, and the caller never comes again. */
static void held_and_left(void **state)
{
	struct end a, b;
	bool pending = true;

	(void)state;
	end_open(&a, "127.0.0.1", SOFT_RC);
	end_open(&b, "127.0.0.1", SOFT_RC);
	end_connect(&a, b.qp.num, PATIENT);
	end_connect(&b, a.qp.num, PATIENT);
	let_sleep();
	soft_engine_lock(b.engine);
	b.qp.replies = SOFT_REPLIES;
	b.qp.resp.ack_pending = true;
	soft_engine_ready(b.engine, &b.qp);
	(void)soft_engine_turn(b.engine);
	assert_true(b.qp.resp.ack_pending);
	soft_engine_unlock(b.engine);
	for (int i = 0; i < 2000 && pending; i++) {
		poll(NULL, 0, 1);
		soft_engine_lock(b.engine);
		pending = b.qp.resp.ack_pending;
		soft_engine_unlock(b.engine);
	}
	assert_false(pending);
	end_close(&a);
	end_close(&b);
}

/* Another address while something is under way (SQD): both windows count what is theirs. */
static void moved_under_way(void **state)
{
	struct soft_gid elsewhere;
	struct end a, b;

	(void)state;
	end_open(&a, "127.0.0.1", SOFT_RC);
	end_open(&b, "127.0.0.1", SOFT_RC);
	end_connect(&a, b.qp.num, PATIENT);
	end_connect(&b, a.qp.num, PATIENT);
	elsewhere = a.gid;
	elsewhere.raw[15] = 2;
	soft_engine_lock(a.engine);
	assert_ptr_equal(a.qp.window, b.qp.window);
	a.qp.req.bytes_out = 1000;
	soft_window_sent(a.qp.window, 1000);
	assert_int_equal(soft_engine_connect(a.engine, &a.qp, &a.gid, &elsewhere, 0, 64, 0), 0);
	assert_int_equal(b.qp.window->in_flight, 0);
	assert_int_equal(a.qp.window->in_flight, 1000);
	soft_engine_unlock(a.engine);
	end_close(&a);
	end_close(&b);
}

/* Peers of a dead process may still send to its numbers when another takes its slot. */
static void numbers_begin_anywhere(void **state)
{
	uint32_t first[8];
	bool differ = false;

	for (int i = 0; i < 8; i++) {
		struct soft_qp_table t = {0};
		struct soft_qp a = {0}, b = {0};

		assert_int_equal(soft_qp_table_init(&t), 0);
		assert_int_equal(soft_qp_table_add(&t, 0, NULL, &a), 0);
		assert_int_equal(soft_qp_table_add(&t, 0, NULL, &b), 0);
		assert_true(a.num >= 2 && a.num < SOFT_QP_INDEXES - 1);
		assert_true(b.num == a.num + 1 || b.num == 2);
		first[i] = a.num;
		differ |= first[i] != first[0];
		soft_qp_table_done(&t);
	}
	assert_true(differ);
}

/* Another process hands on what it takes to be ours, and is mistaken: counted, not swallowed. */
static void handed_on_for_nobody(void **state)
{
	const uint8_t bytes[28] = {0};
	struct soft_datagram d = {.bytes = bytes, .len = sizeof(bytes)};
	struct soft_engine_input in = {0};
	struct end a;

	(void)state;
	end_open(&a, "127.0.0.1", SOFT_RC);
	in.engine = a.engine;
	soft_engine_lock(a.engine);
	soft_engine_input(&in, &d);
	assert_int_equal(soft_wire_drops(a.wire)->wrong_address, 1);
	soft_engine_unlock(a.engine);
	end_close(&a);
}

/* Both in the C library's place: how many processors an engine sees, and who gives way. */
static int processors_seen;
static _Atomic unsigned int gave_way;

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *ret)
{
	long n;
	int first = 0;

	memset(ret, 0, size);
	n = syscall(SYS_sched_getaffinity, pid, size, ret);
	if (n < 0 || !processors_seen)
		return n < 0 ? -1 : 0;
	while (!CPU_ISSET(first, ret))
		first++;
	CPU_ZERO(ret);
	/* The kernel leaves out those that are not there. */
	for (int i = 0; i < processors_seen; i++)
		CPU_SET(first + i, ret);
	return 0;
}

int sched_yield(void)
{
	atomic_fetch_add(&gave_way, 1);
	return (int)syscall(SYS_sched_yield);
}

/* A write to itself until a poll of ours, not the thread, moved some of it. */
static bool moved_by_a_poll(struct end *a)
{
	for (int i = 0; i < 1000; i++) {
		atomic_store(&a->engine->vain, SOFT_POLLS_IN_VAIN);
		post(a, SOFT_WR_WRITE, a->region.iova + 8, a->region.key, 0, 8);
		await(a, 0, true);
		if (atomic_load(&a->engine->vain) < SOFT_POLLS_IN_VAIN)
			return true;
	}
	return false;
}

/* Where processors are few, who polls in vain gives way; not before, and not where there are more.
 */
static void gives_way(void **state)
{
	struct end a;

	(void)state;
	for (processors_seen = 1; processors_seen <= 3; processors_seen++) {
		end_open(&a, "127.0.0.1", SOFT_RC);
		end_connect(&a, a.qp.num, PATIENT);
		atomic_store(&gave_way, 0);
		for (int i = 0; i < SOFT_POLLS_IN_VAIN; i++)
			soft_engine_poll(a.engine);
		assert_int_equal(atomic_load(&gave_way), 0);
		/* Some of them may meet the thread, or what others sent to this address. */
		for (int i = 0; i < 10000 && !atomic_load(&gave_way); i++)
			soft_engine_poll(a.engine);
		assert_int_equal(atomic_load(&gave_way) > 0, processors_seen <= 2);
		assert_true(moved_by_a_poll(&a));
		end_close(&a);
	}
	processors_seen = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* First those that fork before an engine was made. */
		cmocka_unit_test(two_processes),
		cmocka_unit_test(dead_peer),
		cmocka_unit_test(polled),
		cmocka_unit_test(polled_ipv6),
		cmocka_unit_test(never_polled),
		cmocka_unit_test(to_itself),
		cmocka_unit_test(forked),
		cmocka_unit_test(numbers_begin_anywhere),
		cmocka_unit_test(left_for_the_thread),
		cmocka_unit_test(held_and_left),
		cmocka_unit_test(moved_under_way),
		cmocka_unit_test(handed_on_for_nobody),
		cmocka_unit_test(gives_way),
	};

	/* Where it may: what other programs of this machine do on the port is not the test's. */
	(void)net_own();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
