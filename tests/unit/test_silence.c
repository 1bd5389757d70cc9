/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deadlines of a host that vanishes, on a clock that the test holds. The judge is the promise that
 * both sides end within 5 s of its last sign, and the kernel's probe of each second.
 */
#include "unit.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rdma/channel_state.h"
#include "rdma/silence.h"

#define PROMISE (5 * PP_SECOND)
#define PROBE	PP_SECOND

static uint32_t drawn;

static pp_ns draw(pp_ns below)
{
	drawn = drawn * 1664525 + 1013904223;
	return (pp_ns)(((uint64_t)drawn * (uint64_t)below) >> 32);
}

/* When it is known, of a host whose last sign was at @sign; looks come @gap(below) apart. */
static pp_ns known_at(pp_ns sign, pp_ns first, bool jitter)
{
	struct pp_silence s = {0};
	pp_ns now = sign + first;

	while (!pp_silence_look(&s, now, now - sign))
		now += jitter ? 1 + draw(PP_SILENCE_LOOK) : PP_SILENCE_LOOK;
	return now - sign;
}

static void test_worst(void **state)
{
	pp_ns known, worst = 0, end;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		known = known_at(1 + draw(PROMISE), draw(PP_SILENCE_LOOK), i % 2);
		/* Three probes without an answer, at least. */
		assert_true(known >= 3 * PROBE);
		worst = known > worst ? known : worst;
		/* Then agents end: by themselves, by SIGTERM, by SIGKILL, or never. */
		end = known + PP_ENDING_STEPS * pp_ending_step(PP_SILENCE_WORST);
		assert_true(end < PROMISE);
		assert_true(known + pp_ending_wait(PP_SILENCE_WORST) < PROMISE);
	}
	assert_true(worst <= PP_SILENCE_WORST);
	/* The bound is one that is met, not one that is far away. */
	assert_true(worst > PP_SILENCE_WORST - PP_SILENCE_LOOK);
}

/* Nobody vanished: a run that is told to end, a node that is killed. */
static void test_ending(void **state)
{
	(void)state;
	for (pp_ns gone = 0; gone < PROMISE; gone += 10 * PP_MILLISECOND) {
		pp_ns e = gone < PP_SILENCE_WORST ? gone : PP_SILENCE_WORST;

		assert_true(pp_ending_step(gone) > 300 * PP_MILLISECOND);
		assert_true(e + PP_ENDING_STEPS * pp_ending_step(gone) <= PP_ENDING_ALL);
		assert_true(e + pp_ending_wait(gone) < PROMISE);
	}
	assert_int_equal(pp_ending_step(0), 1500 * PP_MILLISECOND);
}

/* This machine stood still for longer than a host may be silent; the answer comes after it. */
static void test_suspended(void **state)
{
	struct pp_silence s = {0};
	pp_ns now = 100 * PP_SECOND;

	(void)state;
	assert_false(pp_silence_look(&s, now, PROBE));
	now += 3600 * PP_SECOND;
	assert_false(pp_silence_look(&s, now, 3600 * PP_SECOND));
	now += PP_SILENCE_SURE - PP_MILLISECOND;
	assert_false(pp_silence_look(&s, now, 3600 * PP_SECOND));
	assert_false(pp_silence_look(&s, now + PP_MILLISECOND, 20 * PP_MILLISECOND));
	/* And what was suspected then does not count later. */
	now += 60 * PP_SECOND;
	assert_false(pp_silence_look(&s, now, 4 * PP_SECOND));
	assert_true(pp_silence_look(&s, now + PP_SILENCE_SURE, 4 * PP_SECOND));
	/* Gone is gone. */
	assert_true(pp_silence_look(&s, now + PP_SECOND, 0));
}

/* Of the kernel itself: what answers is not gone, idle or not; two ends of a pair have no host. */
static void test_kernel(void **state)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int l = socket(AF_INET, SOCK_STREAM, 0), a = socket(AF_INET, SOCK_STREAM, 0), value = 0;
	struct pp_channel *c, *pair[2];
	struct pp_error err;

	(void)state;
	assert_int_equal(bind(l, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(l, 1), 0);
	assert_int_equal(getsockname(l, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(connect(a, (struct sockaddr *)&at, len), 0);
	pp_channel_tune(a);
	len = sizeof(value);
	assert_int_equal(getsockopt(a, IPPROTO_TCP, TCP_KEEPIDLE, &value, &len), 0);
	assert_int_equal(value, PROBE / PP_SECOND);
	assert_int_equal(getsockopt(a, IPPROTO_TCP, TCP_KEEPINTVL, &value, &len), 0);
	assert_int_equal(value, PROBE / PP_SECOND);
	c = pp_channel_new(a, PP_CHANNEL_OPEN);
	assert_false(pp_channel_gone(c, &err));
	/* What gone means to whoever is to use it then. */
	c->silence.gone = true;
	assert_true(pp_channel_gone(c, &err));
	assert_string_equal(err.text, "local is lost: its host does not answer any more");
	assert_int_equal(pp_channel_send(c, "{}", 2, &err), -EPIPE);
	assert_int_equal(pp_channel_receive(c, 0, NULL, NULL, &err), -ECONNRESET);
	assert_string_equal(err.text, "local is lost: its host does not answer any more");
	pp_channel_free(c);
	(void)close(l);
	assert_int_equal(pp_channel_pair(pair, &err), 0);
	assert_false(pp_channel_gone(pair[0], &err));
	pp_channel_free(pair[0]);
	pp_channel_free(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_worst),
		cmocka_unit_test(test_ending),
		cmocka_unit_test(test_suspended),
		cmocka_unit_test(test_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
