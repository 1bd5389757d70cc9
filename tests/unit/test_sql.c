/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sql.h promises, of SQLite, and of the PostgreSQL server at PP_TEST_POSTGRESQL where
 * tests/postgres.py started one: the same assertions for both.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/sql.h"
#include "store/sql_engine.h"

static char directory[] = "/tmp/peerpath-sql.XXXXXX";

static const char *file_in(const char *name)
{
	static char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

static const char *server(void)
{
	return getenv("PP_TEST_POSTGRESQL");
}

static const char *database(void)
{
	return server() ? server() : file_in("db");
}

static struct pp_sql *open_at(const char *where, unsigned int flags)
{
	struct pp_error err = {0};
	struct pp_sql *sql = NULL;

	if (pp_sql_open(where, flags, &sql, &err))
		fail_msg("%s", err.text);
	return sql;
}

static struct pp_sql *open_it(void)
{
	return open_at(database(), PP_SQL_CREATE);
}

static int run(struct pp_sql *sql, const char *text)
{
	struct pp_error err = {0};
	int r = pp_sql_run(sql, text, NULL, 0, &err);

	if (!r != !err.code)
		fail_msg("returned %d, error %d", r, err.code);
	return r;
}

static void must(struct pp_sql *sql, const char *text)
{
	struct pp_error err = {0};

	if (pp_sql_run(sql, text, NULL, 0, &err))
		fail_msg("%s: %s", text, err.text);
}

/* Rows as text: "1|two|NULL;". */
static int gather(void *ctx, const struct pp_sql_value *columns, size_t n)
{
	struct pp_buf *out = ctx;

	for (size_t i = 0; i < n; i++) {
		if (i)
			pp_buf_char(out, '|');
		switch (columns[i].type) {
		case PP_SQL_NULL:
			pp_buf_str(out, "NULL");
			break;
		case PP_SQL_INTEGER:
			pp_buf_printf(out, "%lld", (long long)columns[i].integer);
			break;
		case PP_SQL_REAL:
			pp_buf_printf(out, "%.17g", columns[i].real);
			break;
		case PP_SQL_TEXT:
			assert_int_equal(columns[i].len, strlen(columns[i].text));
			pp_buf_printf(out, "'%s'", columns[i].text);
			break;
		}
	}
	pp_buf_char(out, ';');
	return 0;
}

static void rows_are(struct pp_sql *sql, const char *text, const char *expected)
{
	struct pp_buf out = PP_BUF(1 << 20);
	struct pp_error err = {0};

	if (pp_sql_ask(sql, text, NULL, 0, gather, &out, &err))
		fail_msg("%s: %s", text, err.text);
	assert_string_equal(pp_buf_text(&out), expected);
	pp_buf_done(&out);
}

static const struct pp_sql_step one[] = {
	{"CREATE TABLE t (id INTEGER PRIMARY KEY, i INTEGER, r REAL, s TEXT, UNIQUE (s)) STRICT"},
	{NULL},
};
static const struct pp_sql_step two[] = {
	{"CREATE TABLE t (id INTEGER PRIMARY KEY, i INTEGER, r REAL, s TEXT, UNIQUE (s)) STRICT"},
	{"ALTER TABLE t ADD COLUMN more TEXT; CREATE TABLE u (name TEXT NOT NULL PRIMARY KEY) "
	 "STRICT; INSERT INTO u (name) VALUES ('why; not?')"},
	{NULL},
};

static void empty(struct pp_sql *sql)
{
	must(sql, "DROP TABLE IF EXISTS t");
	must(sql, "DROP TABLE IF EXISTS u");
	must(sql, "DROP TABLE IF EXISTS peerpath_schema");
}

static struct pp_sql *open_with_table(void)
{
	struct pp_sql *sql = open_it();
	struct pp_error err = {0};

	empty(sql);
	if (pp_sql_migrate(sql, "test", one, &err))
		fail_msg("%s", err.text);
	return sql;
}

static void test_values(void **state)
{
	static const struct {
		struct pp_sql_value i, r, s;
		const char *row;
	} rows[] = {
		{{.type = PP_SQL_INTEGER, .integer = INT64_MAX},
		 {.type = PP_SQL_REAL, .real = 0.1},
		 {.type = PP_SQL_TEXT, .text = "it's \"quoted\" ? ; --", .len = 20},
		 "9223372036854775807|0.10000000000000001|'it's \"quoted\" ? ; --';"},
		{{.type = PP_SQL_INTEGER, .integer = INT64_MIN},
		 {.type = PP_SQL_REAL, .real = DBL_MAX},
		 {.type = PP_SQL_TEXT, .text = "", .len = 0},
		 "-9223372036854775808|1.7976931348623157e+308|'';"},
		{{.type = PP_SQL_NULL},
		 {.type = PP_SQL_REAL, .real = 5e-324},
		 {.type = PP_SQL_TEXT, .text = "\xc3\xa4\xf0\x9f\x90\x98", .len = 6},
		 "NULL|4.9406564584124654e-324|'\xc3\xa4\xf0\x9f\x90\x98';"},
		{{.type = PP_SQL_NULL},
		 {.type = PP_SQL_REAL, .real = NAN},
		 {.type = PP_SQL_NULL},
		 "NULL|NULL|NULL;"},
	};
	struct pp_sql *sql = open_with_table();
	struct pp_error err = {0};
	char ask[96];

	(void)state;
	for (size_t k = 0; k < PP_ARRAY_LEN(rows); k++) {
		struct pp_sql_value args[] = {PP_SQL_INT((int64_t)k), rows[k].i, rows[k].r,
					      rows[k].s};

		if (pp_sql_run(sql, "INSERT INTO t (id, i, r, s) VALUES (?, ?, ?, ?)", args, 4,
			       &err))
			fail_msg("%s", err.text);
		(void)snprintf(ask, sizeof(ask), "SELECT i, r, s FROM t WHERE id = %zu", k);
		rows_are(sql, ask, rows[k].row);
	}
	rows_are(sql, "SELECT '?', count(*), sum(id), 1 = 1 FROM t", "'?'|4|6|1;");
	pp_sql_close(sql);
}

/* A collation of a server's own would put "a" before "B" and "Z" behind an umlaut. */
static void test_order_is_by_byte(void **state)
{
	struct pp_sql *sql = open_with_table();

	(void)state;
	must(sql, "INSERT INTO t (s) VALUES ('b'), ('B'), ('a'), ('\xc3\xa4'), ('Z'), ('a-1'), "
		  "('a1')");
	rows_are(sql, "SELECT s FROM t ORDER BY s", "'B';'Z';'a';'a-1';'a1';'b';'\xc3\xa4';");
	rows_are(sql, "INSERT INTO t (s) VALUES ('c') RETURNING id", "8;");
	pp_sql_close(sql);
}

static void test_refused(void **state)
{
	static const struct {
		const char *text;
		size_t len;
	} not_text[] = {
		{"a\xff", 2}, {"a\0b", 3}, {"\xc0\x80", 2}, {"\xed\xa0\x80", 3}, {"\xe2\x82", 2}};
	struct pp_sql *sql = open_with_table();
	struct pp_error err = {0};

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(not_text); i++) {
		struct pp_sql_value v = {
			.type = PP_SQL_TEXT, .text = not_text[i].text, .len = not_text[i].len};

		assert_int_equal(pp_sql_run(sql, "INSERT INTO t (s) VALUES (?)", &v, 1, &err),
				 -EILSEQ);
	}
	must(sql, "INSERT INTO t (s) VALUES ('here')");
	assert_int_equal(run(sql, "INSERT INTO t (s) VALUES ('here')"), -EEXIST);
	assert_int_equal(run(sql, "INSERT INTO nowhere (s) VALUES ('here')"), -EINVAL);
	assert_int_equal(run(sql, "INSERT INTO t (s) VALUES (?)"), -EINVAL);
	assert_int_equal(run(sql, "no statement"), -EINVAL);
	rows_are(sql, "SELECT count(*) FROM t", "1;");
	pp_sql_close(sql);
}

static void test_transaction(void **state)
{
	struct pp_sql *sql = open_with_table();
	struct pp_error err = {0};

	(void)state;
	assert_int_equal(pp_sql_commit(sql, &err), -EINVAL);
	assert_int_equal(pp_sql_begin(sql, &err), 0);
	assert_int_equal(pp_sql_begin(sql, &err), -EALREADY);
	must(sql, "INSERT INTO t (s) VALUES ('gone')");
	pp_sql_rollback(sql);
	rows_are(sql, "SELECT count(*) FROM t", "0;");

	/* A half is never kept, though SQLite alone would keep it. */
	assert_int_equal(pp_sql_begin(sql, &err), 0);
	must(sql, "INSERT INTO t (s) VALUES ('half')");
	assert_int_equal(run(sql, "INSERT INTO t (s) VALUES ('half')"), -EEXIST);
	assert_int_equal(pp_sql_commit(sql, &err), -ECANCELED);
	rows_are(sql, "SELECT count(*) FROM t", "0;");

	assert_int_equal(pp_sql_begin(sql, &err), 0);
	must(sql, "INSERT INTO t (s) VALUES ('kept')");
	assert_int_equal(pp_sql_commit(sql, &err), 0);
	assert_int_equal(pp_sql_begin(sql, &err), 0);
	must(sql, "INSERT INTO t (s) VALUES ('closed upon')");
	pp_sql_close(sql);
	sql = open_it();
	rows_are(sql, "SELECT s FROM t", "'kept';");
	pp_sql_close(sql);
}

static int stop_at_two(void *ctx, const struct pp_sql_value *columns, size_t n)
{
	int *seen = ctx;

	(void)n;
	(void)columns;
	return ++*seen == 2 ? -ENODATA : 0;
}

struct nested {
	struct pp_sql *sql;
	int code;
};

static int ask_inside(void *ctx, const struct pp_sql_value *columns, size_t n)
{
	struct nested *nested = ctx;

	(void)n;
	(void)columns;
	nested->code = run(nested->sql, "SELECT 1");
	return 0;
}

static void test_reading(void **state)
{
	struct pp_sql *sql = open_with_table();
	struct nested nested = {.sql = sql};
	struct pp_error err = {0};
	int seen = 0;

	(void)state;
	must(sql, "INSERT INTO t (s) VALUES ('1'), ('2'), ('3'), ('4')");
	assert_int_equal(pp_sql_begin(sql, &err), 0);
	assert_int_equal(pp_sql_ask(sql, "SELECT s FROM t", NULL, 0, stop_at_two, &seen, &err),
			 -ENODATA);
	assert_int_equal(seen, 2);
	assert_int_equal(pp_sql_ask(sql, "SELECT s FROM t WHERE s = '1'", NULL, 0, ask_inside,
				    &nested, &err),
			 0);
	assert_int_equal(nested.code, -EBUSY);
	/* Neither was a statement that failed. */
	assert_int_equal(pp_sql_commit(sql, &err), 0);
	pp_sql_close(sql);
}

static void test_read_only(void **state)
{
	struct pp_sql *sql = open_with_table();
	struct pp_sql *reader = open_at(database(), PP_SQL_READ_ONLY);
	struct pp_error err = {0};

	(void)state;
	must(sql, "INSERT INTO t (s) VALUES ('seen')");
	assert_int_equal(run(reader, "INSERT INTO t (s) VALUES ('no')"), -EROFS);
	assert_int_equal(run(reader, "DROP TABLE t"), -EROFS);
	/* What a reader began to see stays as it was. */
	assert_int_equal(pp_sql_begin(reader, &err), 0);
	rows_are(reader, "SELECT s FROM t", "'seen';");
	must(sql, "INSERT INTO t (s) VALUES ('later')");
	rows_are(reader, "SELECT s FROM t", "'seen';");
	assert_int_equal(pp_sql_commit(reader, &err), 0);
	rows_are(reader, "SELECT count(*) FROM t", "2;");
	pp_sql_close(reader);
	pp_sql_close(sql);
}

static size_t bytes_of(const char *path, char *to, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, to, size);

	(void)close(fd);
	assert_true(n > 0);
	return (size_t)n;
}

/* A file of another program, byte for byte what it was; of another part of this one too. */
static void test_migrate_others(void **state)
{
	static const char *const theirs =
		"CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('x')";
	struct pp_error err = {0};
	sqlite3 *db = NULL;
	static char bytes[2][1 << 16];
	char path[160];
	size_t n[2];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s", file_in("theirs"));
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, theirs, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	for (int i = 0; i < 2; i++) {
		struct pp_sql *sql = i ? open_at(path, PP_SQL_CREATE) : NULL;

		if (sql)
			assert_int_equal(pp_sql_migrate(sql, "test", one, &err), -EPROTONOSUPPORT);
		pp_sql_close(sql);
		n[i] = bytes_of(path, bytes[i], sizeof(bytes[i]));
	}
	assert_non_null(strstr(err.text, "another program"));
	assert_int_equal(n[0], n[1]);
	assert_memory_equal(bytes[0], bytes[1], n[0]);
}

static void test_migrate(void **state)
{
	static const struct pp_sql_step bad[] = {
		{"CREATE TABLE u (name TEXT)"}, {"CREATE TABLE u (name TEXT)"}, {NULL}};
	struct pp_sql *sql = open_with_table();
	struct pp_sql *reader = open_at(database(), PP_SQL_READ_ONLY);
	struct pp_error err = {0};

	(void)state;
	must(sql, "INSERT INTO t (s) VALUES ('old')");
	assert_int_equal(pp_sql_migrate(reader, "test", one, &err), 0);
	assert_int_equal(pp_sql_migrate(reader, "test", two, &err), -EROFS);
	/* A server's database is of many, a file of one. */
	assert_int_equal(pp_sql_migrate(sql, "other", bad, &err),
			 strstr(database(), "://") ? -EINVAL : -EPROTONOSUPPORT);
	rows_are(sql, "SELECT name, version FROM peerpath_schema", "'test'|1;");
	assert_int_equal(pp_sql_migrate(sql, "test", two, &err), 0);
	assert_int_equal(pp_sql_migrate(sql, "test", two, &err), 0);
	rows_are(sql, "SELECT s, more FROM t", "'old'|NULL;");
	rows_are(sql, "SELECT name FROM u", "'why; not?';");
	assert_int_equal(pp_sql_migrate(sql, "test", one, &err), -EPROTONOSUPPORT);
	pp_sql_close(reader);
	pp_sql_close(sql);
}

/* Each child returns 0 when @work did. */
static void all_of(unsigned int n, void (*work)(unsigned int))
{
	int status;

	for (unsigned int i = 0; i < n; i++) {
		if (!fork()) {
			work(i);
			_exit(0);
		}
	}
	for (unsigned int i = 0; i < n; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
}

static void migrate_too(unsigned int i)
{
	struct pp_error err = {0};
	struct pp_sql *sql = open_it();

	(void)i;
	if (pp_sql_migrate(sql, "test", two, &err)) {
		(void)fprintf(stderr, "%s\n", err.text);
		_exit(1);
	}
	pp_sql_close(sql);
}

static void write_too(unsigned int i)
{
	struct pp_error err = {0};
	struct pp_sql *sql = open_it();
	int r = 0;

	for (int64_t k = 0; k < 20 && !r; k++) {
		struct pp_sql_value v = PP_SQL_INT(i * 20 + k);

		r = pp_sql_begin(sql, &err);
		r = r ? r : pp_sql_run(sql, "INSERT INTO t (i) VALUES (?)", &v, 1, &err);
		r = r ? r : pp_sql_commit(sql, &err);
	}
	if (r) {
		(void)fprintf(stderr, "%s\n", err.text);
		_exit(1);
	}
	pp_sql_close(sql);
}

static void test_several_at_once(void **state)
{
	struct pp_sql *sql = open_it();

	(void)state;
	empty(sql);
	pp_sql_close(sql);
	all_of(4, migrate_too);
	all_of(4, write_too);
	sql = open_it();
	rows_are(sql, "SELECT name, version FROM peerpath_schema", "'test'|2;");
	rows_are(sql, "SELECT count(*), count(DISTINCT i), sum(i) FROM t", "80|80|3160;");
	pp_sql_close(sql);
}

/* Another that writes and does not end: refused, and possible again when it has gone. */
static void test_another_writer(void **state)
{
	struct pp_sql *sql = open_with_table(), *other = open_it();
	struct pp_error err = {0};

	(void)state;
	assert_int_equal(pp_sql_begin(other, &err), 0);
	must(other, "INSERT INTO t (s) VALUES ('mine')");
	assert_int_equal(run(sql, "INSERT INTO t (s) VALUES ('mine')"), -EBUSY);
	pp_sql_rollback(other);
	must(sql, "INSERT INTO t (s) VALUES ('mine')");
	pp_sql_close(other);
	pp_sql_close(sql);
}

/* A writer that is killed takes with it what it had begun, and only that. */
static void test_killed(void **state)
{
	struct pp_sql *sql = open_with_table();
	struct pp_error err = {0};
	int ends[2], status;
	char c;
	pid_t pid;

	(void)state;
	pp_sql_close(sql);
	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (!pid) {
		sql = open_it();
		must(sql, "INSERT INTO t (s) VALUES ('whole')");
		(void)pp_sql_begin(sql, &err);
		must(sql, "INSERT INTO t (s) VALUES ('half')");
		(void)!write(ends[1], "x", 1);
		(void)pause();
	}
	assert_int_equal(read(ends[0], &c, 1), 1);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	sql = open_at(database(), PP_SQL_READ_ONLY);
	rows_are(sql, "SELECT s FROM t", "'whole';");
	pp_sql_close(sql);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

static void test_files(void **state)
{
	struct pp_error err = {0};
	struct pp_sql *sql = NULL;
	struct stat st;
	FILE *f;

	(void)state;
	assert_int_equal(pp_sql_open("", 0, &sql, &err), -EINVAL);
	assert_int_equal(pp_sql_open(file_in("none"), 0, &sql, &err), -ENOENT);
	assert_int_equal(pp_sql_open(file_in("none"), PP_SQL_READ_ONLY, &sql, &err), -ENOENT);
	assert_int_equal(access(file_in("none"), F_OK), -1);
	(void)umask(0);
	pp_sql_close(open_at(file_in("new"), PP_SQL_CREATE));
	(void)umask(022);
	assert_int_equal(stat(file_in("new"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	f = fopen(file_in("text"), "w");
	assert_non_null(f);
	for (int i = 0; i < 1000; i++)
		(void)fprintf(f, "this is no database\n");
	(void)fclose(f);
	assert_int_equal(pp_sql_open(file_in("text"), 0, &sql, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "text"));
	assert_int_equal(pp_sql_open(directory, PP_SQL_CREATE, &sql, &err), -EISDIR);
	sql = open_at(":memory:", 0);
	must(sql, "CREATE TABLE t (b BLOB)");
	must(sql, "INSERT INTO t VALUES (x'00ff')");
	assert_int_equal(pp_sql_ask(sql, "SELECT b FROM t", NULL, 0, gather, NULL, &err), -EBADMSG);
	pp_sql_close(sql);
}

/* In a mount namespace of the child's own: a disk of 256 KiB. */
static int fill_a_disk(void)
{
	struct pp_error err = {0};
	struct pp_sql *sql = NULL;
	struct pp_buf rows = PP_BUF(1 << 10);
	char big[16384];
	int r = 0, kept = 0;

	if (unshare(CLONE_NEWNS | (geteuid() ? CLONE_NEWUSER : 0)) ||
	    mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", directory, "tmpfs", 0, "size=256k"))
		return 77;
	memset(big, 'x', sizeof(big));
	if (pp_sql_open(file_in("full"), PP_SQL_CREATE, &sql, &err) ||
	    pp_sql_run(sql, "CREATE TABLE t (id INTEGER PRIMARY KEY, s TEXT)", NULL, 0, &err)) {
		(void)fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	for (kept = 0; !r && kept < 1000; kept += !r) {
		struct pp_sql_value args[] = {
			PP_SQL_INT(kept), {.type = PP_SQL_TEXT, .text = big, .len = sizeof(big)}};

		r = pp_sql_begin(sql, &err);
		r = r ? r : pp_sql_run(sql, "INSERT INTO t VALUES (?, ?)", args, 2, &err);
		r = r ? r : pp_sql_commit(sql, &err);
		if (r)
			pp_sql_rollback(sql);
	}
	if (r != -ENOSPC || !strstr(err.text, "the disk is full") || !kept) {
		(void)fprintf(stderr, "%d rows, then %d: %s\n", kept, r, err.text);
		return 1;
	}
	pp_sql_close(sql);
	/* Each row that was said to be kept is there. */
	if (pp_sql_open(file_in("full"), PP_SQL_READ_ONLY, &sql, &err) ||
	    pp_sql_ask(sql, "SELECT count(*) FROM t", NULL, 0, gather, &rows, &err)) {
		(void)fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	rows.data[strcspn(rows.data, ";")] = '\0';
	r = strtod(rows.data, NULL) != kept;
	pp_sql_close(sql);
	pp_buf_done(&rows);
	return r;
}

static void test_full_disk(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (!pid)
		_exit(fill_a_disk());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip(); /* no mount namespace here */
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void refused_without_password(const char *where, int code)
{
	struct pp_error err = {0};
	struct pp_sql *sql = NULL;
	int r = pp_sql_open(where, 0, &sql, &err);

	if (r == -ENOENT && strstr(err.text, "libpq.so.5")) {
		skip();
		return;
	}
	if (r != code)
		fail_msg("%d: %s", r, err.text);
	assert_null(strstr(err.text, "hunter2"));
	assert_null(strchr(err.text, '\n'));
}

static void test_no_server(void **state)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char where[128];

	(void)state;
	refused_without_password("postgresql://me:hunter2@127.0.0.1:hunter2/x", -ECONNREFUSED);
	refused_without_password("postgresql://me:hunter2@[::1/x", -EINVAL);
	refused_without_password("postgresql://me:hunter2@/x?host=/nonexistent", -ECONNREFUSED);
	refused_without_password("postgresql://me:hunter2@127.0.0.1:1/x", -ECONNREFUSED);
	/* One that takes the call and says nothing. */
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	(void)snprintf(where, sizeof(where), "postgresql://me:hunter2@127.0.0.1:%u/x",
		       (unsigned int)ntohs(at.sin_port));
	refused_without_password(where, -ETIMEDOUT);
	(void)close(fd);
}

/* The server ends the connection in the middle: what was begun is lost, the next call goes on. */
static void test_lost_connection(void **state)
{
	struct pp_error err = {0};
	struct pp_sql *sql, *other;
	struct pp_buf pid = PP_BUF(64);
	char end[64];

	(void)state;
	if (!server())
		skip();
	sql = open_with_table();
	other = open_it();
	assert_int_equal(pp_sql_begin(sql, &err), 0);
	must(sql, "INSERT INTO t (s) VALUES ('lost')");
	assert_int_equal(pp_sql_ask(sql, "SELECT pg_backend_pid()", NULL, 0, gather, &pid, &err),
			 0);
	pid.data[strcspn(pid.data, ";")] = '\0';
	(void)snprintf(end, sizeof(end), "SELECT pg_terminate_backend(%s, 5000)", pid.data);
	rows_are(other, end, "1;");
	assert_int_equal(run(sql, "INSERT INTO t (s) VALUES ('lost too')"), -ECONNRESET);
	assert_int_equal(run(sql, "INSERT INTO t (s) VALUES ('lost too')"), -ECONNRESET);
	assert_int_equal(pp_sql_commit(sql, &err), -ECANCELED);
	rows_are(sql, "SELECT count(*) FROM t", "0;");
	must(sql, "INSERT INTO t (s) VALUES ('again')");
	pp_buf_done(&pid);
	pp_sql_close(other);
	pp_sql_close(sql);
}

static void test_texts(void **state)
{
	static const struct {
		const char *from, *to;
	} numbers[] = {
		{"a = ? AND b = ?", "a = $1 AND b = $2"},
		{"'?''?' \"?\" ? -- ?\n?", "'?''?' \"?\" $1 -- ?\n$2"},
		{"/* ? */ ? '?", "/* ? */ $1 '?"},
	};
	static const char from[] = "CREATE TABLE integers (id INTEGER PRIMARY KEY, n integer, "
				   "texts TEXT DEFAULT 'TEXT', r REAL) STRICT";
	static const char to[] =
		"CREATE TABLE integers (id BIGINT GENERATED BY DEFAULT AS IDENTITY "
		"PRIMARY KEY, n BIGINT, texts TEXT COLLATE \"C\" DEFAULT 'TEXT', "
		"r DOUBLE PRECISION) ";
	struct pp_buf out = PP_BUF(4096);

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(numbers); i++) {
		pp_buf_reset(&out);
		pp_sql_number(numbers[i].from, &out);
		assert_string_equal(pp_buf_text(&out), numbers[i].to);
	}
	pp_buf_reset(&out);
	pp_sql_schema_of_server(from, &out);
	assert_string_equal(pp_buf_text(&out), to);
	pp_buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_order_is_by_byte),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_transaction),
		cmocka_unit_test(test_reading),
		cmocka_unit_test(test_read_only),
		cmocka_unit_test(test_migrate_others),
		cmocka_unit_test(test_migrate),
		cmocka_unit_test(test_several_at_once),
		cmocka_unit_test(test_another_writer),
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_lost_connection),
	};
	const struct CMUnitTest of_one[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_no_server),
	};
	int r, status;

	if (!mkdtemp(directory))
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	if (!server())
		r += cmocka_run_group_tests(of_one, NULL, NULL);
	if (!fork())
		_exit(execlp("rm", "rm", "-rf", directory, (char *)NULL));
	(void)wait(&status);
	return r;
}
