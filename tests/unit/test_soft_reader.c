/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads that only read and only send, over real sockets: that they carry bulk of callers, and
 * leave off; that bytes are right and damage is counted as without it; turns that stand still,
 * threads that get no processor, a fork, a close in the middle.
 */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "soft/engine/reader.h"
#include "soft/link/arrival.h"
#include "soft/link/parts.h"
#include "soft_end.h"
#include "soft_net.h"

enum {
	HALF = BUFFER / 2,
	TRIES = 2000,
	TRAIN = 15,
	MTU = 4096,
	AT_ONCE = 4,
	THREADS = 1 + SOFT_OUTBOXES_MAX
};

static void open_pair(struct end *a, struct end *b, enum soft_wire_threads thread)
{
	end_open_with(a, "127.0.0.1", SOFT_RC, thread);
	end_open_with(b, "127.0.0.1", SOFT_RC, thread);
	end_connect(a, b->qp.num, PATIENT);
	end_connect(b, a->qp.num, PATIENT);
}

/* Both directions at once, each into the other's upper half. */
static void exchange(struct end *a, struct end *b, uint32_t seed)
{
	fill(a->buffer, HALF, seed);
	fill(b->buffer, HALF, seed + 1);
	post(a, SOFT_WR_WRITE, b->region.iova + HALF, b->region.key, 0, HALF);
	post(b, SOFT_WR_WRITE, a->region.iova + HALF, a->region.key, 0, HALF);
	await(a, 0, true);
	await(b, 0, true);
	assert_memory_equal(a->buffer, b->buffer + HALF, HALF);
	assert_memory_equal(b->buffer, a->buffer + HALF, HALF);
}

static uint64_t threaded(struct end *e)
{
	uint64_t n;

	soft_engine_lock(e->engine);
	n = soft_wire_stats(e->wire)->threaded_trains;
	soft_engine_unlock(e->engine);
	return n;
}

/* What has been sent by now is counted. */
static uint64_t threaded_sends(struct end *e)
{
	uint64_t n;

	soft_engine_lock(e->engine);
	(void)soft_engine_turn(e->engine);
	n = soft_wire_stats(e->wire)->threaded_sends;
	soft_engine_unlock(e->engine);
	return n;
}

static bool reads(struct end *e)
{
	bool now;

	soft_engine_lock(e->engine);
	now = soft_reader_has_sockets(e->engine, e->wire);
	soft_engine_unlock(e->engine);
	return now;
}

static bool took_one(struct end *e)
{
	struct soft_cqe cqe;

	if (soft_cq_pop(&e->cq, &cqe, 1) == 0)
		return false;
	assert_int_equal(cqe.status, 0);
	return true;
}

/* Until the thread reads at this moment; so many messages of @a, and of @b, are under way then. */
static unsigned int get_going(struct end *a, struct end *b)
{
	pp_ns until = pp_clock_monotonic() + 60 * PP_SECOND;

	fill(a->buffer, HALF, 17);
	fill(b->buffer, HALF, 18);
	while (pp_clock_monotonic() < until) {
		unsigned int left_a = AT_ONCE, left_b = AT_ONCE;

		for (unsigned int i = 0; i < AT_ONCE; i++) {
			post(a, SOFT_WR_WRITE, b->region.iova + HALF, b->region.key, 0, HALF);
			post(b, SOFT_WR_WRITE, a->region.iova + HALF, a->region.key, 0, HALF);
		}
		while (left_a || left_b) {
			if (left_a && left_a == left_b && reads(a))
				return left_a;
			soft_engine_poll(a->engine);
			left_a -= left_a > 0 && left_a >= left_b && took_one(a);
			left_b -= left_b > 0 && left_b >= left_a && took_one(b);
		}
	}
	fail_msg("no thread reads, whatever comes");
	return 0;
}

static void finish(struct end *a, struct end *b, unsigned int left, bool poll_engine)
{
	for (unsigned int i = 0; i < left; i++) {
		await(a, 0, poll_engine);
		await(b, 0, poll_engine);
	}
	assert_memory_equal(a->buffer, b->buffer + HALF, HALF);
	assert_memory_equal(b->buffer, a->buffer + HALF, HALF);
}

static void reads_bulk_and_rests(void **state)
{
	uint64_t before;
	struct end a, b;

	(void)state;
	open_pair(&a, &b, SOFT_WIRE_THREADS_YES);
	/* On a busy machine one thread may begin before the other. */
	for (int i = 0; i < TRIES && !(threaded(&a) && threaded_sends(&a)); i++)
		finish(&a, &b, get_going(&a, &b), true);
	assert_true(threaded(&a) > 0);
	assert_true(threaded_sends(&a) > 0);
	assert_true(threaded(&a) <= soft_wire_stats(a.wire)->received_trains);
	soft_engine_lock(a.engine);
	assert_true(soft_wire_stats(a.wire)->threaded_sends <=
		    soft_wire_stats(a.wire)->sent_trains);
	soft_engine_unlock(a.engine);
	/* Nothing comes any more, whether somebody polls or not. */
	for (int i = 0; i < TRIES && reads(&a); i++)
		poll(NULL, 0, 5);
	assert_false(reads(&a));
	before = threaded(&a);
	post(&a, SOFT_WR_WRITE, b.region.iova, b.region.key, 0, 8);
	await(&a, 0, true);
	assert_int_equal(threaded(&a), before);
	end_close(&a);
	end_close(&b);
}

/* A caller that polls goes away in the middle of bulk: the engine's thread takes over. */
static void callers_leave(void **state)
{
	struct end a, b;

	(void)state;
	open_pair(&a, &b, SOFT_WIRE_THREADS_YES);
	for (int i = 0; i < 20; i++)
		finish(&a, &b, get_going(&a, &b), /* poll_engine= */ false);
	end_close(&a);
	end_close(&b);
}

/* Nobody takes for a while: what it holds is bounded, and nothing is lost that need not be. */
static void turns_stand_still(void **state)
{
	struct end a, b;

	(void)state;
	open_pair(&a, &b, SOFT_WIRE_THREADS_YES);
	for (int i = 0; i < 20; i++) {
		unsigned int left = get_going(&a, &b);

		soft_engine_lock(a.engine);
		poll(NULL, 0, 3);
		soft_engine_unlock(a.engine);
		finish(&a, &b, left, true);
	}
	end_close(&a);
	end_close(&b);
}

/* Threads of ours that a debugger holds, as a busy machine may. */
enum hold { REFUSED, AT_WORK, ASLEEP };

struct held {
	pid_t debugger;
	int until; /* it lets them go when this is closed */
	enum hold how;
};

/* Of those that only read and only send. */
static unsigned int thread_ids(pid_t ret[THREADS])
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned int n = 0;

	assert_non_null(tasks);
	for (struct dirent *e; n < THREADS && (e = readdir(tasks));) {
		char path[64], name[32] = "";
		FILE *f;

		if (e->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof(path), "/proc/self/task/%.12s/comm", e->d_name);
		f = fopen(path, "re");
		if (f && fgets(name, sizeof(name), f) &&
		    (!strcmp(name, "peerpath-read\n") || !strcmp(name, "peerpath-write\n")))
			ret[n++] = (pid_t)atoi(e->d_name);
		if (f)
			(void)fclose(f);
	}
	(void)closedir(tasks);
	return n;
}

/* In poll() or ppoll(): what is in its hands when it is held there is nothing. */
static bool sleeps(pid_t id)
{
	char path[64];
	long number = -1;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/syscall", (int)id);
	f = fopen(path, "re");
	if (f && fscanf(f, "%ld", &number) != 1)
		number = -1;
	if (f)
		(void)fclose(f);
#ifdef SYS_poll
	if (number == SYS_poll)
		return true;
#endif
	/* The last is what goes on with a poll() that was held before. */
	return number == SYS_ppoll || number == SYS_restart_syscall;
}

static enum hold stop(const pid_t *ids, unsigned int n)
{
	enum hold how = ASLEEP;

	for (unsigned int i = 0; i < n; i++) {
		if (ptrace(PTRACE_SEIZE, ids[i], NULL, NULL) ||
		    ptrace(PTRACE_INTERRUPT, ids[i], NULL, NULL) ||
		    waitpid(ids[i], NULL, __WALL) != ids[i])
			return REFUSED;
		if (!sleeps(ids[i]))
			how = AT_WORK;
	}
	return how;
}

/* Between turns, when they have done what there was. */
static struct held hold_threads(struct soft_engine *engine)
{
	struct held h = {.how = REFUSED};
	int tell[2], until[2];
	pid_t ids[THREADS];
	unsigned int n = thread_ids(ids);
	char named = 'y';

	assert_int_equal(pipe(tell) | pipe(until), 0);
	h.debugger = fork();
	assert_true(h.debugger >= 0);
	if (!h.debugger) {
		(void)close(until[1]);
		/* It may when we have named it. */
		if (read(until[0], &named, 1) == 1)
			h.how = stop(ids, n);
		/* Then until the other end is closed. */
		_exit(write(tell[1], &h.how, sizeof(h.how)) < 0 || read(until[0], &named, 1) < 0);
	}
	(void)prctl(PR_SET_PTRACER, h.debugger);
	soft_engine_lock(engine);
	poll(NULL, 0, 1);
	assert_int_equal(write(until[1], &named, 1), 1);
	assert_int_equal(read(tell[0], &h.how, sizeof(h.how)), sizeof(h.how));
	soft_engine_unlock(engine);
	(void)close(until[0]);
	(void)close(tell[0]);
	(void)close(tell[1]);
	h.until = until[1];
	if (h.how == ASLEEP && n != THREADS)
		h.how = AT_WORK;
	return h;
}

static void let_go(struct held h)
{
	(void)close(h.until);
	assert_int_equal(waitpid(h.debugger, NULL, 0), h.debugger);
}

/* Until @most messages of either end are left. */
static void carry_on(struct end *a, struct end *b, unsigned int left[2], unsigned int most)
{
	pp_ns until = pp_clock_monotonic() + 60 * PP_SECOND;

	while (left[0] > most && left[1] > most && pp_clock_monotonic() < until) {
		soft_engine_poll(a->engine);
		left[0] -= took_one(a);
		left[1] -= took_one(b);
	}
}

/* The sockets are the reader's, trains go to the writers, and none of them is run: who polls does
 * their work. */
static void threads_get_no_processor(void **state)
{
	enum hold how = AT_WORK;
	struct end a, b;

	(void)state;
	open_pair(&a, &b, SOFT_WIRE_THREADS_YES);
	for (int i = 0; i < TRIES && how == AT_WORK; i++) {
		unsigned int under_way = get_going(&a, &b), left[2] = {under_way, under_way};
		struct held held = hold_threads(a.engine);

		how = held.how;
		if (how == ASLEEP &&
		    (under_way < 2 || !reads(&a) || soft_link_room(a.wire->link, NULL) == UINT_MAX))
			how = AT_WORK;
		/* The second of an end has nothing in their hands yet. */
		if (how == ASLEEP)
			carry_on(&a, &b, left, under_way - 2);
		let_go(held);
		if (how == ASLEEP && left[0] > under_way - 2 && left[1] > under_way - 2)
			fail_msg("nobody does the work of threads that are not run");
		for (; left[0]; left[0]--)
			await(&a, 0, true);
		for (; left[1]; left[1]--)
			await(&b, 0, true);
		finish(&a, &b, 0, true);
	}
	end_close(&a);
	end_close(&b);
	if (how == REFUSED) {
		print_message("no thread may be held here (ptrace)\n");
		skip();
	}
	assert_int_equal(how, ASLEEP);
}

/* Both threads leave off: what is sent then leaves from here. */
static void stops_sending(void **state)
{
	uint64_t before;
	struct end a, b;

	(void)state;
	open_pair(&a, &b, SOFT_WIRE_THREADS_YES);
	finish(&a, &b, get_going(&a, &b), true);
	for (int i = 0; i < TRIES && soft_link_room(a.wire->link, NULL) != UINT_MAX; i++) {
		poll(NULL, 0, 5);
		post(&a, SOFT_WR_WRITE, b.region.iova, b.region.key, 0, 8);
		await(&a, 0, true);
	}
	soft_engine_lock(a.engine);
	assert_int_equal(soft_link_room(a.wire->link, NULL), UINT_MAX);
	before = soft_wire_stats(a.wire)->threaded_sends;
	soft_engine_unlock(a.engine);
	post(&a, SOFT_WR_WRITE, b.region.iova, b.region.key, 0, 8);
	await(&a, 0, true);
	assert_int_equal(soft_wire_stats(a.wire)->threaded_sends, before);
	end_close(&a);
	end_close(&b);
}

/* Requests that came long ago once more, in one train, of which @bad has one bit turned. */
static void send_train(struct end *from, struct end *to, unsigned int bad)
{
	struct soft_link *link = from->wire->link;
	struct iovec piece = {from->buffer, MTU};
	struct soft_packet p = {.opcode = SOFT_RC | SOFT_WRITE_MIDDLE,
				.pkey = 0xffff,
				.dest_qp = to->qp.num,
				.payload_bytes = MTU};

	soft_train_send(link);
	for (unsigned int i = 0; i < TRAIN; i++) {
		p.psn = (to->qp.resp.expected_psn - 1000 + i) & 0xffffff;
		soft_train_add(link, &from->qp.path, &p, &piece, 1);
	}
	assert_int_equal(link->train->packets, TRAIN);
	link->train->bytes[bad * link->train->segment + 100] ^= 0x10;
	soft_train_send(link);
}

static void damage_is_counted(void **state)
{
	unsigned int sent = 0;
	uint64_t found = 0;
	struct end a, b;

	(void)state;
	open_pair(&a, &b, SOFT_WIRE_THREADS_YES);
	for (; sent < 8; sent++) {
		unsigned int left = get_going(&a, &b);

		soft_engine_lock(a.engine);
		send_train(&a, &b, sent % TRAIN);
		soft_engine_unlock(a.engine);
		finish(&a, &b, left, true);
	}
	for (unsigned int i = 0; i < TRIES && found < sent; i++) {
		soft_engine_poll(a.engine);
		poll(NULL, 0, 1);
		soft_engine_lock(a.engine);
		found = soft_wire_drops(a.wire)->icrc;
		soft_engine_unlock(a.engine);
	}
	assert_int_equal(found, sent);
	exchange(&a, &b, 5);
	end_close(&a);
	end_close(&b);
}

static void says_what_the_check_says(void **state)
{
	static struct soft_arrival arrival;
	struct soft_icrc_flow flow = {0};
	struct end a, b;
	bool got = false;

	(void)state;
	open_pair(&a, &b, SOFT_WIRE_THREADS_NO);
	soft_engine_lock(a.engine);
	send_train(&a, &b, 6);
	for (int i = 0; i < TRIES && !got; i++) {
		got = soft_link_read(a.wire->link, &arrival) && arrival.len > MTU;
		if (!got)
			poll(NULL, 0, 1);
	}
	assert_true(got);
	soft_arrival_check(&arrival, soft_engine_slot(a.engine) + 1, &flow);
	assert_int_equal(arrival.num_checked, 0);
	soft_arrival_check(&arrival, soft_engine_slot(a.engine), &flow);
	assert_int_equal(arrival.num_checked,
			 (arrival.len + arrival.segment - 1) / arrival.segment);
	for (unsigned int i = 0; i < arrival.num_checked; i++) {
		/* Its sender counted from 0, and one bit is wrong. */
		assert_int_equal(arrival.checked[i].right, i != 6);
		assert_true(i == 6 || arrival.checked[i].id.id == i);
	}
	soft_engine_unlock(a.engine);
	end_close(&a);
	end_close(&b);
}

static void never_when_told(void **state)
{
	struct end a, b;

	(void)state;
	open_pair(&a, &b, SOFT_WIRE_THREADS_NO);
	for (uint32_t i = 0; i < 50; i++)
		exchange(&a, &b, i);
	assert_int_equal(threaded(&a), 0);
	assert_null(a.engine->bulk.reader);
	assert_int_equal(a.wire->outgoing.num_writers, 0);
	end_close(&a);
	end_close(&b);
}

static void forked_in_the_middle(void **state)
{
	struct end a, b;

#if defined(__SANITIZE_THREAD__)
	/* Which refuses threads in the child of a process that has some. */
	skip();
#endif
	(void)state;
	open_pair(&a, &b, SOFT_WIRE_THREADS_YES);
	for (uint32_t i = 0; i < 5; i++) {
		unsigned int left = get_going(&a, &b);
		pid_t child;
		int status;

		child = fork();
		assert_true(child >= 0);
		if (!child) {
			struct end c, d;

			/* What it inherited may go; what is made anew works. */
			end_close(&a);
			end_close(&b);
			open_pair(&c, &d, SOFT_WIRE_THREADS_YES);
			finish(&c, &d, get_going(&c, &d), true);
			end_close(&c);
			end_close(&d);
			_exit(0);
		}
		finish(&a, &b, left, true);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		exchange(&a, &b, i);
	}
	end_close(&a);
	end_close(&b);
}

/* A wire goes while its packets lie in the ring; the engine stays, and another wire's go on. */
static void closed_in_the_middle(void **state)
{
	struct end a, b, c, d;

	(void)state;
	for (uint32_t i = 0; i < 20; i++) {
		open_pair(&a, &b, SOFT_WIRE_THREADS_YES);
		end_open_with(&c, NULL, SOFT_RC, SOFT_WIRE_THREADS_YES);
		end_open_with(&d, NULL, SOFT_RC, SOFT_WIRE_THREADS_YES);
		end_connect(&c, d.qp.num, PATIENT);
		end_connect(&d, c.qp.num, PATIENT);
		(void)get_going(&a, &b);
		end_close(&a);
		end_close(&b);
		exchange(&c, &d, i);
		end_close(&c);
		end_close(&d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_bulk_and_rests), cmocka_unit_test(callers_leave),
		cmocka_unit_test(stops_sending),	cmocka_unit_test(turns_stand_still),
		cmocka_unit_test(damage_is_counted),	cmocka_unit_test(says_what_the_check_says),
		cmocka_unit_test(never_when_told),	cmocka_unit_test(forked_in_the_middle),
		cmocka_unit_test(closed_in_the_middle), cmocka_unit_test(threads_get_no_processor),
	};

	(void)net_own();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
