/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each allocation of a short run fails once: an error with a text, nothing leaked, no descriptor
 * left open, no process left. The same allocation fails in the node's process and in the agent,
 * which then are gone: the coordinator has to live with that as well.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fail_alloc.h"
#include "rdma/gate.h"
#include "rdma/party.h"

/* Of a dialler whom a failure has turned away; whom nothing fails is there by then. */
#define LIMIT (400 * PP_MILLISECOND)

static const char token[] = "correct horse battery";

static int agent(struct pp_channel *c, const void *arg)
{
	struct pp_error err;
	json_t *m = NULL;

	(void)arg;
	while (pp_channel_receive(c, pp_clock_monotonic() + 60 * PP_SECOND, NULL, &m, &err) == 0) {
		json_decref(m);
		(void)pp_channel_send(c, "{}", 2, &err);
	}
	return 0;
}

static int record(char **ret, size_t *ret_len, const void *arg)
{
	(void)arg;
	*ret = malloc(100);
	if (!*ret)
		return -ENOMEM;
	memset(*ret, 'r', 100);
	*ret_len = 100;
	return 0;
}

static int talk(struct pp_channel *c, struct pp_error *err)
{
	json_t *m = NULL;
	int r = pp_channel_send(c, "{}", 2, err);

	if (!r)
		r = pp_channel_receive(c, pp_clock_monotonic() + 60 * PP_SECOND, NULL, &m, err);
	json_decref(m);
	return r;
}

static int run_here(struct pp_error *err)
{
	const struct pp_party_options o = {
		.local = 2, .token = token, .service = {.agent = agent, .record = record}};
	struct pp_channel *c = NULL;
	struct pp_party *p = NULL;
	char *bytes = NULL;
	size_t len;
	int r = pp_party_gather(&o, &p, err);

	if (!r)
		r = pp_party_agent(p, 1, &c, err);
	if (!r)
		r = talk(c, err);
	(void)pp_channel_free(c);
	if (!r)
		r = pp_party_record(p, 0, &bytes, &len, err);
	free(bytes);
	(void)pp_party_free(p);
	return r;
}

/* A gate and a dialler that is a child, in which nothing fails. */
static int run_gate(struct pp_error *err)
{
	struct pp_gate_options o = {.token = token, .introduction = "{}"};
	struct pp_channel *c = NULL;
	struct pp_gate *g = NULL;
	char address[32];
	uint16_t port = 0;
	int fd = -1, r = pp_channel_listen("127.0.0.1:0", &fd, &port, err);
	pid_t pid;

	if (r)
		return r;
	(void)snprintf(address, sizeof(address), "127.0.0.1:%u", port);
	pid = fork();
	if (!pid) {
		(void)pp_fail_alloc_stop();
		r = pp_channel_connect(address, token, pp_clock_monotonic() + LIMIT, NULL, &c, err);
		_exit(r ? 1 : talk(c, err) != 0);
	}
	r = pp_gate_new(fd, &o, &g, err);
	if (!r)
		r = pp_gate_wait(g, pp_clock_monotonic() + LIMIT, NULL, &c, err);
	if (!r)
		r = talk(c, err);
	(void)pp_channel_free(c);
	(void)pp_gate_free(g);
	(void)waitpid(pid, NULL, 0);
	return r;
}

static int highest_file(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)close(fd);
	return fd;
}

static void torture(int (*run)(struct pp_error *err))
{
	int file = highest_file();
	struct pp_error err;
	bool failed = true;
	size_t n = 1;
	int r = 0;

	/* A child of ours may meet the failure when we do not. */
	for (; (failed || r) && n < 1000; n++) {
		err = (struct pp_error){0};
		pp_fail_alloc_start(n);
		r = run(&err);
		failed = pp_fail_alloc_stop();
		if (pp_fail_alloc_live())
			fail_msg("allocation %zu: %zu leaked", n, pp_fail_alloc_live());
		if (r && !err.text[0])
			fail_msg("allocation %zu: %d without a text", n, r);
		assert_int_equal(highest_file(), file);
		assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	}
	assert_int_equal(r, 0);
	assert_true(n > 5);
}

static void test_here(void **state)
{
	(void)state;
	torture(run_here);
}

static void test_gate(void **state)
{
	(void)state;
	torture(run_gate);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_here),
		cmocka_unit_test(test_gate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
