/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Documents as a fleet reads them: the recorded ones of docs/results, and what must be refused.
 */
#include "unit.h"

#include <errno.h>

#include "store/result.h"

#define NODE                                                                                  \
	"\"node\":{\"host\":\"a\",\"facts\":[{\"fact\":\"gpu.uuid\",\"of\":\"0000:18:00.0\"," \
	"\"value\":\"GPU-1\"},{\"fact\":\"nvidia.flavour\",\"of\":\"node\",\"value\":\"open\"}]}"
#define GATES \
	"\"gates\":[{\"name\":\"identity\",\"asked\":true,\"verdict\":\"pass\",\"claim\":\"c\"}]"
#define PROVE(schema, rest) \
	"{\"schema\":\"" schema "\",\"simulated\":false,\"verdict\":\"pass\"," rest "}"
#define STARTED	       "\"started\":\"2026-11-30T10:00:00Z\","
#define TIMELESS(rest) PROVE("peerpath.prove/1", NODE "," GATES rest)

static int reading(const char *text, struct pp_result **ret)
{
	struct pp_error err = {0};
	int r = pp_result_read(text, strlen(text), ret, &err);

	if (!r != !err.code)
		fail_msg("%d, but error %d: %s", r, err.code, err.text);
	return r;
}

static void test_refused(void **state)
{
	static const struct {
		const char *text;
		int code;
	} rows[] = {
		{"", -EBADMSG},
		{"[]", -EBADMSG},
		{"{}", -EBADMSG},
		{"{\"schema\":1}", -EBADMSG},
		{"{\"schema\":\"peerpath\"}", -EBADMSG},
		{"{\"schema\":\"peerpath.prove/1\",\"schema\":\"peerpath.prove/1\"}", -EBADMSG},
		{"{\"schema\":\"peerpath.prove/x\"}", -EPROTONOSUPPORT},
		{"{\"schema\":\"peerpath.prove/2\"}", -EPROTONOSUPPORT},
		{"{\"schema\":\"peerpath.topo/1\"}", -EPROTONOSUPPORT},
		{"{\"schema\":\"peerpath.comparison/1\",\"simulated\":false,\"verdict\":\"pass\"}",
		 -ENODATA},
		{"{\"schema\":\"peerpath.nccl_run/1\",\"runs\":[]}", -EBADMSG},
		{"{\"schema\":\"peerpath.bench/1\"," STARTED "\"nodes\":[{}]}", -ENODATA},
		{PROVE("peerpath.prove/1", GATES), -ENODATA},
		{PROVE("peerpath.prove/1", NODE), -EBADMSG},
		{"{\"schema\":\"peerpath.prove/1\",\"verdict\":\"pass\"," NODE "," GATES "}",
		 -EBADMSG},
		{"{\"schema\":\"peerpath.prove/1\",\"simulated\":false,\"verdict\":\"good\"," NODE
		 "," GATES "}",
		 -EBADMSG},
		{PROVE("peerpath.prove/1", NODE "," GATES ",\"started\":\"yesterday\""), -EBADMSG},
		{PROVE("peerpath.prove/1", NODE "," GATES ",\"started\":\"2199-01-01T00:00:00Z\""),
		 -EBADMSG},
		/* What has no time, or a wrong one, was once taken for the newest. */
		{TIMELESS(""), -ENODATA},
		{TIMELESS(",\"started\":null,\"judged\":null"), -ENODATA},
		{TIMELESS(",\"started\":null,\"judged\":\"yesterday\""), -EBADMSG},
		{TIMELESS(",\"started\":null,\"judged\":\"2199-01-01T00:00:00Z\""), -EBADMSG},
		{TIMELESS(",\"started\":null,\"judged\":\"2026-02-30T00:00:00Z\""), -EBADMSG},
		{TIMELESS(",\"started\":\"2026-11-30T10:00:00Z\",\"judged\":\"yesterday\""),
		 -EBADMSG},
		{PROVE("peerpath.prove/1",
		       NODE ",\"gates\":[{\"name\":\"six\",\"asked\":true,\"verdict\":\"pass\"}]"),
		 -EBADMSG},
	};
	struct pp_result *r = NULL;

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(rows); i++)
		if (reading(rows[i].text, &r) != rows[i].code)
			fail_msg("row %zu: %s", i, rows[i].text);
	assert_null(r);
}

static void test_prove(void **state)
{
	struct pp_result *r = NULL;

	(void)state;
	assert_int_equal(reading(PROVE("peerpath.prove/1",
				       NODE "," GATES ",\"started\":\"2026-11-30T10:00:00Z\""),
				 &r),
			 0);
	assert_string_equal(r->kind, "prove");
	assert_string_equal(r->when, "2026-11-30T10:00:00Z");
	assert_false(r->simulated);
	assert_int_equal(r->verdict, PP_PASS);
	assert_true(r->asked[PP_GATE_IDENTITY]);
	assert_false(r->asked[PP_GATE_MEMORY]);
	assert_int_equal(r->n_nodes, 1);
	assert_string_equal(r->node[0].part[0], "gpu GPU-1");
	assert_string_equal(r->node[0].flavour, "open");
	assert_string_equal(r->node[0].host, "a");
	pp_result_free(r);
}

/* A replay of a recording without a time is of when it was judged, not of when it is added. */
static void test_judged(void **state)
{
	struct pp_result *r = NULL;

	(void)state;
	assert_int_equal(reading(TIMELESS(",\"started\":null,\"judged\":"
					  "\"2025-03-01T10:00:00Z\""),
				 &r),
			 0);
	assert_string_equal(r->when, "2025-03-01T10:00:00Z");
	pp_result_free(r);
}

/* A name of a stranger's node: cut, without what drives a terminal. */
static void test_hostile_text(void **state)
{
	char text[4096], name[1200];
	struct pp_result *r = NULL;

	(void)state;
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	(void)snprintf(text, sizeof(text),
		       "{\"schema\":\"peerpath.bench/1\"," STARTED
		       "\"nodes\":[{\"host\":\"%s\"},{\"host\":"
		       "\"a\\u001b[31mb\\n\"}]}",
		       name);
	assert_int_equal(reading(text, &r), 0);
	assert_int_equal(strlen(r->node[0].host), PP_RESULT_TEXT);
	assert_string_equal(r->node[1].host, "a?[31mb?");
	pp_result_free(r);
}

/* Not in the middle of a character, wherever the end falls: U+1F600 has four bytes. */
static void test_whole_characters(void **state)
{
	char text[4096], name[1200];

	(void)state;
	for (size_t before = 0; before < 4; before++) {
		struct pp_result *r = NULL;

		memset(name, 'n', before);
		for (size_t at = before; at < 800; at += 4)
			memcpy(name + at, "\xf0\x9f\x98\x80", 5);
		(void)snprintf(text, sizeof(text),
			       "{\"schema\":\"peerpath.bench/1\"," STARTED
			       "\"nodes\":[{\"host\":\"%s\"}]}",
			       name);
		assert_int_equal(reading(text, &r), 0);
		assert_int_equal(strlen(r->node[0].host),
				 (PP_RESULT_TEXT - before) / 4 * 4 + before);
		pp_result_free(r);
	}
}

/* An id of zeros is everybody's. */
static void test_parts(void **state)
{
	struct pp_result *r = NULL;

	(void)state;
	assert_int_equal(
		reading("{\"schema\":\"peerpath.bench/1\"," STARTED
			"\"nodes\":[{\"host\":\"a\"},{\"host\":"
			"\"b\"}],\"pairs\":[{\"rail\":0,\"ends\":[{\"node\":0,\"gpu_uuid\":\"GPU-"
			"00000000-0000-0000-0000-000000000000\"},{\"node\":1,\"gpu_uuid\":\"GPU-"
			"7\"}]},"
			"{\"rail\":1,\"ends\":[{\"node\":9,\"gpu_uuid\":\"GPU-8\"},{\"node\":1,"
			"\"gpu_uuid\":\"GPU-7\"}]}]}",
			&r),
		0);
	assert_int_equal(r->node[0].n_parts, 0);
	assert_int_equal(r->node[1].n_parts, 1);
	assert_string_equal(r->node[1].part[0], "gpu GPU-7");
	pp_result_free(r);
}

static char *file(const char *name, size_t *ret_len)
{
	char path[1024];
	char *text = malloc(4 << 20);
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/../../%s", getenv("PP_TEST_DIR"), name);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_non_null(text);
	*ret_len = fread(text, 1, (4 << 20) - 1, f);
	text[*ret_len] = '\0';
	(void)fclose(f);
	return text;
}

/* Measured on an H200, over the software device: figures as the document has them. */
static void test_bench(void **state)
{
	struct pp_error err = {0};
	struct pp_result *r = NULL;
	size_t len, staged = 0;
	char *text = file("docs/results/bench-h200-cuda.json", &len);

	(void)state;
	assert_int_equal(pp_result_read(text, len, &r, &err), 0);
	free(text);
	assert_true(r->simulated);
	assert_int_equal(r->n_nodes, 2);
	assert_string_equal(r->when, "2026-11-30T05:46:55Z");
	for (size_t i = 0; i < r->n_figures; i++)
		assert_int_equal(r->figure[i].size_bytes, 4194304);
	for (size_t i = 0; i < r->n_gains; i++) {
		const struct pp_result_gain *g = &r->gain[i];

		assert_string_equal(g->way, "dmabuf");
		if (g->size_bytes != 1048576 || strcmp(g->against, "host-staged") != 0 ||
		    strcmp(g->what, "write bandwidth") != 0)
			continue;
		assert_true(g->ratio > 1.22437 && g->ratio < 1.22439);
		assert_true(g->with > 9106.58 && g->with < 9106.60);
		staged++;
	}
	assert_int_equal(staged, 1);
	pp_result_free(r);
}

/*
 * As many figures, pairs and rows as are read, each looked up in the others: whoever multiplies
 * them does not come to an end in time.
 */
static void test_many_figures(void **state)
{
	struct pp_buf text = PP_BUF(32 << 20);
	struct pp_result *r = NULL;

	(void)state;
	pp_buf_str(&text, "{\"schema\":\"peerpath.bench/1\"," STARTED
			  "\"nodes\":[{\"host\":\"a\"},{\"host\":"
			  "\"b\"}],\"pairs\":[");
	for (int i = 0; i < 4096; i++)
		pp_buf_printf(&text, "%s{\"rail\":%d,\"ends\":[{\"node\":0},{\"node\":1}]}",
			      i ? "," : "", i % 256);
	pp_buf_str(&text, "],\"transfer\":{\"rows\":[");
	for (int i = 0; i < 65536; i++)
		pp_buf_printf(&text,
			      "%s{\"pair\":%d,\"rung\":\"dmabuf\",\"registration_state\":\"%s\"}",
			      i ? "," : "", i % 4096, i < 65535 - 4000 ? "unproven" : "proven");
	pp_buf_str(&text, "],\"figures\":[");
	for (int i = 0; i < 61440; i++)
		pp_buf_printf(&text,
			      "%s{\"pair\":%d,\"rung\":\"%s\",\"operation\":\"write\",\"measure\":"
			      "\"bandwidth\",\"size_bytes\":%d,\"median_mb_per_s\":%d%s}",
			      i ? "," : "", i % 4096, i < 4096 ? "dmabuf" : "host", i / 4096, i + 1,
			      i < 4096 ? ",\"direct_to_staged_ratio\":2" : "");
	pp_buf_str(&text, "]}}");
	assert_int_equal(text.failed, 0);
	assert_int_equal(reading(pp_buf_text(&text), &r), 0);
	pp_buf_done(&text);
	/* Two ends, 256 rails, two ways: of each the largest size, the first of equal ones. */
	assert_int_equal(r->n_figures, 2 * 256 * 2);
	for (size_t i = 0; i < r->n_figures; i++) {
		const struct pp_result_figure *f = &r->figure[i];
		bool host = !strcmp(f->what, "host write bandwidth");

		assert_int_equal(f->size_bytes, host ? 14 : 0);
		assert_int_equal((int)f->value, (host ? 14 * 4096 : 0) + f->rail + 1);
	}
	assert_int_equal(r->n_gains, 4096);
	for (size_t i = 0; i < r->n_gains; i++)
		assert_int_equal(r->gain[i].proven, i >= 4096 - 4001);
	pp_result_free(r);
}

/* The same names again and again, and a great many of them. */
static void test_many_names(void **state)
{
	struct pp_buf text = PP_BUF(32 << 20);
	struct pp_result *r = NULL;

	(void)state;
	pp_buf_str(&text, "{\"schema\":\"peerpath.comparison/1\",\"simulated\":false,\"verdict\":"
			  "\"pass\",\"metrics\":[");
	for (int m = 0; m < 32; m++) {
		pp_buf_printf(&text, "%s{\"metric\":\"m\",\"change\":\"missing\",\"nodes\":[",
			      m ? "," : "");
		for (int b = 0; b < 256; b++) {
			pp_buf_printf(&text, "%s{\"nodes\":\"", b ? "," : "");
			for (int i = 0; i < 128; i++)
				pp_buf_printf(&text, "%s%03x", i ? " " : "",
					      b < 8 ? b * 128 + i : 1023);
			pp_buf_str(&text, "\"}");
		}
		pp_buf_str(&text, "]}");
	}
	pp_buf_str(&text, "]}");
	assert_int_equal(text.failed, 0);
	assert_int_equal(reading(pp_buf_text(&text), &r), 0);
	pp_buf_done(&text);
	assert_int_equal(r->n_nodes, 1024);
	assert_string_equal(r->node[0].host, "000");
	assert_string_equal(r->node[1023].host, "3ff");
	pp_result_free(r);
}

/* Facts of 4096 objects, each of which is looked up: equal keys give the first one's value. */
static void test_many_facts(void **state)
{
	struct pp_buf text = PP_BUF(1 << 20);
	struct pp_result *r = NULL;
	bool seen = false;

	(void)state;
	pp_buf_str(&text, "{\"schema\":\"peerpath.prove/1\"," STARTED
			  "\"simulated\":false,\"verdict\":\"pass\"," GATES
			  ",\"node\":{\"host\":\"a\",\"facts\":[");
	for (int i = 4095; i >= 0; i--)
		pp_buf_printf(&text, "%s{\"fact\":\"%s\",\"of\":\"%d\",\"value\":\"%s\"}",
			      i < 4095 ? "," : "", i % 2 ? "gpu.vbios" : "gpu.name", i / 4 * 4,
			      i % 4 == 3   ? "first"
			      : i % 4 == 1 ? "second"
					   : "H200");
	pp_buf_str(&text, "]}}");
	assert_int_equal(reading(pp_buf_text(&text), &r), 0);
	pp_buf_done(&text);
	for (size_t i = 0; i < r->node->n_facts; i++)
		if (!strcmp(r->node->fact[i].key, "gpus")) {
			assert_string_equal(r->node->fact[i].value, "256 x H200 first");
			seen = true;
		}
	assert_true(seen);
	pp_result_free(r);
}

/* Each pair of brackets takes a hundred times its room in memory. */
static void test_dense(void **state)
{
	static const char *const pairs[] = {"{},", "[],", "1,"};

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(pairs); i++) {
		struct pp_buf text = PP_BUF(32 << 20);
		struct pp_result *r = NULL;

		pp_buf_str(&text, "{\"schema\":\"peerpath.prove/1\",\"more\":[");
		for (int k = 0; k < 4000000; k++)
			pp_buf_str(&text, pairs[i]);
		pp_buf_str(&text, "0]}");
		assert_int_equal(reading(pp_buf_text(&text), &r), -EFBIG);
		pp_buf_done(&text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_prove),
		cmocka_unit_test(test_judged),
		cmocka_unit_test(test_hostile_text),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_bench),
		cmocka_unit_test(test_many_figures),
		cmocka_unit_test(test_many_names),
		cmocka_unit_test(test_many_facts),
		cmocka_unit_test(test_dense),
		cmocka_unit_test(test_whole_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
