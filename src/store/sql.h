/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_sql: one connection to a database that speaks SQL: SQLite, or a PostgreSQL server.
 *
 * Statements are written once, in what both understand; arguments are `?` and never part of the
 * text. libpq is loaded by dlopen: a machine that keeps its results in SQLite needs none of it.
 * Not for several threads at once. Everything read from a database is hostile as a file is.
 */
#ifndef PP_STORE_SQL_H
#define PP_STORE_SQL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct pp_sql;

enum pp_sql_type { PP_SQL_NULL, PP_SQL_INTEGER, PP_SQL_REAL, PP_SQL_TEXT };

struct pp_sql_value {
	enum pp_sql_type type;
	union {
		int64_t integer;
		double real;
		struct {
			const char *text; /* UTF-8, borrowed, no NUL inside */
			size_t len;
		};
	};
};

#define PP_SQL_INT(v) ((struct pp_sql_value){.type = PP_SQL_INTEGER, .integer = (v)})
#define PP_SQL_NUM(v) ((struct pp_sql_value){.type = PP_SQL_REAL, .real = (v)})
/* NULL becomes SQL's NULL. */
struct pp_sql_value pp_sql_text(const char *text);

enum pp_sql_flag {
	PP_SQL_CREATE = 1 << 0,	   /* SQLite: the file, mode 0640, may come into being */
	PP_SQL_READ_ONLY = 1 << 1, /* a change is refused with -EROFS */
	/* SQLite, with READ_ONLY: without any file beside it, where there is no room for one. Only
	 * for one that nobody writes meanwhile, and whose write-ahead log is empty. */
	PP_SQL_STILL = 1 << 2,
};

/*
 * @where: "postgresql://..." (libpq's own syntax), else the path of a SQLite file, or ":memory:".
 * A SQLite database is opened with a write-ahead log and waits up to 5 s for another writer; a
 * server that does not answer within 5 s is -ETIMEDOUT, one that refuses -ECONNREFUSED, a file
 * that is no database -EBADMSG. A password in @where never gets into @err.
 */
int pp_sql_open(const char *where, unsigned int flags, struct pp_sql **ret, struct pp_error *err);
/* To read; of a file also where nothing beside it can be written, when nobody is writing it. */
int pp_sql_open_reader(const char *where, struct pp_sql **ret, struct pp_error *err);
struct pp_sql *pp_sql_close(struct pp_sql *sql); /* returns NULL; what was begun is rolled back */

bool pp_sql_is_server(const struct pp_sql *sql);

/*
 * SQLite: when the path names another file than the open one, or none, it is opened again as by
 * pp_sql_open(); *@ret_other says so. What is written otherwise is in a file that nobody finds.
 * Not within a transaction. After a failure nothing is open, and each call tries it again.
 */
int pp_sql_renew(struct pp_sql *sql, bool *ret_other, struct pp_error *err);
/* SQLite: closes the file, so that the next pp_sql_renew() opens it again. */
void pp_sql_lose(struct pp_sql *sql);

/* A statement without rows. -ENOSPC for a full disk, -EEXIST for a key that is there. */
int pp_sql_run(struct pp_sql *sql, const char *text, const struct pp_sql_value *args, size_t n,
	       struct pp_error *err);

/*
 * A statement whose answer nobody waits for. Inside a transaction it may fail later: the next
 * pp_sql_ask(), pp_sql_changed() or pp_sql_commit() tells, with the beginning of its text.
 */
int pp_sql_send(struct pp_sql *sql, const char *text, const struct pp_sql_value *args, size_t n,
		struct pp_error *err);

/* How many rows statements have inserted, changed or deleted since the last call. */
int pp_sql_changed(struct pp_sql *sql, int64_t *ret, struct pp_error *err);

/* Called for each row; the values die with the call. Not 0 ends the reading and is returned. */
typedef int pp_sql_row(void *ctx, const struct pp_sql_value *columns, size_t n);

int pp_sql_ask(struct pp_sql *sql, const char *text, const struct pp_sql_value *args, size_t n,
	       pp_sql_row *row, void *ctx, struct pp_error *err);

/* Not nested. A connection that was lost in between is -ECONNRESET: nothing of it is kept. */
int pp_sql_begin(struct pp_sql *sql, struct pp_error *err);
int pp_sql_commit(struct pp_sql *sql, struct pp_error *err);
void pp_sql_rollback(struct pp_sql *sql);

/* One step of a schema; NULL text ends the list. Steps are only ever added. */
struct pp_sql_step {
	const char *text; /* statements for both, separated by ';' */
};

/*
 * Brings the tables of @name (its version is kept in table peerpath_schema) to the newest of
 * @steps, all or nothing. A database that is newer than the program is -EPROTONOSUPPORT.
 */
int pp_sql_migrate(struct pp_sql *sql, const char *name, const struct pp_sql_step *steps,
		   struct pp_error *err);

#endif
