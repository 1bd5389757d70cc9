/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each allocation of a judgement fails once: -ENOMEM, nothing leaked, and no half an answer.
 */
#include "unit.h"

#include <errno.h>

#include "fail_alloc.h"
#include "nccl/feed.h"

static const char *const LOGS[] = {
	"made-proven-dmabuf-trace.log", "made-flush-first.log",	      "made-wrong-data.log",
	"made-two-communicators.log",	"made-net-inside-a-host.log", "fail-completion-error.log",
};

struct text {
	char bytes[64 << 10];
	size_t len;
};

static void load(const char *name, struct text *ret)
{
	const char *dir = getenv("PP_TEST_DIR");
	char path[4096];
	FILE *file;

	assert_non_null(dir);
	(void)snprintf(path, sizeof(path), "%s/../fixtures/nccl/%s", dir, name);
	file = fopen(path, "re");
	assert_non_null(file);
	ret->len = fread(ret->bytes, 1, sizeof(ret->bytes), file);
	(void)fclose(file);
}

static int judge(const struct text *t)
{
	struct pp_nccl_judgement j;
	struct pp_nccl_group g;
	struct pp_nccl_feed f;
	int r = pp_nccl_feed_init(&f);

	if (!r) {
		pp_nccl_feed_file(&f, "log");
		pp_nccl_feed_push(&f, t->bytes, t->len);
		pp_nccl_feed_end(&f);
		r = pp_nccl_feed_judge(&f, &g, &j);
		if (!r)
			pp_nccl_group_done(&g);
	}
	pp_nccl_feed_done(&f);
	return r;
}

static size_t torture(const char *name)
{
	static struct text t;
	size_t n = 1;
	bool failed;
	int r;

	load(name, &t);
	for (; n < 10000; n++) {
		pp_fail_alloc_start(n);
		r = judge(&t);
		failed = pp_fail_alloc_stop();
		if (pp_fail_alloc_live())
			fail_msg("%s: allocation %zu: %zu leaked", name, n, pp_fail_alloc_live());
		if (r != (failed ? -ENOMEM : 0))
			fail_msg("%s: allocation %zu: returned %d", name, n, r);
		if (!failed)
			break;
	}
	return n - 1;
}

static void test_each_allocation(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(LOGS) / sizeof(LOGS[0]); i++)
		assert_true(torture(LOGS[i]) >= 20);
}

/* The means itself: it fails what it should, and sees a leak. */
static void test_means(void **state)
{
	char *volatile a, *volatile b;

	(void)state;
	pp_fail_alloc_start(2);
	a = malloc(1);
	b = strdup("x");
	assert_true(pp_fail_alloc_stop());
	assert_non_null(a);
	assert_null(b);
	assert_int_equal(pp_fail_alloc_live(), 1);
	free(a);
	assert_int_equal(pp_fail_alloc_live(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_allocation),
		cmocka_unit_test(test_means),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
