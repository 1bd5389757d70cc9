/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a PostgreSQL server answers: columns out of its text form, rows one by one so that no answer
 * is held whole, and the answers to statements that were sent ahead, in their order.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "store/sql_server.h"
#include "base/banned.h"

static pp_ns deadline_of_statement(void)
{
	return pp_clock_monotonic() + PP_SQL_STATEMENT_MS * PP_MILLISECOND;
}

static int column(const struct pq *pq, const struct pg_result *rows, int at, int i,
		  struct pp_sql_value *ret)
{
	const char *text = pq->PQgetvalue(rows, at, i);
	char *end = NULL;
	int64_t integer;

	if (pq->PQgetisnull(rows, at, i)) {
		*ret = (struct pp_sql_value){.type = PP_SQL_NULL};
		return 0;
	}
	switch (pq->PQftype(rows, i)) {
	case PQ_BOOL:
		*ret = PP_SQL_INT(*text == 't');
		return 0;
	case PQ_INT2:
	case PQ_INT4:
	case PQ_INT8:
	case PQ_NUMERIC: /* the sum of integers is one */
		if (!pp_parse_i64(text, INT64_MIN, INT64_MAX, &integer)) {
			*ret = PP_SQL_INT(integer);
			return 0;
		}
		__attribute__((fallthrough));
	case PQ_FLOAT4:
	case PQ_FLOAT8:
		*ret = PP_SQL_NUM(strtod(text, &end));
		return *text && !*end ? 0 : -EBADMSG;
	default:
		*ret = pp_sql_text(text);
		return 0;
	}
}

static int give_row(const struct pp_sql *sql, const struct pg_result *rows, int at, pp_sql_row *row,
		    void *ctx, struct pp_error *err)
{
	const struct pp_server *server = sql->state;
	struct pp_sql_value columns[PP_SQL_COLUMNS];
	int n = server->pq.PQnfields(rows), r = 0;

	if (n > PP_SQL_COLUMNS)
		return pp_error_set(err, -E2BIG, "PostgreSQL: %d columns", n);
	for (int i = 0; i < n && !r; i++)
		r = column(&server->pq, rows, at, i, &columns[i]);
	if (r)
		return pp_error_set(err, r, "PostgreSQL: a number that is none");
	return row(ctx, columns, (size_t)n);
}

/* Rows of one answer: one, or in a pipeline that could not be told so all of them. */
static int give_rows(const struct pp_sql *sql, const struct pg_result *rows, pp_sql_row *row,
		     void *ctx, struct pp_error *err)
{
	const struct pp_server *server = sql->state;
	int n = server->pq.PQntuples(rows), r = 0;

	for (int i = 0; row && i < n && !r; i++)
		r = give_row(sql, rows, i, row, ctx, err);
	return r;
}

static int take(struct pp_sql *sql, struct pg_result *answer, pp_sql_row *row, void *ctx,
		struct pp_error *err)
{
	struct pp_server *server = sql->state;
	int64_t rows;

	switch (server->pq.PQresultStatus(answer)) {
	case PQ_SINGLE_TUPLE:
	case PQ_TUPLES_OK:
		return give_rows(sql, answer, row, ctx, err);
	case PQ_COMMAND_OK:
		if (!pp_parse_i64(server->pq.PQcmdTuples(answer), 0, INT64_MAX, &rows))
			server->changed += rows;
		return 0;
	case PQ_EMPTY_QUERY:
		return 0;
	default:
		return pp_server_refused(sql, answer, err);
	}
}

int pp_server_answers(struct pp_sql *sql, pp_sql_row *row, void *ctx, struct pp_error *err)
{
	struct pp_server *server = sql->state;
	struct pg_result *answer = NULL;
	struct pp_error ignored = {0};
	int r = 0, next;

	do {
		next = pp_server_answer(sql, deadline_of_statement(), &answer, r ? &ignored : err);
		if (!next && answer)
			next = r ? 0 : take(sql, answer, row, ctx, err);
		r = r ? r : next;
		if (answer)
			server->pq.PQclear(answer);
	} while (answer);
	return r;
}

/* "INSERT INTO figures": what the statement was about. */
static void prefix(const struct pp_server *server, size_t ahead, struct pp_error *err)
{
	static const char *const ends[] = {" (", " SET ", " WHERE ", " AS "};
	const char *text = strchr(server->kept[server->ahead[ahead]], ' ');
	size_t len;

	text = text ? text + 1 : "";
	len = strlen(text);
	for (size_t i = 0; i < PP_ARRAY_LEN(ends); i++) {
		const char *end = strstr(text, ends[i]);

		len = end && (size_t)(end - text) < len ? (size_t)(end - text) : len;
	}
	(void)pp_error_prefix(err, "'%.*s'", len < 60 ? (int)len : 60, text);
}

/* One answer of several statements'; @at counts those that have ended. */
static int take_ahead(struct pp_sql *sql, struct pg_result *answer, size_t at, size_t ahead,
		      pp_sql_row *row, void *ctx, struct pp_error *err)
{
	struct pp_server *server = sql->state;
	int status = server->pq.PQresultStatus(answer), r;

	if (status == PQ_PIPELINE_SYNC)
		return 0;
	if (status == PQ_PIPELINE_ABORTED)
		return pp_error_set(err, -ECANCELED, "PostgreSQL: a statement before it failed");
	if (at >= ahead)
		return take(sql, answer, row, ctx, err);
	r = take(sql, answer, NULL, NULL, err);
	if (r)
		prefix(server, at, err);
	return r;
}

int pp_server_settle(struct pp_sql *sql, pp_sql_row *row, void *ctx, struct pp_error *err)
{
	struct pp_server *server = sql->state;
	struct pg_result *answer = NULL;
	struct pp_error ignored = {0};
	size_t ahead = server->n_ahead;
	bool ended = false;
	int r = pp_server_sent(sql, server->pq.PQpipelineSync(server->conn), err), next;

	server->n_ahead = server->ahead_bytes = 0;
	/* Each statement's answers end with NULL; a sync is one answer, and the last. */
	for (size_t at = 0; !ended && !server->lost && at < ahead + 2; at += !answer) {
		if (at == ahead)
			(void)server->pq.PQsetSingleRowMode(server->conn);
		next = pp_server_answer(sql, deadline_of_statement(), &answer, r ? &ignored : err);
		if (!next && answer) {
			ended = server->pq.PQresultStatus(answer) == PQ_PIPELINE_SYNC;
			next = r ? 0 : take_ahead(sql, answer, at, ahead, row, ctx, err);
			server->pq.PQclear(answer);
		}
		r = r ? r : next;
	}
	if (!ended)
		server->lost = true;
	return r || ended ? r : pp_server_fail(sql, -ECONNRESET, err);
}

int pp_server_sent(struct pp_sql *sql, int ok, struct pp_error *err)
{
	struct pp_server *server = sql->state;

	if (ok)
		return 0;
	server->lost = true;
	return pp_server_fail(sql, -ECONNRESET, err);
}
