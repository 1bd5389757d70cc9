/* SPDX-License-Identifier: Apache-2.0 */
/* When "nothing wrong" may be said, and what several NCCL processes say together. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "judge/explain.h"
#include "base/compiler.h"

static int load(void **state)
{
	struct pp_known_set *known = NULL;
	struct pp_error err = {0};

	if (pp_known_load(PEERPATH_SOURCE_DATADIR "/explain", &known, &err))
		fail_msg("%s", err.text);
	*state = known;
	return 0;
}

static int unload(void **state)
{
	pp_known_free(*state);
	return 0;
}

static enum pp_exit answer(const struct pp_known_set *known, const char *text, char ret_first[64])
{
	struct pp_explanation x;
	struct pp_explain *e;
	enum pp_exit code;

	assert_int_equal(pp_explain_new(known, &e), 0);
	pp_explain_push(e, text, strlen(text));
	assert_int_equal(pp_explain_finish(e, NULL, &x), 0);
	code = pp_explanation_exit(&x);
	(void)snprintf(ret_first, 64, "%s", x.n ? x.list[0].known->rule.id : "(none)");
	pp_explanation_done(&x);
	pp_explain_free(e);
	return code;
}

#define NO_PLUGIN "n1:1:2 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so\n"

static void test_answers(void **state)
{
	static const struct {
		const char *text, *first;
		enum pp_exit code;
	} rows[] = {
		{NO_PLUGIN, "nccl-no-plugin", PP_EXIT_PASS},
		/* an error that no rule knows is not dismissed with what is harmless */
		{NO_PLUGIN "all_reduce_perf: fatal: the moon is in the wrong phase\n",
		 "nccl-no-plugin", PP_EXIT_UNKNOWN},
		{"NCCL version 2.27.3+cuda12.9\nmytest: error: the moon is in the wrong phase\n",
		 "(none)", PP_EXIT_UNKNOWN},
		/* counters and conditions read like errors, and are none */
		{NO_PLUGIN "rx_errors: 0, failed: 0, no error\nit would have failed when full\n",
		 "nccl-no-plugin", PP_EXIT_PASS},
		/* the kernel's log of a healthy machine is full of such words */
		{"[    0.000000] Linux version 6.8.0 (gcc 13)\n"
		 "[    1.200000] ACPI: _OSC evaluation failed (AE_NOT_FOUND)\n",
		 "(none)", PP_EXIT_PASS},
		/* CUDA 12 on a driver of CUDA 11 cannot work; 11.7 on 11.4 can */
		{"n1:1:1 [0] NCCL INFO cudaDriverVersion 11040\nNCCL version 2.18.3+cuda12.1\n",
		 "nccl-old-driver", PP_EXIT_BAD},
		{"n1:1:1 [0] NCCL INFO cudaDriverVersion 11040\nNCCL version 2.14.3+cuda11.7\n",
		 "(none)", PP_EXIT_PASS},
		{"n1:1:1 [0] NCCL INFO cudaDriverVersion 12080\nNCCL version 2.18.3+cuda12.1\n",
		 "(none)", PP_EXIT_PASS},
		/* settings that differ matter where something failed, and between processes */
		{"n1:1:1 [0] NCCL INFO NCCL_ALGO set by environment to Ring\n"
		 "n2:8:8 [0] NCCL INFO NCCL_ALGO set by environment to Tree\n",
		 "(none)", PP_EXIT_PASS},
		{"n1:1:1 [0] NCCL INFO NCCL_ALGO set by environment to Ring\n"
		 "n2:8:8 [0] NCCL INFO NCCL_ALGO set by environment to Tree\n"
		 "[rank1]: Watchdog caught collective operation timeout\n",
		 "nccl-settings-differ", PP_EXIT_BAD},
	};
	char first[64];

	for (size_t i = 0; i < PP_ARRAY_LEN(rows); i++) {
		enum pp_exit code = answer(*state, rows[i].text, first);

		if (strcmp(first, rows[i].first) != 0 || code != rows[i].code)
			fail_msg("%s\n%s stands first, exit %d", rows[i].text, first, (int)code);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_answers)};

	return cmocka_run_group_tests(tests, load, unload);
}
