/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite. The file may have been made by anyone: its triggers and views do not run, its texts have
 * a maximum, its pages are checked.
 *
 * Statements are kept prepared, by their text: an ingest runs the same few a million times.
 */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/sql_engine.h"
#include "store/sql_sqlite.h"
#include "base/banned.h"

enum { KEPT = 48 };

struct kept {
	char *text;
	sqlite3_stmt *statement;
};

struct file {
	sqlite3 *db;
	struct kept kept[KEPT];
	int64_t changes; /* as somebody was told last */
	size_t next;	 /* the slot that is given up when all are taken */
};

static int fail(const struct pp_sql *sql, sqlite3 *db, int result, struct pp_error *err)
{
	int code = pp_sqlite_code(db, result);
	const char *what = code == -ENOMEM   ? "out of memory"
			   : code == -ENOSPC ? "the disk is full"
			   : code == -EBUSY  ? "another program kept it locked for 5 s"
					     : sqlite3_errmsg(db);

	return pp_error_set(err, code, "%s: %s", sql->where, what);
}

static int bind_all(struct file *f, sqlite3_stmt *s, const struct pp_sql_value *args, size_t n)
{
	int r = SQLITE_OK;

	if ((size_t)sqlite3_bind_parameter_count(s) != n)
		return SQLITE_RANGE;
	for (int i = 0; i < (int)n && r == SQLITE_OK; i++) {
		const struct pp_sql_value *v = &args[i];

		switch (v->type) {
		case PP_SQL_INTEGER:
			r = sqlite3_bind_int64(s, i + 1, v->integer);
			break;
		case PP_SQL_REAL:
			r = sqlite3_bind_double(s, i + 1, v->real);
			break;
		case PP_SQL_TEXT:
			/* Borrowed until the statement is reset, in the same call. */
			r = sqlite3_bind_text64(s, i + 1, v->text, v->len, SQLITE_STATIC,
						SQLITE_UTF8);
			break;
		case PP_SQL_NULL:
			r = sqlite3_bind_null(s, i + 1);
			break;
		}
	}
	(void)f;
	return r;
}

/* -EBADMSG for what this program never writes. */
static int column(sqlite3_stmt *s, int i, struct pp_sql_value *ret)
{
	switch (sqlite3_column_type(s, i)) {
	case SQLITE_INTEGER:
		*ret = PP_SQL_INT(sqlite3_column_int64(s, i));
		return 0;
	case SQLITE_FLOAT:
		*ret = PP_SQL_NUM(sqlite3_column_double(s, i));
		return 0;
	case SQLITE_TEXT:
		*ret = pp_sql_text((const char *)sqlite3_column_text(s, i));
		return ret->type == PP_SQL_TEXT ? 0 : -ENOMEM;
	case SQLITE_NULL:
		*ret = (struct pp_sql_value){.type = PP_SQL_NULL};
		return 0;
	default:
		return -EBADMSG;
	}
}

static int give_row(const struct pp_sql *sql, sqlite3_stmt *s, pp_sql_row *row, void *ctx,
		    struct pp_error *err)
{
	struct pp_sql_value columns[PP_SQL_COLUMNS];
	int n = sqlite3_column_count(s), r = 0;

	if (n > PP_SQL_COLUMNS)
		return pp_error_set(err, -E2BIG, "%s: %d columns", sql->where, n);
	for (int i = 0; i < n && !r; i++)
		r = column(s, i, &columns[i]);
	if (r)
		return pp_error_set(err, r, "%s: %s", sql->where,
				    r == -ENOMEM ? "out of memory" : "a column holds no text");
	return row(ctx, columns, (size_t)n);
}

static int prepare(struct pp_sql *sql, const char *text, sqlite3_stmt **ret, struct pp_error *err)
{
	struct file *f = sql->state;
	struct kept *k = NULL;
	int r;

	for (size_t i = 0; i < KEPT; i++) {
		if (f->kept[i].text && !strcmp(f->kept[i].text, text)) {
			*ret = f->kept[i].statement;
			return 0;
		}
	}
	k = &f->kept[f->next++ % KEPT];
	(void)sqlite3_finalize(k->statement);
	free(k->text);
	*k = (struct kept){.text = strdup(text)};
	if (!k->text)
		return pp_error_set(err, -ENOMEM, "out of memory");
	r = sqlite3_prepare_v3(f->db, text, -1, SQLITE_PREPARE_PERSISTENT, &k->statement, NULL);
	if (r != SQLITE_OK || !k->statement) {
		r = r == SQLITE_OK ? pp_error_set(err, -EINVAL, "an empty statement")
				   : fail(sql, f->db, r, err);
		free(k->text);
		*k = (struct kept){0};
		return r;
	}
	*ret = k->statement;
	return 0;
}

static int ask(struct pp_sql *sql, const char *text, const struct pp_sql_value *args, size_t n,
	       pp_sql_row *row, void *ctx, struct pp_error *err)
{
	struct file *f = sql->state;
	sqlite3_stmt *s = NULL;
	int result, r = prepare(sql, text, &s, err);

	if (r)
		return r;
	result = bind_all(f, s, args, n);
	if (result != SQLITE_OK)
		r = result == SQLITE_RANGE
			    ? pp_error_set(err, -EINVAL, "a statement takes %d arguments, not %zu",
					   sqlite3_bind_parameter_count(s), n)
			    : fail(sql, f->db, result, err);
	while (!r && (result = sqlite3_step(s)) == SQLITE_ROW)
		if (row)
			r = give_row(sql, s, row, ctx, err);
	if (!r && result != SQLITE_DONE)
		r = fail(sql, f->db, result, err);
	(void)sqlite3_reset(s);
	(void)sqlite3_clear_bindings(s);
	return r;
}

static int send_now(struct pp_sql *sql, const char *text, const struct pp_sql_value *args, size_t n,
		    struct pp_error *err)
{
	return ask(sql, text, args, n, NULL, NULL, err);
}

static int settle(struct pp_sql *sql, struct pp_error *err)
{
	(void)sql;
	(void)err;
	return 0;
}

static int64_t changed(struct pp_sql *sql)
{
	struct file *f = sql->state;
	int64_t all = sqlite3_total_changes64(f->db), n = all - f->changes;

	f->changes = all;
	return n;
}

static int script(struct pp_sql *sql, const char *text, struct pp_error *err)
{
	struct file *f = sql->state;
	int result = sqlite3_exec(f->db, text, NULL, NULL, NULL);

	return result == SQLITE_OK ? 0 : fail(sql, f->db, result, err);
}

static void schema(const char *text, struct pp_buf *out)
{
	pp_buf_str(out, text);
}

static bool is_lost(const struct pp_sql *sql)
{
	return !sql->state;
}

static void close_file(struct pp_sql *sql)
{
	struct file *f = sql->state;

	if (!f)
		return;
	for (size_t i = 0; i < KEPT; i++) {
		(void)sqlite3_finalize(f->kept[i].statement);
		free(f->kept[i].text);
	}
	(void)sqlite3_close_v2(f->db);
	free(f);
	sql->state = NULL;
}

/* A file is of one program: what has tables of another is left as it is. */
static const char IS_FOREIGN[] =
	"SELECT 1 WHERE EXISTS (SELECT 1 FROM sqlite_master WHERE name NOT LIKE 'sqlite!_%' ESCAPE "
	"'!') AND NOT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = "
	"'peerpath_schema')";

static int reopen(struct pp_sql *sql, struct pp_error *err)
{
	struct file *f = sql->state;
	int r;

	/* What the write-ahead log holds is the old file's, and would be taken for the new one's.
	 */
	if (f && f->db)
		(void)sqlite3_wal_checkpoint_v2(f->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL,
						NULL);
	close_file(sql);
	r = pp_sqlite_open(sql, err);
	if (r)
		close_file(sql);
	return r;
}

bool pp_sqlite_has_moved(const struct pp_sql *sql)
{
	const struct file *f = sql->state;
	int moved = 0;

	if (!f)
		return true;
	return strcmp(sql->where, ":memory:") != 0 &&
	       sqlite3_file_control(f->db, NULL, SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK &&
	       moved;
}

static const struct pp_sql_engine engine = {
	.ask = ask,
	.send = send_now,
	.settle = settle,
	.changed = changed,
	.script = script,
	.schema = schema,
	.is_lost = is_lost,
	.reopen = reopen,
	.close = close_file,
	.begin = "BEGIN IMMEDIATE",
	.begin_reading = "BEGIN",
	.has_schema = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = "
		      "'peerpath_schema'",
	.is_foreign = IS_FOREIGN,
};

/* Where a file was to be made the fault is its directory's, not that the file is not there. */
static int not_made(const char *where, int error, struct pp_error *err)
{
	const char *slash = strrchr(where, '/');
	int n = slash ? (int)(slash - where) : 1;

	return pp_error_set(err, error == ENOENT ? -ENOTDIR : -error,
			    "%s cannot be made in the directory '%.*s': %s", where, n ? n : 1,
			    slash ? where : ".", strerrordesc_np(error));
}

/* SQLite would make it 0644: results name machines. */
static int make_file(const struct pp_sql *sql, struct pp_error *err)
{
	PP_AUTO_CLOSE int fd = -1;

	if (!strcmp(sql->where, ":memory:"))
		return 0;
	if (sql->flags & PP_SQL_CREATE) {
		fd = open(sql->where, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0640);
		if (fd < 0 && errno != EEXIST)
			return not_made(sql->where, errno, err);
	}
	if (fd < 0 && access(sql->where, F_OK))
		return pp_error_set(err, -errno, "%s: %s", sql->where, strerrordesc_np(errno));
	return 0;
}

/*
 * The change to a write-ahead log needs the file alone, and where two want it at once SQLite tells
 * one of them at once that it is busy, whatever the timeout: waiting might never end, it thinks.
 */
static int patiently(sqlite3 *db, const char *text)
{
	pp_ns until = pp_clock_monotonic() + PP_SQL_WAIT_MS * 1000000ll;
	const struct timespec pause = {.tv_nsec = 5000000};
	int r;

	while (((r = sqlite3_exec(db, text, NULL, NULL, NULL)) & 0xff) == SQLITE_BUSY &&
	       pp_clock_monotonic() < until)
		(void)nanosleep(&pause, NULL);
	return r;
}

static int note(void *found, int n, char **columns, char **names)
{
	(void)n;
	(void)columns;
	(void)names;
	*(bool *)found = true;
	return 0;
}

static int settings(struct pp_sql *sql, struct pp_error *err)
{
	static const int off[] = {SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW,
				  SQLITE_DBCONFIG_TRUSTED_SCHEMA};
	struct file *f = sql->state;
	bool reading = (sql->flags & PP_SQL_READ_ONLY) != 0, foreign = false;
	int r;

	for (size_t i = 0; i < PP_ARRAY_LEN(off); i++)
		(void)sqlite3_db_config(f->db, off[i], 0, NULL);
	(void)sqlite3_db_config(f->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	(void)sqlite3_limit(f->db, SQLITE_LIMIT_LENGTH, PP_SQL_TEXT_BYTES + (1 << 20));
	(void)sqlite3_extended_result_codes(f->db, 1);
	r = sqlite3_busy_timeout(f->db, PP_SQL_WAIT_MS);
	if (r != SQLITE_OK)
		return fail(sql, f->db, r, err);
	/* The first to touch the file: what is no database is found out here. */
	if (!reading)
		(void)sqlite3_exec(f->db, IS_FOREIGN, note, &foreign, NULL);
	/* Its journal would be another one from then on. */
	if (foreign)
		return 0;
	r = patiently(f->db, reading ? "PRAGMA query_only = 1; PRAGMA cell_size_check = 1; "
				       "SELECT count(*) FROM sqlite_master"
				     : "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; "
				       "PRAGMA cell_size_check = 1; PRAGMA foreign_keys = 1");
	return r == SQLITE_OK ? 0 : fail(sql, f->db, r, err);
}

/* As a URI, in which some bytes of a path mean something. */
static int open_still(const struct pp_sql *sql, sqlite3 **ret)
{
	PP_AUTO_BUF struct pp_buf uri = PP_BUF(16 << 10);

	pp_buf_str(&uri, "file:");
	for (const char *c = sql->where; *c; c++)
		if (strchr("%?#", *c))
			pp_buf_printf(&uri, "%%%02x", (unsigned char)*c);
		else
			pp_buf_char(&uri, *c);
	pp_buf_str(&uri, "?immutable=1");
	if (uri.failed)
		return SQLITE_NOMEM;
	return sqlite3_open_v2(uri.data, ret, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
}

int pp_sqlite_open(struct pp_sql *sql, struct pp_error *err)
{
	struct file *f;
	int r = make_file(sql, err);

	if (r)
		return r;
	f = calloc(1, sizeof(*f));
	if (!f)
		return pp_error_set(err, -ENOMEM, "out of memory");
	sql->state = f;
	sql->engine = &engine;
	/*
	 * A reader opens for writing too, and changes nothing (query_only): without it, a database
	 * whose last writer was killed could not be recovered from its write-ahead log.
	 */
	r = sql->flags & PP_SQL_STILL
		    ? open_still(sql, &f->db)
		    : sqlite3_open_v2(sql->where, &f->db, SQLITE_OPEN_READWRITE, NULL);
	if (r != SQLITE_OK)
		return f->db ? fail(sql, f->db, r, err)
			     : pp_error_set(err, -ENOMEM, "out of memory");
	return settings(sql, err);
}
