/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run on the terminal and as a document: it fits 80 columns, says the verdict and what is
 * simulated, drives no terminal, and the document is one that jansson reads whatever failed.
 */
#include "bench_made.h"

#include "cli/bench_text.h"
#include "base/banned.h"

static char *shown(const struct pp_bench *b, bool json, unsigned int width)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	struct pp_out *o = pp_out_new(json, f, width, false);
	struct pp_transfer t;

	assert_non_null(o);
	assert_int_equal(pp_transfer_judge(b, &pp_margins_default, NULL, NULL, &t), 0);
	pp_bench_emit(o, b, &t, &pp_margins_default);
	assert_int_equal(pp_out_finish(o), 0);
	pp_out_free(o);
	pp_transfer_done(&t);
	(void)fclose(f);
	if (getenv("PP_TEST_SHOW"))
		(void)fputs(text, stderr);
	return text;
}

static void says(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("lacks '%s':\n%s", part, text);
}

static void fits(const char *text, size_t width)
{
	for (const char *at = text; *at;) {
		size_t n = strcspn(at, "\n");

		if (n > width)
			fail_msg("%zu columns: %.*s", n, (int)n, at);
		at += n + (at[n] == '\n');
	}
}

/* All six rungs, so that the widest table is seen. */
static void all_rungs(struct pp_bench *b)
{
	struct pp_bench_pair *p = &b->pairs[0];
	struct pp_bench_cell *more = pp_arena_array(b->arena, 6 * (MADE_SIZES + 1), sizeof(*more));
	static const enum pp_rung of[] = {PP_RUNG_TCP, PP_RUNG_PEERMEM, PP_RUNG_DATA_DIRECT};
	unsigned int n = p->n_cells;

	memcpy(more, p->cells, n * sizeof(*more));
	for (unsigned int i = 0; i < 3; i++) {
		made_rung(p, of[i], of[i] == PP_RUNG_TCP ? PP_MEMORY_HOST : PP_MEMORY_CUDA, "x");
		for (unsigned int k = 0; k < MADE_SIZES; k++)
			made_cell(b, &more[n++], of[i], PP_BANDWIDTH, made_size[k], 123456);
		made_cell(b, &more[n++], of[i], PP_LATENCY, 8, 12345.67);
	}
	p->cells = more;
	p->n_cells = n;
}

static void test_text(void **state)
{
	struct pp_bench *b = made_bench();
	char *text = shown(b, false, 80);

	(void)state;
	fits(text, 80);
	says(text, "a:mlx5_0 - b:mlx5_0");
	says(text, "traffic class 106 -> priority 3");
	/* 48000 MB/s at 4 MiB by DMA-BUF beside 48500 of host memory and 30000 staged */
	says(text, "   4194304     48500     48000     30000      0.99     1.60");
	says(text, "verdict               pass");
	says(text, "repeats within 5.0 %");
	says(text, "peermem was not run: not asked for");
	says(text, "port_xmit_data");
	says(text, "last to be ready      b, 31.5 us after the first");
	free(text);
	all_rungs(b);
	text = shown(b, false, 80);
	fits(text, 80);
	says(text, "d-direct");
	free(text);
	pp_bench_free(b);
}

static void test_simulated(void **state)
{
	struct pp_bench *b = made_bench();
	char *text;

	(void)state;
	made_simulated(b);
	text = shown(b, false, 80);
	fits(text, 80);
	says(text, "SIMULATION: no hardware was measured");
	says(text, "simulation: passed");
	says(text, "exercised");
	says(text, "no GPU");
	assert_null(strstr(text, "proven"));
	free(text);
	pp_bench_free(b);
}

static void spoil(struct pp_bench *b)
{
	struct pp_bench_rung *r = &b->pairs[0].rung[PP_RUNG_PEERMEM];

	*r = (struct pp_bench_rung){.rung = PP_RUNG_PEERMEM,
				    .state = PP_BENCH_FAILED,
				    .error = 14,
				    .call = "ibv_reg_mr",
				    .memory = PP_MEMORY_CUDA};
	r->attempts = pp_arena_array(b->arena, 1, sizeof(*r->attempts));
	r->attempts[0] = (struct pp_bench_attempt){.end = 1,
						   .how = "peermem",
						   .call = "ibv_reg_mr",
						   .arguments = "length 4096",
						   .error = 14};
	r->n_attempts = 1;
	r = &b->pairs[0].rung[PP_RUNG_DMABUF];
	r->negatives = pp_arena_array(b->arena, 2, sizeof(*r->negatives));
	r->negatives[0] =
		(struct pp_bench_negative){"wrong rkey", true, true, "remote access error"};
	r->negatives[1] = (struct pp_bench_negative){"beyond the region", true, false, "success"};
	r->n_negatives = 2;
	b->pairs[0].cells[2].state = PP_BENCH_FAILED;
	b->pairs[0].cells[2].why = "transport retry counter exceeded";
	b->pairs[0].cells[2].status = 12;
	b->pairs[0].name = "a\033[31m<script>\x9b";
	b->nodes[0].id = "evil\nhost\a";
	b->whole = false;
	b->ended = "the peer was lost";
}

static void test_failed(void **state)
{
	struct pp_bench *b = made_bench();
	char *text;
	json_t *d;

	(void)state;
	spoil(b);
	text = shown(b, false, 80);
	says(text, "EFAULT (14)");
	says(text, "NOT refused: success");
	says(text, "refused: remote access error");
	says(text, "  failed");
	says(text, "verdict               fail");
	assert_null(strchr(text, '\033'));
	assert_null(strchr(text, '\a'));
	assert_null(strstr(text, "evil\nhost"));
	free(text);
	text = shown(b, true, 0);
	d = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(d);
	assert_string_equal(json_string_value(json_object_get(d, "schema")), "peerpath.bench/1");
	assert_string_equal(json_string_value(json_object_get(d, "verdict")), "fail");
	assert_true(json_is_object(json_object_get(d, "transfer")));
	assert_true(json_is_array(json_object_get(d, "pairs")));
	json_decref(d);
	free(text);
	pp_bench_free(b);
}

static void test_nothing(void **state)
{
	struct pp_bench *b = NULL;
	char *text;

	(void)state;
	assert_int_equal(pp_bench_new(&b), 0);
	b->ended = "no hca";
	text = shown(b, false, 80);
	says(text, "verdict               unknown");
	says(text, "no hca");
	free(text);
	pp_bench_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_simulated),
		cmocka_unit_test(test_failed),
		cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests_name("bench-text", tests, NULL, NULL);
}
