/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals, and what is kept of them: each allocation of ours fails once. Nothing leaks, nothing is
 * half done: what the database holds afterwards is a whole round, or none of it.
 */
#include "unit.h"

#include <errno.h>

#include "base/clock.h"
#include "daemon/judge.h"
#include "daemon/keep.h"
#include "fail_alloc.h"
#include "judge/policy.h"

static const struct pp_look first[] = {
	{.kind = PP_SIGNAL_LINK_STATE, .object = "a", .value = "up", .raw = "4: ACTIVE"},
	{.kind = PP_SIGNAL_PORT_ERRORS, .object = "a", .number = 1},
	{.kind = PP_SIGNAL_BAR1_FREE, .object = "g", .number = 1000},
	{.kind = PP_SIGNAL_ACS, .object = "b", .value = "on"},
};
static const struct pp_look second[] = {
	{.kind = PP_SIGNAL_LINK_STATE, .object = "a", .value = "down", .raw = "1: DOWN"},
	{.kind = PP_SIGNAL_PORT_ERRORS, .object = "a", .number = 9},
	{.kind = PP_SIGNAL_BAR1_FREE, .object = "g", .number = 10},
	{.kind = PP_SIGNAL_ACS, .object = "b", .unknown = "permission denied"},
	{.kind = PP_SIGNAL_KERNEL_LOG, .object = "node", .value = "xid-79", .named = "boot:1"},
};

static int judge(struct pp_ledger *k, const struct pp_thresholds *t, const struct pp_look *looks,
		 size_t n, int64_t now)
{
	const struct pp_round_part part = {.watcher = "w"};
	const struct pp_round round = {.looks = looks,
				       .n = n,
				       .parts = &part,
				       .n_parts = 1,
				       .thresholds = t,
				       .now_ns = now,
				       .wall_ns = 1700000000 * PP_SECOND + now};

	return pp_signals_judge(k, &round);
}

/* The kernel's line, which comes last, is an alarm that names the others. */
static int thresholds(struct pp_thresholds **ret)
{
	static const char text[] = "[monitor]\nkernel-log = alarm\n";
	struct pp_policy *policy = NULL;
	struct pp_error err = {0};
	int r = pp_policy_parse("p.conf", text, sizeof(text) - 1, &policy, &err);

	if (!r)
		r = pp_thresholds_new(policy, ret, &err);
	pp_policy_free(policy);
	return r;
}

/* A life of the monitor: read, two rounds, each written. */
static int life(struct pp_sql *sql)
{
	struct pp_thresholds *t = NULL;
	struct pp_ledger *k = NULL;
	struct pp_error err = {0};
	size_t odd;
	int r = thresholds(&t);

	if (!r)
		r = pp_keep_load(sql, "n", 1800000000 * PP_SECOND, PP_SECOND, &k, &odd, &err);
	if (!r)
		r = judge(k, t, first, PP_ARRAY_LEN(first), 2 * PP_SECOND);
	if (!r)
		r = pp_mark_set(k, "w", "at", "1");
	if (!r)
		r = pp_keep_save(sql, k, 1700000000 * PP_SECOND, &err);
	if (!r)
		r = judge(k, t, second, PP_ARRAY_LEN(second), 3 * PP_SECOND);
	if (!r)
		r = pp_mark_set(k, "w", "at", "2");
	if (!r)
		r = pp_keep_save(sql, k, 1700000001 * PP_SECOND, &err);
	pp_ledger_free(k);
	pp_thresholds_free(t);
	return r;
}

static int number(void *ctx, const struct pp_sql_value *columns, size_t n)
{
	assert_int_equal(n, 1);
	*(int64_t *)ctx = columns[0].type == PP_SQL_INTEGER ? columns[0].integer : -1;
	return 0;
}

static int64_t ask(struct pp_sql *sql, const char *text)
{
	struct pp_error err = {0};
	int64_t found = -2;

	assert_int_equal(pp_sql_ask(sql, text, NULL, 0, number, &found, &err), 0);
	return found;
}

static void test_torture(void **unused)
{
	struct pp_error err = {0};
	bool failed = true;
	size_t n;

	(void)unused;
	for (n = 1; failed; n++) {
		struct pp_sql *sql;
		int64_t events, at;
		int r;

		assert_int_equal(pp_sql_open(":memory:", PP_SQL_CREATE, &sql, &err), 0);
		assert_int_equal(pp_keep_prepare(sql, &err), 0);
		pp_fail_alloc_start(n);
		r = life(sql);
		failed = pp_fail_alloc_stop();
		/* Statements that the connection keeps are its own, until it is closed. */
		assert_int_equal(r, failed ? -ENOMEM : 0);
		/* The event and the position behind it: both or neither. */
		events = ask(sql, "SELECT count(*) FROM monitor_event");
		at = ask(sql, "SELECT coalesce(max(CAST(value AS INTEGER)), 0) FROM monitor_mark");
		assert_int_equal(events, at == 2);
		assert_int_equal(ask(sql, "SELECT count(*) FROM monitor_signal"), at == 2 ? 4 : 0);
		pp_sql_close(sql);
		assert_int_equal(pp_fail_alloc_live(), 0);
	}
	assert_true(n > 50); /* it did try */
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_torture)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
