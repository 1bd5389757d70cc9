/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank that was killed comes before what its peers say of its silence, and does not where the
 * launcher killed what was left after an error.
 *
 * The words are those of the programs: Open MPI's and srun's own messages, torchrun's, the
 * kernel's, and NCCL's of the recorded job in tests/fixtures/nccl (h200-killed: rank 1 by SIGKILL).
 */
#include "explain_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "judge/textfile.h"

#define STATUS                                                                                    \
	"Got completion from peer 10.0.0.2<40000> with status=12 opcode=1 len=262144 vendor err " \
	"129"
#define GONE "n1:10:20 [0] transport/net_ib.cc:2420 NCCL WARN NET/IB: " STATUS " (Send)\n"
#define FLUSH                                                                               \
	"n1:10:20 [0] transport/net_ib.cc:2420 NCCL WARN NET/IB: Got completion from peer " \
	"10.0.0.2<40000> "                                                                  \
	"with status=5 opcode=0 len=0 vendor err 249 (Recv)\n"
#define CLOSED                                                                                  \
	"n1:10:20 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote " \
	"peer n2<40001>\n"
#define MPIRUN                                                                            \
	"mpirun noticed that process rank 1 with PID 4242 on node n2 exited on signal 9 " \
	"(Killed).\n"
#define KILLED "srun: error: n2: task 1: Killed\n"
#define FAILED "srun: error: n1: task 0: Exited with exit code 1\n"
#define KERNEL \
	"n2 kernel: Out of memory: Killed process 4242 (python3) total-vm:100kB, anon-rss:90kB\n"
#define DATED(time, text) "[2026-11-30 " time "] " text
#define TORCH(time)                                                                         \
	"2026-11-30 " time " torch/distributed/elastic/multiprocessing/api.py:826] failed " \
	"(exitcode: -9) local_rank: 1 (pid: 44) of binary: /usr/bin/python3\n"

static const struct row {
	const char *text, *first, *second; /* second: NULL, or a cause that must be `caused` */
} rows[] = {
	{GONE CLOSED MPIRUN, "killed-by-nine", "wc-retry-exceeded"},
	{GONE KILLED, "killed-by-nine", "wc-retry-exceeded"},
	{FLUSH CLOSED MPIRUN, "killed-by-nine", NULL},
	{CLOSED
	 "RuntimeError: NCCL error: remote process exited or there was a network error\n" MPIRUN,
	 "killed-by-nine", NULL},
	{GONE KERNEL, "oom-killed", "wc-retry-exceeded"},
	/* srun kills what is left when one has failed, and says so after that */
	{GONE FAILED KILLED, "wc-retry-exceeded", NULL},
	{GONE "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n" KILLED,
	 "wc-retry-exceeded", NULL},
	/* torchrun sees an end at once; ten minutes later it was no cause */
	{DATED("10:00:09", GONE) TORCH("10:00:01"), "killed-by-nine", "wc-retry-exceeded"},
	{DATED("10:00:00", GONE) TORCH("10:00:04"), "killed-by-nine", "wc-retry-exceeded"},
	{DATED("10:00:00", GONE) TORCH("10:10:00"), "wc-retry-exceeded", NULL},
	/* nobody was killed, or a port is the cause */
	{GONE CLOSED, "wc-retry-exceeded", NULL},
	{GONE "mpirun noticed that process rank 1 with PID 4242 on node n2 exited on signal 11 "
	      "(Segmentation fault).\n",
	 "wc-retry-exceeded", NULL},
};

static void answer(const struct pp_known_set *known, const char *text, struct pp_explain **ret_e,
		   struct pp_explanation *ret)
{
	assert_int_equal(pp_explain_new(known, ret_e), 0);
	pp_explain_push(*ret_e, text, strlen(text));
	assert_int_equal(pp_explain_finish(*ret_e, NULL, ret), 0);
	assert_true(ret->n > 0);
}

static bool follows(const struct pp_explanation *x, const char *rule, const char *cause)
{
	for (size_t i = 1; i < x->n; i++)
		if (!strcmp(x->list[i].known->rule.id, rule))
			return x->list[i].caused && !strcmp(x->list[i].caused->rule.id, cause);
	return false;
}

static void test_order(void **state)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(rows); i++) {
		struct pp_explanation x;
		struct pp_explain *e;

		answer(*state, rows[i].text, &e, &x);
		if (strcmp(x.list[0].known->rule.id, rows[i].first) != 0)
			fail_msg("%s\n%s stands first", rows[i].text, x.list[0].known->rule.id);
		if (rows[i].second && !follows(&x, rows[i].second, rows[i].first))
			fail_msg("%s\n%s does not follow", rows[i].text, rows[i].second);
		pp_explanation_done(&x);
		pp_explain_free(e);
	}
}

static void add_file(struct pp_buf *text, const char *name)
{
	const char *top = getenv("PP_TEST_DIR");
	struct pp_buf PP_AUTO_BUF part = PP_BUF(1 << 20);
	struct pp_error err = {0};
	char path[1024];

	(void)snprintf(path, sizeof(path), "%s/../fixtures/nccl/%s", top ? top : ".", name);
	if (pp_textfile_read(path, &part, &err))
		fail_msg("%s", err.text);
	pp_buf_printf(text, "%.*s", (int)part.len, part.data);
}

/* The recorded job: by its logs alone the peer is silent; with what its launcher said it is dead.
 */
static void test_recorded(void **state)
{
	static const char *const said[] = {"",
					   "peerpath nccl: rank 1 on vm-2: agent was killed by "
					   "signal 9 (KILL), at all_reduce of "
					   "268435456 bytes\n",
					   MPIRUN};

	for (size_t i = 0; i < PP_ARRAY_LEN(said); i++) {
		struct pp_buf PP_AUTO_BUF text = PP_BUF(4 << 20);
		struct pp_explanation x;
		struct pp_explain *e;

		add_file(&text, "h200-killed.rank0.log");
		add_file(&text, "h200-killed.rank1.log");
		pp_buf_printf(&text, "%s", said[i]);
		answer(*state, text.data, &e, &x);
		assert_string_equal(x.list[0].known->rule.id,
				    i ? "killed-by-nine" : "wc-retry-exceeded");
		assert_int_equal(follows(&x, "wc-retry-exceeded", "killed-by-nine"), i != 0);
		pp_explanation_done(&x);
		pp_explain_free(e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_recorded),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
