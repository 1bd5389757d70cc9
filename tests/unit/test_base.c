/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <wchar.h>

#include "base/arena.h"
#include "base/bdf.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/ini.h"
#include "base/json.h"
#include "base/near.h"
#include "base/out.h"
#include "base/parse.h"
#include "base/utf8.h"
#include "base/version.h"

static void test_numbers(void **state)
{
	uint64_t u;
	int64_t i;
	pp_ns ns;

	(void)state;
	assert_int_equal(pp_parse_u64("18446744073709551615", 0, UINT64_MAX, &u), 0);
	assert_true(u == UINT64_MAX);
	assert_int_equal(pp_parse_u64("18446744073709551616", 0, UINT64_MAX, &u), -ERANGE);
	assert_int_equal(pp_parse_u64("12x", 0, 99, &u), -EINVAL);
	assert_int_equal(pp_parse_u64("", 0, 99, &u), -EINVAL);
	assert_int_equal(pp_parse_u64("-1", 0, 99, &u), -EINVAL);
	assert_int_equal(pp_parse_i64("-9223372036854775808", INT64_MIN, INT64_MAX, &i), 0);
	assert_true(i == INT64_MIN);
	assert_int_equal(pp_parse_hex("0x10de", 0xffff, &u), 0);
	assert_true(u == 0x10de);
	assert_int_equal(pp_parse_size("64K", UINT64_MAX, &u), 0);
	assert_true(u == 65536);
	assert_int_equal(pp_parse_size("2GiB", UINT64_MAX, &u), 0);
	assert_true(u == 2147483648u);
	assert_int_equal(pp_parse_size("9999999999999T", UINT64_MAX, &u), -ERANGE);
	assert_int_equal(pp_parse_duration("250ms", PP_SECOND, &ns), 0);
	assert_true(ns == 250 * PP_MILLISECOND);
	assert_int_equal(pp_parse_duration("5", PP_SECOND, &ns), -ERANGE);
}

static void test_bdf(void **state)
{
	struct pp_bdf b;
	char text[PP_BDF_TEXT];

	(void)state;
	assert_int_equal(pp_bdf_parse("00000000:3B:00.0", &b), 0); /* NVML's form */
	assert_string_equal(pp_bdf_format(&b, text), "0000:3b:00.0");
	assert_int_equal(pp_bdf_parse("10000:e1:00.0", &b), 0); /* VMD */
	assert_string_equal(pp_bdf_format(&b, text), "10000:e1:00.0");
	assert_int_equal(pp_bdf_parse("3b:1f.7", &b), 0);
	assert_string_equal(pp_bdf_format(&b, text), "0000:3b:1f.7");
	assert_int_equal(pp_bdf_parse_kernel("3b:00.0", &b), -EINVAL);
	assert_int_equal(pp_bdf_parse("0000:3b:20.0", &b), -EINVAL);
	assert_int_equal(pp_bdf_parse("0000:3b:00.8", &b), -EINVAL);
	assert_int_equal(pp_bdf_parse("0000:3b:00.", &b), -EINVAL);
	assert_int_equal(pp_bdf_parse("123456789:3b:00.0", &b), -EINVAL);
}

static void test_version(void **state)
{
	(void)state;
	assert_true(pp_version_compare("580.65.06", "580.65.6") == 0);
	assert_true(pp_version_compare("580.159.04", "580.65.06") > 0);
	assert_true(pp_version_compare("6.1.0-44-amd64", "6.1") == 0);
	assert_true(pp_version_compare("5.4.0-100-generic", "5.12") < 0);
	assert_true(pp_version_compare("2.28.9+cuda13.0", "2.28.9") == 0);
}

static void test_errno(void **state)
{
	char text[128];

	(void)state;
	assert_string_equal(pp_errno_text(-14, text, sizeof(text)), "EFAULT (14): Bad address");
	/* The kernel's ENOTSUPP: libc calls it "Unknown error 524". */
	assert_non_null(strstr(pp_errno_text(524, text, sizeof(text)), "ENOTSUPP (524)"));
}

static void test_near(void **state)
{
	struct pp_near near = PP_NEAR("porve");

	(void)state;
	pp_near_offer(&near, "prove");
	pp_near_offer(&near, "topo");
	assert_string_equal(near.best, "prove");
	near = PP_NEAR("zzzz");
	pp_near_offer(&near, "topo");
	assert_null(near.best);
}

static void test_json(void **state)
{
	struct pp_buf PP_AUTO_BUF b = PP_BUF(4096);
	struct pp_json j = PP_JSON(&b, false);

	(void)state;
	pp_json_object(&j, NULL);
	pp_json_str(&j, "a", "q\"\\\n\x01\xff");
	pp_json_array(&j, "n");
	pp_json_i64(&j, NULL, INT64_MIN);
	pp_json_double(&j, NULL, 1.0 / 0.0);
	pp_json_end_array(&j);
	pp_json_end_object(&j);
	assert_string_equal(pp_buf_text(&b), "{\"a\":\"q\\\"\\\\\\n\\u0001\xef\xbf\xbd\","
					     "\"n\":[-9223372036854775808,null]}");
}

static void test_buf_limit(void **state)
{
	struct pp_buf PP_AUTO_BUF b = PP_BUF(10);

	(void)state;
	pp_buf_str(&b, "0123456789");
	assert_int_equal(b.failed, 0);
	pp_buf_char(&b, 'x');
	assert_int_equal(b.failed, -EFBIG);
	assert_string_equal(pp_buf_text(&b), "0123456789");
}

static void test_arena_limit(void **state)
{
	struct pp_arena a = PP_ARENA(100 * 1024);

	(void)state;
	assert_non_null(pp_arena_alloc(&a, 1000));
	assert_null(pp_arena_alloc(&a, 200 * 1024));
	assert_true(a.failed);
	assert_string_equal(pp_arena_str(&a, "still answers"), "still answers");
	pp_arena_done(&a);
}

static int collect_ini(void *arg, const char *section, const char *key, const char *value,
		       unsigned int line, struct pp_error *err)
{
	struct pp_buf *b = arg;

	(void)err;
	pp_buf_printf(b, "%u %s/%s=%s;", line, section, key ? key : "", value ? value : "");
	return 0;
}

static void test_ini(void **state)
{
	static const char good[] = "# c\n[one]\na = 1\n  and more\nb=\n\n[two]\n";
	struct pp_buf PP_AUTO_BUF b = PP_BUF(4096);
	struct pp_error err;

	(void)state;
	assert_int_equal(pp_ini_parse("f", good, sizeof(good) - 1, collect_ini, &b, &err), 0);
	assert_string_equal(pp_buf_text(&b), "2 one/=;3 one/a=1 and more;5 one/b=;7 two/=;");
	assert_int_equal(pp_ini_parse("f", "[x]\nno\n", 7, collect_ini, &b, &err), -EINVAL);
	assert_string_equal(err.text, "f:2: expected 'key = value' or '[section]'");
	assert_int_equal(pp_ini_parse("f", "a=1\n", 4, collect_ini, &b, &err), -EINVAL);
	assert_int_equal(pp_ini_parse("f", "[a]\nb=\0\n", 8, collect_ini, &b, &err), -EINVAL);
}

static void emit(struct pp_out *o)
{
	static const struct pp_out_column columns[] = {
		{"gate", "GATE", false}, {"verdict", "VERDICT", false}, {"why", "WHY", true}};

	pp_out_document(o, "peerpath.test/1");
	pp_out_heading(o, "Title");
	pp_out_str(o, "kernel", "kernel", "6.1");
	pp_out_table(o, "rows", columns, 3);
	pp_out_cell_i64(o, 0);
	pp_out_cell_verdict(o, PP_PASS);
	pp_out_cell(o, "all words of this cell need two lines here");
	pp_out_table_end(o);
}

static void test_out(void **state)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	struct pp_out *o = pp_out_new(false, f, 48, false);

	(void)state;
	emit(o);
	assert_int_equal(pp_out_finish(o), 0);
	assert_string_equal(text, "Title\n"
				  "  kernel                6.1\n"
				  "GATE  VERDICT  WHY\n"
				  "0     pass     all words of this cell need two\n"
				  "               lines here\n");
	pp_out_free(o);
	o = pp_out_new(true, f, 0, false);
	rewind(f);
	emit(o);
	assert_int_equal(pp_out_finish(o), 0);
	assert_non_null(strstr(text, "\"rows\": [\n    {\n      \"gate\": 0,\n      "
				     "\"verdict\": \"pass\","));
	pp_out_free(o);
	(void)fclose(f);
	free(text);
}

/* ESC, DEL and the C1 form of ESC [ come out as text; real UTF-8 stays. */
static void test_out_terminal(void **state)
{
	static const struct pp_out_column columns[] = {{"a", "A", true}};
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	struct pp_out *o = pp_out_new(false, f, 48, false);

	(void)state;
	pp_out_heading(o, "NIC \x1b[31m of \xc2\x9bhere");
	pp_out_str(o, "name", "na\x07me", "v");
	pp_out_str(o, "s", "s",
		   "\x1b[31m\xc2\x9b"
		   "2J \xc3\xa4");
	pp_out_table(o, "rows", columns, 1);
	pp_out_cell(o, "a\x7f\tb");
	pp_out_table_end(o);
	pp_out_raw(o, "a\tb\x1b]0;x\n");
	assert_int_equal(pp_out_finish(o), 0);
	assert_string_equal(text, "NIC ?[31m of ??here\n"
				  "  na?me                 v\n"
				  "  s                     ?[31m??2J \xc3\xa4\nA\na??b\n"
				  "a\tb?]0;x\n");
	pp_out_free(o);
	(void)fclose(f);
	free(text);
}

/* Seconds as date -u -d TEXT +%s gives them. */
static void test_clock(void **state)
{
	static const struct {
		const char *text;
		int64_t seconds;
	} good[] = {{"1970-01-01T00:00:00Z", 0},
		    {"2000-02-29T23:59:59Z", 951868799},
		    {"2026-11-29T15:20:01Z", 1795965601},
		    {"2261-12-31T23:59:59Z", 9214646399}};
	static const char *const bad[] = {
		"",
		"now",
		"unknown",
		"2026-11-29T15:20:01",
		"2026-11-29T15:20:01Zx",
		"2026-11-29 15:20:01Z",
		"2026-02-30T00:00:00Z",
		"1900-02-29T00:00:00Z",
		"2026-13-01T00:00:00Z",
		"2026-11-29T24:00:00Z",
		"2026-11-29T15:20:60Z",
		"1969-12-31T23:59:59Z",
		"9999-12-31T23:59:59Z",
		"-026-11-29T15:20:01Z",
	};
	char text[32];
	pp_ns t = 7;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(pp_clock_parse(good[i].text, &t), 0);
		assert_true(t == good[i].seconds * PP_SECOND);
		assert_string_equal(pp_clock_format(t, text, sizeof(text)), good[i].text);
	}
	t = 7;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(pp_clock_parse(bad[i], &t), -EINVAL);
	assert_int_equal(t, 7);
}

/* As libc decodes it: every first and second byte, and the edges of those behind. */
static void test_utf8(void **state)
{
	static const unsigned char edges[] = {0, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0xbf, 0xc0, 0xff};
	unsigned int valid = 0;

	(void)state;
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		skip();
	for (unsigned int n = 0; n < 65536 * sizeof(edges) * sizeof(edges); n++) {
		unsigned int rest = n >> 16;
		char text[] = {(char)(n >> 8), (char)n, (char)edges[rest % sizeof(edges)],
			       (char)edges[rest / sizeof(edges)], 0};
		mbstate_t begin = {0};
		size_t got = pp_utf8_length(text, 4), want;
		wchar_t code = 0;

		want = mbrtowc(&code, text, 4, &begin);
		/* It goes on behind the last that Unicode has. */
		want = want > 4 || code > 0x10ffff ? 0 : !text[0] ? 1 : want;
		if (got != want)
			fail_msg("%02x %02x %02x %02x: %zu, not %zu", text[0] & 0xff,
				 text[1] & 0xff, text[2] & 0xff, text[3] & 0xff, got, want);
		for (size_t left = 0; left < got; left++)
			assert_int_equal(pp_utf8_length(text, left), 0);
		valid += got != 0;
	}
	assert_true(valid > 100000);
	(void)setlocale(LC_CTYPE, "C");
}

/* Never the half of one: U+20AC has three bytes. */
static void test_utf8_fit(void **state)
{
	static const char text[] = "a\xe2\x82\xac\xe2\x82\xac";
	static const size_t want[] = {0, 1, 1, 1, 4, 4, 4, 7, 7};

	(void)state;
	for (size_t most = 0; most < PP_ARRAY_LEN(want); most++)
		assert_int_equal(pp_utf8_fit(text, sizeof(text) - 1, most), want[most]);
	assert_int_equal(pp_utf8_fit("\x80\x80\x80", 3, 2), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),	     cmocka_unit_test(test_bdf),
		cmocka_unit_test(test_version),	     cmocka_unit_test(test_errno),
		cmocka_unit_test(test_near),	     cmocka_unit_test(test_json),
		cmocka_unit_test(test_buf_limit),    cmocka_unit_test(test_arena_limit),
		cmocka_unit_test(test_ini),	     cmocka_unit_test(test_out),
		cmocka_unit_test(test_out_terminal), cmocka_unit_test(test_clock),
		cmocka_unit_test(test_utf8),	     cmocka_unit_test(test_utf8_fit),
	};

	return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
