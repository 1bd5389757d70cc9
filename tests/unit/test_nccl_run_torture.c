/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each allocation of what reads, brings together and judges runs fails once: -ENOMEM and one line,
 * nothing leaked (no descriptor either), no half an answer; and nothing that was not read is taken
 * for nothing that was there.
 */
#include "made_run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bundle/tree.h"
#include "fail_alloc.h"
#include "judge/control.h"
#include "nccl/run_judge.h"
#include "nccl/run_logs.h"
#include "nccl/run_merge.h"
#include "nccl/run_settings.h"
#include "node/source.h"

static char dir[256], document[1 << 20];
static size_t document_len;
static struct pp_nccl_run *arms[PP_NCCL_ARMS], *other;
static struct pp_source *source;

static unsigned int descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (d && readdir(d))
		n++;
	(void)closedir(d);
	return n;
}

void *__real_malloc(size_t size);
void __real_free(void *p);

static void *allocate(size_t size)
{
	return malloc(size);
}

static void release(void *p)
{
	free(p);
}

/* ── what is tried: 0, or its error; @err has a line then ── */

static int read_document(struct pp_error *err)
{
	struct pp_nccl_runs runs;
	int r = pp_nccl_runs_read(document, document_len, &runs, err);

	struct pp_buf text = PP_BUF(1 << 20);
	struct pp_json j = PP_JSON(&text, true);

	if (r)
		return r;
	/* What was read is all of it: but jansson loses a character whose buffer did not grow. */
	pp_nccl_runs_write(&j, &runs);
	pp_nccl_runs_done(&runs);
	r = text.failed;
	if (!r && (text.len != document_len || memcmp(text.data, document, text.len) != 0))
		r = -EBADMSG;
	pp_buf_done(&text);
	return r ? pp_error_set(err, r, "not what was written") : 0;
}

static int write_document(struct pp_error *err)
{
	struct pp_nccl_runs runs;
	struct pp_buf text = PP_BUF(1 << 20);
	struct pp_json j = PP_JSON(&text, true);
	int r;

	memcpy(runs.arm, arms, sizeof(arms));
	pp_nccl_runs_write(&j, &runs);
	r = text.failed;
	if (!r)
		assert_int_equal(text.len, document_len);
	pp_buf_done(&text);
	return r ? pp_error_set(err, r, "out of memory") : 0;
}

static int merge(struct pp_error *err)
{
	struct pp_nccl_run *into = NULL;
	int r = pp_nccl_run_new(PP_NCCL_ARM_UNCHANGED, 0, &into);

	for (unsigned int i = 0; !r && i < 2; i++)
		r = pp_nccl_run_merge(into, i ? other : arms[0]);
	if (!r)
		assert_int_equal(into->n_nodes, 3);
	(void)pp_nccl_run_free(into);
	return r ? pp_error_set(err, r, "out of memory") : 0;
}

static int judge(struct pp_error *err)
{
	struct pp_gate_library g = {.sentence = "untouched"};
	int r = pp_gate_library_judge((const struct pp_nccl_run *const *)arms, &g, err);

	if (r)
		assert_string_equal(g.sentence, "untouched");
	return r;
}

static int write_gate(struct pp_error *err)
{
	static struct pp_gate_library g;
	struct pp_buf text = PP_BUF(1 << 20);
	struct pp_json j = PP_JSON(&text, false);
	int r = pp_gate_library_judge((const struct pp_nccl_run *const *)arms, &g, err);

	if (r)
		return r;
	pp_json_object(&j, NULL);
	pp_gate_library_write(&j, "gate", &g);
	pp_json_end_object(&j);
	r = text.failed;
	pp_buf_done(&text);
	return r ? pp_error_set(err, r, "out of memory") : 0;
}

static int judge_logs(struct pp_error *err)
{
	struct pp_nccl_log_count count = {0};
	struct pp_nccl_run *run = NULL;
	struct pp_nccl_feed feed;
	char root[PP_NCCL_TEXT];
	int r = pp_nccl_feed_init(&feed);

	if (!r)
		r = pp_nccl_run_new(PP_NCCL_ARM_UNCHANGED, 1, &run);
	if (!r)
		r = pp_nccl_logs_read(dir, 1 << 20, pp_nccl_log_to_feed, &feed, &count);
	if (!r) {
		pp_nccl_feed_end(&feed);
		r = pp_nccl_run_judge(&feed, run, root, sizeof(root));
	}
	/* What was not read counts as dropped, so that nothing rests on it. */
	if (!r && !count.dropped)
		assert_int_equal(run->judgement.claim_gdr, PP_NCCL_PROVEN);
	if (!r && count.dropped)
		r = -ENOMEM;
	(void)pp_nccl_run_free(run);
	pp_nccl_feed_done(&feed);
	return r ? pp_error_set(err, r, "out of memory") : 0;
}

static int keep_logs(struct pp_error *err)
{
	char to[300];

	(void)snprintf(to, sizeof(to), "%s.kept", dir);
	return pp_nccl_logs_keep(dir, to, "unchanged", err);
}

static int observed(struct pp_error *err)
{
	struct pp_nccl_run *run = NULL;
	int r = pp_nccl_run_new(PP_NCCL_ARM_UNCHANGED, 1, &run);

	if (!r) {
		pp_nccl_logs_observed(dir, &run->node[0]);
		r = run->node[0].was_observed ? 0 : -ENOMEM;
		/* "none registered" would be a finding, and nobody looked */
		if (r)
			assert_non_null(strstr(run->node[0].library.why, "memory"));
		else if (run->node[0].observed.malformed)
			r = -ENOMEM; /* a line that was not read is counted as one */
		else
			assert_int_equal(run->node[0].library.made[PP_REGISTERED_DMABUF], 1);
	}
	(void)pp_nccl_run_free(run);
	return r ? pp_error_set(err, r, "out of memory") : 0;
}

static int settings(struct pp_error *err)
{
	static char *const environment[] = {"NCCL_CONF_FILE=/c.conf", "NCCL_DEBUG=INFO", NULL};
	struct pp_nccl_run *run = NULL;
	int r = pp_nccl_run_new(PP_NCCL_ARM_UNCHANGED, 0, &run);

	if (!r)
		r = pp_nccl_run_settings_read(run, source, environment);
	if (!r)
		assert_string_equal(pp_nccl_run_setting_value(run, "NCCL_NET_GDR_LEVEL"), "LOC");
	(void)pp_nccl_run_free(run);
	return r ? pp_error_set(err, r, "out of memory") : 0;
}

/* ── the means ── */

/*
 * @parser: jansson's allocations are made to fail, too. It then says of a text that it is none,
 * which is an error as good, but not ours to name; some it does without.
 */
static void torture(const char *what, int (*attempt)(struct pp_error *err), size_t least,
		    bool parser)
{
	unsigned int before = descriptors();
	/* Under valgrind each fifth: the sanitizers see them all. */
	size_t n = 1, step = getenv("PEERPATH_TEST_SLOW") ? 5 : 1;

	for (; n < 100000; n += step) {
		struct pp_error err = {0};
		bool failed;
		int r;

		pp_fail_alloc_start(n);
		r = attempt(&err);
		failed = pp_fail_alloc_stop();
		if (pp_fail_alloc_live())
			fail_msg("%s: allocation %zu: %zu leaked", what, n, pp_fail_alloc_live());
		if (r != (failed ? -ENOMEM : 0) && !(parser && failed && (!r || r == -EBADMSG)))
			fail_msg("%s: allocation %zu: returned %d: %s", what, n, r, err.text);
		if (r && (!err.text[0] || strchr(err.text, '\n')))
			fail_msg("%s: allocation %zu: no line", what, n);
		if (!failed)
			break;
	}
	assert_int_equal(descriptors(), before);
	if (n - 1 < least)
		fail_msg("%s: only %zu allocations", what, n - 1);
}

static void test_each_allocation(void **state)
{
	static const struct {
		const char *what;
		int (*attempt)(struct pp_error *err);
		size_t least; /* allocations: a test that meets none proves nothing */
	} attempts[] = {
		{"read", read_document, 5},
		{"write", write_document, 2},
		{"merge", merge, 3},
		{"judge", judge, 1},
		{"write a gate", write_gate, 2},
		{"judge logs", judge_logs, 20},
		{"keep logs", keep_logs, 4},
		{"observed", observed, 3},
		{"settings", settings, 3},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++)
		torture(attempts[i].what, attempts[i].attempt, attempts[i].least, false);
}

static void test_each_of_the_parser(void **state)
{
	(void)state;
	json_set_alloc_funcs(allocate, release);
	torture("read", read_document, 500, true);
	torture("observed", observed, 10, true);
	json_set_alloc_funcs(__real_malloc, __real_free);
}

static void put(const char *name, const char *text, size_t len)
{
	char path[400];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static void make_dir(void)
{
	static const char seen[] =
		"{\"call\":\"start\",\"pid\":7,\"host\":\"h\",\"program\":\"x\"}\n"
		"{\"call\":\"ibv_reg_dmabuf_mr\",\"device\":\"mlx5_0\",\"length\":4096}\n";
	const char *fixtures = getenv("PP_TEST_DIR"), *tmp = getenv("TMPDIR");
	char path[400];
	FILE *f;

	assert_non_null(fixtures);
	(void)snprintf(dir, sizeof(dir), "%s/test-run-torture.XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/../fixtures/nccl/made-proven-dmabuf-trace.log",
		       fixtures);
	f = fopen(path, "re");
	assert_non_null(f);
	document_len = fread(document, 1, sizeof(document), f);
	(void)fclose(f);
	put("nccl.h.1.log", document, document_len);
	put("stdout", "table\n", 6);
	(void)snprintf(path, sizeof(path), "%s/observed", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	put("observed/h-7.jsonl", seen, sizeof(seen) - 1);
}

static int set_up(void **state)
{
	struct pp_nccl_runs runs;
	struct pp_buf text = PP_BUF(sizeof(document));
	struct pp_json j = PP_JSON(&text, true);
	struct pp_record *record;
	struct pp_error err = {0};
	static const char conf[] = "NCCL_NET_GDR_LEVEL=LOC\n";

	(void)state;
	make_dir();
	for (unsigned int i = 0; i < PP_NCCL_ARMS; i++)
		arms[i] = made_run((enum pp_nccl_arm)i);
	other = made_run(PP_NCCL_ARM_UNCHANGED);
	(void)snprintf(other->node[1].host, sizeof(other->node[1].host), "another.example");
	made_setting(arms[0], "NCCL_NET_GDR_LEVEL", "SYS", PP_NCCL_FROM_USER, 1);
	memcpy(runs.arm, arms, sizeof(arms));
	pp_nccl_runs_write(&j, &runs);
	assert_int_equal(text.failed, 0);
	memcpy(document, text.data, text.len);
	document_len = text.len;
	pp_buf_done(&text);
	assert_int_equal(pp_record_new((size_t)1 << 20, &record), 0);
	assert_int_equal(
		pp_record_put(record, PP_ENTRY_FILE, "/etc/nccl.conf", conf, sizeof(conf) - 1, 0),
		0);
	assert_int_equal(pp_source_replay_record(record, &source, &err), 0);
	json_set_alloc_funcs(__real_malloc, __real_free);
	return 0;
}

static int tear_down(void **state)
{
	char kept[300];

	(void)state;
	for (unsigned int i = 0; i < PP_NCCL_ARMS; i++)
		(void)pp_nccl_run_free(arms[i]);
	(void)pp_nccl_run_free(other);
	pp_source_free(source);
	(void)snprintf(kept, sizeof(kept), "%s.kept", dir);
	return pp_tree_remove(AT_FDCWD, dir) | pp_tree_remove(AT_FDCWD, kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_allocation),
					   cmocka_unit_test(test_each_of_the_parser)};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
