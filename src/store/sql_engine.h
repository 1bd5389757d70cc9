/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands behind struct pp_sql: one table of calls for SQLite, one for PostgreSQL.
 *
 * sql.c checks arguments and keeps the state of the transaction; an engine translates its
 * library's errors into errno values and nothing else.
 */
#ifndef PP_STORE_SQL_ENGINE_H
#define PP_STORE_SQL_ENGINE_H

#include "base/buf.h"
#include "store/sql.h"

enum {
	PP_SQL_WAIT_MS = 5000,	     /* for a server, and for another writer */
	PP_SQL_STATEMENT_MS = 60000, /* for the answer to one statement */
	PP_SQL_ARGS = 96,
	PP_SQL_COLUMNS = 32,
	PP_SQL_TEXT_BYTES = 64 << 20, /* the longest text */
};

struct pp_sql_engine {
	/* @row NULL: rows are passed over. */
	int (*ask)(struct pp_sql *sql, const char *text, const struct pp_sql_value *args, size_t n,
		   pp_sql_row *row, void *ctx, struct pp_error *err);
	/* Without waiting for the answer where that can be; only inside a transaction. */
	int (*send)(struct pp_sql *sql, const char *text, const struct pp_sql_value *args, size_t n,
		    struct pp_error *err);
	/* Waits for the answers to all that was sent. */
	int (*settle)(struct pp_sql *sql, struct pp_error *err);
	/* Rows changed by what was answered, since the last call. */
	int64_t (*changed)(struct pp_sql *sql);
	/* Several statements without arguments. */
	int (*script)(struct pp_sql *sql, const char *text, struct pp_error *err);
	/* Schema of both to the engine's own words; appends to @out. */
	void (*schema)(const char *text, struct pp_buf *out);
	/* Has it gone, so that the statements so far are lost? Then reopen() comes first. */
	bool (*is_lost)(const struct pp_sql *sql);
	/* Opens again what has gone. */
	int (*reopen)(struct pp_sql *sql, struct pp_error *err);
	void (*close)(struct pp_sql *sql);
	const char *begin;	   /* a transaction that writes */
	const char *begin_reading; /* one that sees all of it at one time */
	const char *lock_schema;   /* so that two do not migrate at once; NULL: begin does it */
	const char *has_schema;	   /* a row when table peerpath_schema is there */
	const char *is_foreign;	   /* a row when there are tables, and that is not; NULL: may be */
	bool is_server;
};

struct pp_sql {
	const struct pp_sql_engine *engine;
	void *state; /* the engine's own */
	char *where; /* as given: it holds the password */
	unsigned int flags;
	bool begun;  /* pp_sql_begin() was called */
	bool failed; /* a statement of it did */
	bool asking; /* a row is being read */
};

int pp_sqlite_open(struct pp_sql *sql, struct pp_error *err);
/* The path names another file than the open one, or none. */
bool pp_sqlite_has_moved(const struct pp_sql *sql);
int pp_postgresql_open(struct pp_sql *sql, struct pp_error *err);

/* `?` outside of literals, quoted names and comments becomes $1, $2, ... */
void pp_sql_number(const char *text, struct pp_buf *out);
/*
 * A schema in SQLite's strict words as PostgreSQL has them: INTEGER of 64 bits, REAL of 64 bits,
 * TEXT that is compared byte by byte, `INTEGER PRIMARY KEY` that numbers itself, no STRICT.
 */
void pp_sql_schema_of_server(const char *text, struct pp_buf *out);

#endif
