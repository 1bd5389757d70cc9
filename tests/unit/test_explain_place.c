/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where words stand: names in a traceback's frames and versions in somebody's sentence are no
 * messages, an errno decides between the causes of one call, and a cause stands where the line is
 * that shows it, not where a hint for it is.
 */
#include "explain_rules.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"

static void answer(const struct pp_known_set *known, const char *text, char ret_first[64])
{
	struct pp_explanation x;
	struct pp_explain *e;

	assert_int_equal(pp_explain_new(known, &e), 0);
	pp_explain_push(e, text, strlen(text));
	assert_int_equal(pp_explain_finish(e, NULL, &x), 0);
	(void)snprintf(ret_first, 64, "%s", x.n ? x.list[0].known->rule.id : "(none)");
	pp_explanation_done(&x);
	pp_explain_free(e);
}

struct row {
	const char *first, *text;
};

static void check(const struct pp_known_set *known, const struct row *rows, size_t n)
{
	char first[64];

	for (size_t i = 0; i < n; i++) {
		answer(known, rows[i].text, first);
		if (strcmp(first, rows[i].first) != 0)
			fail_msg("%s\n%s stands first", rows[i].text, first);
	}
}

static void test_frames(void **state)
{
	static const struct row rows[] = {
		{"name-not-resolved",
		 "  File \"/opt/torch/distributed/elastic/rendezvous/c10d_rendezvous_backend.py\", "
		 "line 150, in _create_tcp_store\n"
		 "    host, port, is_master=is_server, timeout=timedelta(seconds=60)\n"
		 "ValueError: host not found: Name or service not known\n"},
		/* the source that the traceback quotes holds messages that were not raised */
		{"(none)", "  File \"/app/launch.py\", line 9, in check\n"
			   "    raise RuntimeError(f\"launcher '{name}' not installed.\")\n"},
		{"launcher-program-missing", "    RuntimeError: launcher 'pdsh' not installed.\n"},
	};

	check(*state, rows, PP_ARRAY_LEN(rows));
}

static void test_versions(void **state)
{
	static const struct row rows[] = {
		{"(none)",
		 "It fails here with NCCL version 2.19.3.\nNCCL version 2.19.3+cuda12.3\n"},
		{"(none)", "We upgraded from NCCL version 2.18.1 and it is the same.\n"
			   "NCCL version 2.19.3+cuda12.3\n"},
		{"nccl-version-mismatch", "n1:1:1 [0] NCCL INFO NCCL version 2.18.1+cuda12.1\nNCCL "
					  "version 2.19.3+cuda12.3\n"},
		{"nccl-version-mismatch", "[1,0]<stdout>:NCCL version 2.18.1+cuda12.1\n"
					  "[1,1]<stdout>:NCCL version 2.19.3+cuda12.3\n"},
	};

	check(*state, rows, PP_ARRAY_LEN(rows));
}

static void test_errno_decides(void **state)
{
	static const struct row rows[] = {
		{"open-uverbs-denied", "ibv_open_device(mlx5_2) failed: Permission denied\n"},
		{"nic-uar-exhausted", "ibv_open_device(mlx5_2) failed: Cannot allocate memory\n"},
		{"rdma-cm-missing", "rdma_create_event_channel() failed: No such device\n"},
		{"rdma-cm-missing", "rdma_create_ep: No such device\n"},
		{"devx-kernel-lacks",
		 "mlx5dv_devx_create_event_channel() failed: Protocol not supported\n"},
	};

	check(*state, rows, PP_ARRAY_LEN(rows));
}

static void test_order(void **state)
{
	static const struct row rows[] = {
		/* "hangs" is a hint for the interface, and stands first */
		{"rccl-iommu-pt",
		 "Training hangs on two nodes\n"
		 "n1:7:7 [0] init.cc:150 NCCL WARN Missing \"iommu=pt\" from kernel command line\n"
		 "n1:7:7 [0] NCCL INFO NET/Socket : Using [0]veth12ab:169.254.3.4<0>\n"},
		{"nccl-virtual-interface",
		 "Training hangs on two nodes\n"
		 "n1:7:7 [0] NCCL INFO NET/Socket : Using [0]veth12ab:169.254.3.4<0>\n"
		 "n1:7:7 [0] init.cc:150 NCCL WARN Missing \"iommu=pt\" from kernel command "
		 "line\n"},
	};

	check(*state, rows, PP_ARRAY_LEN(rows));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames), cmocka_unit_test(test_versions),
		cmocka_unit_test(test_errno_decides), cmocka_unit_test(test_order)};

	return cmocka_run_group_tests(tests, load, unload);
}
