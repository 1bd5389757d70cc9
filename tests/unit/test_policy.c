/* SPDX-License-Identifier: Apache-2.0 */
#include "facts_text.h"

#include <errno.h>

#include "judge/finding.h"
#include "judge/textfile.h"
#include "judge/transfer.h"

static void refused(const char *text, const char *message)
{
	struct pp_policy *policy = NULL;
	struct pp_error err = {0};

	assert_int_equal(pp_policy_parse("p.conf", text, strlen(text), &policy, &err), -EINVAL);
	if (!strstr(err.text, message))
		fail_msg("'%s' lacks '%s'", err.text, message);
}

static void test_refusals(void **state)
{
	(void)state;
	refused("[forbid]\nx =\n", "p.conf:2: 'x' needs the reason");
	refused("[allow]\n", "p.conf:1: unknown section 'allow'");
	refused("[forbid]\nx = a\nx = b\n", "p.conf:3: 'x' is forbidden twice");
	refused("x = a\n", "before the first [section]");
	refused("[transfer]\nspraed = 0.1\n", "unknown margin 'spraed'; did you mean 'spread'?");
	refused("[transfer]\nspread = 5%\n", "a ratio above 0 and at most 1");
	refused("[transfer]\nspread = 0\n", "a ratio above 0");
	refused("[transfer]\nhop = nan\n", "a ratio above 0");
	refused("[transfer]\nhop = 0x1\n", "a ratio above 0");
	refused("[transfer]\nhop = .\n", "a ratio above 0");
	refused("[transfer]\ngpu_host = 1.01\n", "a ratio above 0");
	refused("[transfer]\nfrom = big\n", "a size of bytes");
	refused("[transfer]\nhop = 0.5\nhop = 0.5\n", "'hop' is given twice");
}

static void test_margins(void **state)
{
	static const char text[] = "[transfer]\nspread = 0.2\nfrom = 64K\n";
	struct pp_policy *policy = NULL;
	struct pp_error err = {0};
	const struct pp_margins *m = pp_policy_margins(NULL);

	(void)state;
	/* docs: 5 %, 0.90 from 1 MiB, 0.70 of the narrowest hop */
	assert_true(m->spread == 0.05 && m->gpu_host == 0.90 && m->hop == 0.70);
	assert_int_equal(m->from, 1048576);
	assert_int_equal(pp_policy_parse("p", text, strlen(text), &policy, &err), 0);
	m = pp_policy_margins(policy);
	assert_true(m->spread == 0.2 && m->gpu_host == 0.90);
	assert_int_equal(m->from, 65536);
	pp_policy_free(policy);
}

/* A forbidden fix is said with the finding, and changes no verdict. */
static void test_blocked(void **state)
{
	static const char text[] = "[forbid]\niommu-passthrough = security policy, section 4\n";
	struct pp_policy *policy = NULL;
	struct pp_rules *rules = NULL;
	struct pp_findings with, without;
	struct pp_error err = {0};
	struct machine m;
	size_t blocked = 0;

	(void)state;
	assert_int_equal(pp_rules_load(PEERPATH_SOURCE_DATADIR "/rules", &rules, &err), 0);
	assert_int_equal(pp_policy_parse("p", text, strlen(text), &policy, &err), 0);
	assert_int_equal(pp_policy_check(policy, rules, &err), 0);
	machine_init(&m);
	machine_set(&m, "kernel.virtual_machine", "none");
	machine_set(&m, "0000:01:00.0 gpu.c2c", "no");
	machine_set(&m, "0000:01:00.0/0000:02:00.0 pair.rail", "yes");
	machine_set(&m, "0000:01:00.0/0000:02:00.0 pair.translated", "yes");
	assert_int_equal(pp_findings_judge(&m.facts, rules, policy, &with), 0);
	assert_int_equal(pp_findings_judge(&m.facts, rules, NULL, &without), 0);
	assert_int_equal(with.verdict, without.verdict);
	assert_int_equal(with.n, without.n);
	for (size_t i = 0; i < with.n; i++) {
		assert_null(without.list[i].blocked);
		if (strcmp(with.list[i].rule->id, "iommu-translates") != 0)
			continue;
		assert_string_equal(with.list[i].blocked, "security policy, section 4");
		blocked++;
	}
	assert_int_equal(blocked, 1);
	pp_findings_done(&with);
	pp_findings_done(&without);
	machine_done(&m);
	pp_policy_free(policy);
	pp_rules_free(rules);
}

/* A misspelt word would forbid nothing, and nobody would notice. */
static void test_unknown_word(void **state)
{
	static const char text[] = "[forbid]\niommu-passthru = no\n";
	struct pp_policy *policy = NULL;
	struct pp_rules *rules = NULL;
	struct pp_error err = {0};

	(void)state;
	assert_int_equal(pp_rules_load(PEERPATH_SOURCE_DATADIR "/rules", &rules, &err), 0);
	assert_int_equal(pp_policy_parse("p", text, strlen(text), &policy, &err), 0);
	assert_int_equal(pp_policy_check(policy, rules, &err), -EINVAL);
	assert_string_equal(err.text, "p forbids 'iommu-passthru', which is no rule's fix; did you "
				      "mean 'iommu-passthrough'?");
	pp_policy_free(policy);
	pp_rules_free(rules);
}

/* The example, with its comment signs taken away, is a policy for the shipped rules. */
static void test_example(void **state)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(65536);
	struct pp_policy *policy = NULL;
	struct pp_rules *rules = NULL;
	struct pp_error err = {0};
	char *at;

	(void)state;
	assert_int_equal(
		pp_textfile_read(PEERPATH_SOURCE_DATADIR "/policy.conf.example", &text, &err), 0);
	at = strstr(text.data, "[forbid]");
	assert_non_null(at);
	for (; *at; at++)
		if (*at == '#')
			*at = ' ';
	/* no indentation: that would continue the line above */
	while ((at = strstr(text.data, "\n  ")))
		memmove(at + 1, at + 3, strlen(at + 3) + 1);
	assert_int_equal(pp_policy_parse("p", text.data, strlen(text.data), &policy, &err), 0);
	assert_int_equal(pp_rules_load(PEERPATH_SOURCE_DATADIR "/rules", &rules, &err), 0);
	if (pp_policy_check(policy, rules, &err))
		fail_msg("%s", err.text);
	assert_non_null(pp_policy_forbids(policy, "acs-redirect-off"));
	pp_policy_free(policy);
	pp_rules_free(rules);
}

static void test_files(void **state)
{
	struct pp_policy *policy = NULL;
	struct pp_error err = {0};

	(void)state;
	/* asked for and absent is an error; the site's own may be absent */
	assert_int_equal(pp_policy_load("/nonexistent/policy.conf", &policy, &err), -ENOENT);
	assert_null(pp_policy_forbids(NULL, "x"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_margins), cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_blocked), cmocka_unit_test(test_unknown_word),
		cmocka_unit_test(test_example), cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
