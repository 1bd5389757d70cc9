/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sql.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "store/sql_engine.h"
#include "base/banned.h"

struct pp_sql_value pp_sql_text(const char *text)
{
	struct pp_sql_value v = {.type = PP_SQL_NULL};

	if (text) {
		v.type = PP_SQL_TEXT;
		v.text = text;
		v.len = strlen(text);
	}
	return v;
}

static bool names_a_server(const char *where)
{
	return !strncmp(where, "postgresql://", 13) || !strncmp(where, "postgres://", 11);
}

/* "mysql://...": its scheme alone is told, what stands behind may hold a password. */
static int check_scheme(const char *where, struct pp_error *err)
{
	size_t n = strspn(where, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				 "0123456789+.-");

	if (names_a_server(where) || !n || strncmp(where + n, "://", 3) != 0)
		return 0;
	return pp_error_set(err, -EINVAL,
			    "'%.*s://' is no kind of database that is known: the path of a SQLite "
			    "file, or postgresql://...",
			    n < 32 ? (int)n : 32, where);
}

int pp_sql_open(const char *where, unsigned int flags, struct pp_sql **ret, struct pp_error *err)
{
	struct pp_sql *sql;
	int r;

	if (!*where)
		return pp_error_set(err, -EINVAL, "the database has an empty name");
	r = check_scheme(where, err);
	if (r)
		return r;
	sql = calloc(1, sizeof(*sql));
	if (sql)
		sql->where = strdup(where);
	if (!sql || !sql->where) {
		free(sql);
		return pp_error_set(err, -ENOMEM, "out of memory");
	}
	sql->flags = flags;
	r = names_a_server(where) ? pp_postgresql_open(sql, err) : pp_sqlite_open(sql, err);
	if (r) {
		pp_sql_close(sql);
		return r;
	}
	*ret = sql;
	return 0;
}

struct pp_sql *pp_sql_close(struct pp_sql *sql)
{
	if (!sql)
		return NULL;
	if (sql->engine) {
		if (sql->begun)
			pp_sql_rollback(sql);
		sql->engine->close(sql);
	}
	/* A password may stand in it. */
	explicit_bzero(sql->where, strlen(sql->where));
	free(sql->where);
	free(sql);
	return NULL;
}

bool pp_sql_is_server(const struct pp_sql *sql)
{
	return sql->engine->is_server;
}

int pp_sql_renew(struct pp_sql *sql, bool *ret_other, struct pp_error *err)
{
	int r = 0;
	bool other = !sql->engine->is_server && pp_sqlite_has_moved(sql);

	if (sql->begun || sql->asking)
		return pp_error_set(err, -EBUSY, "a database that is opened again in its use");
	if (other)
		r = sql->engine->reopen(sql, err);
	if (!r)
		*ret_other = other;
	return r;
}

void pp_sql_lose(struct pp_sql *sql)
{
	if (!sql->engine->is_server)
		sql->engine->close(sql);
}

/* What one engine would take and the other refuse is refused here. */
static int check_text(const struct pp_sql_value *v, struct pp_error *err)
{
	const unsigned char *p = (const unsigned char *)v->text;
	size_t n;

	if (v->len > PP_SQL_TEXT_BYTES)
		return pp_error_set(err, -EFBIG, "a text of %zu bytes is too long for a database",
				    v->len);
	for (size_t at = 0; at < v->len; at += n) {
		n = p[at] ? pp_utf8_length(p + at, v->len - at) : 0;
		if (!n)
			return pp_error_set(err, -EILSEQ,
					    "a text for the database is not UTF-8 at byte %zu", at);
	}
	return 0;
}

static int check_args(const struct pp_sql_value *args, size_t n, struct pp_sql_value *ret,
		      struct pp_error *err)
{
	int r = 0;

	if (n > PP_SQL_ARGS)
		return pp_error_set(err, -E2BIG, "%zu arguments of a statement", n);
	for (size_t i = 0; i < n && !r; i++) {
		ret[i] = args[i];
		if (args[i].type == PP_SQL_TEXT)
			r = check_text(&args[i], err);
		else if (args[i].type == PP_SQL_REAL && !isfinite(args[i].real))
			ret[i].type = PP_SQL_NULL; /* SQLite has no NaN, PostgreSQL has */
	}
	return r;
}

/* What was begun and lost is never continued: its first half would be missing. */
static int connected(struct pp_sql *sql, struct pp_error *err)
{
	if (!sql->engine->is_lost(sql))
		return 0;
	if (sql->begun)
		return pp_error_set(err, -ECONNRESET,
				    "the connection to the database was lost: nothing of what was "
				    "begun is kept");
	return sql->engine->reopen(sql, err);
}

/* Tells the end that a reader wanted from a failed statement. */
struct relay {
	pp_sql_row *row;
	void *ctx;
	bool ended;
};

static int relay_row(void *ctx, const struct pp_sql_value *columns, size_t n)
{
	struct relay *relay = ctx;
	int r = relay->row(relay->ctx, columns, n);

	relay->ended = relay->ended || r;
	return r;
}

int pp_sql_ask(struct pp_sql *sql, const char *text, const struct pp_sql_value *args, size_t n,
	       pp_sql_row *row, void *ctx, struct pp_error *err)
{
	struct relay relay = {.row = row, .ctx = ctx};
	struct pp_sql_value checked[PP_SQL_ARGS];
	int r;

	if (sql->asking)
		return pp_error_set(err, -EBUSY, "a statement inside the reading of another");
	r = check_args(args, n, checked, err);
	r = r ? r : connected(sql, err);
	if (r)
		return r;
	sql->asking = true;
	r = sql->engine->ask(sql, text, checked, n, row ? relay_row : NULL, &relay, err);
	sql->asking = false;
	sql->failed = sql->failed || (r && !relay.ended);
	return r;
}

int pp_sql_run(struct pp_sql *sql, const char *text, const struct pp_sql_value *args, size_t n,
	       struct pp_error *err)
{
	return pp_sql_ask(sql, text, args, n, NULL, NULL, err);
}

int pp_sql_send(struct pp_sql *sql, const char *text, const struct pp_sql_value *args, size_t n,
		struct pp_error *err)
{
	struct pp_sql_value checked[PP_SQL_ARGS];
	int r;

	if (!sql->begun || sql->asking)
		return pp_sql_run(sql, text, args, n, err);
	r = check_args(args, n, checked, err);
	r = r ? r : connected(sql, err);
	if (r)
		return r;
	r = sql->engine->send(sql, text, checked, n, err);
	sql->failed = sql->failed || r;
	return r;
}

int pp_sql_changed(struct pp_sql *sql, int64_t *ret, struct pp_error *err)
{
	int r = connected(sql, err);

	r = r ? r : sql->engine->settle(sql, err);
	sql->failed = sql->failed || r;
	if (!r)
		*ret = sql->engine->changed(sql);
	return r;
}

int pp_sql_begin(struct pp_sql *sql, struct pp_error *err)
{
	bool reading = (sql->flags & PP_SQL_READ_ONLY) != 0;
	int r;

	if (sql->begun)
		return pp_error_set(err, -EALREADY, "a transaction inside another");
	r = pp_sql_run(sql, reading ? sql->engine->begin_reading : sql->engine->begin, NULL, 0,
		       err);
	sql->begun = !r;
	sql->failed = false;
	return r;
}

int pp_sql_commit(struct pp_sql *sql, struct pp_error *err)
{
	int r;

	if (!sql->begun)
		return pp_error_set(err, -EINVAL, "no transaction to commit");
	/* PostgreSQL would answer this COMMIT with a rollback, and call it a success. */
	r = sql->failed ? pp_error_set(err, -ECANCELED,
				       "a statement of the transaction failed: nothing is kept")
			: pp_sql_run(sql, "COMMIT", NULL, 0, err);
	if (r)
		pp_sql_rollback(sql);
	sql->begun = false;
	return r;
}

void pp_sql_rollback(struct pp_sql *sql)
{
	struct pp_error ignored = {0};

	if (sql->begun && !sql->engine->is_lost(sql))
		/* What failed ahead of it would take the ROLLBACK with it. */
		(void)sql->engine->settle(sql, &ignored);
	if (sql->begun && !sql->engine->is_lost(sql))
		/* SQLite has rolled back by itself after some errors, and says so here. */
		(void)pp_sql_run(sql, "ROLLBACK", NULL, 0, &ignored);
	sql->begun = false;
}
