/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_server: a connection to a PostgreSQL server, and waiting for it with a deadline.
 *
 * A server that was stopped, or a network that swallows packets, must not hold the program: nothing
 * here calls libpq's blocking functions.
 */
#ifndef PP_STORE_SQL_SERVER_H
#define PP_STORE_SQL_SERVER_H

#include "base/clock.h"
#include "store/sql_engine.h"
#include "store/sql_pq.h"

enum {
	PP_SERVER_KEPT = 64,
	PP_SERVER_KEY_BYTES = 4096,
	PP_SERVER_AHEAD = 128,		 /* statements whose answers are not read yet */
	PP_SERVER_AHEAD_BYTES = 1 << 20, /* of their texts */
};

struct pp_server {
	struct pq pq;
	struct pg_conn *conn;
	char *password;		    /* of the address, so that no message shows it */
	bool lost;		    /* what was sent last was not answered */
	char *kept[PP_SERVER_KEPT]; /* types and text of the statements prepared as p0, p1, ... */
	size_t n_kept;
	bool pipelined;			      /* libpq's pipeline mode */
	unsigned char ahead[PP_SERVER_AHEAD]; /* which of those kept were sent ahead */
	size_t n_ahead, ahead_bytes;
	int64_t changed; /* rows, since somebody asked */
};

/* Connects, or connects again. */
int pp_server_connect(struct pp_sql *sql, struct pp_error *err);
void pp_server_disconnect(struct pp_server *server);

/* The next answer, NULL at the end; the caller clears it. */
int pp_server_answer(struct pp_sql *sql, pp_ns deadline, struct pg_result **ret,
		     struct pp_error *err);
/* @ok 0: libpq could not send, and the connection is lost. */
int pp_server_sent(struct pp_sql *sql, int ok, struct pp_error *err);
/*
 * All answers to the statement that was sent, also behind an error: else nothing can be sent. Rows
 * go to @row, NULL passes them over.
 */
int pp_server_answers(struct pp_sql *sql, pp_sql_row *row, void *ctx, struct pp_error *err);
/*
 * In pipeline mode: the answers to all that was sent ahead, then to one more statement if there is
 * one, whose rows go to @row. The first error is returned; the server has done nothing behind it.
 */
int pp_server_settle(struct pp_sql *sql, pp_sql_row *row, void *ctx, struct pp_error *err);
/* What libpq says of the connection, as one error. */
int pp_server_fail(struct pp_sql *sql, int code, struct pp_error *err);
/* What the server says in an answer that is an error. */
int pp_server_refused(struct pp_sql *sql, const struct pg_result *answer, struct pp_error *err);

#endif
