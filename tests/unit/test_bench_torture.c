/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each allocation fails once on the way from a document to its verdict, its page, its text and a
 * comparison: -ENOMEM, nothing leaked, and never another verdict than with memory.
 */
#include "bench_made.h"

#include <errno.h>

#include "bundle/page.h"
#include "cli/bench_text.h"
#include "fail_alloc.h"
#include "judge/repeat.h"
#include "base/banned.h"

static json_t *document;
static const struct pp_bench *earlier;

static int written(const struct pp_bench *b, const struct pp_transfer *t)
{
	struct pp_out *o = pp_out_new(false, stdout, 80, false);
	int r = o ? 0 : -ENOMEM;

	if (o)
		pp_bench_text(o, b, t, &pp_margins_default);
	pp_out_free(o); /* nothing is written before pp_out_finish() */
	return r;
}

/* 0 and the verdicts; or -ENOMEM. */
static int all_of_it(enum pp_verdict *ret, enum pp_verdict *ret_repeat)
{
	struct pp_bench *b = NULL;
	struct pp_error err = {0};
	struct pp_transfer t = {0};
	struct pp_repeat again = {0};
	char *page = NULL;
	int r = pp_bench_read(document, &b, &err);

	if (!r)
		r = pp_transfer_judge(b, &pp_margins_default, NULL, NULL, &t);
	if (!r)
		r = pp_page_bench(b, &t, &pp_margins_default, &page);
	if (!r)
		r = written(b, &t);
	if (!r)
		r = pp_repeat_compare(earlier, b, &pp_margins_default, &again);
	if (!r) {
		*ret = t.verdict;
		*ret_repeat = again.verdict;
	}
	free(page);
	pp_repeat_done(&again);
	pp_transfer_done(&t);
	pp_bench_free(b);
	return r;
}

static void test_each_allocation(void **state)
{
	enum pp_verdict verdict = PP_FAIL, repeated = PP_FAIL;
	bool failed = true;
	size_t nth = 0;
	int r;

	(void)state;
	while (failed) {
		assert_true(++nth < 10000);
		pp_fail_alloc_start(nth);
		r = all_of_it(&verdict, &repeated);
		failed = pp_fail_alloc_stop();
		assert_int_equal(pp_fail_alloc_live(), 0);
		assert_true(!r || (failed && r == -ENOMEM));
		if (r)
			continue;
		/* what went on without that memory says the same */
		assert_int_equal(verdict, PP_PASS);
		assert_int_equal(repeated, PP_PASS);
	}
	assert_true(nth > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_allocation)};
	struct pp_bench *b = made_bench();
	struct pp_buf text = PP_BUF(1 << 24);
	struct pp_json j = PP_JSON(&text, false);
	int r;

	pp_json_object(&j, NULL);
	pp_bench_write(&j, b);
	pp_json_end_object(&j);
	document = json_loads(pp_buf_text(&text), 0, NULL);
	pp_buf_done(&text);
	earlier = b;
	r = cmocka_run_group_tests_name("bench-torture", tests, NULL, NULL);
	json_decref(document);
	pp_bench_free(b);
	return r;
}
