/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statements that nobody waits for: SQLite runs them at once, a PostgreSQL server (at
 * PP_TEST_POSTGRESQL) ahead of their answers, and a libpq of before version 14 one by one. What is
 * kept in the end, and what is told of an error, is the same.
 */
#include "unit.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/sql.h"
#include "store/sql_server.h"

static char directory[] = "/tmp/peerpath-send.XXXXXX";
static bool old_library; /* as if libpq had no pipeline */

static struct pp_sql *open_it(void)
{
	const char *where = getenv("PP_TEST_POSTGRESQL");
	struct pp_error err = {0};
	struct pp_sql *sql = NULL;
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/db", directory);
	if (pp_sql_open(where ? where : path, PP_SQL_CREATE, &sql, &err))
		fail_msg("%s", err.text);
	if (old_library)
		((struct pp_server *)sql->state)->pq.PQenterPipelineMode = NULL;
	return sql;
}

static void must(struct pp_sql *sql, const char *text)
{
	struct pp_error err = {0};

	if (pp_sql_run(sql, text, NULL, 0, &err))
		fail_msg("%s: %s", text, err.text);
}

static struct pp_sql *open_with_table(void)
{
	struct pp_sql *sql = open_it();

	must(sql, "DROP TABLE IF EXISTS sent");
	must(sql, pp_sql_is_server(sql) ? "CREATE TABLE sent (i BIGINT PRIMARY KEY, s TEXT)"
					: "CREATE TABLE sent (i INTEGER PRIMARY KEY, s TEXT)");
	return sql;
}

static int add(struct pp_sql *sql, int64_t i, const char *s, struct pp_error *err)
{
	const struct pp_sql_value args[] = {PP_SQL_INT(i), pp_sql_text(s)};

	return pp_sql_send(sql, "INSERT INTO sent (i, s) VALUES (?, ?)", args, 2, err);
}

static int take_number(void *ctx, const struct pp_sql_value *c, size_t n)
{
	assert_int_equal(n, 1);
	*(int64_t *)ctx = c[0].integer;
	return 0;
}

static int64_t number(struct pp_sql *sql, const char *text)
{
	struct pp_error err = {0};
	int64_t n = -1;

	if (pp_sql_ask(sql, text, NULL, 0, take_number, &n, &err))
		fail_msg("%s: %s", text, err.text);
	return n;
}

static int take_sum(void *ctx, const struct pp_sql_value *c, size_t n)
{
	assert_int_equal(n, 1);
	*(int64_t *)ctx += c[0].integer;
	return 0;
}

/* Far more than go ahead at once, long ones and questions among them. */
static void test_kept(void **state)
{
	struct pp_sql *sql = open_with_table(), *other = open_it();
	char *text = calloc(1, (512 << 10) + 1);
	struct pp_error err = {0};
	int64_t sum = 0, changed = -1;

	(void)state;
	memset(text, 'x', 512 << 10);
	assert_int_equal(pp_sql_changed(sql, &changed, &err), 0);
	assert_int_equal(pp_sql_begin(sql, &err), 0);
	for (int64_t i = 0; i < 1000; i++) {
		assert_int_equal(add(sql, i, i % 200 ? "short" : text, &err), 0);
		if (i % 300 == 299)
			assert_int_equal(number(sql, "SELECT count(*) FROM sent"), i + 1);
	}
	/* Rows of a question that has others ahead of it. */
	assert_int_equal(add(sql, 1000, "last", &err), 0);
	assert_int_equal(pp_sql_ask(sql, "SELECT i FROM sent", NULL, 0, take_sum, &sum, &err), 0);
	assert_int_equal(sum, 1000 * 1001 / 2);
	assert_int_equal(pp_sql_changed(sql, &changed, &err), 0);
	assert_int_equal(changed, 1001);
	assert_int_equal(pp_sql_send(sql, "DELETE FROM sent WHERE i >= 500", NULL, 0, &err), 0);
	assert_int_equal(pp_sql_changed(sql, &changed, &err), 0);
	assert_int_equal(changed, 501);
	assert_int_equal(pp_sql_send(sql, "DELETE FROM sent WHERE i < 0", NULL, 0, &err), 0);
	assert_int_equal(pp_sql_commit(sql, &err), 0);
	assert_int_equal(number(other, "SELECT count(*) FROM sent"), 500);
	assert_int_equal(number(other, "SELECT sum(length(s)) FROM sent"),
			 3 * (512 << 10) + 497 * 5);
	/* Outside of a transaction it is as pp_sql_run(). */
	assert_int_equal(add(sql, 0, "there", &err), -EEXIST);
	assert_int_equal(number(other, "SELECT count(*) FROM sent"), 500);
	free(text);
	pp_sql_close(other);
	pp_sql_close(sql);
}

/* It is told once, by whoever looks next, and nothing of the transaction is kept. */
static void test_failed(void **state)
{
	struct pp_sql *sql = open_with_table();
	struct pp_error err = {0}, said = {0};
	int64_t changed;
	int r;

	(void)state;
	must(sql, "INSERT INTO sent (i, s) VALUES (7, 'there')");
	for (int way = 0; way < 4; way++) {
		said = (struct pp_error){0};
		assert_int_equal(pp_sql_begin(sql, &err), 0);
		r = 0;
		for (int64_t i = 5; i < 9 && !r; i++)
			r = add(sql, i, "again", &said);
		if (way == 0)
			r = r ? r : pp_sql_changed(sql, &changed, &said);
		else if (way == 1)
			r = r ? r
			      : pp_sql_ask(sql, "SELECT 1", NULL, 0, take_number, &changed, &said);
		else if (way == 2)
			r = r ? r : pp_sql_commit(sql, &said);
		if (way < 3) {
			assert_int_equal(r, -EEXIST);
			assert_int_equal(said.code, -EEXIST);
		}
		if (pp_sql_is_server(sql) && !old_library && way < 3)
			assert_non_null(strstr(said.text, "'INSERT INTO sent'"));
		if (way < 2)
			assert_int_equal(pp_sql_commit(sql, &err), -ECANCELED);
		else
			pp_sql_rollback(sql);
		assert_int_equal(number(sql, "SELECT count(*) FROM sent"), 1);
		/* And the connection is as good as before. */
		assert_int_equal(pp_sql_begin(sql, &err), 0);
		assert_int_equal(add(sql, 100 + way, "after", &err), 0);
		assert_int_equal(pp_sql_commit(sql, &err), 0);
		must(sql, "DELETE FROM sent WHERE i >= 100");
	}
	pp_sql_close(sql);
}

/* A statement that cannot be prepared, behind some that are on their way. */
static void test_not_prepared(void **state)
{
	struct pp_sql *sql = open_with_table();
	struct pp_error err = {0};

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pp_sql_begin(sql, &err), 0);
		assert_int_equal(add(sql, 1, "one", &err), 0);
		assert_int_equal(
			pp_sql_send(sql, "INSERT INTO nowhere (i) VALUES (1)", NULL, 0, &err),
			-EINVAL);
		assert_int_equal(pp_sql_commit(sql, &err), -ECANCELED);
	}
	/* One whose preparing an error ahead of it has prevented is prepared again. */
	must(sql, "INSERT INTO sent (i, s) VALUES (1, 'there')");
	assert_int_equal(pp_sql_begin(sql, &err), 0);
	if (!add(sql, 1, "again", &err))
		(void)pp_sql_send(sql, "UPDATE sent SET s = 'new' WHERE i = 1", NULL, 0, &err);
	assert_int_equal(err.code, -EEXIST);
	pp_sql_rollback(sql);
	assert_int_equal(pp_sql_begin(sql, &err), 0);
	assert_int_equal(pp_sql_send(sql, "UPDATE sent SET s = 'new' WHERE i = 1", NULL, 0, &err),
			 0);
	assert_int_equal(pp_sql_commit(sql, &err), 0);
	assert_int_equal(number(sql, "SELECT count(*) FROM sent WHERE s = 'new'"), 1);
	pp_sql_close(sql);
}

/* A connection that ends with statements on their way keeps none of them. */
static void test_lost(void **state)
{
	struct pp_sql *sql = open_with_table(), *other;
	struct pp_error err = {0};
	char end[80];
	int r = 0;

	(void)state;
	if (!pp_sql_is_server(sql)) {
		pp_sql_close(sql);
		skip();
	}
	other = open_it();
	assert_int_equal(pp_sql_begin(sql, &err), 0);
	(void)snprintf(end, sizeof(end), "SELECT pg_terminate_backend(%lld, 5000)::int",
		       (long long)number(sql, "SELECT pg_backend_pid()"));
	assert_int_equal(add(sql, 1, "lost", &err), 0);
	assert_int_equal(number(other, end), 1);
	for (int64_t i = 2; i < 1000 && !r; i++)
		r = add(sql, i, "lost too", &err);
	assert_int_equal(r ? r : pp_sql_commit(sql, &err), -ECONNRESET);
	pp_sql_rollback(sql);
	assert_int_equal(number(sql, "SELECT count(*) FROM sent"), 0);
	assert_int_equal(pp_sql_begin(sql, &err), 0);
	assert_int_equal(add(sql, 1, "again", &err), 0);
	assert_int_equal(pp_sql_commit(sql, &err), 0);
	assert_int_equal(number(other, "SELECT count(*) FROM sent"), 1);
	pp_sql_close(other);
	pp_sql_close(sql);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_failed),
		cmocka_unit_test(test_not_prepared),
		cmocka_unit_test(test_lost),
	};
	int r, status;

	if (!mkdtemp(directory))
		return 1;
	r = cmocka_run_group_tests_name("sent", tests, NULL, NULL);
	old_library = getenv("PP_TEST_POSTGRESQL") != NULL;
	if (old_library)
		r += cmocka_run_group_tests_name("sent by an old libpq", tests, NULL, NULL);
	if (!fork())
		_exit(execlp("rm", "rm", "-rf", directory, (char *)NULL));
	(void)wait(&status);
	return r;
}
