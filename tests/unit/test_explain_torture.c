/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each allocation of an explanation fails once: -ENOMEM, nothing leaked, and no half an answer.
 */
#include "unit.h"

#include <errno.h>

#include "fail_alloc.h"
#include "judge/explain.h"

static const char rules[] = "[first]\n"
			    "title = the first\n"
			    "problem = P1\n"
			    "match = op=reg_mr errno=14\n"
			    "match = \"peer memory\" \"refused|declined\"\n"
			    "versions = kernel < 5.12\n"
			    "alone = likely\n"
			    "beats = second\n"
			    "cause = c\n"
			    "decide = d\n"
			    "next = ls /\n"
			    "fix = f\n"
			    "reverse = r\n"
			    "source = https://example.org/\n"
			    "reviewed = 2026-11-29\n"
			    "[second]\n"
			    "title = the second\n"
			    "problem = -\n"
			    "match = \"Bad address\"\n"
			    "alone = possible\n"
			    "cause = c\n"
			    "decide = d\n"
			    "next = ls /\n"
			    "fix = f\n"
			    "reverse = r\n"
			    "source = https://example.org/\n"
			    "reviewed = 2026-11-29\n";
static const char text[] = "Linux version 5.4.0-42-generic\n"
			   "ibv_reg_mr(addr=0x7f) failed: Bad address\n"
			   "the peer memory client declined\n";

/* What stands first, "" when nothing does. */
static int answer(const struct pp_known_set *known, char first[64], size_t *n)
{
	struct pp_explanation x = {0};
	struct pp_explain *e = NULL;
	int r = pp_explain_new(known, &e);

	if (r)
		return r;
	pp_explain_push(e, text, sizeof(text) - 1);
	r = pp_explain_finish(e, NULL, &x);
	if (!r) {
		(void)snprintf(first, 64, "%s", x.n ? x.list[0].known->rule.id : "");
		*n = x.n;
		pp_explanation_done(&x);
	}
	pp_explain_free(e);
	return r;
}

static int all_of_it(char first[64], size_t *n, struct pp_error *err)
{
	struct pp_known_set *known = NULL;
	int r = pp_known_new(&known);

	if (!r)
		r = pp_known_parse(known, "torture", rules, sizeof(rules) - 1, err);
	if (!r)
		r = pp_known_finish(known, err);
	if (!r)
		r = answer(known, first, n);
	pp_known_free(known);
	return r;
}

static void test_each_allocation(void **state)
{
	char first[64] = "";
	size_t at = 1, n = 0;
	struct pp_error err = {0};
	bool failed = true;
	int r;

	(void)state;
	for (; failed && at < 10000; at++) {
		pp_fail_alloc_start(at);
		err.text[0] = 0;
		r = all_of_it(first, &n, &err);
		failed = pp_fail_alloc_stop();
		if (pp_fail_alloc_live())
			fail_msg("allocation %zu: %zu leaked", at, pp_fail_alloc_live());
		if (r != (failed ? -ENOMEM : 0))
			fail_msg("allocation %zu: returned %d: %s", at, r, err.text);
	}
	assert_true(at > 15);
	assert_string_equal(first, "first");
	assert_int_equal(n, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
