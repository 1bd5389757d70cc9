/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of a rollout as the migration runbook has it: a pair, the same after a reboot, a pool,
 * the cluster; no step skipped, like with like.
 */
#include "unit.h"

#include <errno.h>

#include "profile/rollout.h"

static const char way[] = "[rollout]\nfrom = a\nto = b\nthrough = prerequisites\n"
			  "[pair]\nbefore = 1b\nbefore = 2b\nafter = 1a\nafter = 2a\n"
			  "[reboot]\nafter = 1r\nafter = 2r\n"
			  "[pool]\nnodes = 2\nbefore = 3b\nbefore = 4b\nafter = 3a\nafter = 4a\n"
			  "[cluster]\nnodes = 1\nbefore = 5b\nafter = 5a\n";

/* As if each had been read: node by the first letter of the path, all good. */
static struct pp_rollout *read_all(const char *text)
{
	static const char *const nodes[] = {"n0", "n1", "n2", "n3", "n4", "n5"};
	struct pp_rollout *r = NULL;
	struct pp_error err = {0};

	if (pp_rollout_parse("r", text, strlen(text), &r, &err))
		fail_msg("%s", err.text);
	for (unsigned int i = 0; i < r->n; i++) {
		struct pp_rollout_bundle *b = &r->bundle[i];
		bool old = b->role == PP_ROLLOUT_BEFORE;

		b->node = b->host = nodes[b->path[0] - '0'];
		b->flavour = "open";
		b->topology = "t";
		b->software = old ? "s" : "s2";
		b->boot = old ? "boot1" : b->step == PP_STEP_REBOOT ? "boot3" : "boot2";
		for (unsigned int g = 0; g <= PP_GATE_PREREQUISITES; g++)
			b->asked[g] = true;
		for (unsigned int g = PP_GATE_MEMORY; g < PP_GATES; g++)
			b->verdict[g] = PP_UNKNOWN;
	}
	return r;
}

static struct pp_rollout_bundle *of(struct pp_rollout *r, const char *path)
{
	for (unsigned int i = 0; i < r->n; i++)
		if (!strcmp(r->bundle[i].path, path))
			return &r->bundle[i];
	fail_msg("no %s", path);
	return NULL;
}

/* States as letters: d n w S(topped) K(skipped) u; the rollback last. */
static void judged(struct pp_rollout *r, const char *states, enum pp_verdict verdict,
		   const char *words)
{
	static const char letters[] = "dnwSKu";
	struct pp_rollout_status s;
	char is[PP_STEPS + 1] = "", why[4096] = "";
	size_t len = 0;

	assert_int_equal(pp_rollout_judge(r, &s), 0);
	for (unsigned int i = 0; i < PP_STEPS; i++) {
		is[i] = letters[s.step[i].state];
		for (unsigned int k = 0; k < s.step[i].n_why; k++)
			len += (size_t)snprintf(why + len, sizeof(why) - len, "%s\n",
						s.step[i].why[k]);
	}
	(void)snprintf(why + len, sizeof(why) - len, "%s\n%s\n", s.sentence, s.next);
	if (strcmp(is, states) != 0 || s.verdict != verdict || !strstr(why, words))
		fail_msg("%s (%s), should be %s with '%s':\n%s", is, pp_verdict_name(s.verdict),
			 states, words, why);
	pp_rollout_status_done(&s);
	pp_rollout_free(r);
}

static void test_whole_way(void **state)
{
	(void)state;
	judged(read_all(way), "ddddw", PP_PASS, "done: 'b' is proven on the cluster");
	judged(read_all("[rollout]\nfrom = a\nto = b\n"), "nwwww", PP_PASS,
	       "needs bundles before and after of 2 nodes: 0 of 2");
	judged(read_all("[rollout]\nfrom = a\nto = b\nthrough = 1\n[pair]\nbefore = 1b\n"
			"before = 2b\nafter = 1a\nafter = 2a\n[reboot]\nafter =\n"),
	       "dnwww", PP_PASS, "after a reboot: 0 of 2");
}

static void test_not_skipped(void **state)
{
	struct pp_rollout *r;

	(void)state;
	judged(read_all(
		       "[rollout]\nfrom = a\nto = b\n[pool]\nnodes = 1\nbefore = 3b\nafter = 3a\n"),
	       "nwKww", PP_FAIL, "steps are not skipped");
	/* A step that stops holds the ones behind it. */
	r = read_all(way);
	of(r, "2r")->verdict[PP_GATE_PREREQUISITES] = PP_FAIL;
	judged(r, "dSKKw", PP_FAIL, "2r: gate 1 (prerequisites) is fail, was pass");
}

static void test_like_with_like(void **state)
{
	struct pp_rollout *r = read_all(way);

	(void)state;
	of(r, "2a")->flavour = "proprietary";
	judged(r, "SKKKw", PP_FAIL, "mixed module flavour: 1a has open, 2a has proprietary");
	r = read_all(way);
	of(r, "4b")->topology = of(r, "4a")->topology = "u";
	judged(r, "ddSKw", PP_FAIL, "mixed topology class");
	r = read_all(way);
	of(r, "1a")->topology = of(r, "2a")->topology = "u";
	judged(r, "SKKKw", PP_FAIL, "another topology class than before");
	r = read_all(way);
	of(r, "2b")->software = "other";
	judged(r, "SKKKw", PP_FAIL, "mixed software");
	/* What is not known is no reason to go on, and no fault. */
	r = read_all(way);
	of(r, "1a")->flavour = NULL;
	judged(r, "uKKKw", PP_FAIL, "module flavour is not known");
	r = read_all("[rollout]\nfrom = a\nto = b\nthrough = 1\n[pair]\nbefore = 1b\nbefore = 2b\n"
		     "after = 1a\nafter = 2a\n");
	of(r, "1a")->verdict[PP_GATE_IDENTITY] = PP_UNKNOWN;
	judged(r, "uwwww", PP_UNKNOWN, "gate 0 (identity) is unknown");
}

static void test_gates(void **state)
{
	struct pp_rollout *r = read_all(way);

	(void)state;
	of(r, "1a")->verdict[PP_GATE_IDENTITY] = PP_DEGRADED;
	judged(r, "SKKKw", PP_FAIL, "is degraded, was pass");
	/* Not better than before, and not worse. */
	r = read_all(way);
	of(r, "1a")->verdict[PP_GATE_IDENTITY] = of(r, "1b")->verdict[PP_GATE_IDENTITY] =
		of(r, "1r")->verdict[PP_GATE_IDENTITY] = PP_DEGRADED;
	judged(r, "ddddw", PP_PASS, "proven");
	r = read_all(way);
	r->through = PP_GATE_MEMORY;
	judged(r, "uKKKw", PP_FAIL, "does not reach gate 2 (memory)");
	r = read_all(way);
	of(r, "3a")->error = "is damaged";
	judged(r, "ddSKw", PP_FAIL, "3a is damaged");
	/* One node twice is one node. */
	r = read_all(way);
	of(r, "2a")->node = of(r, "1a")->node;
	judged(r, "SKKKw", PP_FAIL, "of a node that has one already");
}

static void test_reboot(void **state)
{
	struct pp_rollout *r = read_all(way);

	(void)state;
	of(r, "2r")->boot = "boot2";
	judged(r, "dSKKw", PP_FAIL, "of the same boot as 2a: the node was not rebooted");
	r = read_all(way);
	of(r, "2r")->boot = NULL;
	judged(r, "duKKw", PP_FAIL, "which boot it was is not known");
	r = read_all(way);
	of(r, "1r")->software = of(r, "2r")->software = "s3";
	judged(r, "dSKKw", PP_FAIL, "other software than in 1a");
	r = read_all(way);
	of(r, "2r")->node = "n9";
	judged(r, "dnKKw", PP_FAIL, "2r: of no node of the pair");
}

static const char back[] =
	"[rollout]\nfrom = a\nto = b\nthrough = 1\n[pair]\nbefore = 1b\nbefore = 2b\nafter = 1a\n"
	"after = 2a\n[rollback]\nchange = 1c\nafter = 1z\n";

static void test_rollback(void **state)
{
	struct pp_rollout *r = read_all(back);

	(void)state;
	of(r, "1z")->software = "s";
	judged(r, "dnwwd", PP_PASS, "the baseline is there again, both bundles kept");
	judged(read_all(back), "dnwwS", PP_FAIL, "the software is not that of 1b");
	r = read_all(back);
	of(r, "1z")->software = "s";
	of(r, "1z")->verdict[PP_GATE_PREREQUISITES] = PP_DEGRADED;
	judged(r, "dnwwS", PP_FAIL, "what is there now is not the baseline");
	r = read_all("[rollout]\nfrom = a\nto = b\nthrough = 1\n[rollback]\nchange = 1c\n");
	judged(r, "nwwwu", PP_UNKNOWN, "1c: the bundle of its rollback is missing");
}

static void test_simulation(void **state)
{
	struct pp_rollout *r = read_all(way);

	(void)state;
	r->simulation = true;
	judged(r, "ddddw", PP_PASS, "is chain exercised in simulation on the cluster");
}

static void refused(const char *text, const char *message)
{
	struct pp_rollout *r = NULL;
	struct pp_error err = {0};

	assert_int_equal(pp_rollout_parse("r", text, strlen(text), &r, &err), -EINVAL);
	if (!strstr(err.text, message))
		fail_msg("'%s' lacks '%s'", err.text, message);
}

static void test_text(void **state)
{
	struct pp_buf text = PP_BUF(1 << 16);
	struct pp_rollout *r = NULL;
	struct pp_error err = {0};

	(void)state;
	refused("[rollout]\nfrom = a\n", "needs from and to");
	refused("[rollout]\nfrom = a\nto = a\n", "two profiles");
	refused("[rollout]\nfrom = a\nto = ../b\n", "two profiles");
	refused("[rollout]\nfrom = a\nfrom = a\n", "'from' is given twice");
	refused("[pari]\n", "did you mean 'pair'?");
	refused("[pair]\nafetr = x\n", "did you mean 'after'?");
	refused("[pair]\nafter = x\nafter = x\n", "stands in this step twice");
	refused("[pair]\nnodes = 3\n", "unknown key 'nodes'");
	refused("[reboot]\nbefore = x\n", "unknown key 'before'");
	refused("[pool]\nnodes = 0\n", "1 to 2048");
	refused("[rollout]\nthrough = moon\n", "cannot be");
	/* What plan writes is read, and holds no bundle. */
	pp_rollout_plan("a", "b", 4, 0, &text);
	assert_int_equal(pp_rollout_parse("r", text.data, text.len, &r, &err), 0);
	assert_int_equal(r->n, 0);
	assert_int_equal(r->nodes[PP_STEP_POOL], 4);
	assert_int_equal(r->nodes[PP_STEP_CLUSTER], 0);
	assert_int_equal(r->through, PP_GATE_MEMORY);
	pp_rollout_free(r);
	pp_buf_done(&text);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_way),      cmocka_unit_test(test_not_skipped),
		cmocka_unit_test(test_like_with_like), cmocka_unit_test(test_gates),
		cmocka_unit_test(test_reboot),	       cmocka_unit_test(test_rollback),
		cmocka_unit_test(test_simulation),     cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
