/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking any one line out of a log makes no claim stronger: not out of one that judges gdr or
 * proven, whatever the line says, warnings and errors too. Less is known then, so what was not
 * refuted does not become so either. And no log that is refuted becomes proven by a line less.
 * The logs are all of tests/fixtures/nccl, recorded and made.
 */
#include "unit.h"

#include <dirent.h>

#include "nccl/feed.h"

struct log {
	char *text;
	size_t len;
};

/* Judges the logs without the bytes [from, to) of the log @without. */
static void judge(const struct log *logs, size_t n, size_t without, size_t from, size_t to,
		  struct pp_nccl_judgement *ret)
{
	struct pp_nccl_feed f;
	struct pp_nccl_group g;

	assert_int_equal(pp_nccl_feed_init(&f), 0);
	for (size_t i = 0; i < n; i++) {
		pp_nccl_feed_file(&f, "log");
		if (i == without) {
			pp_nccl_feed_push(&f, logs[i].text, from);
			pp_nccl_feed_push(&f, logs[i].text + to, logs[i].len - to);
		} else {
			pp_nccl_feed_push(&f, logs[i].text, logs[i].len);
		}
		pp_nccl_feed_end(&f);
	}
	assert_int_equal(pp_nccl_feed_judge(&f, &g, ret), 0);
	pp_nccl_group_done(&g);
	pp_nccl_feed_done(&f);
}

/*
 * refuted and proven are both knowledge: less of it is unproven. A known mechanism must not appear
 * nor change; it may become unknown.
 */
static bool no_stronger(enum pp_nccl_claim whole, enum pp_nccl_claim less)
{
	return less == whole || less == PP_NCCL_UNPROVEN;
}

static bool less_is_known(const struct pp_nccl_judgement *a, const struct pp_nccl_judgement *b)
{
	return no_stronger(a->claim_gdr, b->claim_gdr) &&
	       no_stronger(a->claim_mechanism, b->claim_mechanism) &&
	       (b->path == a->path || b->path == PP_NCCL_PATH_UNDETERMINED) &&
	       (b->mechanism == a->mechanism || b->mechanism == PP_NCCL_MECHANISM_UNDETERMINED) &&
	       b->coverage <= a->coverage && b->ranks_seen <= a->ranks_seen;
}

static struct log load(const char *dir, const char *name)
{
	struct log l = {malloc(1 << 20), 0};
	char path[4096];
	FILE *file;

	assert_non_null(l.text);
	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "re");
	assert_non_null(file);
	l.len = fread(l.text, 1, 1 << 20, file);
	(void)fclose(file);
	return l;
}

/* Lines taken out that left less known; none for logs that judge neither gdr nor proven. */
static size_t remove_each(const struct log *logs, size_t n, const char *name)
{
	struct pp_nccl_judgement whole, less;
	size_t removed = 0, from, to;
	const char *eol;
	bool direct;

	judge(logs, n, n, 0, 0, &whole);
	direct = whole.path == PP_NCCL_PATH_GDR || whole.claim_gdr == PP_NCCL_PROVEN;
	for (size_t i = 0; i < n; i++) {
		for (from = 0; from < logs[i].len; from = to) {
			eol = memchr(logs[i].text + from, '\n', logs[i].len - from);
			to = eol ? (size_t)(eol - logs[i].text) + 1 : logs[i].len;
			judge(logs, n, i, from, to, &less);
			if (direct ? !less_is_known(&whole, &less)
				   : less.claim_gdr == PP_NCCL_PROVEN)
				fail_msg("%s: stronger without: %.*s", name, (int)(to - from),
					 logs[i].text + from);
			removed += direct;
		}
	}
	return removed;
}

static const char *fixtures(char *path, size_t size)
{
	const char *dir = getenv("PP_TEST_DIR");

	assert_non_null(dir);
	(void)snprintf(path, size, "%s/../fixtures/nccl", dir);
	return path;
}

static void test_each_log(void **state)
{
	char path[4096];
	const char *dir = fixtures(path, sizeof(path));
	DIR *d = opendir(dir);
	size_t logs = 0, lines = 0, n;
	struct dirent *e;

	(void)state;
	assert_non_null(d);
	while ((e = readdir(d))) {
		size_t len = strlen(e->d_name);
		struct log l;

		if (len < 4 || strcmp(e->d_name + len - 4, ".log") != 0)
			continue;
		l = load(dir, e->d_name);
		n = remove_each(&l, 1, e->d_name);
		lines += n;
		logs += n > 0;
		free(l.text);
	}
	(void)closedir(d);
	assert_true(logs >= 30);
	assert_true(lines >= 1200);
}

static void test_two_ranks(void **state)
{
	char path[4096];
	const char *dir = fixtures(path, sizeof(path));
	struct log two[2] = {load(dir, "two-ranks-ib-gdrdma.rank0.log"),
			     load(dir, "two-ranks-ib-gdrdma.rank1.log")};

	(void)state;
	assert_true(remove_each(two, 2, "two-ranks-ib-gdrdma") > 150);
	free(two[0].text);
	free(two[1].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_log),
		cmocka_unit_test(test_two_ranks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
