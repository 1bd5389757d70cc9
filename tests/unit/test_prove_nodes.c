/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures of nodes on their way into the bundle of prove: each that is not there is said. The
 * judge is the bundle that comes of it, opened and verified as a user's would be.
 */
#include "unit.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bundle/capture.h"
#include "bundle/tree.h"
#include "cli/prove_nodes.h"

enum { GOOD = 12 };

static char here[] = "/tmp/test-nodes.XXXXXX";

static int set_up(void **state)
{
	(void)state;
	return mkdtemp(here) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	return pp_tree_remove(AT_FDCWD, here);
}

static const char *below(const char *name)
{
	static char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s", here, name);
	return path;
}

static void put(const char *name, const char *text)
{
	FILE *f = fopen(below(name), "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void put_capture(const char *name)
{
	const struct pp_bundle_file file = {"facts.json", "{}", 2};
	const struct pp_bundle_content content = {.files = &file, .n_files = 1};
	const struct pp_bundle_options options = {.host = "n"};
	struct pp_bundle_written written;
	struct pp_error err;

	assert_int_equal(pp_bundle_write(below(name), &content, &options, &written, &err), 0);
}

/* As many as no array of a fixed size was made for, and one of each kind that cannot be had. */
static struct pp_bench_node *make_nodes(unsigned int *ret_n)
{
	static char good[GOOD][16], file[32];
	static struct pp_bench_node nodes[GOOD + 8];
	static const char *const bad[] = {"garbage", "cut", "huge", "told", "silent", "../up"};

	for (unsigned int i = 0; i < GOOD; i++) {
		(void)snprintf(good[i], sizeof(good[i]), "n%u", i + 1);
		nodes[i].id = good[i];
		(void)snprintf(file, sizeof(file), "n%u.tar.zst", i + 1);
		put_capture(file);
	}
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		nodes[GOOD + i].id = bad[i];
	put("garbage.tar.zst", "no archive");
	put_capture("cut.tar.zst");
	assert_int_equal(truncate(below("cut.tar.zst"), 100), 0);
	put("huge.tar.zst", "");
	assert_int_equal(truncate(below("huge.tar.zst"), 33 << 20), 0);
	put("told.why", "node told does not answer\x1b[31m any more");
	*ret_n = GOOD + sizeof(bad) / sizeof(*bad);
	return nodes;
}

static const char *why_of(const struct pp_prove_memory *m, const char *node)
{
	for (size_t i = 0; i < m->n_lost; i++)
		if (!strcmp(m->lost[i].node, node))
			return m->lost[i].why;
	fail_msg("%s is not said to be missing", node);
	return "";
}

static void check_lost(const struct pp_prove_memory *m)
{
	assert_int_equal(m->n_lost, 6);
	assert_non_null(strstr(why_of(m, "garbage"), "garbage.tar.zst"));
	assert_non_null(strstr(why_of(m, "cut"), "cut.tar.zst"));
	assert_non_null(strstr(why_of(m, "huge"), "longer than 32768 KiB"));
	assert_string_equal(why_of(m, "told"), "node told does not answer?[31m any more");
	assert_string_equal(why_of(m, "silent"), "it gave none");
	assert_string_equal(why_of(m, "../up"), "its name is none of a file");
}

static void check_bundle(const struct pp_prove_memory *m)
{
	const struct pp_bundle_content content = {
		.files = m->file, .n_files = m->n_files, .lost = m->n_lost};
	const struct pp_bundle_options options = {.host = "n"};
	struct pp_bundle_written written;
	struct pp_bundle *b = NULL;
	struct pp_error err = {0};
	char path[64];

	assert_int_equal(pp_bundle_write(below("all.tar.zst"), &content, &options, &written, &err),
			 0);
	assert_int_equal(pp_bundle_open(below("all.tar.zst"), &b, &err), 0);
	assert_false(pp_bundle_manifest(b)->complete);
	for (unsigned int i = 1; i <= GOOD; i++) {
		(void)snprintf(path, sizeof(path), "nodes/n%u/capture.tar.zst", i);
		assert_non_null(pp_bundle_file(b, path));
	}
	assert_null(pp_bundle_file(b, "nodes/garbage/capture.tar.zst"));
	assert_non_null(strstr(pp_bundle_file(b, "nodes.errors")->data, "silent\tit gave none\n"));
	pp_bundle_free(b);
}

static void check_words(const struct pp_prove_memory *m)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	struct pp_out *o = pp_out_new(false, f, 200, false);

	pp_prove_nodes_emit(o, m);
	assert_int_equal(pp_out_finish(o), 0);
	assert_non_null(strstr(text, "no capture of node silent in the bundle: it gave none\n"));
	pp_out_free(o);
	(void)fclose(f);
	free(text);
}

static void test_nodes(void **state)
{
	struct pp_prove_memory *m = calloc(1, sizeof(*m));
	struct pp_bench b = {0};

	(void)state;
	assert_non_null(m);
	m->arena = PP_ARENA(1 << 20);
	m->captures = PP_ARENA(64 << 20);
	m->file[m->n_files++] = (struct pp_bundle_file){"result.json", "{}", 2};
	b.nodes = make_nodes(&b.n_nodes);
	m->child.bench = &b;
	/* No bundle is wanted: nothing is missing. */
	pp_prove_nodes_take(m);
	assert_int_equal(m->n_lost + m->n_files, 1);
	(void)snprintf(m->child.kept.path, sizeof(m->child.kept.path), "%s", here);
	pp_prove_nodes_take(m);
	assert_int_equal(m->n_files, 1 + GOOD + 1);
	check_lost(m);
	check_bundle(m);
	check_words(m);
	pp_arena_done(&m->captures);
	/* No room is a reason, too. */
	m->n_lost = 0;
	m->n_files = 1;
	m->captures = PP_ARENA(16);
	pp_prove_nodes_take(m);
	assert_non_null(strstr(why_of(m, "n1"), "no room beside the others"));
	pp_arena_done(&m->captures);
	pp_arena_done(&m->arena);
	free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_nodes)};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
