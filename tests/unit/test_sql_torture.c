/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each allocation of a database's use fails once, SQLite's own too: -ENOMEM, nothing leaked, and
 * nothing kept that was not whole. libpq's own are not reached: only ours fail there.
 */
#include "unit.h"

#include <errno.h>
#include <sqlite3.h>
#include <unistd.h>

#include "fail_alloc.h"
#include "store/sql.h"

static char directory[] = "/tmp/peerpath-sqlt.XXXXXX";
static char path[64];

/* SQLite asks how large an allocation is: kept in front of it. */
static void *lite_malloc(int n)
{
	uint64_t *p = n < 0 ? NULL : malloc((size_t)n + 16);

	if (!p)
		return NULL;
	*p = (uint64_t)n;
	return p + 2;
}

static void lite_free(void *p)
{
	if (p)
		free((uint64_t *)p - 2);
}

static void *lite_realloc(void *p, int n)
{
	uint64_t *to = n < 0 ? NULL : realloc((uint64_t *)p - 2, (size_t)n + 16);

	if (!to)
		return NULL;
	*to = (uint64_t)n;
	return to + 2;
}

static int lite_size(void *p)
{
	return p ? (int)((uint64_t *)p)[-2] : 0;
}

static int lite_round(int n)
{
	return (n + 7) & ~7;
}

static int lite_init(void *ctx)
{
	(void)ctx;
	return SQLITE_OK;
}

static void lite_shutdown(void *ctx)
{
	(void)ctx;
}

static const struct pp_sql_step steps[] = {
	{"CREATE TABLE t (id INTEGER PRIMARY KEY, s TEXT NOT NULL) STRICT"},
	{"CREATE TABLE u (id INTEGER PRIMARY KEY) STRICT"},
	{NULL},
};

static int count(void *ctx, const struct pp_sql_value *columns, size_t n)
{
	(void)n;
	*(int64_t *)ctx = columns[0].integer;
	return 0;
}

static int use(struct pp_sql *sql, int64_t *rows, struct pp_error *err)
{
	struct pp_sql_value args[] = {pp_sql_text("one")};
	int r = pp_sql_migrate(sql, "torture", steps, err);

	r = r ? r : pp_sql_begin(sql, err);
	if (r)
		return r;
	for (int i = 0; i < 2 && !r; i++)
		r = pp_sql_run(sql, "INSERT INTO t (s) VALUES (?)", args, 1, err);
	if (r)
		pp_sql_rollback(sql);
	else
		r = pp_sql_commit(sql, err);
	return r ? r : pp_sql_ask(sql, "SELECT count(*) FROM t", NULL, 0, count, rows, err);
}

static int all_of_it(const char *where, int64_t *rows, struct pp_error *err)
{
	struct pp_sql *sql = NULL;
	int r = pp_sql_open(where, PP_SQL_CREATE, &sql, err);

	r = r ? r : use(sql, rows, err);
	pp_sql_close(sql);
	return r;
}

/* Rows are whole: two for each time that it was said to be done, or that could not be told. */
static void torture(const char *where)
{
	struct pp_error err = {0};
	size_t at = 1, failures = 0, lived;
	int64_t rows = 0, before = 0;
	bool failed = true;
	int r;

	for (; failed && at < 20000; at++) {
		pp_fail_alloc_start(at);
		r = all_of_it(where, &rows, &err);
		failed = pp_fail_alloc_stop();
		lived = pp_fail_alloc_live();
		if (lived)
			fail_msg("allocation %zu: %zu leaked", at, lived);
		/* SQLite does without some of its caches. */
		if (r && r != -ENOMEM)
			fail_msg("allocation %zu: returned %d: %s", at, r, err.text);
		failures += r == -ENOMEM;
		if (!r && (rows % 2 || rows < before + 2))
			fail_msg("allocation %zu: %lld rows, %lld before", at, (long long)rows,
				 (long long)before);
		before = r ? before : rows;
	}
	assert_true(failures > 5);
	assert_int_equal(r, 0);
}

static void test_sqlite(void **state)
{
	(void)state;
	torture(path);
}

static void test_postgresql(void **state)
{
	const char *where = getenv("PP_TEST_POSTGRESQL");

	(void)state;
	if (!where)
		skip();
	torture(where);
}

int main(void)
{
	static const sqlite3_mem_methods methods = {lite_malloc,   lite_free,  lite_realloc,
						    lite_size,	   lite_round, lite_init,
						    lite_shutdown, NULL};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sqlite),
		cmocka_unit_test(test_postgresql),
	};
	static const char *const ends[] = {"", "-wal", "-shm"};
	char name[80];
	int r;

	if (!mkdtemp(directory) || sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) ||
	    sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0) || sqlite3_initialize())
		return 1;
	(void)snprintf(path, sizeof(path), "%s/db", directory);
	r = cmocka_run_group_tests(tests, NULL, NULL);
	for (size_t i = 0; i < 3; i++) {
		(void)snprintf(name, sizeof(name), "%s%s", path, ends[i]);
		(void)unlink(name);
	}
	(void)rmdir(directory);
	return r;
}
