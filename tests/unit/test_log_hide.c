/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What leaves a log before it goes into a bundle. NCCL's own wording of a setting is that of its
 * sources ("NAME set by environment to VALUE."); the rest is how shells, Python and JSON print an
 * environment.
 */
#include "unit.h"

#include "bundle/log_hide.h"

static void check(const char *text, const char *secret, const char *want, size_t hidden)
{
	struct pp_buf out = PP_BUF(4096);
	size_t n = pp_log_hide(text, strlen(text), secret, &out);

	pp_buf_char(&out, '\0');
	assert_int_equal(out.failed, 0);
	assert_string_equal(out.data, want);
	assert_int_equal(n, hidden);
	pp_buf_done(&out);
}

static void test_values(void **state)
{
	(void)state;
	check("HF_TOKEN=hf_abcd PATH=/bin\n", NULL, "HF_TOKEN=(hidden) PATH=/bin\n", 1);
	check("export AWS_SECRET_ACCESS_KEY='x y/z'\n", NULL,
	      "export AWS_SECRET_ACCESS_KEY='(hidden)'\n", 1);
	check("{\"WANDB_API_KEY\": \"abc def\", \"HOME\": \"/root\"}", NULL,
	      "{\"WANDB_API_KEY\": \"(hidden)\", \"HOME\": \"/root\"}", 1);
	check("{'DB_PASSWORD': 'p,w', 'A': 'b'}", NULL, "{'DB_PASSWORD': '(hidden)', 'A': 'b'}", 1);
	check("MY_CREDENTIALS: abc\n", NULL, "MY_CREDENTIALS: (hidden)\n", 1);
	check("h:1:2 [0] NCCL INFO NCCL_X_TOKEN set by environment to abc.\nnext", NULL,
	      "h:1:2 [0] NCCL INFO NCCL_X_TOKEN set by environment to (hidden)\nnext", 1);
	check("A_TOKEN=1 B_KEY=2", NULL, "A_TOKEN=(hidden) B_KEY=(hidden)", 2);
}

static void test_run_token(void **state)
{
	(void)state;
	check("token is 0123456789abcdef, again 0123456789abcdef", "0123456789abcdef",
	      "token is (hidden), again (hidden)", 2);
	check("PEERPATH_TOKEN=0123456789abcdef", "0123456789abcdef", "PEERPATH_TOKEN=(hidden)", 1);
	check("nothing of it", "", "nothing of it", 0);
}

/* What the judge reads must come through as it was. */
static void test_evidence_stays(void **state)
{
	static const char *const lines[] = {
		"h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n",
		"h:1:2 [0] NCCL INFO NCCL_IB_PKEY set by environment to 1.\n",
		"h:1:2 [0] NCCL INFO NCCL_IB_HCA set by environment to =mlx5_0.\n",
		"NCCL WARN NET/IB: Got completion with status=12 opcode=0 rkey=0x1234 key: 5\n",
		"#  Rank  0 Group  0 Pid 11 on h device  0 [0000:18:00.0] NVIDIA H200\n",
		"TOKEN\n",
		"KEYS=\n",
		"",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		check(lines[i], NULL, lines[i], 0);
}

/* A value that is cut off by the end of the text, and bytes that are no text. */
static void test_ends(void **state)
{
	struct pp_buf out = PP_BUF(4096);
	const char bytes[] = "A_TOKEN=\0x";

	(void)state;
	check("A_TOKEN=", NULL, "A_TOKEN=", 0);
	check("A_TOKEN", NULL, "A_TOKEN", 0);
	check("A_TOKEN=\"open", NULL, "A_TOKEN=\"(hidden)", 1);
	assert_int_equal(pp_log_hide(bytes, sizeof(bytes) - 1, NULL, &out), 1);
	assert_int_equal(out.len, sizeof("A_TOKEN=(hidden)") - 1);
	pp_buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_run_token),
		cmocka_unit_test(test_evidence_stays),
		cmocka_unit_test(test_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
