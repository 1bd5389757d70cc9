/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Canary files, and figures out of what programs print: lines as PyTorch's, vLLM's and Megatron's
 * users see them, an exposition by Prometheus' own documentation, and what is no figure.
 */
#include "unit.h"

#include <errno.h>
#include <math.h>

#include "base/compiler.h"
#include "judge/metric.h"
#include "judge/pattern.h"

static const char good[] = "# a comment\n"
			   "[workload]\n"
			   "name = ddp\n"
			   "revision = 3f2a\n"
			   "seed = 7\n"
			   "[run]\n"
			   "repeats = 6\n"
			   "warmup = 1\n"
			   "timeout = 90s\n"
			   "prometheus = http://127.0.0.1:9100/metrics\n"
			   "[metric throughput]\n"
			   "pattern = tokens/s: ([0-9.]+)\n"
			   "skip = 2\n"
			   "direction = higher\n"
			   "unit = tokens/s\n"
			   "margin = 3%\n"
			   "slo = 1000\n"
			   "[metric step]\n"
			   "json = step.seconds\n"
			   "reduce = p95\n"
			   "direction = lower\n"
			   "margin = 0.25\n"
			   "[metric start]\n"
			   "seconds = ^step 1\n"
			   "direction = lower\n"
			   "margin = 10 %\n"
			   "[metric wall]\n"
			   "seconds = wall\n"
			   "direction = lower\n"
			   "margin = 10%\n"
			   "[metric load]\n"
			   "prometheus = node_load1\n"
			   "group = host\n"
			   "reduce = max\n"
			   "direction = lower\n"
			   "margin = 20%\n"
			   "[change]\n"
			   "changed = path, module-flavour\n";

static struct pp_canary parse(const char *text)
{
	struct pp_canary c;
	struct pp_error err = {0};

	if (pp_canary_parse("c.ini", text, strlen(text), &c, &err))
		fail_msg("%s", err.text);
	return c;
}

static void test_file(void **state)
{
	struct pp_canary c = parse(good);

	(void)state;
	assert_string_equal(c.workload, "ddp");
	assert_int_equal(c.n_keys, 3);
	assert_int_equal(c.repeats, 6);
	assert_int_equal(c.warmup, 1);
	assert_true(c.timeout == 90 * PP_SECOND);
	assert_int_equal(c.n_metrics, 5);
	assert_true(c.metric[0].is_ratio && fabs(c.metric[0].margin - 0.03) < 1e-12);
	assert_true(c.metric[0].slo == 1000 && c.metric[0].higher_is_better);
	assert_true(!c.metric[1].is_ratio && c.metric[1].margin == 0.25);
	assert_int_equal(c.metric[1].reduce, PP_REDUCE_P95);
	assert_true(isnan(c.metric[1].slo));
	assert_true(c.metric[4].is_host && !c.metric[3].is_host);
	assert_int_equal(c.n_changed, 2);
	assert_string_equal(c.changed[1], "module-flavour");
	pp_canary_done(&c);
}

/* Counted by hand: what each repeat leaves of one, so as POSIX defines it. */
static void test_pattern_atoms(void **state)
{
	static const struct {
		const char *text;
		size_t atoms;
	} row[] = {
		{"", 0},
		{"abc", 3},
		{"a+", 2},
		{"a++", 4},
		{"a*b?", 2},
		{"(ab)+", 6},
		{"((a+)+)+", 14},
		{"[0-9]{4}-[0-9]{2}-[0-9]{2}", 10},
		{"a{2,7}", 7},
		{"a{,7}", 7},
		{"a{3,}", 4},
		{"a{x", 3},
		{"[]+]+", 2},
		{"[^]a]", 1},
		{"[[:digit:]+]+", 2},
		{"\\(\\++", 3},
		{"a|b+", 4},
		{"a)b", 3},
		{"([0-9]{255}){255}", PP_PATTERN_ATOMS + 1},
		{"a++++++++++++++++++++++++++++++++++++++++++++++++++", PP_PATTERN_ATOMS + 1},
		{"()++++++++++++++++++++++++++++++++++++++++++++++++++", PP_PATTERN_ATOMS + 1},
	};
	char deep[1000];

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(row); i++)
		if (pp_pattern_atoms(row[i].text) != row[i].atoms)
			fail_msg("'%s': %zu", row[i].text, pp_pattern_atoms(row[i].text));
	memset(deep, '(', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	assert_int_equal(pp_pattern_atoms(deep), PP_PATTERN_ATOMS + 1);
}

/* Each replaces one line of the good file; the message must name the place and the cure. */
static void test_what_is_refused(void **state)
{
	static const struct {
		const char *line, *instead, *says;
	} row[] = {
		{"name = ddp\n", "", "needs 'name'"},
		{"name = ddp\n", "name =\n", "has no value"},
		{"seed = 7\n", "name = x\n", "given twice"},
		{"[run]\n", "[runs]\n", "did you mean [run]"},
		{"repeats = 6\n", "repeats = 0\n", "c.ini:7: 'repeats = 0': it takes 1 to 1000"},
		{"repeats = 6\n", "repeat = 6\n", "did you mean 'repeats'"},
		{"timeout = 90s\n", "timeout = 0\n", "a time above 0"},
		{"prometheus = http://127.0.0.1:9100/metrics\n", "", "[run] needs 'prometheus"},
		{"pattern = tokens/s: ([0-9.]+)\n", "", "'throughput' (line 11) has no source"},
		{"pattern = tokens/s: ([0-9.]+)\n", "pattern = tokens\n", "with a group"},
		{"pattern = tokens/s: ([0-9.]+)\n", "pattern = tokens([0-9\n",
		 "regular expression"},
		/* libc would copy it 2^24 times. */
		{"pattern = tokens/s: ([0-9.]+)\n", "pattern = (a)++++++++++++++++++++++++\n",
		 "regular expression"},
		{"skip = 2\n", "json = x\n", "one source"},
		{"skip = 2\n", "skip = -1\n", "how many first values"},
		{"direction = higher\n", "", "needs direction"},
		{"direction = higher\n", "direction = up\n", "higher or lower"},
		{"margin = 3%\n", "", "needs margin"},
		{"margin = 3%\n", "margin = 0%\n", "above 0"},
		{"margin = 3%\n", "margin = 100%\n", "below 100 %"},
		{"margin = 3%\n", "margin = nan\n", "above 0"},
		{"margin = 3%\n", "margin = inf\n", "above 0"},
		{"slo = 1000\n", "slo = 1e999\n", "a number"},
		{"reduce = p95\n", "reduce = p97\n", "p95, p99"},
		{"[metric step]\n", "[metric throughput]\n", "declared twice"},
		{"[metric step]\n", "[metric ]\n", "needs a name"},
		{"group = host\n", "group = hosts\n", "slo or host"},
		{"changed = path, module-flavour\n", "changed = path, topology\n",
		 "words once each"},
		{"changed = path, module-flavour\n", "changed = path, path\n", "words once each"},
	};

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(row); i++) {
		const char *at = strstr(good, row[i].line);
		char text[sizeof(good) + 64];
		struct pp_canary c;
		struct pp_error err = {0};

		assert_non_null(at);
		(void)snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - good), good,
			       row[i].instead, at + strlen(row[i].line));
		if (!pp_canary_parse("c.ini", text, strlen(text), &c, &err))
			fail_msg("row %zu was taken", i);
		if (!strstr(err.text, row[i].says) || strncmp(err.text, "c.ini", 5) != 0)
			fail_msg("row %zu: %s", i, err.text);
	}
}

static void read_run(const struct pp_canary *c, const char *text, const char *scrape,
		     struct pp_metric_value *ret)
{
	struct pp_metric_reader *r;
	pp_ns since = 0;

	assert_int_equal(pp_metric_reader_new(c, &r), 0);
	/* One byte at a time, a millisecond each: pieces do not matter. */
	for (; *text; text++)
		pp_metric_reader_push(r, text, 1, since += PP_MILLISECOND);
	if (scrape)
		pp_metric_reader_scrape(r, scrape, strlen(scrape));
	pp_metric_reader_end(r, 4 * PP_SECOND, ret);
	pp_metric_reader_free(r);
}

static void test_figures(void **state)
{
	struct pp_canary c = parse(good);
	struct pp_metric_value v[PP_CANARY_METRICS];

	(void)state;
	read_run(&c,
		 "starting\r\n"
		 "step 1 tokens/s: 10\n"
		 "\rstep 2 tokens/s: 990.5 | tokens/s: 1000\rstep 3 tokens/s: 1010\n"
		 "{\"step\": {\"seconds\": 2, \"n\": 1}}\n"
		 "  {\"step\": {\"seconds\": 4}}\n"
		 "{\"step\": {\"seconds\": 3}\n"    /* cut */
		 "{\"steps\": {\"seconds\": 99}}\n" /* another member */
		 "tokens/s: 1,200\n"		    /* the pattern takes the 1 alone */
		 "tokens/s: 1.2e3",
		 /* https://prometheus.io/docs/instrumenting/exposition_formats/ */
		 "# HELP node_load1 1m load average.\n# TYPE node_load1 gauge\n"
		 "node_load1 0.25\nnode_load15 7\nnode_load1 0.75 1395066363000\n",
		 v);
	/* 10, 990.5 skipped; of 1000, 1010, 1, 1.2: the pattern knows no comma and no exponent */
	assert_true(fabs(v[0].value - 500.6) < 1e-9);
	assert_int_equal(v[0].seen, 4);
	assert_true(fabs(v[1].value - 3.9) < 1e-9);	     /* 95 % of 2 and 4, linear */
	assert_true(v[2].value > 0.02 && v[2].value < 0.06); /* the 31st byte or so */
	assert_true(v[3].value == 4);
	assert_true(v[4].value == 0.75);
	for (int i = 0; i < 5; i++)
		assert_string_equal(v[i].why, "");
	pp_canary_done(&c);
}

static void test_no_figures(void **state)
{
	struct pp_canary c = parse(good);
	struct pp_metric_value v[PP_CANARY_METRICS];

	(void)state;
	read_run(&c, "nothing\n", NULL, v);
	assert_true(isnan(v[0].value) && strstr(v[0].why, "was not seen"));
	assert_true(isnan(v[1].value) && isnan(v[2].value) && isnan(v[4].value));
	assert_true(v[3].value == 4);
	read_run(&c, "tokens/s: 1\ntokens/s: 2\n", NULL, v);
	assert_true(isnan(v[0].value) && strstr(v[0].why, "skip"));
	read_run(&c, "tokens/s: 1..2\ntokens/s: 2\ntokens/s: 3\ntokens/s: 4\n",
		 "node_load1 NaN\nnode_load1 1\n", v);
	assert_true(isnan(v[0].value) && strstr(v[0].why, "1 of 4 are no finite"));
	assert_true(isnan(v[4].value) && strstr(v[4].why, "1 of 2 are no finite"));
	read_run(&c,
		 "{\"step\": {\"seconds\": \"fast\"}}\n{\"step\": 5}\n{\"step\": {\"seconds\": "
		 "null}}\n",
		 NULL, v);
	assert_true(isnan(v[1].value) && strstr(v[1].why, "2 of 2"));
	pp_canary_done(&c);
}

/* A line longer than any reader keeps, NUL bytes, and a pattern that matches nothing for ever. */
static void test_odd_text(void **state)
{
	static char novel[300 << 10];
	struct pp_canary c =
		parse("[workload]\nname = x\n[metric a]\npattern = (y*)\n"
		      "direction = lower\nmargin = 1\n"
		      "[metric b]\npattern = b=([0-9]+)\ndirection = lower\nmargin = 1\n");
	struct pp_metric_value v[PP_CANARY_METRICS];
	struct pp_metric_reader *r;

	(void)state;
	memset(novel, 'x', sizeof(novel));
	assert_int_equal(pp_metric_reader_new(&c, &r), 0);
	pp_metric_reader_push(r, "b=1", 3, 0);
	pp_metric_reader_push(r, novel, sizeof(novel), 0);
	pp_metric_reader_push(r, "\nb=2\n\0b=3\n", 11, 0);
	pp_metric_reader_end(r, 0, v);
	assert_true(v[1].value ==
		    2); /* of a line that is too long, and behind NUL, nothing is taken */
	assert_true(isnan(v[0].value));
	pp_metric_reader_free(r);
	pp_canary_done(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file),	 cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_figures),	 cmocka_unit_test(test_no_figures),
		cmocka_unit_test(test_odd_text), cmocka_unit_test(test_pattern_atoms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
