/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The matrix of tests/fixtures/smi in every disguise: 4 GPUs joined by NV6, two NICs, each PIX to
 * two GPUs and SYS to the others. What drivers and mailers do to it is described, with real
 * examples, in public issue threads; the replay test reads such matrices whole.
 */
#include "unit.h"

#include <errno.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "node/smi.h"

static char *load(const char *name, size_t *ret_len)
{
	const char *dir = getenv("PP_TEST_DIR");
	char path[4096], *text;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/../fixtures/smi/%s", dir ? dir : ".", name);
	f = fopen(path, "rb");
	assert_non_null(f);
	text = malloc(1 << 16);
	assert_non_null(text);
	*ret_len = fread(text, 1, 1 << 16, f);
	(void)fclose(f);
	return text;
}

static int parse(const char *name, struct pp_smi *s, struct pp_error *err)
{
	size_t len;
	char *text = load(name, &len);
	int r = pp_smi_parse(name, text, len, s, err);

	free(text);
	return r;
}

static void assert_cell(const struct pp_smi *s, unsigned int i, unsigned int j, const char *want)
{
	char text[PP_SMI_CELL_TEXT];

	assert_string_equal(pp_smi_cell_text(pp_smi_at(s, i, j), text), want);
}

static void assert_machine(const struct pp_smi *s)
{
	static const char *const rows[6][6] = {
		{"X", "NV6", "NV6", "NV6", "PIX", "SYS"}, {"NV6", "X", "NV6", "NV6", "PIX", "SYS"},
		{"NV6", "NV6", "X", "NV6", "SYS", "PIX"}, {"NV6", "NV6", "NV6", "X", "SYS", "PIX"},
		{"PIX", "PIX", "SYS", "SYS", "X", "SYS"}, {"SYS", "SYS", "PIX", "PIX", "SYS", "X"},
	};

	assert_int_equal(s->n, 6);
	assert_int_equal(s->n_gpus, 4);
	assert_int_equal(s->asymmetric, 0);
	for (unsigned int i = 0; i < 6; i++)
		for (unsigned int j = 0; j < 6; j++)
			assert_cell(s, i, j, rows[i][j]);
	assert_string_equal(s->dev[4].name, "mlx5_0");
	assert_string_equal(s->dev[5].name, "mlx5_bond_0");
	for (unsigned int i = 0; i < 4; i++) {
		assert_string_equal(s->dev[i].cpus, i < 2 ? "0-31" : "32-63");
		assert_string_equal(s->dev[i].numa, i < 2 ? "0" : "1");
		assert_string_equal(s->dev[i].gpu_numa, "N/A");
	}
	assert_null(s->dev[4].cpus);
	assert_int_equal(pp_smi_nearest(s, 2), PP_SMI_PIX);
}

static void test_disguises(void **state)
{
	static const char *const files[] = {"plain-tabs.txt", "escapes.txt", "escapes-lost.txt",
					    "log-prefixed.txt", "glued.txt"};
	struct pp_error err = {0};
	struct pp_smi s;

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(files); i++) {
		if (parse(files[i], &s, &err))
			fail_msg("%s", err.text);
		assert_machine(&s);
		pp_smi_done(&s);
	}
}

static void test_old_columns(void **state)
{
	struct pp_error err = {0};
	struct pp_smi s;

	(void)state;
	assert_int_equal(parse("old-columns.txt", &s, &err), 0);
	assert_int_equal(s.n_gpus, 2);
	assert_string_equal(s.dev[2].name, "mlx5_0");
	assert_true(s.dev[2].named);
	assert_cell(&s, 0, 1, "SYS"); /* SOC is the old word */
	assert_cell(&s, 1, 3, "PHB");
	assert_string_equal(s.dev[1].cpus, "8-15");
	assert_null(s.dev[1].numa);
	pp_smi_done(&s);
}

static void test_scraps(void **state)
{
	struct pp_error err = {0};
	struct pp_smi s;

	(void)state;
	assert_int_equal(parse("scraps.txt", &s, &err), 0);
	assert_int_equal(s.nics_found, 140);
	assert_int_equal(s.nics_shown, 2);
	assert_int_equal(s.legend_scraps, 1);
	assert_string_equal(s.dev[4].name, "NIC0");
	assert_false(s.dev[4].named);
	assert_string_equal(s.dev[5].name, "mlx5_7");
	pp_smi_done(&s);
}

static void test_asymmetric(void **state)
{
	struct pp_error err = {0};
	struct pp_smi s;

	(void)state;
	assert_int_equal(parse("asymmetric.txt", &s, &err), 0);
	assert_int_equal(s.asymmetric, 1);
	assert_cell(&s, 0, 2, "NV6");
	assert_cell(&s, 2, 0, "SYS");
	pp_smi_done(&s);
}

static void refused(const char *text, const char *where, const char *what)
{
	struct pp_error err = {0};
	struct pp_smi s;

	assert_int_equal(pp_smi_parse("m", text, strlen(text), &s, &err), -EBADMSG);
	if (strncmp(err.text, where, strlen(where)) != 0 || !strstr(err.text, what))
		fail_msg("'%s' does not say '%s' at %s", err.text, what, where);
}

static void test_refused(void **state)
{
	struct pp_error err = {0};
	struct pp_smi s;

	(void)state;
	assert_int_equal(parse("cut-rows.txt", &s, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "row NIC0 is missing"));
	assert_int_equal(parse("cut-cells.txt", &s, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "cut-cells.txt:6: row NIC0 has 2 cells"));
	refused("", "m: ", "no matrix");
	refused("hello GPU0\n", "m: ", "no matrix");
	refused(" GPU0 GPU0\n", "m:1: ", "twice in the header");
	refused(" GPU0 GPU1\nGPU0 X SYS\nGPU0 X SYS\n", "m:3: ", "row GPU0 stands twice");
	refused(" GPU0 GPU1\nGPU0 X X\nGPU1 SYS X\n", "m:2: ", "row GPU0, column GPU1");
	refused(" GPU0 GPU1\nGPU0 PIX SYS\nGPU1 SYS X\n", "m:2: ", "row GPU0, column GPU0");
	refused(" GPU0 GPU1\nGPU0 X SYS PIX\n", "m:2: ", "more cells");
	refused(" GPU0 GPU1\nGPU0 X SYS\n GPU0 GPU1\n", "m:3: ", "second header");
	refused(" GPU0 GPU1\nGPU0 X NV256\n", "m:2: ", "row GPU0: 'NV256' is no cell");
	refused(" GPU0 GPU1\nGPU0 X SYS\nGPU1 SYS QQQ\n", "m:3: ", "row GPU1: 'QQQ' is no cell");
	refused(" GPU0 GPU1\nGPU0 X\n", "m:2: ", "has 1 cells");
}

/* Another machine's matrix behind the first is refused; `topo -p2p` is passed over. */
static void test_two_matrices(void **state)
{
	static const char one[] = "\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU1\tPIX\t X \n";
	static const char p2p[] = "\tGPU0\tGPU1\nGPU0\tX\tOK\nGPU1\tOK\tX\n";
	static const char smaller[] = "\tGPU0\tCPU Affinity\nGPU0\t X \t0-7\n";
	struct pp_error err = {0};
	char text[256];
	struct pp_smi s;

	(void)state;
	(void)snprintf(text, sizeof(text), "%s%s", one, one);
	refused(text, "m:5: ", "one machine's output");
	(void)snprintf(text, sizeof(text), "%s%s", one, smaller);
	refused(text, "m:5: ", "one machine's output");
	(void)snprintf(text, sizeof(text), "%s%s", one, p2p);
	assert_int_equal(pp_smi_parse("m", text, strlen(text), &s, &err), 0);
	assert_cell(&s, 0, 1, "PIX");
	pp_smi_done(&s);
}

static void test_limits(void **state)
{
	struct pp_buf PP_AUTO_BUF b = PP_BUF((size_t)16 << 20);
	struct pp_error err = {0};
	struct pp_smi s;

	(void)state;
	for (unsigned int n = PP_SMI_MAX_COLUMNS; n <= PP_SMI_MAX_COLUMNS + 1; n++) {
		pp_buf_reset(&b);
		for (unsigned int i = 0; i < n; i++)
			pp_buf_printf(&b, "\tGPU%u", i);
		for (unsigned int i = 0; i < n; i++) {
			pp_buf_printf(&b, "\nGPU%u", i);
			for (unsigned int j = 0; j < n; j++)
				pp_buf_str(&b, i == j ? "\t X " : "\tSYS");
		}
		assert_int_equal(pp_smi_parse("m", b.data, b.len, &s, &err),
				 n > PP_SMI_MAX_COLUMNS ? -EFBIG : 0);
		if (n <= PP_SMI_MAX_COLUMNS) {
			assert_int_equal(s.n, n);
			assert_cell(&s, 0, n - 1, "SYS");
			pp_smi_done(&s);
		}
	}
	pp_buf_reset(&b);
	for (unsigned int i = 0; i < 17; i++)
		pp_buf_str(&b, "GPU0 GPU1\n");
	assert_int_equal(pp_smi_parse("m", b.data, b.len, &s, &err), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_disguises), cmocka_unit_test(test_old_columns),
		cmocka_unit_test(test_scraps),	  cmocka_unit_test(test_asymmetric),
		cmocka_unit_test(test_refused),	  cmocka_unit_test(test_two_matrices),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
