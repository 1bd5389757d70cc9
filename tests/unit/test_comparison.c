/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trials made here, compared: each sentence of the migration's runbook, each difference that must
 * be refused, and documents that come from strangers. Shifts themselves: test_shift.c, against R.
 */
#include "unit.h"

#include <errno.h>
#include <math.h>

#include "base/compiler.h"
#include "judge/comparison.h"

enum { RUNS = 10, MANY = 8 };

static const char file[] =
	"[workload]\nname = ddp\nrevision = 1\nseed = 7\n"
	"[metric speed]\npattern = ([0-9.]+)\ndirection = higher\nmargin = 3%\n"
	"unit = tokens/s\nslo = 90\n"
	"[metric cpu]\njson = cpu\ngroup = host\ndirection = lower\nmargin = 0.5\n"
	"[change]\nchanged = path, module-flavour\n";

/* Ten runs about a middle, spread by 1 %. */
static const double about[RUNS] = {0.995, 1.004, 0.999, 1.001, 1.003,
				   0.997, 1.000, 1.002, 0.998, 1.005};

struct made {
	struct pp_trial t;
	struct pp_trial_node node;
	struct pp_trial_run run[RUNS];
};

static void make(struct made *m, const char *node, double speed, double cpu)
{
	struct pp_error err = {0};

	memset(m, 0, sizeof(*m));
	if (pp_canary_parse("c.ini", file, strlen(file), &m->t.canary, &err))
		fail_msg("%s", err.text);
	m->node = (struct pp_trial_node){.id = node,
					 .topology_class = "c1",
					 .fact = {{"kernel.release", "6.1"},
						  {"nvidia.flavour", "open"},
						  {"nccl.version", NULL}},
					 .n_facts = 3};
	m->t.node = &m->node;
	m->t.n_nodes = 1;
	m->t.run = m->run;
	m->t.n_runs = RUNS;
	m->t.path = (struct pp_trial_path){"gdr", "dmabuf", "proven", "proven", NULL};
	for (size_t i = 0; i < RUNS; i++)
		m->run[i] = (struct pp_trial_run){.started = 1764000000 * PP_SECOND,
						  .took = PP_SECOND,
						  .value = {speed * about[i], cpu * about[i]}};
}

static struct made arm[2][MANY];
static const struct pp_trial *list[2][MANY];

static void start(double speed, double cpu)
{
	for (int side = 0; side < 2; side++)
		for (int i = 0; i < MANY; i++) {
			static const char *const node[] = {"a", "b", "c", "d", "e", "f", "g", "h"};

			make(&arm[side][i], node[i], side ? speed : 100, side ? cpu : 8);
			list[side][i] = &arm[side][i].t;
		}
}

static void stop(void)
{
	for (int side = 0; side < 2; side++)
		for (int i = 0; i < MANY; i++)
			pp_canary_done(&arm[side][i].t.canary);
}

static void judged(size_t n, enum pp_verdict verdict, const char *says, int line)
{
	struct pp_comparison c;

	assert_int_equal(pp_comparison_make(list[0], n, list[1], n, &c), 0);
	if (c.verdict != verdict || !strstr(c.sentence, says))
		fail_msg("line %d: %s: %s", line, pp_verdict_name(c.verdict), c.sentence);
	assert_non_null(c.next);
	assert_true(*c.next);
	pp_comparison_done(&c);
	stop();
}
#define JUDGED(n, verdict, says) judged(n, verdict, says, __LINE__)

static void unprove(void)
{
	for (int i = 0; i < MANY; i++)
		arm[1][i].t.path.claim_mechanism = "unproven";
}

/* The runbook: proven and better; relieved; nothing; better but unproven; one node; both bad. */
static void test_sentences(void **state)
{
	(void)state;
	start(110, 8);
	JUDGED(2, PP_PASS, "mechanism proven, and the service level is better");
	start(100, 6);
	JUDGED(2, PP_PASS, "the host is relieved, the service level is the same");
	start(100, 8);
	JUDGED(2, PP_PASS, "nothing that was measured gained");
	start(110, 8);
	unprove();
	JUDGED(2, PP_UNKNOWN, "better, but the mechanism is unproven");
	start(100, 8);
	unprove();
	JUDGED(2, PP_UNKNOWN, "no effect was found, and the mechanism is unproven");
	start(100, 6);
	unprove();
	JUDGED(2, PP_UNKNOWN, "the host is relieved and the service level the same, but");
	start(95, 8);
	JUDGED(2, PP_FAIL, "worse after the change");
	start(110, 9);
	JUDGED(2, PP_FAIL, "the host is worse off");
	start(110, 8);
	for (int i = 0; i < MANY; i++)
		arm[1][i].t.simulated = arm[0][i].t.simulated = true;
	JUDGED(2, PP_UNKNOWN, "chain exercised in simulation: the service level is better, but");
}

static void test_one_set_of_nodes_only(void **state)
{
	(void)state;
	start(112, 8);
	for (size_t i = 0; i < RUNS; i++) /* on b nothing changed */
		arm[1][1].run[i].value[0] = arm[0][1].run[i].value[0];
	/* A third of the nodes' differences is enough to make the whole look better. */
	JUDGED(3, PP_UNKNOWN, "speed is better on some nodes only");
}

static void test_both_bad(void **state)
{
	(void)state;
	start(80, 8);
	for (int side = 0; side < 2; side++)
		for (int t = 0; t < MANY; t++)
			for (size_t i = 0; i < RUNS; i++)
				arm[side][t].run[i].value[0] = 80 * about[i];
	JUDGED(2, PP_UNKNOWN, "missed before and after");
}

static void test_too_few_tell(void **state)
{
	struct pp_comparison c;

	(void)state;
	start(101.5, 8);
	arm[0][0].t.n_runs = arm[1][0].t.n_runs = 1;
	assert_int_equal(pp_comparison_make(list[0], 1, list[1], 1, &c), 0);
	assert_int_equal(c.row[0].change, PP_CHANGE_MORE);
	assert_int_equal(c.row[0].more, 3); /* four an arm are the fewest: 2 of 70 */
	assert_true(isnan(c.row[0].low) && c.row[0].shift > 1);
	assert_string_equal(c.next, "run the canary 3 more times in each state, in turn");
	pp_comparison_done(&c);
	stop();
}

/* Better, and what it costs the host does not tell yet: no pass. */
static void test_host_does_not_tell(void **state)
{
	(void)state;
	start(110, 8);
	for (int t = 0; t < MANY; t++)
		for (size_t i = 0; i < RUNS; i++)
			arm[1][t].run[i].value[1] = i % 2 ? 5 : 11;
	JUDGED(1, PP_UNKNOWN, "these runs do not tell");
	/* Nothing declared of the host: the service level alone decides. */
	start(110, 8);
	for (int t = 0; t < MANY; t++)
		arm[0][t].t.canary.n_metrics = arm[1][t].t.canary.n_metrics = 1;
	JUDGED(2, PP_PASS, "mechanism proven, and the service level is better");
}

/* Void runs, and runs without the figure, count for nothing; an arm of these alone is missing. */
static void test_void(void **state)
{
	struct pp_comparison c;

	(void)state;
	start(110, 8);
	for (size_t i = 0; i < RUNS; i++) {
		if (i < 4)
			arm[1][0].run[i].void_why = "the GPU was throttled";
		arm[1][0].run[i].value[1] = NAN;
	}
	assert_int_equal(pp_comparison_make(list[0], 1, list[1], 1, &c), 0);
	assert_int_equal(c.valid[1], RUNS - 4);
	assert_int_equal(c.voided[1], 4);
	assert_int_equal(c.row[0].n[1], RUNS - 4);
	assert_int_equal(c.row[0].change, PP_CHANGE_BETTER);
	assert_int_equal(c.row[1].change, PP_CHANGE_MISSING);
	assert_string_equal(c.row[1].why, "no valid run after the change has it");
	/* What the host paid is not known: no pass, however much better the rest is. */
	assert_int_equal(c.verdict, PP_UNKNOWN);
	assert_non_null(strstr(c.sentence, "not there in both arms"));
	assert_true(c.row[0].shift > 1.09 && c.row[0].shift < 1.11);
	assert_true(c.row[0].slo_known[0] && c.row[0].slo_met[0] && c.row[0].slo_met[1]);
	pp_comparison_done(&c);
	stop();
}

static void refused(const char *says, int line)
{
	struct pp_comparison c;
	bool found = false;

	assert_int_equal(pp_comparison_make(list[0], 2, list[1], 2, &c), 0);
	for (size_t i = 0; i < c.n_differences; i++)
		found |= strstr(c.difference[i], says) != NULL;
	if (c.alike || !found || c.verdict != PP_UNKNOWN || c.n_rows)
		fail_msg("line %d: %s", line,
			 c.n_differences ? c.difference[0] : "taken for alike");
	pp_comparison_done(&c);
	stop();
}
#define REFUSED(says) refused(says, __LINE__)

static void test_unlike(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		start(110, 8);
		arm[1][0].node.fact[0].value = arm[1][1].node.fact[0].value = i ? NULL : "6.5";
		REFUSED(i ? "kernel.release: 6.1 before, not known after"
			  : "kernel.release: 6.1 before, 6.5 after");
	}
	start(110, 8);
	arm[1][1].node.fact[0].value = "6.5";
	REFUSED("kernel.release is mixed after: 6.1 on a, 6.5 on b");
	start(110, 8);
	arm[1][0].node.fact[2].value = arm[1][1].node.fact[2].value = "2.28";
	REFUSED("nccl.version: not known before, 2.28 after");
	start(110, 8);
	arm[1][0].node.topology_class = arm[1][1].node.topology_class = "c2";
	REFUSED("topology class: c1 before, c2 after");
	start(110, 8);
	for (int side = 0; side < 2; side++)
		arm[side][0].node.topology_class = arm[side][1].node.topology_class = NULL;
	REFUSED("topology class is not known");
	start(110, 8);
	arm[1][0].t.simulated = true;
	REFUSED("some trials after are simulated, others are not");
	start(110, 8);
	for (int i = 0; i < MANY; i++)
		arm[1][i].t.simulated = true;
	REFUSED("simulated after only");
	start(110, 8);
	arm[1][0].t.canary.key[2].value = "8";
	REFUSED("workload's seed: 7, and 8");
	start(110, 8);
	arm[1][0].t.canary.n_keys = 2;
	REFUSED("workload's seed: 7, and not given");
	start(110, 8);
	arm[1][0].t.canary.metric[0].margin = 0.1;
	REFUSED("metric speed is declared in different ways");
	start(110, 8);
	arm[1][0].t.canary.n_metrics = 1;
	REFUSED("metric cpu is not declared in every file");
	start(110, 8);
	arm[0][0].t.n_nodes = 0;
	REFUSED("no node is known of a trial before");
}

static void test_declared(void **state)
{
	struct pp_comparison c;

	(void)state;
	start(110, 8);
	arm[1][0].node.fact[1].value = "proprietary";
	assert_int_equal(pp_comparison_make(list[0], 1, list[1], 1, &c), 0);
	assert_true(c.alike);
	assert_int_equal(c.n_declared, 1);
	assert_string_equal(c.declared[0], "nvidia.flavour: open before, proprietary after");
	pp_comparison_done(&c);
	stop();
}

static void test_simulation_declared(void **state)
{
	struct pp_comparison c;

	(void)state;
	start(110, 8);
	for (int i = 0; i < 2; i++) {
		arm[1][i].t.simulated = true;
		arm[1][i].t.canary.changed[1] = "simulation";
	}
	assert_int_equal(pp_comparison_make(list[0], 1, list[1], 1, &c), 0);
	assert_true(c.alike && c.simulated && !c.proven);
	assert_int_equal(c.n_declared, 1);
	assert_string_equal(c.declared[0], "simulated: no before, yes after");
	assert_non_null(strstr(c.sentence, "chain exercised in simulation: "));
	pp_comparison_done(&c);
	/* Declared or not: of one side all are, or none. */
	arm[1][1].t.simulated = false;
	assert_int_equal(pp_comparison_make(list[0], 1, list[1], 2, &c), 0);
	assert_false(c.alike);
	pp_comparison_done(&c);
	stop();
}

static void test_a_ratio_of_what_has_none(void **state)
{
	struct pp_comparison c;

	(void)state;
	start(110, 8);
	arm[0][0].run[3].value[0] = 0;
	assert_int_equal(pp_comparison_make(list[0], 1, list[1], 1, &c), 0);
	assert_int_equal(c.row[0].change, PP_CHANGE_MISSING);
	assert_non_null(strstr(c.row[0].why, "not all figures are above 0"));
	pp_comparison_done(&c);
	stop();
}

static struct pp_buf written(const struct pp_trial *t)
{
	struct pp_buf b = PP_BUF(1 << 20);
	struct pp_json j = PP_JSON(&b, false);

	pp_json_object(&j, NULL);
	pp_json_str(&j, "schema", "peerpath.canary/1");
	pp_trial_write(&j, t);
	pp_json_end_object(&j);
	assert_int_equal(b.failed, 0);
	return b;
}

static void test_document(void **state)
{
	struct pp_buf PP_AUTO_BUF first = PP_BUF(1), PP_AUTO_BUF second = PP_BUF(1);
	struct pp_trial back;
	struct pp_error err = {0};

	(void)state;
	start(110, 8);
	arm[0][0].run[1].void_why = "the command failed";
	arm[0][0].run[2].value[1] = NAN;
	first = written(&arm[0][0].t);
	if (pp_trial_read("t.json", pp_buf_text(&first), first.len, &back, &err))
		fail_msg("%s", err.text);
	second = written(&back);
	assert_string_equal(pp_buf_text(&first), pp_buf_text(&second));
	assert_int_equal(pp_trial_valid(&back), RUNS - 1);
	assert_true(back.run[0].took == PP_SECOND);
	pp_trial_done(&back);

	/* Cut at every byte: one line, never a crash, never a trial. */
	for (size_t len = 0; len < first.len; len++) {
		assert_true(pp_trial_read("t.json", pp_buf_text(&first), len, &back, &err) < 0);
		assert_int_equal(strncmp(err.text, "t.json: ", 8), 0);
	}
	stop();
}

static void test_strangers_documents(void **state)
{
	static const struct {
		const char *text;
		int error;
	} row[] = {
		{"{}", -EBADMSG},
		{"[]", -EBADMSG},
		{"{\"schema\": \"peerpath.bench/1\"}", -EBADMSG},
		{"{\"schema\": \"peerpath.canary/2\"}", -EPROTONOSUPPORT},
		{"{\"schema\": \"peerpath.canary/1\"}", -EBADMSG},
		{"{\"schema\": \"peerpath.canary/1\", \"simulated\": 1}", -EBADMSG},
	};
	static const char *const swaps[][2] = {
		{"\"simulated\":false", "\"simulated\":null"},
		{"\"margin\":0.03", "\"margin\":3"},
		{"\"margin\":0.03", "\"margin\":null"},
		{"\"direction\":\"higher\"", "\"direction\":\"up\""},
		{"\"void\":null,", ""},
		{"\"module-flavour\"", "\"topology\""},
		{"\"runs\":[", "\"runs\":7,\"x\":["},
		{"\"name\":\"speed\"", "\"name\":\"cpu\""},
	};
	struct pp_error err = {0};
	struct pp_trial t;

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(row); i++)
		assert_int_equal(pp_trial_read("x", row[i].text, strlen(row[i].text), &t, &err),
				 row[i].error);
	start(110, 8);
	for (size_t i = 0; i < PP_ARRAY_LEN(swaps); i++) {
		struct pp_buf PP_AUTO_BUF good = written(&arm[0][0].t),
					  PP_AUTO_BUF bad = PP_BUF(1 << 20);
		const char *at = strstr(pp_buf_text(&good), swaps[i][0]);

		if (!at)
			fail_msg("swap %zu has no place", i);
		pp_buf_printf(&bad, "%.*s%s%s", (int)(at - pp_buf_text(&good)), pp_buf_text(&good),
			      swaps[i][1], at + strlen(swaps[i][0]));
		if (pp_trial_read("x", pp_buf_text(&bad), bad.len, &t, &err) != -EBADMSG)
			fail_msg("swap %zu was taken", i);
	}
	stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sentences),
		cmocka_unit_test(test_one_set_of_nodes_only),
		cmocka_unit_test(test_both_bad),
		cmocka_unit_test(test_too_few_tell),
		cmocka_unit_test(test_host_does_not_tell),
		cmocka_unit_test(test_void),
		cmocka_unit_test(test_unlike),
		cmocka_unit_test(test_declared),
		cmocka_unit_test(test_simulation_declared),
		cmocka_unit_test(test_a_ratio_of_what_has_none),
		cmocka_unit_test(test_document),
		cmocka_unit_test(test_strangers_documents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
