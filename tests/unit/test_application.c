/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gate 4 by trials made here. How many runs tell is R's binom.test: of n runs k on one side, its
 * one-sided p-value (p = 1/2) is 0.03125 for 5 of 5, 0.0625 for 4 of 4, 0.0625 for 6 of 7 and
 * 0.03516 for 7 of 8; 0.07173 for 12 of 17 and 0.04813 for 13 of 18.
 */
#include "unit.h"

#include <math.h>

#include "judge/application.h"

enum { RUNS = 24 };

static const char file[] = "[workload]\nname = llm\n"
			   "[metric speed]\npattern = ([0-9.]+)\ndirection = higher\nmargin = 3%\n"
			   "unit = tokens/s\nslo = 90\n"
			   "[metric p99]\njson = p99\ndirection = lower\nmargin = 10%\nslo = 20\n";
static const char no_level[] = "[workload]\nname = llm\n"
			       "[metric speed]\npattern = ([0-9.]+)\ndirection = higher\n"
			       "margin = 3%\n";

struct made {
	struct pp_trial t;
	struct pp_trial_node node;
	struct pp_trial_run run[RUNS];
};

/* @good of @n runs meet the level of speed; p99 is always met. */
static void make(struct made *m, const char *text, size_t n, size_t good)
{
	struct pp_error err = {0};

	memset(m, 0, sizeof(*m));
	if (pp_canary_parse("c.ini", text, strlen(text), &m->t.canary, &err))
		fail_msg("%s", err.text);
	m->node = (struct pp_trial_node){.id = "a", .topology_class = "c1"};
	m->t.node = &m->node;
	m->t.n_nodes = 1;
	m->t.run = m->run;
	m->t.n_runs = n;
	for (size_t i = 0; i < n; i++)
		m->run[i] = (struct pp_trial_run){.value = {i < good ? 100 : 80, 10}};
}

static struct pp_gate_application judged(struct made *m)
{
	struct pp_gate_application g;

	pp_gate_application_judge(&m->t, NULL, &g);
	pp_canary_done(&m->t.canary);
	return g;
}

static void says(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in '%s'", part, text);
}

static void test_how_many_tell(void **state)
{
	static const struct {
		size_t n, good;
		enum pp_verdict verdict;
		const char *raise;
	} row[] = {
		{5, 5, PP_PASS, ""},	  {4, 4, PP_UNKNOWN, "1 more runs"},
		{1, 1, PP_UNKNOWN, "4 "}, {7, 6, PP_UNKNOWN, "1 more"},
		{8, 7, PP_PASS, ""},	  {17, 12, PP_UNKNOWN, ""},
		{18, 13, PP_PASS, ""},	  {5, 0, PP_FAIL, "speed of at least 90"},
		{8, 1, PP_FAIL, ""},	  {4, 0, PP_UNKNOWN, "1 more"},
		{10, 5, PP_UNKNOWN, ""},
	};
	struct pp_gate_application g;
	struct made m;

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(row); i++) {
		make(&m, file, row[i].n, row[i].good);
		g = judged(&m);
		if (g.verdict != row[i].verdict)
			fail_msg("%zu of %zu: %s: %s", row[i].good, row[i].n,
				 pp_verdict_name(g.verdict), g.sentence);
		says(g.raise, row[i].raise);
		assert_int_equal(g.verdict == PP_PASS, !*g.raise);
		assert_int_equal(g.verdict == PP_PASS, !*g.next);
	}
}

static void test_what_it_says(void **state)
{
	struct pp_gate_application g;
	struct made m;

	(void)state;
	make(&m, file, 6, 6);
	m.run[0].void_why = "the command ended with status 3";
	g = judged(&m);
	assert_int_equal(g.verdict, PP_PASS);
	says(g.sentence, "llm meets the service level");
	says(g.sentence, "for a comparison"); /* no change is credited */
	says(g.evidence, "5 runs of llm that count, 1 void; its path was not looked at; "
			 "speed 100 tokens/s (at least 90: 5 of 5); p99 10 (at most 20: 5 of 5)");
	make(&m, file, 5, 5);
	m.t.path = (struct pp_trial_path){"gdr", "dmabuf", "proven", "proven", NULL};
	says(judged(&m).evidence, "path gdr by dmabuf (proven)");
	make(&m, no_level, 5, 5);
	g = judged(&m);
	assert_int_equal(g.verdict, PP_UNKNOWN);
	says(g.sentence, "no service level was declared");
	says(g.raise, "slo = BOUND");
}

static void test_nothing_counts(void **state)
{
	struct pp_gate_application g;
	struct made m;

	(void)state;
	make(&m, file, 5, 5);
	for (size_t i = 0; i < 5; i++)
		m.run[i].void_why = "the GPU 0000:9a:00.0 was held back: thermal";
	g = judged(&m);
	assert_int_equal(g.verdict, PP_UNKNOWN);
	says(g.sentence, "no run of llm counts");
	says(g.raise, "0000:9a:00.0 was held back");
	make(&m, file, 5, 5); /* the only figure is none */
	for (size_t i = 0; i < 5; i++)
		m.run[i].value[0] = NAN;
	assert_int_equal(judged(&m).verdict, PP_UNKNOWN);
	make(&m, file, 0, 0);
	g = judged(&m);
	assert_int_equal(g.verdict, PP_UNKNOWN);
	says(g.raise, "there was none");
}

static void test_simulated(void **state)
{
	struct pp_gate_application g;
	struct made m;

	(void)state;
	make(&m, file, 5, 5);
	m.t.simulated = true;
	g = judged(&m);
	assert_int_equal(g.verdict, PP_UNKNOWN);
	assert_true(g.simulated && g.passed);
	says(g.sentence, "chain exercised in simulation");
	says(g.evidence, "simulated: ");
	make(&m, file, 5, 0);
	m.t.simulated = true;
	g = judged(&m);
	assert_int_equal(g.verdict, PP_UNKNOWN);
	assert_false(g.passed);
}

/* With a baseline the comparison's verdict is the gate's. */
static void test_compared(void **state)
{
	static struct made before, after;
	const struct pp_trial *a = &before.t, *b = &after.t;
	struct pp_gate_application g;
	struct pp_comparison c;

	(void)state;
	make(&before, file, 10, 10);
	make(&after, file, 10, 10);
	for (size_t i = 0; i < 10; i++) {
		before.run[i].value[0] += (double)i / 10;
		after.run[i].value[0] += (double)i / 10;
	}
	after.t.path = (struct pp_trial_path){"gdr", "dmabuf", "proven", "proven", NULL};
	assert_int_equal(pp_comparison_make(&a, 1, &b, 1, &c), 0);
	pp_gate_application_judge(&after.t, &c, &g);
	assert_int_equal(g.verdict, PP_PASS);
	says(g.sentence, "nothing that was measured gained");
	pp_comparison_done(&c);
	/* within its margin, yet on the wrong side of its level */
	after.t.canary.metric[0].slo = before.t.canary.metric[0].slo = 100.95;
	for (size_t i = 0; i < 10; i++) {
		before.run[i].value[0] = 101 + (double)i / 100;
		after.run[i].value[0] = 100.8 + (double)i / 100;
	}
	assert_int_equal(pp_comparison_make(&a, 1, &b, 1, &c), 0);
	pp_gate_application_judge(&after.t, &c, &g);
	assert_int_equal(g.verdict, PP_DEGRADED);
	says(g.sentence, "but the service level is missed: speed");
	pp_comparison_done(&c);
	for (size_t i = 0; i < 10; i++)
		after.run[i].value[0] = 50;
	assert_int_equal(pp_comparison_make(&a, 1, &b, 1, &c), 0);
	pp_gate_application_judge(&after.t, &c, &g);
	assert_int_equal(g.verdict, PP_FAIL);
	says(g.next, "peerpath profile rollback");
	pp_comparison_done(&c);
	pp_canary_done(&before.t.canary);
	pp_canary_done(&after.t.canary);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_how_many_tell),  cmocka_unit_test(test_what_it_says),
		cmocka_unit_test(test_nothing_counts), cmocka_unit_test(test_simulated),
		cmocka_unit_test(test_compared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
