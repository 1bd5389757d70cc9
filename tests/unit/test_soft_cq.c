/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion queues against the rules of the InfiniBand Architecture Specification, volume 1,
 * 11.4.2 (poll, request notification) and 10.8.3 (destroying a QP).
 */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "soft/qp/cq.h"

#include "base/banned.h"

static unsigned int notified, overflowed;

static void on_notify(struct soft_cq *cq)
{
	(void)cq;
	notified++;
}

static void on_overflow(struct soft_cq *cq)
{
	(void)cq;
	overflowed++;
}

static void open_cq(struct soft_cq *cq, uint32_t capacity)
{
	assert_int_equal(soft_cq_init(cq, capacity), 0);
	cq->notify = on_notify;
	cq->overflow = on_overflow;
	notified = overflowed = 0;
}

static bool push(struct soft_cq *cq, uint64_t wr_id, uint32_t qp_num, bool solicited,
		 uint32_t status)
{
	struct soft_cqe cqe = {
		.wr_id = wr_id, .qp_num = qp_num, .solicited = solicited, .status = status};

	return soft_cq_push(cq, &cqe);
}

static void order_and_capacity(void **state)
{
	struct soft_cq cq;
	struct soft_cqe got[8];

	(void)state;
	assert_int_equal(soft_cq_init(&cq, 0), -EINVAL);
	assert_int_equal(soft_cq_init(&cq, SOFT_CQ_CAPACITY_MAX + 1), -EINVAL);
	open_cq(&cq, 5); /* the ring has 8 */
	/* The running counts wrap in the middle. */
	cq.produced = cq.consumed = cq.solicited = UINT32_MAX - 2;
	for (unsigned int round = 0; round < 3; round++) {
		assert_int_equal(soft_cq_pop(&cq, got, 8), 0);
		for (uint64_t i = 0; i < 5; i++)
			assert_true(push(&cq, round * 10 + i, 1, false, 0));
		assert_int_equal(soft_cq_pop(&cq, got, 2), 2);
		assert_int_equal(soft_cq_pop(&cq, got + 2, 6), 3);
		for (uint64_t i = 0; i < 5; i++)
			assert_int_equal(got[i].wr_id, round * 10 + i);
	}
	assert_int_equal(overflowed, 0);
	for (unsigned int i = 0; i < 5; i++)
		assert_true(push(&cq, i, 1, false, 0));
	assert_false(push(&cq, 5, 1, false, 0));
	assert_false(push(&cq, 6, 1, false, 0));
	assert_int_equal(overflowed, 2); /* each that is lost is told of */
	assert_true(cq.overrun);
	/* What lay there is still right. */
	assert_int_equal(soft_cq_pop(&cq, got, 8), 5);
	assert_int_equal(got[4].wr_id, 4);
	soft_cq_done(&cq);
}

enum what { NOTHING, PLAIN, SOLICITED, FAILED };

static void push_what(struct soft_cq *cq, enum what what)
{
	if (what != NOTHING)
		assert_true(push(cq, 1, 1, what == SOLICITED, what == FAILED ? 5 : 0));
}

/* Solicited or in error wakes whoever asked for solicited ones; any wakes who asked for any. */
static const struct {
	enum what before;
	bool solicited_only, lies_there;
	enum what after;
	unsigned int notified;
} armings[] = {
	{NOTHING, false, false, PLAIN, 1},	{NOTHING, false, false, SOLICITED, 1},
	{NOTHING, false, false, FAILED, 1},	{NOTHING, true, false, PLAIN, 0},
	{NOTHING, true, false, SOLICITED, 1},	{NOTHING, true, false, FAILED, 1},
	{PLAIN, false, true, PLAIN, 1},		{PLAIN, true, false, PLAIN, 0},
	{PLAIN, true, false, SOLICITED, 1},	{SOLICITED, true, true, PLAIN, 0},
	{SOLICITED, false, true, SOLICITED, 1}, {FAILED, true, true, FAILED, 1},
};

static void arming(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(armings) / sizeof(armings[0]); i++) {
		struct soft_cq cq;

		open_cq(&cq, 16);
		push_what(&cq, armings[i].before);
		assert_int_equal(notified, 0);
		assert_int_equal(soft_cq_arm(&cq, armings[i].solicited_only),
				 armings[i].lies_there);
		push_what(&cq, armings[i].after);
		assert_int_equal(notified, armings[i].notified);
		/* One request, one event. */
		push_what(&cq, FAILED);
		assert_int_equal(notified, 1);
		push_what(&cq, FAILED);
		assert_int_equal(notified, 1);
		soft_cq_done(&cq);
	}
}

static void arming_twice(void **state)
{
	struct soft_cq cq;
	struct soft_cqe got;

	(void)state;
	open_cq(&cq, 4);
	/* Any, then solicited: stays any. */
	assert_false(soft_cq_arm(&cq, false));
	assert_false(soft_cq_arm(&cq, true));
	push_what(&cq, PLAIN);
	assert_int_equal(notified, 1);
	assert_int_equal(soft_cq_pop(&cq, &got, 1), 1);
	/* Solicited, then any: becomes any. */
	assert_false(soft_cq_arm(&cq, true));
	assert_false(soft_cq_arm(&cq, false));
	push_what(&cq, PLAIN);
	assert_int_equal(notified, 2);
	/* An event has told of it: no other for the same. */
	assert_false(soft_cq_arm(&cq, false));
	assert_true(soft_cq_disarm(&cq));
	/* Who raises the event is decided once. */
	push_what(&cq, PLAIN);
	push_what(&cq, PLAIN);
	assert_int_equal(notified, 2);
	assert_true(soft_cq_arm(&cq, false));
	assert_true(soft_cq_disarm(&cq));
	assert_false(soft_cq_disarm(&cq));
	push_what(&cq, PLAIN);
	assert_int_equal(notified, 2);
	soft_cq_done(&cq);
}

/*
 * perftest: takes an event, arms, takes one completion. Every event must bring it one, and what was
 * pushed while nothing was armed must not be left without.
 */
static void one_for_one(void **state)
{
	struct soft_cq cq;
	struct soft_cqe got;
	unsigned int events = 0, taken = 0;

	(void)state;
	open_cq(&cq, 16);
	for (uint32_t lap = 0; lap < 3; lap++) {
		(void)soft_cq_arm(&cq, false);
		for (unsigned int i = 0; i < 5; i++)
			push_what(&cq, i % 2 ? SOLICITED : PLAIN);
		while (events + notified > taken) {
			if (soft_cq_arm(&cq, false) && soft_cq_disarm(&cq))
				events++;
			assert_int_equal(soft_cq_pop(&cq, &got, 1), 1);
			taken++;
		}
		assert_int_equal(taken, 5 * (lap + 1));
		(void)soft_cq_disarm(&cq);
		/* Where no event was asked for long, the counts of those told of lag far behind. */
		cq.produced += 1u << 31;
		cq.consumed += 1u << 31;
		cq.solicited += 1u << 31;
	}
	soft_cq_done(&cq);
}

/* A solicited completion of long ago must not look new when the counts have gone round. */
static void solicited_long_ago(void **state)
{
	struct soft_cq cq;
	struct soft_cqe got;

	(void)state;
	open_cq(&cq, 4);
	push_what(&cq, SOLICITED);
	assert_int_equal(soft_cq_pop(&cq, &got, 1), 1);
	for (unsigned int lap = 0; lap < 4; lap++) {
		push_what(&cq, PLAIN);
		assert_int_equal(soft_cq_pop(&cq, &got, 1), 1);
		assert_false(soft_cq_arm(&cq, true));
		cq.produced += 1u << 30;
		cq.consumed += 1u << 30;
		push_what(&cq, PLAIN);
		assert_int_equal(soft_cq_pop(&cq, &got, 1), 1);
		assert_false(soft_cq_arm(&cq, true));
	}
	soft_cq_done(&cq);
}

/* A fault: nothing is seen nor told of before its time, then all in its order. */
static void late_ones(void **state)
{
	struct soft_cq_late late = {.delay = 50 * PP_MILLISECOND};
	struct soft_cqe got[8];
	struct soft_cq cq, other;
	pp_ns before = pp_clock_monotonic(), due;

	(void)state;
	open_cq(&cq, 8);
	open_cq(&other, 8);
	cq.late = other.late = &late;
	assert_false(soft_cq_arm(&cq, false));
	assert_true(push(&cq, 1, 7, false, 0) && push(&other, 2, 8, false, 0) &&
		    push(&cq, 3, 7, false, 0) && push(&cq, 4, 9, false, 0));
	assert_int_equal(soft_cq_pop(&cq, got, 8), 0);
	assert_int_equal(notified, 0);
	due = soft_cq_late_release(&late, before + 50 * PP_MILLISECOND - 1);
	assert_true(due >= before + 50 * PP_MILLISECOND);
	assert_true(soft_cq_empty(&cq) && soft_cq_empty(&other));
	/* A queue pair that goes takes its own along. */
	soft_cq_forget(&cq, 9);
	assert_int_equal(soft_cq_late_release(&late, INT64_MAX), 0);
	assert_int_equal(notified, 1);
	assert_int_equal(soft_cq_pop(&cq, got, 8), 2);
	assert_true(got[0].wr_id == 1 && got[1].wr_id == 3);
	assert_int_equal(soft_cq_pop(&other, got, 8), 1);
	/* With the fault over they come at once. */
	late.delay = 0;
	assert_true(push(&cq, 5, 7, false, 0));
	assert_int_equal(soft_cq_pop(&cq, got, 8), 1);
	late.delay = 1;
	assert_true(push(&cq, 6, 7, false, 0));
	soft_cq_late_drop(&late);
	assert_int_equal(soft_cq_late_release(&late, INT64_MAX), 0);
	soft_cq_done(&cq);
	soft_cq_done(&other);
}

/* A fault: less room than was asked for; and back. */
static void less_room(void **state)
{
	struct soft_cqe got[8];
	struct soft_cq cq;

	(void)state;
	open_cq(&cq, 6);
	soft_cq_set_room(&cq, 2);
	assert_true(push(&cq, 1, 7, false, 0) && push(&cq, 2, 7, false, 0));
	assert_false(push(&cq, 3, 7, false, 0));
	assert_int_equal(overflowed, 1);
	assert_int_equal(soft_cq_pop(&cq, got, 8), 2);
	soft_cq_set_room(&cq, 0);
	for (uint64_t i = 0; i < 6; i++)
		assert_true(push(&cq, i, 7, false, 0));
	assert_false(push(&cq, 6, 7, false, 0));
	soft_cq_set_room(&cq, 100); /* never more than there is */
	assert_false(push(&cq, 6, 7, false, 0));
	assert_int_equal(soft_cq_pop(&cq, got, 8), 6);
	soft_cq_done(&cq);
}

static void forgetting(void **state)
{
	struct soft_cq cq;
	struct soft_cqe got[8];

	(void)state;
	open_cq(&cq, 4);
	push(&cq, 1, 7, false, 0);
	push(&cq, 2, 8, false, 0);
	push(&cq, 3, 7, false, 0);
	push(&cq, 4, 8, false, 0);
	soft_cq_forget(&cq, 7);
	/* Room again, order kept. */
	assert_true(push(&cq, 5, 9, false, 0));
	assert_true(push(&cq, 6, 9, false, 0));
	assert_false(push(&cq, 7, 9, false, 0));
	assert_int_equal(soft_cq_pop(&cq, got, 8), 4);
	assert_int_equal(got[0].wr_id, 2);
	assert_int_equal(got[1].wr_id, 4);
	assert_int_equal(got[2].wr_id, 5);
	assert_int_equal(got[3].wr_id, 6);
	soft_cq_done(&cq);
}

/* A program that destroys a QP between start_poll and end_poll. */
static void forgetting_while_polled(void **state)
{
	struct soft_cq cq;
	struct soft_cqe got[8], *peeked;

	(void)state;
	open_cq(&cq, 4);
	for (uint64_t i = 0; i < 4; i++)
		push(&cq, i, i == 0 ? 8 : 7, false, 0);
	pthread_mutex_lock(&cq.consumer);
	peeked = soft_cq_peek_locked(&cq);
	soft_cq_forget(&cq, 7);
	assert_int_equal(peeked->wr_id, 0);
	soft_cq_advance_locked(&cq);
	assert_null(soft_cq_peek_locked(&cq));
	pthread_mutex_unlock(&cq.consumer);
	assert_int_equal(soft_cq_pop(&cq, got, 8), 0);

	/* The dead give way to the living before a queue overruns, and slots come back to life. */
	for (uint64_t i = 0; i < 4; i++)
		push(&cq, i, i < 2 ? 7 : 8, false, 0);
	pthread_mutex_lock(&cq.consumer);
	soft_cq_forget(&cq, 7);
	pthread_mutex_unlock(&cq.consumer);
	assert_true(push(&cq, 4, 8, false, 0));
	assert_true(push(&cq, 5, 7, false, 0));
	assert_false(push(&cq, 6, 8, false, 0));
	assert_int_equal(soft_cq_pop(&cq, got, 8), 4);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(got[i].wr_id, i + 2);
	soft_cq_done(&cq);
}

enum { MANY = 20000 };

static sem_t event;
static sem_t room;

static void post_event(struct soft_cq *cq)
{
	(void)cq;
	sem_post(&event);
}

static void *produce(void *arg)
{
	struct soft_cq *cq = arg;

	for (uint64_t i = 0; i < MANY; i++) {
		sem_wait(&room);
		if (!push(cq, i, 1, i % 7 == 0, 0))
			return (void *)"overrun";
		/* Queue pairs come and go meanwhile. */
		if (i % 64 == 0)
			soft_cq_forget(cq, 2);
	}
	return NULL;
}

/* Consumer that sleeps whenever it finds nothing: a lost wake-up leaves it asleep. */
static void two_threads(void **state)
{
	struct soft_cq cq;
	struct soft_cqe got[4];
	struct timespec limit;
	pthread_t producer;
	void *failed;
	uint64_t next = 0;
	unsigned int slept = 0;

	(void)state;
	open_cq(&cq, 16);
	cq.notify = post_event;
	sem_init(&event, 0, 0);
	sem_init(&room, 0, 16);
	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += 40;
	assert_int_equal(pthread_create(&producer, NULL, produce, &cq), 0);
	while (next < MANY) {
		unsigned int n = soft_cq_pop(&cq, got, 4);

		for (unsigned int i = 0; i < n; i++) {
			assert_int_equal(got[i].wr_id, next++);
			sem_post(&room);
		}
		if (n > 0 || soft_cq_arm(&cq, false))
			continue;
		slept++;
		assert_int_equal(sem_timedwait(&event, &limit), 0);
	}
	pthread_join(producer, &failed);
	assert_null(failed);
	assert_true(slept > 0);
	sem_destroy(&event);
	sem_destroy(&room);
	soft_cq_done(&cq);
}

static unsigned int holds;

static void on_held(struct soft_cq *cq)
{
	(void)cq;
	holds++;
}

/* Moderation (ibv_modify_cq): an event waits for so many completions, or to be released. */
static void events_are_held_back(void **state)
{
	struct soft_cq cq;
	struct soft_cqe got[8];

	(void)state;
	open_cq(&cq, 16);
	cq.held = on_held;
	cq.hold_count = 3;
	cq.hold_ns = 1000;
	holds = 0;
	for (int round = 1; round <= 2; round++) {
		assert_false(soft_cq_arm(&cq, false));
		push(&cq, 1, 1, false, 0);
		push(&cq, 2, 1, false, 0);
		assert_int_equal(holds, round);
		assert_int_equal(notified, round - 1);
		push(&cq, 3, 1, false, 0);
		assert_int_equal(notified, round);
		push(&cq, 4, 1, false, 0); /* not armed any more */
		assert_int_equal(notified, round);
		assert_int_equal(soft_cq_pop(&cq, got, 8), 4);
	}
	/* time is up */
	assert_false(soft_cq_arm(&cq, false));
	push(&cq, 1, 1, false, 0);
	soft_cq_release(&cq);
	assert_int_equal(notified, 3);
	soft_cq_release(&cq);
	assert_int_equal(notified, 3);
	assert_int_equal(soft_cq_pop(&cq, got, 8), 1);
	/* time is up, and all was polled meanwhile: no event for nothing, and still armed */
	assert_false(soft_cq_arm(&cq, false));
	push(&cq, 1, 1, false, 0);
	assert_int_equal(soft_cq_pop(&cq, got, 8), 1);
	soft_cq_release(&cq);
	assert_int_equal(notified, 3);
	for (int i = 0; i < 3; i++)
		push(&cq, 1, 1, false, 0);
	assert_int_equal(notified, 4);
	soft_cq_done(&cq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_and_capacity),
		cmocka_unit_test(events_are_held_back),
		cmocka_unit_test(arming),
		cmocka_unit_test(arming_twice),
		cmocka_unit_test(one_for_one),
		cmocka_unit_test(solicited_long_ago),
		cmocka_unit_test(late_ones),
		cmocka_unit_test(less_room),
		cmocka_unit_test(forgetting),
		cmocka_unit_test(forgetting_while_polled),
		cmocka_unit_test(two_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
