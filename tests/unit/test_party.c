/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes on one machine and their agents: that each ends when it has to, whatever became of the
 * others. The judge is the kernel: /proc, and descriptors counted.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rdma/child.h"
#include "rdma/party.h"

static const char token[] = "correct horse battery";

static pp_ns in(double seconds)
{
	return pp_clock_monotonic() + (pp_ns)(seconds * (double)PP_SECOND);
}

static void pause_ms(int ms)
{
	(void)poll(NULL, 0, ms);
}

static int reply(struct pp_channel *c, const char *key, long long value)
{
	struct pp_error err;
	char text[64];
	int n = snprintf(text, sizeof(text), "{\"%s\":%lld}", key, value);

	return pp_channel_send(c, text, (size_t)n, &err);
}

/* Those of a sanitizer or of valgrind lie higher. */
static long long count_files(void)
{
	long long n = 0;

	for (int fd = 0; fd < 512; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Never ends by itself from here on. */
static void be_stubborn(void)
{
	(void)signal(SIGTERM, SIG_IGN);
	for (;;)
		pause_ms(1000);
}

static int agent(struct pp_channel *c, const void *arg)
{
	struct pp_error err;
	json_t *m = NULL;
	const char *what;
	int r;

	if (strcmp(arg, "argument") != 0)
		return 9;
	for (;;) {
		r = pp_channel_receive(c, in(600), NULL, &m, &err);
		if (r)
			return 0;
		what = json_string_value(json_object_get(m, "do"));
		if (strcmp(what, "pid") == 0)
			(void)reply(c, "pid", getpid());
		else if (strcmp(what, "group") == 0)
			(void)reply(c, "group", getpgid(0));
		else if (strcmp(what, "files") == 0)
			(void)reply(c, "files", count_files());
		else if (strcmp(what, "exit") == 0)
			return json_decref(m), 3;
		else if (strcmp(what, "speak") == 0)
			(void)(fputs("first\nlast \033[1mwords\n", stderr),
			       fputs("on paper\n", stdout), fflush(NULL), reply(c, "spoken", 1));
		else if (strcmp(what, "die") == 0)
			(void)kill(getpid(), SIGKILL);
		else if (strcmp(what, "stubborn") == 0)
			(void)reply(c, "stubborn", 1), be_stubborn();
		else if (strcmp(what, "child") == 0) {
			pid_t pid = fork();

			if (!pid)
				be_stubborn();
			(void)reply(c, "child", pid);
		}
		json_decref(m);
	}
}

enum { RECORD = 5000000 };

static int record(char **ret, size_t *ret_len, const void *arg)
{
	size_t len = strcmp(arg, "argument") == 0 ? RECORD : (size_t)PP_PARTY_RECORD + 1;

	if (strcmp(arg, "nothing") == 0)
		return -EIO;
	*ret = malloc(len);
	for (size_t i = 0; i < len; i++)
		(*ret)[i] = (char)(i * 7 + i / 251);
	*ret_len = len;
	return 0;
}

static struct pp_party *here(unsigned int n)
{
	const struct pp_party_options o = {
		.local = n, .service = {.agent = agent, .record = record, .arg = "argument"}};
	struct pp_party *p = NULL;
	struct pp_error err;

	assert_int_equal(pp_party_gather(&o, &p, &err), 0);
	assert_int_equal(pp_party_size(p), n);
	return p;
}

static struct pp_channel *open_agent(struct pp_party *p, unsigned int i)
{
	struct pp_channel *c = NULL;
	struct pp_error err;

	assert_int_equal(pp_party_agent(p, i, &c, &err), 0);
	return c;
}

static long long ask(struct pp_channel *c, const char *what)
{
	struct pp_error err;
	json_t *m = NULL;
	long long value;
	char text[64];

	(void)snprintf(text, sizeof(text), "{\"do\":\"%s\"}", what);
	if (pp_channel_send(c, text, strlen(text), &err) ||
	    pp_channel_receive(c, in(20), NULL, &m, &err))
		return -1;
	value = json_integer_value(json_object_iter_value(json_object_iter(m)));
	json_decref(m);
	return value;
}

/* Gone, or dead and not yet reaped by whom it was left to. */
static bool is_gone(pid_t pid)
{
	char path[64], text[256] = "";
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	(void)!read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	return strstr(text, ") Z ") || strstr(text, ") X ");
}

/* Far longer than it may take: this test measures no time, a busy machine would fail it. */
static void assert_goes(pid_t pid)
{
	for (int i = 0; i < 3000 && !is_gone(pid); i++)
		pause_ms(10);
	assert_true(is_gone(pid));
}

static void assert_no_children(void)
{
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void test_agents(void **state)
{
	struct pp_party *p = here(2);
	struct pp_channel *a = open_agent(p, 0), *b = open_agent(p, 1), *again;
	pid_t first, second;

	(void)state;
	first = (pid_t)ask(a, "pid");
	second = (pid_t)ask(b, "pid");
	assert_true(first > 0 && second > 0 && first != second);
	assert_int_equal(ask(a, "group"), first);
	/* 0, 1, 2 and its channel: nothing that was open in this process. */
	assert_int_equal(ask(a, "files"), 4);
	(void)pp_channel_free(a);
	assert_goes(first);
	assert_false(is_gone(second));
	again = open_agent(p, 0);
	assert_true(ask(again, "pid") != first);
	first = (pid_t)ask(again, "pid");
	(void)pp_channel_free(again);
	(void)pp_channel_free(b);
	(void)pp_party_free(p);
	assert_goes(first);
	assert_goes(second);
	assert_no_children();
}

static void test_names(void **state)
{
	struct pp_party *p = here(3);
	const char *id = pp_party_node(p, 0)->id;
	char second[80];

	(void)state;
	assert_string_equal(pp_party_node(p, 0)->address, "local");
	assert_string_equal(pp_party_node(p, 0)->version, PEERPATH_VERSION);
	assert_true(id[0] && !strpbrk(id, "/. "));
	(void)snprintf(second, sizeof(second), "%s-2", id);
	assert_string_equal(pp_party_node(p, 1)->id, second);
	(void)snprintf(second, sizeof(second), "%s-3", id);
	assert_string_equal(pp_party_node(p, 2)->id, second);
	(void)pp_party_free(p);
}

/* The ladder: told, SIGTERM, SIGKILL; and what the agent itself had started goes with it. */
static void test_stubborn(void **state)
{
	struct pp_party *p = here(1);
	struct pp_channel *a = open_agent(p, 0), *b = open_agent(p, 0);
	pid_t first = (pid_t)ask(a, "pid"), second = (pid_t)ask(b, "pid");
	pid_t grandchild = (pid_t)ask(b, "child");

	(void)state;
	assert_int_equal(ask(a, "stubborn"), 1);
	(void)pp_channel_free(a);
	(void)pp_channel_free(b);
	assert_goes(second);
	assert_goes(grandchild);
	assert_goes(first);
	/* And at the end of the party. */
	a = open_agent(p, 0);
	first = (pid_t)ask(a, "pid");
	assert_int_equal(ask(a, "stubborn"), 1);
	(void)pp_party_free(p);
	assert_true(is_gone(first));
	(void)pp_channel_free(a);
	assert_no_children();
}

static void assert_fate(struct pp_party *p, unsigned int i, const char *words)
{
	char text[640];

	for (int k = 0; k < 20; k++) {
		pp_party_fate(p, i, text, sizeof(text));
		if (text[0])
			break;
	}
	if (!strstr(text, words))
		fail_msg("\"%s\" does not say \"%s\"", text, words);
	assert_null(strchr(text, '\033'));
	/* Told once. */
	pp_party_fate(p, i, text, sizeof(text));
	assert_null(strstr(text, "killed"));
}

static void test_fates(void **state)
{
	struct pp_party *p = here(2);
	struct pp_channel *a = open_agent(p, 0);
	char text[640];

	(void)state;
	assert_int_equal(ask(a, "speak"), 1);
	assert_int_equal(ask(a, "die"), -1);
	assert_fate(p, 0, "agent was killed by signal 9 (KILL); its last words: last ?[1mwords");
	(void)pp_channel_free(a);
	a = open_agent(p, 1);
	(void)kill((pid_t)ask(a, "pid"), SIGKILL);
	assert_int_equal(ask(a, "pid"), -1);
	assert_fate(p, 1, "agent was killed by signal 9 (KILL)");
	(void)pp_channel_free(a);
	a = open_agent(p, 1);
	assert_int_equal(ask(a, "exit"), -1);
	assert_fate(p, 1, "agent ended with status 3");
	(void)pp_channel_free(a);
	/* One that ended as it should is no news. */
	(void)pp_channel_free(open_agent(p, 0));
	pp_party_fate(p, 0, text, sizeof(text));
	assert_string_equal(text, "");
	(void)pp_party_free(p);
}

static void test_record(void **state)
{
	struct pp_party_options o = {
		.local = 1, .service = {.agent = agent, .record = record, .arg = "argument"}};
	struct pp_party *p = here(1);
	struct pp_error err;
	char *bytes = NULL;
	size_t len = 0;

	(void)state;
	assert_int_equal(pp_party_record(p, 0, &bytes, &len, &err), 0);
	assert_int_equal(len, RECORD);
	for (size_t i = 0; i < len; i++)
		if (bytes[i] != (char)(i * 7 + i / 251))
			fail_msg("byte %zu is wrong", i);
	free(bytes);
	(void)pp_party_free(p);
	for (int k = 0; k < 3; k++) {
		static const char *const args[] = {"too much", "nothing", "argument"};

		o.service.arg = args[k];
		o.service.record = k == 2 ? NULL : record;
		assert_int_equal(pp_party_gather(&o, &p, &err), 0);
		assert_int_equal(pp_party_record(p, 0, &bytes, &len, &err), -EREMOTEIO);
		assert_non_null(strstr(err.text, "could not"));
		(void)pp_party_free(p);
	}
}

static void kill_parent_of(pid_t agent_pid)
{
	char path[64], text[512] = "";
	const char *s;
	int fd, parent = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)agent_pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	(void)!read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	s = strstr(text, ") ");
	for (s += 4; *s >= '0' && *s <= '9'; s++)
		parent = parent * 10 + (*s - '0');
	assert_true(parent > 1 && parent != getpid());
	assert_int_equal(kill(parent, SIGKILL), 0);
}

/* A node's process killed: its agents go, the other node lives. */
static void test_node_killed(void **state)
{
	struct pp_party *p = here(2);
	struct pp_channel *a = open_agent(p, 0), *b = open_agent(p, 1), *c = NULL;
	pid_t first = (pid_t)ask(a, "pid"), second = (pid_t)ask(b, "pid");
	struct pp_error err;

	(void)state;
	kill_parent_of(first);
	assert_goes(first);
	assert_int_equal(ask(a, "pid"), -1);
	assert_fate(p, 0, "node has ended its connection");
	assert_int_equal(pp_party_agent(p, 0, &c, &err), -ECONNRESET);
	assert_int_equal(ask(b, "pid"), second);
	(void)pp_channel_free(a);
	(void)pp_channel_free(b);
	(void)pp_party_free(p);
	assert_goes(second);
	assert_no_children();
}

/* The coordinator killed: everybody goes. What it leaves behind comes to us, a subreaper. */
static void test_coordinator_killed(void **state)
{
	pid_t pids[2] = {0}, coordinator;
	int out[2];

	(void)state;
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	assert_int_equal(pipe(out), 0);
	coordinator = fork();
	if (!coordinator) {
		struct pp_party *p = here(2);
		struct pp_channel *a = open_agent(p, 0), *b = open_agent(p, 1);

		pids[0] = (pid_t)ask(a, "pid");
		pids[1] = (pid_t)ask(b, "pid");
		(void)ask(b, "stubborn");
		(void)!write(out[1], pids, sizeof(pids));
		for (;;)
			pause_ms(1000);
	}
	assert_int_equal(read(out[0], pids, sizeof(pids)), sizeof(pids));
	assert_int_equal(kill(coordinator, SIGKILL), 0);
	assert_int_equal(waitpid(coordinator, NULL, 0), coordinator);
	assert_goes(pids[0]);
	assert_goes(pids[1]);
	/* The nodes' processes too. */
	for (int i = 0; i < 3000 && waitpid(-1, NULL, WNOHANG) != -1; i++)
		pause_ms(10);
	assert_no_children();
	(void)close(out[0]);
	(void)close(out[1]);
}

/*
 * A process on which no signal has an effect is left behind, and named. None can be had for a
 * test: this one leads no group, so that signals to its group go nowhere, and is no child of ours.
 */
static void test_left(void **state)
{
	struct pp_child child = {.stage = PP_CHILD_RUNS, .from = -1, .step = PP_SECOND};
	int out[2], end[2];
	char text[128], pid[32];
	pid_t between;

	(void)state;
	assert_int_equal(pipe(out), 0);
	assert_int_equal(pipe(end), 0);
	between = fork();
	if (!between) {
		pid_t stuck = fork();

		if (!stuck)
			be_stubborn();
		(void)!write(out[1], &stuck, sizeof(stuck));
		be_stubborn();
	}
	assert_int_equal(read(out[0], &child.pid, sizeof(child.pid)), sizeof(child.pid));
	child.watch = end[0];
	pp_child_step(&child);
	assert_int_equal(child.stage, PP_CHILD_RUNS);
	pp_child_end(&child, PP_SECOND / 10);
	for (int i = 0; i < 6000 && !pp_child_is_over(&child); i++) {
		pause_ms(10);
		pp_child_step(&child);
	}
	assert_int_equal(child.stage, PP_CHILD_LEFT);
	assert_false(is_gone(child.pid));
	pp_child_fate(&child, text, sizeof(text));
	(void)snprintf(pid, sizeof(pid), "pid %d", (int)child.pid);
	assert_non_null(strstr(text, pid));
	assert_non_null(strstr(text, "left behind"));
	(void)kill(child.pid, SIGKILL);
	(void)kill(between, SIGKILL);
	(void)waitpid(between, NULL, 0);
	assert_goes(child.pid);
	pp_child_done(&child);
	(void)close(out[0]);
	(void)close(out[1]);
	(void)close(end[1]);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		continue;
}

static void test_refused(void **state)
{
	static const char *const peers[] = {"127.0.0.1:1"};
	const struct pp_launch launch = {.by = "Slurm", .rank = 1, .size = 2};
	const struct pp_party_options rows[] = {
		{.local = 0},
		{.local = PP_PARTY_NODES + 1},
		{.local = 1, .peers = peers, .n_peers = 1},
		{.local = 1, .peers = peers, .n_peers = 1, .token = "short"},
		{.local = 1, .launch = &launch, .token = token},
		{.local = 2, .launch = &launch, .token = token},
	};
	struct pp_party *p = NULL;
	struct pp_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(pp_party_gather(&rows[i], &p, &err), -EINVAL);
		assert_true(err.text[0]);
		assert_null(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_agents),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_stubborn),
		cmocka_unit_test(test_fates),
		cmocka_unit_test(test_record),
		cmocka_unit_test(test_node_killed),
		cmocka_unit_test(test_coordinator_killed),
		cmocka_unit_test(test_left),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
