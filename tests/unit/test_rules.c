/* SPDX-License-Identifier: Apache-2.0 */
#include "facts_text.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "judge/finding.h"
#include "judge/rule.h"
#include "judge/textfile.h"

static const char shipped[] = PEERPATH_SOURCE_DATADIR "/rules";

static int load_shipped(void **state)
{
	struct pp_rules *rules = NULL;
	struct pp_error err = {0};

	if (pp_rules_load(shipped, &rules, &err))
		fail_msg("%s", err.text);
	*state = rules;
	return 0;
}

static int free_shipped(void **state)
{
	pp_rules_free(*state);
	return 0;
}

static void fixture(const char *id, struct pp_buf *text)
{
	const char *dir = getenv("PP_TEST_DIR");
	struct pp_error err = {0};
	char path[1024];

	(void)snprintf(path, sizeof(path), "%s/../fixtures/rules/%s.facts", dir ? dir : ".", id);
	if (pp_textfile_read(path, text, &err))
		fail_msg("rule without a fixture: %s", err.text);
}

/* The strongest answer of any object of the rule's kind. */
static enum pp_truth answer(const struct pp_rule *rule, const struct machine *m)
{
	enum pp_truth best = PP_FALSE, one;
	const struct pp_object *o = NULL;

	while ((o = pp_object_next(&m->facts, rule->scope, o))) {
		one = pp_rule_test(rule, &m->facts, o, NULL, 0, NULL);
		if (one == PP_TRUE || (one == PP_OPEN && best == PP_FALSE))
			best = one;
	}
	return best;
}

static void test_every_rule_fires(void **state)
{
	const struct pp_rules *rules = *state;
	const struct pp_rule *rule;
	size_t n = 0;

	for (; (rule = pp_rules_at(rules, n)); n++) {
		struct pp_buf PP_AUTO_BUF text = PP_BUF(65536);
		struct machine m;

		fixture(rule->id, &text);
		machine_init(&m);
		assert_int_not_equal(machine_read(&m, pp_buf_text(&text), "fires"), 0);
		if (answer(rule, &m) != PP_TRUE)
			fail_msg("%s does not fire on its fixture", rule->id);
		machine_done(&m);
	}
	assert_true(n >= 100);
}

/* A near miss changes two facts at most, all stay known, and the rule says a clear no. */
static void test_every_near_miss(void **state)
{
	const struct pp_rules *rules = *state;
	const struct pp_rule *rule;

	for (size_t i = 0; (rule = pp_rules_at(rules, i)); i++) {
		struct pp_buf PP_AUTO_BUF text = PP_BUF(65536);
		struct machine m;
		unsigned int changed;

		fixture(rule->id, &text);
		machine_init(&m);
		(void)machine_read(&m, pp_buf_text(&text), "fires");
		changed = machine_read(&m, pp_buf_text(&text), "near-miss");
		assert_in_range(changed, 1, 2);
		if (answer(rule, &m) != PP_FALSE)
			fail_msg("%s fires on its near miss, or is open", rule->id);
		machine_done(&m);
	}
}

static bool by_ignorance(const struct pp_condition *c)
{
	return c->op == PP_OP_KNOWN || c->op == PP_OP_UNKNOWN;
}

/* Every condition matters: without any one of its facts a firing rule is open, never cleared. */
static void test_missing_fact_never_clears(void **state)
{
	const struct pp_rules *rules = *state;
	const struct pp_rule *rule;
	const struct pp_object *holder;

	for (size_t i = 0; (rule = pp_rules_at(rules, i)); i++) {
		struct pp_buf PP_AUTO_BUF text = PP_BUF(65536);

		fixture(rule->id, &text);
		for (unsigned int k = 0; k < rule->n_when; k++) {
			const struct pp_condition *c = &rule->when[k];
			struct machine m;
			char where[256];

			if (by_ignorance(c))
				continue;
			machine_init(&m);
			(void)machine_read(&m, pp_buf_text(&text), "fires");
			holder = pp_condition_holder(&m.facts,
						     pp_object_next(&m.facts, rule->scope, NULL),
						     pp_fact_table[c->fact].kind);
			(void)snprintf(where, sizeof(where), "%s%s%s",
				       holder->kind == PP_NODE ? "" : holder->id,
				       holder->kind == PP_NODE ? "" : " ",
				       pp_fact_table[c->fact].key);
			machine_set(&m, where, "?");
			if (answer(rule, &m) != PP_OPEN)
				fail_msg("%s is not open without %s", rule->id, where);
			machine_done(&m);
		}
	}
}

/* A fixture whose rule was renamed would be run by nobody. */
static void test_no_stray_fixture(void **state)
{
	const char *dir = getenv("PP_TEST_DIR");
	char path[1024], id[256];
	struct dirent *e;
	DIR *d;

	(void)snprintf(path, sizeof(path), "%s/../fixtures/rules", dir ? dir : ".");
	d = opendir(path);
	assert_non_null(d);
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		(void)snprintf(id, sizeof(id), "%.*s", (int)strcspn(e->d_name, "."), e->d_name);
		if (!pp_rules_find(*state, id))
			fail_msg("fixture without a rule: %s", e->d_name);
	}
	(void)closedir(d);
}

/* The problem list and prerequisite matrix that rules of facts can decide. */
static void test_problems_covered(void **state)
{
	static const char *const wanted[] = {"P1",  "P2",  "P3",  "P4",	 "P5",	"P6",  "P7",  "P8",
					     "P9",  "P10", "P11", "P12", "P13", "P14", "P15", "R1",
					     "R2",  "R3",  "R4",  "R5",	 "R6",	"R7",  "R8",  "R10",
					     "R11", "R12", "R14", "R17", "R22", "R23", "R25"};
	const struct pp_rules *rules = *state;
	const struct pp_rule *rule;
	char word[16], all[64];

	for (size_t w = 0; w < sizeof(wanted) / sizeof(wanted[0]); w++) {
		bool found = false;

		(void)snprintf(word, sizeof(word), " %s ", wanted[w]);
		for (size_t i = 0; (rule = pp_rules_at(rules, i)); i++) {
			(void)snprintf(all, sizeof(all), " %s ", rule->problem);
			found = found || strstr(all, word);
		}
		if (!found)
			fail_msg("no rule for %s", wanted[w]);
	}
}

#define GOOD                                                                                   \
	"title = t\nproblem = P1\nfor = gpu\nverdict = fail\ncause = c\ndecide = d\nfix = f\n" \
	"next = n\nsource = https://example.org/\nreviewed = 2026-11-29\n"

static int parse(struct pp_rules **ret, unsigned int tier, const char *text, struct pp_error *err)
{
	if (!*ret)
		assert_int_equal(pp_rules_new(ret), 0);
	return pp_rules_parse(*ret, tier, "x.rules", text, strlen(text), err);
}

static void refused(const char *text, const char *message)
{
	struct pp_rules *rules = NULL;
	struct pp_error err = {0};

	assert_int_equal(parse(&rules, 0, text, &err), -EINVAL);
	if (!strstr(err.text, message))
		fail_msg("'%s' lacks '%s'", err.text, message);
	pp_rules_free(rules);
}

static void test_refusals(void **state)
{
	(void)state;
	refused("[a]\n" GOOD "when = gpu.dmabuf_suported == no\n",
		"x.rules:12: unknown fact 'gpu.dmabuf_suported'; did you mean "
		"'gpu.dmabuf_supported'?");
	refused("[a]\n" GOOD "when = hca.driver == efa\n", "a rule for a gpu cannot see");
	refused("[a]\n" GOOD "when = gpu.name < x\n", "has no meaning for 'gpu.name'");
	refused("[a]\n" GOOD "when = gpu.mig =! on\n", "no operator at '=! on'");
	refused("[a]\n" GOOD "when = gpu.c2c == maybe\n", "'gpu.c2c' is yes or no; 'maybe' is not");
	refused("[a]\n" GOOD "when = nvidia.version >= new\n", "'nvidia.version' is a version");
	refused("[a]\n" GOOD "when = gpu.bar1_total_bytes < many\n", "is a number; 'many' is not");
	refused("[a]\n" GOOD "when = gpu.c2c\n", "no operator");
	refused("[a]\n" GOOD "when = gpu.c2c ==\n", "'==' needs a value");
	refused("[a]\n" GOOD "when = gpu.name is known yes\n", "'is known' takes no value");
	refused("[a]\n" GOOD, "x.rules:1: rule 'a' lacks 'when'");
	refused("[a]\ntitel = t\n", "x.rules:2: unknown key 'titel'; did you mean 'title'?");
	refused("[A b]\n", "is no rule id");
	refused("[a]\n" GOOD "when = gpu.c2c == no\n[a]\n", "stands in line 1 already");
	refused("[a]\n" GOOD "title = u\n", "'title' stands twice");
	refused("[a]\n" GOOD "when = gpu.c2c == no\nfix-id = x\n", "needs 'reverse'");
	refused("[a]\n" GOOD "when = gpu.c2c == no\nadvice = yes\n",
		"needs either 'verdict' or 'advice = yes'");
	refused("[a]\nverdict = pass\n", "none of degraded, unknown, fail");
	refused("[a]\nfor = gpus\n", "none of node, gpu");
	refused("[a]\ndisabled = yes\n", "no rule 'a' to disable");
	refused("[a]\nfix =\n", "'fix' is empty");
	/* What would make a missing fact pay. */
	refused("[a]\n" GOOD "when = gpu.uuid is known\n", "for advice only");
	refused("[a]\n" GOOD "when = gpu.uuid is unknown\n", "needs 'verdict = unknown'");
	refused("[a]\n" GOOD "when = gpu.c2c == no\nunless = gpu.uuid is unknown\n",
		"for advice only");
}

static void test_conditions(void **state)
{
	static const struct {
		const char *text;
		enum pp_truth truth;
	} table[] = {
		{"nvidia.version >= 580.65.06", PP_TRUE}, /* 580.159.04: by number, not by text */
		{"nvidia.version < 580.65.06", PP_FALSE},
		{"kernel.release < 6.11", PP_TRUE}, /* 6.8.0-1025-nvidia */
		{"kernel.release == 6.8", PP_TRUE},
		{"gpu.bar1_total_bytes == 256M", PP_TRUE},
		{"gpu.bar1_total_bytes < 1G", PP_TRUE},
		{"gpu.name ~ *H200*|*H100*", PP_TRUE},
		{"gpu.name ~ H200", PP_FALSE},
		{"gpu.name contains H200", PP_TRUE},
		{"gpu.name != NVIDIA H200", PP_FALSE},
		{"gpu.throttle ~ power*", PP_TRUE},
		{"gpu.throttle contains power", PP_FALSE}, /* of a list: a whole element */
		{"gpu.throttle is not empty", PP_TRUE},
		{"gpu.throttle is empty", PP_FALSE},
		{"gpu.c2c == no", PP_TRUE},
		{"gpu.uuid is known", PP_FALSE},
		{"gpu.uuid is unknown", PP_TRUE},
		{"gpu.uuid == x", PP_OPEN},
		{"gpu.uuid != x", PP_OPEN},
		{"gpu.vbios is empty", PP_OPEN}, /* never observed at all */
		{"nvml.driver_version == @nvidia.version", PP_FALSE},
		{"nvml.version == @nvidia.version", PP_OPEN},
		{"nvidia.version == @nvml.version", PP_OPEN},
		{"cuda.driver_api < 11070", PP_FALSE},
		{"gpu.memory_bytes > 64K", PP_TRUE},
		/* a "version" that is none has no place in an order */
		{"nvidia_peermem.version < 9", PP_OPEN},
	};
	struct machine m;
	struct pp_error err;

	(void)state;
	machine_init(&m);
	machine_set(&m, "nvidia.version", "580.159.04");
	machine_set(&m, "nvidia_peermem.version", "unknown-build");
	machine_set(&m, "nvml.driver_version", "580.65.06");
	machine_set(&m, "nvml.version", "? library not found");
	machine_set(&m, "kernel.release", "6.8.0-1025-nvidia");
	machine_set(&m, "cuda.driver_api", "13000");
	machine_set(&m, "0000:01:00.0 gpu.name", "NVIDIA H200");
	machine_set(&m, "0000:01:00.0 gpu.bar1_total_bytes", "268435456");
	machine_set(&m, "0000:01:00.0 gpu.memory_bytes", "150754820096");
	machine_set(&m, "0000:01:00.0 gpu.throttle", "idle, power cap");
	machine_set(&m, "0000:01:00.0 gpu.c2c", "no");
	machine_set(&m, "0000:01:00.0 gpu.uuid", "? permission denied");
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct pp_condition c;

		if (pp_condition_parse(&m.arena, PP_GPU, table[i].text, &c, &err))
			fail_msg("%s: %s", table[i].text, err.text);
		if (pp_condition_test(&c, &m.facts, pp_object_next(&m.facts, PP_GPU, NULL), NULL) !=
		    table[i].truth)
			fail_msg("%s", table[i].text);
	}
	machine_done(&m);
}

static void test_glob_is_bounded(void **state)
{
	char pattern[64], text[4096];

	(void)state;
	assert_true(pp_glob_match("a*b?c", "axxbyc"));
	assert_false(pp_glob_match("a*b?c", "axxbc"));
	assert_true(pp_glob_match("x|", ""));
	assert_false(pp_glob_match("[ab]", "a")); /* brackets mean themselves */
	/* Exponential matchers do not come back from this one. */
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	(void)snprintf(pattern, sizeof(pattern), "a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b");
	assert_false(pp_glob_match(pattern, text));
}

/* Kleene: any false condition decides, whatever is unknown beside it. */
static void test_open_rule(void **state)
{
	enum pp_fact_id missing[4];
	struct pp_rules *rules = NULL;
	const struct pp_object *gpu;
	struct pp_error err = {0};
	struct machine m;
	unsigned int n;

	(void)state;
	assert_int_equal(parse(&rules, 0,
			       "[a]\n" GOOD "when = gpu.uuid == x\nwhen = gpu.uuid != y\n"
			       "when = gpu.c2c == no\nunless = gpu.mig == on\n",
			       &err),
			 0);
	machine_init(&m);
	machine_set(&m, "0000:01:00.0 gpu.c2c", "no");
	machine_set(&m, "0000:01:00.0 gpu.mig", "off");
	gpu = pp_object_next(&m.facts, PP_GPU, NULL);
	assert_int_equal(pp_rule_test(pp_rules_at(rules, 0), &m.facts, gpu, missing, 4, &n),
			 PP_OPEN);
	assert_int_equal(n, 1); /* each missing fact once */
	assert_int_equal(missing[0], PP_F_GPU_UUID);
	machine_set(&m, "0000:01:00.0 gpu.c2c", "yes");
	assert_int_equal(pp_rule_test(pp_rules_at(rules, 0), &m.facts, gpu, missing, 4, &n),
			 PP_FALSE);
	assert_int_equal(n, 0);
	machine_set(&m, "0000:01:00.0 gpu.c2c", "no");
	machine_set(&m, "0000:01:00.0 gpu.mig", "on");
	assert_int_equal(pp_rule_test(pp_rules_at(rules, 0), &m.facts, gpu, missing, 4, &n),
			 PP_FALSE);
	machine_done(&m);
	pp_rules_free(rules);
}

static void test_tiers(void **state)
{
	struct pp_rules *rules = NULL;
	struct pp_error err = {0};

	(void)state;
	assert_int_equal(parse(&rules, 0,
			       "[a]\n" GOOD "when = gpu.c2c == no\n"
			       "[b]\n" GOOD "when = gpu.c2c == no\n",
			       &err),
			 0);
	/* the same id twice in one tier, in another file */
	assert_int_equal(parse(&rules, 0, "[a]\n" GOOD "when = gpu.c2c == no\n", &err), -EINVAL);
	assert_non_null(strstr(err.text, "stands in x.rules:1 already"));
	/* a site replaces one and disables the other */
	assert_int_equal(parse(&rules, 1,
			       "[a]\n" GOOD "when = gpu.c2c == yes\n"
			       "[b]\ndisabled = yes\n",
			       &err),
			 0);
	assert_int_equal(pp_rules_find(rules, "a")->tier, 1);
	assert_string_equal(pp_rules_find(rules, "a")->when[0].text, "gpu.c2c == yes");
	assert_true(pp_rules_find(rules, "b")->disabled);
	assert_null(pp_rules_at(rules, 2));
	pp_rules_free(rules);
}

/* Hcas beside the rails are said, and do not judge while each gpu has a rail. */
static void test_bystander(void **state)
{
	static const char text[] =
		"[nic]\ntitle = t\nproblem = -\nfor = hca\nverdict = fail\n"
		"cause = c\ndecide = d\nfix = f\nnext = n\nwhen = hca.bond == yes\n"
		"source = https://example.org/\nreviewed = 2026-11-29\n";
	struct pp_rules *rules = NULL;
	struct pp_findings found;
	struct pp_error err = {0};
	struct machine m;

	(void)state;
	assert_int_equal(parse(&rules, 0, text, &err), 0);
	machine_init(&m);
	machine_set(&m, "0000:01:00.0/0000:02:00.0 pair.rail", "yes");
	machine_set(&m, "0000:01:00.0/0000:03:00.0 pair.rail", "no");
	machine_set(&m, "0000:02:00.0 hca.bond", "no");
	machine_set(&m, "0000:03:00.0 hca.bond", "yes");
	assert_int_equal(pp_findings_judge(&m.facts, rules, NULL, &found), 0);
	assert_int_equal(found.n, 1);
	assert_false(found.list[0].counts);
	assert_int_equal(found.verdict, PP_PASS);
	pp_findings_done(&found);
	/* a second gpu without a rail: now every hca is a candidate */
	machine_set(&m, "0000:05:00.0/0000:03:00.0 pair.rail", "no");
	assert_int_equal(pp_findings_judge(&m.facts, rules, NULL, &found), 0);
	assert_true(found.list[0].counts);
	assert_int_equal(found.verdict, PP_FAIL);
	pp_findings_done(&found);
	machine_done(&m);
	pp_rules_free(rules);
}

static void test_directory(void **state)
{
	char dir[] = "/tmp/peerpath-rules-XXXXXX", path[64];
	struct pp_rules *rules = NULL;
	struct pp_error err = {0};
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(pp_rules_load(dir, &rules, &err), -EINVAL); /* no rules is no judgement */
	(void)snprintf(path, sizeof(path), "%s/a.rules", dir);
	assert_int_equal(mkfifo(path, 0600), 0); /* must not wait for a writer */
	assert_int_equal(pp_rules_load(dir, &rules, &err), -EINVAL);
	assert_non_null(strstr(err.text, "not a regular file"));
	(void)unlink(path);
	f = fopen(path, "w");
	assert_non_null(f);
	(void)fputs("[a]\n" GOOD "when = gpu.c2c == no\n", f);
	(void)fclose(f);
	assert_int_equal(pp_rules_load(dir, &rules, &err), 0);
	assert_non_null(pp_rules_find(rules, "a"));
	pp_rules_free(rules);
	(void)unlink(path);
	(void)rmdir(dir);
	assert_int_equal(pp_rules_load(dir, &rules, &err), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_rule_fires),
		cmocka_unit_test(test_every_near_miss),
		cmocka_unit_test(test_missing_fact_never_clears),
		cmocka_unit_test(test_no_stray_fixture),
		cmocka_unit_test(test_problems_covered),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_conditions),
		cmocka_unit_test(test_glob_is_bounded),
		cmocka_unit_test(test_open_rule),
		cmocka_unit_test(test_tiers),
		cmocka_unit_test(test_bystander),
		cmocka_unit_test(test_directory),
	};

	return cmocka_run_group_tests_name("rules", tests, load_shipped, free_shipped);
}
