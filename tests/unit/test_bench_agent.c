/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Agents and their coordinator's words by hand: what each command answers, what a stranger may not
 * say, and a whole run by TCP between two agents, of which every byte is foretold.
 */
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/agent.h"
#include "bench/command.h"
#include "bench/orders.h"

enum { SIZE = 1 << 20 };
static const pp_ns LIMIT = 30 * PP_SECOND;

struct end {
	struct pp_channel *channel;
	pid_t pid;
};

static int one_region(struct pp_trace_registry *ret)
{
	*ret = (struct pp_trace_registry){.arena = PP_ARENA(1 << 20), .n = 1};
	ret->item = pp_arena_array(&ret->arena, 1, sizeof(*ret->item));
	ret->item[0] = (struct pp_trace_software){
		.hca = "lo", .program = "a", .pid = 4711, .lkey = 9, .length = 64, .dmabuf = true};
	return 0;
}

static struct end start_with(const struct pp_agent_options *options)
{
	struct pp_channel *both[2];
	struct pp_error err;
	struct end e;

	assert_int_equal(pp_channel_pair(both, &err), 0);
	e.pid = fork();
	assert_true(e.pid >= 0);
	if (!e.pid) {
		/* others' channels too: an agent ends when all copies of its own are closed */
		for (int fd = 3; fd < 256; fd++)
			if (fd != pp_channel_fd(both[1]))
				(void)close(fd);
		_exit(pp_agent_serve(both[1], options));
	}
	pp_channel_free(both[1]);
	e.channel = both[0];
	return e;
}

static struct end start(void)
{
	return start_with(NULL);
}

/* Its exit status, when its channel has ended. */
static int finish(struct end *e)
{
	int status = -1;

	e->channel = pp_channel_free(e->channel);
	assert_int_equal(waitpid(e->pid, &status, 0), e->pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void tell(struct end *e, const char *text)
{
	struct pp_error err;

	assert_int_equal(pp_channel_send(e->channel, text, strlen(text), &err), 0);
}

static json_t *hear(struct end *e)
{
	struct pp_error err = {0};
	json_t *answer = NULL;

	assert_int_equal(
		pp_channel_receive(e->channel, pp_clock_monotonic() + LIMIT, NULL, &answer, &err),
		0);
	return answer;
}

static bool good(const json_t *answer)
{
	return json_is_true(json_object_get(answer, "ok"));
}

static json_t *ask(struct end *e, const char *text)
{
	tell(e, text);
	return hear(e);
}

static void refused(struct end *e, const char *text, const char *why)
{
	json_t *a = ask(e, text);
	const char *said = json_string_value(json_object_get(a, "text"));

	assert_false(good(a));
	assert_non_null(said);
	if (!strstr(said, why))
		fail_msg("'%s' was refused by '%s', not for '%s'", text, said, why);
	assert_true(json_integer_value(json_object_get(a, "error")) > 0);
	json_decref(a);
}

#define OPEN_TCP(end)                                                                  \
	"{\"do\":\"open\",\"rung\":\"tcp\",\"end\":" end ",\"address\":\"127.0.0.1\"," \
	"\"gid_index\":-1,\"qps\":1,\"depth\":8,\"memory\":\"host\",\"size\":1048576,\"numa\":-1}"
#define READY(role, messages)                                                           \
	"{\"do\":\"ready\",\"op\":\"write\",\"measure\":\"bandwidth\",\"role\":\"" role \
	"\",\"size\":4096,\"messages\":" messages "}"

static void a_stranger_is_refused(void **state)
{
	static const struct {
		const char *text, *why;
	} lines[] = {
		{"{}", "no such command"},
		{"{\"do\":7}", "no such command"},
		{"{\"do\":\"format\"}", "no such command"},
		{"{\"do\":\"run\"}", "not ready"},
		{"{\"do\":\"run\",\"sudo\":true}", "not known"},
		{"{\"do\":\"connect\",\"keys\":[]}", "keys"},
		{"{\"do\":\"connect\"}", "nothing is open"},
		{"{\"do\":\"trace\",\"software\":true,\"probes\":false}", "pids"},
		{"{\"do\":\"trace\",\"software\":true,\"probes\":false,\"pids\":[]}", "pids"},
		{"{\"do\":\"trace\",\"software\":true,\"probes\":false,\"pids\":[0]}",
		 "'pids' is 0"},
		{"{\"do\":\"trace\",\"software\":true,\"probes\":false,\"pids\":[\"1\"]}",
		 "no whole number"},
		{"{\"do\":\"trace\",\"software\":true,\"pids\":[1]}", "'probes' is missing"},
		{"{\"do\":\"look\",\"pids\":[1]}", "not known"},
		{"{\"do\":\"trace\",\"software\":true,\"probes\":false,\"pids\":[1]}",
		 "nobody here asks"},
		{"{\"do\":\"reset\"}", "no endpoint"},
		{"{\"do\":\"restrict\"}", "nothing is registered"},
		{"{\"do\":\"fill\",\"seed\":1}", "nothing is open"},
		{"{\"do\":\"fill\"}", "'seed' is missing"},
		{"{\"do\":\"fill\",\"seed\":-1}", "'seed' is -1"},
		{"{\"do\":\"fill\",\"seed\":1.5}", "no whole number"},
		{"{\"do\":\"check\",\"seed\":1,\"own\":1,\"size\":9,\"way\":2}", "'way' is 2"},
		{READY("active", "0"), "'messages' is 0"},
		{READY("king", "1"), "'role'"},
		{READY("active", "1"), "no peer"},
		{"{\"do\":\"open\",\"rung\":\"host\"}", "is missing"},
		{"{\"do\":\"open\",\"rung\":\"host\",\"end\":0,\"device\":\"\",\"gid_index\":-1,"
		 "\"qps\":1,\"depth\":1,\"memory\":\"host\",\"size\":1,\"numa\":-1}",
		 "'device' is empty"},
		{"{\"do\":\"open\",\"rung\":\"host\",\"end\":0,\"gid_index\":-1,\"qps\":65,"
		 "\"depth\":1,\"memory\":\"host\",\"size\":1,\"numa\":-1}",
		 "'qps' is 65"},
		{"{\"do\":\"open\",\"rung\":\"host\",\"end\":0,\"gid_index\":-1,\"qps\":1,"
		 "\"depth\":1,\"memory\":\"host\",\"size\":9223372036854775807,\"numa\":-1}",
		 "'size' is 9223372036854775807"},
		{"{\"do\":\"negative\",\"op\":\"send\",\"address\":0,\"key\":0,\"from\":0,"
		 "\"size\":8}",
		 "'op'"},
		{"{\"do\":\"witness\",\"device\":\"a\\u0007\",\"size\":8,\"tcp_port\":1,"
		 "\"seconds\":1}",
		 "control characters"},
	};
	struct end e = start();

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		refused(&e, lines[i].text, lines[i].why);
	/* it still serves */
	json_decref(ask(&e, "{\"do\":\"close\"}"));
	assert_int_equal(finish(&e), 0);
}

static void a_second_open_is_refused(void **state)
{
	struct end e = start();
	json_t *a = ask(&e, OPEN_TCP("1"));

	(void)state;
	assert_true(good(a));
	json_decref(a);
	refused(&e, OPEN_TCP("1"), "close it first");
	refused(&e, "{\"do\":\"look\"}", "something is open");
	a = ask(&e, "{\"do\":\"close\"}");
	assert_true(good(a));
	json_decref(a);
	a = ask(&e, OPEN_TCP("1"));
	assert_true(good(a));
	json_decref(a);
	/* a part that is larger than what it was told of, or begins elsewhere */
	refused(&e,
		"{\"do\":\"connect\",\"keys\":[{\"start\":0,\"length\":-5,\"address\":0,\"key\":0}]"
		"}",
		"'length' is -5");
	assert_int_equal(finish(&e), 0);
}

/* Gives to each what the other's open said. */
static void join(struct end e[2], json_t *opened[2])
{
	for (unsigned int i = 0; i < 2; i++) {
		json_t *o = json_object(), *a;
		char *text;

		assert_int_equal(json_object_set_new(o, "do", json_string("connect")), 0);
		assert_int_equal(json_object_set(o, "keys", json_object_get(opened[!i], "keys")),
				 0);
		if (!i) {
			(void)json_object_set(o, "tcp_port",
					      json_object_get(opened[1], "tcp_port"));
			(void)json_object_set(o, "nonce", json_object_get(opened[1], "nonce"));
			(void)json_object_set_new(o, "tcp_address", json_string("127.0.0.1"));
		}
		text = json_dumps(o, 0);
		tell(&e[i], text);
		free(text);
		json_decref(o);
		(void)a;
	}
	for (unsigned int i = 0; i < 2; i++) {
		json_t *a = hear(&e[i]);

		assert_true(good(a));
		json_decref(a);
	}
}

static int64_t number(const json_t *a, const char *key)
{
	const json_t *v = json_object_get(a, key);

	assert_true(json_is_integer(v));
	return json_integer_value(v);
}

static void both(struct end e[2], const char *first, const char *second, json_t *ret[2])
{
	tell(&e[0], first);
	tell(&e[1], second);
	for (unsigned int i = 0; i < 2; i++) {
		ret[i] = hear(&e[i]);
		if (!good(ret[i]))
			fail_msg("%s", json_string_value(json_object_get(ret[i], "text")));
	}
}

static void drop(json_t *a[2])
{
	json_decref(a[0]);
	json_decref(a[1]);
}

static void checked(struct end *e, const char *text, int64_t wrong_least, int64_t wrong_most)
{
	json_t *a = ask(e, text);

	assert_true(good(a));
	assert_int_equal(number(a, "bytes"), SIZE);
	assert_in_range(number(a, "wrong"), wrong_least, wrong_most);
	json_decref(a);
}

static void tcp_carries_what_it_should(void **state)
{
	struct end e[2] = {start(), start()};
	json_t *a[2];

	(void)state;
	both(e, OPEN_TCP("0"), OPEN_TCP("1"), a);
	join(e, a);
	drop(a);
	both(e, "{\"do\":\"fill\",\"seed\":11}", "{\"do\":\"fill\",\"seed\":22}", a);
	drop(a);
	/* nothing came yet: 64 slots of 4096 bytes hold the wrong pattern, but for chance */
	checked(&e[1], "{\"do\":\"check\",\"seed\":11,\"own\":22,\"size\":4096,\"way\":0}",
		64 * 4096 * 9 / 10, 128 * 4096);
	checked(&e[1], "{\"do\":\"check\",\"seed\":11,\"own\":22,\"size\":0,\"way\":0}", 0, 0);
	both(e, READY("active", "1000"), READY("receive", "1000"), a);
	drop(a);
	both(e, "{\"do\":\"run\"}", "{\"do\":\"run\"}", a);
	assert_int_equal(number(a[0], "bytes"), 1000 * 4096);
	assert_int_equal(number(a[1], "bytes"), 1000 * 4096);
	assert_true(number(a[0], "took_ns") > 0);
	drop(a);
	checked(&e[1], "{\"do\":\"check\",\"seed\":11,\"own\":22,\"size\":4096,\"way\":0}", 0, 0);
	/* the source is as it was */
	checked(&e[0], "{\"do\":\"check\",\"seed\":22,\"own\":11,\"size\":0,\"way\":0}", 0, 0);
	/* a seed that differs in one bit is another pattern */
	checked(&e[1], "{\"do\":\"check\",\"seed\":10,\"own\":22,\"size\":4096,\"way\":0}",
		64 * 4096 * 9 / 10, 128 * 4096);
	assert_int_equal(finish(&e[0]), 0);
	assert_int_equal(finish(&e[1]), 0);
}

static void too_few_messages_are_seen(void **state)
{
	struct end e[2] = {start(), start()};
	json_t *a[2];

	(void)state;
	both(e, OPEN_TCP("0"), OPEN_TCP("1"), a);
	join(e, a);
	drop(a);
	both(e, "{\"do\":\"fill\",\"seed\":11}", "{\"do\":\"fill\",\"seed\":22}", a);
	drop(a);
	both(e, READY("active", "3"), READY("receive", "3"), a);
	drop(a);
	both(e, "{\"do\":\"run\"}", "{\"do\":\"run\"}", a);
	drop(a);
	checked(&e[1], "{\"do\":\"check\",\"seed\":11,\"own\":22,\"size\":4096,\"way\":0}",
		61 * 4096 * 9 / 10, 125 * 4096);
	/* a peer that goes in the middle: the other says so, and soon */
	both(e, READY("active", "100000000"), READY("receive", "100000000"), a);
	drop(a);
	tell(&e[0], "{\"do\":\"run\"}");
	tell(&e[1], "{\"do\":\"run\"}");
	assert_int_equal(finish(&e[1]), 0);
	a[0] = hear(&e[0]);
	assert_false(good(a[0]));
	assert_int_equal(number(a[0], "error"), ECONNRESET);
	json_decref(a[0]);
	assert_int_equal(finish(&e[0]), 0);
}

static void a_stranger_on_the_data_port_is_sent_away(void **state)
{
	struct end e[2] = {start(), start()};
	json_t *a[2], *connected;
	char text[512];

	(void)state;
	both(e, OPEN_TCP("0"), OPEN_TCP("1"), a);
	/* another nonce: end 1 waits on for the right one, and end 0's connection is closed */
	(void)snprintf(text, sizeof(text),
		       "{\"do\":\"connect\",\"keys\":[{\"start\":0,\"length\":1048576,"
		       "\"address\":0,\"key\":0}],\"tcp_address\":\"127.0.0.1\",\"tcp_port\":%lld,"
		       "\"nonce\":\"00000000000000000000000000000000\"}",
		       (long long)number(a[1], "tcp_port"));
	tell(&e[1], "{\"do\":\"connect\",\"keys\":[{\"start\":0,\"length\":1048576,"
		    "\"address\":0,\"key\":0}]}");
	connected = ask(&e[0], text);
	json_decref(connected);
	drop(a);
	/* end 1 did not take it: it is still waiting when its channel ends */
	assert_int_equal(finish(&e[0]), 0);
	assert_int_equal(finish(&e[1]), 0);
}

static void no_object_ends_it(void **state)
{
	struct pp_error err;
	json_t *answer = NULL;
	struct end e = start();

	(void)state;
	tell(&e, "[1,2,3]");
	assert_int_not_equal(
		pp_channel_receive(e.channel, pp_clock_monotonic() + LIMIT, NULL, &answer, &err),
		0);
	assert_int_equal(finish(&e), 1);
}

static struct pp_seat seat_of(struct end *e)
{
	struct pp_seat s = {.channel = e->channel};

	e->channel = NULL;
	return s;
}

static void orders_tell_apart(void **state)
{
	struct end e[3] = {start(), start(), start()};
	struct pp_seat seat[3] = {seat_of(&e[0]), seat_of(&e[1]), seat_of(&e[2])};
	struct pp_order o[3];
	unsigned int bad;

	(void)state;
	assert_int_equal(kill(e[2].pid, SIGKILL), 0);
	(void)pp_order_begin(&o[0], &seat[0], PP_DO_CLOSE);
	pp_json_i64(pp_order_begin(&o[1], &seat[1], PP_DO_FILL), "seed", 5);
	(void)pp_order_begin(&o[2], &seat[2], PP_DO_CLOSE);
	assert_int_equal(pp_orders_do(o, 3, LIMIT, NULL), 0);
	assert_int_equal(o[0].outcome, PP_ORDER_DONE);
	assert_int_equal(o[1].outcome, PP_ORDER_REFUSED);
	assert_string_equal(o[1].why, "fill: nothing is open");
	assert_int_equal(o[2].outcome, PP_ORDER_LOST);
	assert_null(seat[2].channel);
	assert_false(pp_orders_good(o, 3, &bad));
	assert_int_equal(bad, 1);
	pp_orders_free(o, 3);
	/* a seat that was given up is told nothing any more */
	(void)pp_order_begin(&o[0], &seat[2], PP_DO_CLOSE);
	assert_int_equal(pp_orders_do(o, 1, LIMIT, NULL), 0);
	assert_int_equal(o[0].outcome, PP_ORDER_NOT_SENT);
	pp_orders_free(o, 1);
	for (unsigned int i = 0; i < 3; i++) {
		pp_seat_leave(&seat[i]);
		(void)waitpid(e[i].pid, NULL, 0);
	}
}

static void silence_is_given_up(void **state)
{
	struct pp_channel *both[2];
	struct pp_seat seat;
	struct pp_order o;
	struct pp_error err;

	(void)state;
	assert_int_equal(pp_channel_pair(both, &err), 0);
	seat = (struct pp_seat){.channel = both[0]};
	(void)pp_order_begin(&o, &seat, PP_DO_RUN);
	assert_int_equal(pp_orders_do(&o, 1, 100 * PP_MILLISECOND, NULL), 0);
	assert_int_equal(o.outcome, PP_ORDER_SILENT);
	assert_null(seat.channel);
	pp_orders_free(&o, 1);
	pp_channel_free(both[1]);
}

#define TRACE "{\"do\":\"trace\",\"software\":true,\"probes\":false,\"pids\":[4711,4712]}"

/* A fresh agent looks; one that has something open does not. */
static void it_looks_at_others(void **state)
{
	static const struct pp_agent_options options = {.registry = one_region};
	struct end e = start_with(&options);
	json_t *a = ask(&e, TRACE);
	const json_t *list = json_object_get(a, "evidence"), *one = json_array_get(list, 0);

	(void)state;
	assert_true(good(a));
	/* a region, its process, and a process of which there is none */
	assert_int_equal(json_array_size(list), 3);
	assert_int_equal(json_integer_value(json_object_get(one, "pid")), 4711);
	assert_int_equal(json_integer_value(json_object_get(one, "lkey")), 9);
	assert_true(json_is_true(json_object_get(one, "simulated")));
	json_decref(a);
	a = ask(&e, OPEN_TCP("1"));
	assert_true(good(a));
	/* by which others may look at this one */
	assert_int_equal(json_integer_value(json_object_get(a, "pid")), e.pid);
	json_decref(a);
	refused(&e, TRACE, "something is open");
	assert_int_equal(finish(&e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stranger_is_refused),
		cmocka_unit_test(a_second_open_is_refused),
		cmocka_unit_test(it_looks_at_others),
		cmocka_unit_test(tcp_carries_what_it_should),
		cmocka_unit_test(too_few_messages_are_seen),
		cmocka_unit_test(a_stranger_on_the_data_port_is_sent_away),
		cmocka_unit_test(no_object_ends_it),
		cmocka_unit_test(orders_tell_apart),
		cmocka_unit_test(silence_is_given_up),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
