/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <string.h>

#include "cli/explain_run.h"
#include "judge/known.h"

/* What changes something, needs a shell, or needs a word filled in is left to the reader. */
static void test_refuses(void **state)
{
	static const struct {
		const char *command, *why; /* NULL: is run */
	} rows[] = {
		{"cat /proc/self/limits", NULL},
		{"grep 'locked memory' /proc/self/limits", NULL},
		{"dmesg | grep 'dma-buf attach failed'", NULL},
		{"cat /sys/kernel/iommu_groups/*/type | sort | uniq -c", NULL},
		{"ip -br addr", NULL},
		{"dmesg -C", "read-only"},
		{"dmesg --clear", "read-only"},
		{"env rm -r /tmp/x", "read-only"},
		{"ip link set eth0 down", "read-only"},
		{"ethtool -s eth0 autoneg off", "read-only"},
		{"nvidia-smi -r", "read-only"},
		{"nvidia-smi -q -f /tmp/x", "read-only"},
		{"uniq a b", "read-only"},
		{"sort -o a b", "read-only"},
		{"sort -oa b", "read-only"},
		{"sort -uo a b", "read-only"},
		{"sort --output=a b", "read-only"},
		{"sort --out=a b", "read-only"},
		{"sort -S 1K --compress-program=sh b", "read-only"},
		{"nvidia-smi -q --filename=/tmp/x", "read-only"},
		{"nvidia-smi -q -f/tmp/x", "read-only"},
		{"ip -batch x", "read-only"},
		{"nvidia-smi -q -d MEMORY", NULL},
		{"cat x | sort -n | uniq -c", NULL},
		{"rdma link add x type rxe netdev eth0", "read-only"},
		{"modprobe nvidia_peermem", "read-only"},
		{"/bin/cat x", "read-only"},
		{"kubectl describe node x", "read-only"},
		{"cat /etc/passwd > /tmp/x", "shell"},
		{"grep x $(cat y)", "shell"},
		{"cat a; rm b", "shell"},
		{"cat a & rm b", "shell"},
		{"cat `x`", "shell"},
		{"cat a\nrm b", "shell"},
		{"ethtool -S NETDEV", "filled in"},
		{"", "empty"},
		{"| cat", "shell"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *why = pp_run_refuses(rows[i].command);

		if (!why != !rows[i].why || (why && !strstr(why, rows[i].why)))
			fail_msg("'%s': %s", rows[i].command, why ? why : "is run");
	}
}

static void test_runs(void **state)
{
	struct pp_run *r = calloc(1, sizeof(*r));

	(void)state;
	assert_non_null(r);
	pp_run("grep -c processor /proc/cpuinfo | head -1", r);
	assert_true(r->ran && r->status == 0 && r->output[0] >= '1' && r->output[0] <= '9');
	pp_run("grep nothing-that-is-there /proc/cpuinfo", r);
	assert_true(r->ran && r->status == 1 && !*r->output);
	/* More than is kept: cut, and the programs are ended. */
	pp_run("cat /proc/kallsyms /proc/kallsyms", r);
	assert_true(r->ran && r->cut && strlen(r->output) < PP_RUN_OUTPUT);
	pp_run("ibdev2netdev", r);
	assert_true(r->ran || strstr(r->why_not, "not installed"));
	pp_run("modprobe nvidia_peermem", r);
	assert_false(r->ran);
	free(r);
}

/* Each command of the shipped rules is run or refused for a reason; none is malformed. */
static void test_shipped(void **state)
{
	struct pp_known_set *known = NULL;
	struct pp_error err = {0};
	unsigned int runs = 0;

	(void)state;
	if (pp_known_load(PEERPATH_SOURCE_DATADIR "/explain", &known, &err))
		fail_msg("%s", err.text);
	for (size_t i = 0; i < known->n; i++) {
		const char *next = known->list[i].rule.next;

		if (!next)
			continue;
		runs += !pp_run_refuses(next);
		if (strchr(next, '\n'))
			fail_msg("%s: more than one line", known->list[i].rule.id);
	}
	assert_true(runs > 60);
	pp_known_free(known);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_runs),
		cmocka_unit_test(test_shipped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
