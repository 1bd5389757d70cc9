/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event queues: what poll(2) says of the descriptor is the judge.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "soft/abi/event.h"

static int readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0);
}

static void test_order_and_poll(void **state)
{
	struct soft_event_source a = {.element = "a"}, b = {.element = "b"}, *got;
	struct soft_events *e;
	unsigned int type;
	int fd;

	(void)state;
	assert_int_equal(soft_events_new(&e, &fd), 0);
	assert_int_equal(readable(fd), 0);
	soft_events_raise(e, &a, 3);
	soft_events_raise(e, &a, 3);
	soft_events_raise(e, &b, 5);
	assert_int_equal(readable(fd), 1);
	assert_int_equal(soft_events_get(e, &got, &type), 0);
	assert_ptr_equal(got, &a);
	assert_int_equal(type, 3);
	assert_int_equal(soft_events_get(e, &got, &type), 0);
	assert_ptr_equal(got, &b);
	assert_int_equal(type, 5);
	assert_int_equal(readable(fd), 1);
	assert_int_equal(soft_events_get(e, &got, &type), 0);
	assert_ptr_equal(got, &a);
	assert_int_equal(readable(fd), 0);
	assert_int_equal(a.delivered, 2);
	assert_int_equal(b.delivered, 1);
	close(fd);
	soft_events_unref(e);
}

/* A client that reads its descriptor by itself, as it may: nobody waits for what it took. */
static void test_client_reads(void **state)
{
	struct soft_event_source a = {.element = "a"}, b = {.element = "b"}, *got;
	struct soft_events *e;
	unsigned int type;
	uint64_t taken;
	int fd;

	(void)state;
	(void)alarm(30);
	assert_int_equal(soft_events_new(&e, &fd), 0);
	soft_events_raise(e, &a, 1);
	soft_events_raise(e, &b, 2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(read(fd, &taken, sizeof(taken)), sizeof(taken));
	assert_int_equal(readable(fd), 0);
	assert_int_equal(soft_events_get(e, &got, &type), 0);
	assert_ptr_equal(got, &a);
	assert_int_equal(soft_events_forget(e, &b), 0);
	soft_events_raise(e, &a, 3);
	assert_int_equal(soft_events_get(e, &got, &type), 0);
	assert_int_equal(type, 3);
	close(fd);
	soft_events_unref(e);
	(void)alarm(0);
}

static void test_nonblocking(void **state)
{
	struct soft_event_source a = {0}, *got;
	struct soft_events *e;
	unsigned int type;
	int fd;

	(void)state;
	assert_int_equal(soft_events_new(&e, &fd), 0);
	/* as a client does: on its descriptor */
	assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
	assert_int_equal(soft_events_get(e, &got, &type), -EAGAIN);
	soft_events_raise(e, &a, 0);
	assert_int_equal(soft_events_get(e, &got, &type), 0);
	assert_int_equal(soft_events_get(e, &got, &type), -EAGAIN);
	close(fd);
	soft_events_unref(e);
}

static void test_forget(void **state)
{
	struct soft_event_source a = {0}, b = {0}, *got;
	struct soft_events *e;
	unsigned int type;
	int fd;

	(void)state;
	assert_int_equal(soft_events_new(&e, &fd), 0);
	for (int i = 0; i < 3; i++) {
		soft_events_raise(e, &a, 1);
		soft_events_raise(e, &b, 2);
	}
	assert_int_equal(soft_events_get(e, &got, &type), 0);
	assert_ptr_equal(got, &a);
	assert_int_equal(soft_events_forget(e, &a), 1);
	/* b's three are left, and nothing of a */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(readable(fd), 1);
		assert_int_equal(soft_events_get(e, &got, &type), 0);
		assert_ptr_equal(got, &b);
	}
	assert_int_equal(readable(fd), 0);
	assert_int_equal(soft_events_forget(e, &b), 3);
	close(fd);
	soft_events_unref(e);
}

static void test_bounded(void **state)
{
	struct soft_event_source a = {0};
	struct soft_events *e;
	int fd;

	(void)state;
	assert_int_equal(soft_events_new(&e, &fd), 0);
	for (int i = 0; i < 70000; i++)
		soft_events_raise(e, &a, 0);
	assert_int_equal(a.pending[0], UINT16_MAX);
	soft_events_raise(e, &a, SOFT_EVENT_TYPES); /* no such type */
	assert_int_equal(soft_events_forget(e, &a), 0);
	assert_int_equal(readable(fd), 0);
	close(fd);
	soft_events_unref(e);
}

static void *sleeper(void *events)
{
	struct soft_event_source *got;
	unsigned int type;

	(void)soft_events_get(events, &got, &type);
	return NULL;
}

static void test_sleeper_survives_its_owner(void **state)
{
	struct soft_events *e;
	pthread_t thread;
	void *result;
	int fd;

	(void)state;
	assert_int_equal(soft_events_new(&e, &fd), 0);
	assert_int_equal(pthread_create(&thread, NULL, sleeper, e), 0);
	usleep(20000);
	close(fd);
	soft_events_unref(e);
	usleep(20000);
	/* still asleep, on memory of its own; cancellation ends it and frees that */
	assert_int_equal(pthread_tryjoin_np(thread, &result), EBUSY);
#ifdef __SANITIZE_THREAD__
	/* It does not follow locks of a thread that was cancelled. */
	pthread_detach(thread);
	return;
#endif
	assert_int_equal(pthread_cancel(thread), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_and_poll),
		cmocka_unit_test(test_client_reads),
		cmocka_unit_test(test_nonblocking),
		cmocka_unit_test(test_forget),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_sleeper_survives_its_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
