/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PostgreSQL: arguments and columns in its text form, statements prepared once for each
 * connection. Rows come one by one, so that no answer is held whole.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "store/sql_server.h"
#include "base/banned.h"

static pp_ns deadline_of_statement(void)
{
	return pp_clock_monotonic() + PP_SQL_STATEMENT_MS * PP_MILLISECOND;
}

static int column(const struct pq *pq, const struct pg_result *rows, int i,
		  struct pp_sql_value *ret)
{
	const char *text = pq->PQgetvalue(rows, 0, i);
	char *end = NULL;
	int64_t integer;

	if (pq->PQgetisnull(rows, 0, i)) {
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

static int give_row(const struct pp_sql *sql, const struct pg_result *rows, pp_sql_row *row,
		    void *ctx, struct pp_error *err)
{
	const struct pp_server *server = sql->state;
	struct pp_sql_value columns[PP_SQL_COLUMNS];
	int n = server->pq.PQnfields(rows), r = 0;

	if (n > PP_SQL_COLUMNS)
		return pp_error_set(err, -E2BIG, "PostgreSQL: %d columns", n);
	for (int i = 0; i < n && !r; i++)
		r = column(&server->pq, rows, i, &columns[i]);
	if (r)
		return pp_error_set(err, r, "PostgreSQL: a number that is none");
	return row(ctx, columns, (size_t)n);
}

/* All answers to what was sent are read, also behind an error: else nothing can be sent. */
static int read_answers(struct pp_sql *sql, pp_sql_row *row, void *ctx, struct pp_error *err)
{
	struct pp_server *server = sql->state;
	const struct pq *pq = &server->pq;
	struct pp_error ignored = {0};
	struct pg_result *answer = NULL;
	int r = 0, lost;

	do {
		lost = pp_server_answer(sql, deadline_of_statement(), &answer, r ? &ignored : err);
		if (lost)
			return r ? r : lost;
		if (!answer)
			break;
		switch (pq->PQresultStatus(answer)) {
		case PQ_SINGLE_TUPLE:
			if (row && !r)
				r = give_row(sql, answer, row, ctx, err);
			break;
		case PQ_COMMAND_OK:
		case PQ_TUPLES_OK:
		case PQ_EMPTY_QUERY:
			break;
		default:
			r = r ? r : pp_server_refused(sql, answer, err);
			break;
		}
		pq->PQclear(answer);
	} while (answer);
	return r;
}

static int sent(struct pp_sql *sql, int ok, struct pp_error *err)
{
	struct pp_server *server = sql->state;

	if (ok)
		return 0;
	server->lost = true;
	return pp_server_fail(sql, -ECONNRESET, err);
}

static int script(struct pp_sql *sql, const char *text, struct pp_error *err)
{
	struct pp_server *server = sql->state;
	int r = sent(sql, server->pq.PQsendQuery(server->conn, text), err);

	return r ? r : read_answers(sql, NULL, NULL, err);
}

/* An argument's type is told, not guessed from where it stands. */
static pq_oid type_of(const struct pp_sql_value *v)
{
	static const pq_oid types[] = {[PP_SQL_NULL] = 0,
				       [PP_SQL_INTEGER] = PQ_INT8,
				       [PP_SQL_REAL] = PQ_FLOAT8,
				       [PP_SQL_TEXT] = PQ_TEXT};

	return types[v->type];
}

struct arguments {
	const char *values[PP_SQL_ARGS];
	int lengths[PP_SQL_ARGS], formats[PP_SQL_ARGS];
	pq_oid types[PP_SQL_ARGS];
	char numbers[PP_SQL_ARGS][40];
	int n;
};

static void write_arguments(const struct pp_sql_value *args, size_t n, struct arguments *to)
{
	to->n = (int)n;
	for (size_t i = 0; i < n; i++) {
		to->types[i] = type_of(&args[i]);
		to->formats[i] = 0;
		to->lengths[i] = 0;
		to->values[i] = to->numbers[i];
		if (args[i].type == PP_SQL_INTEGER)
			(void)snprintf(to->numbers[i], sizeof(to->numbers[i]), "%lld",
				       (long long)args[i].integer);
		else if (args[i].type == PP_SQL_REAL)
			(void)snprintf(to->numbers[i], sizeof(to->numbers[i]), "%.17g",
				       args[i].real);
		else
			to->values[i] = args[i].type == PP_SQL_TEXT ? args[i].text : NULL;
	}
}

/* Types, then the text: what a prepared statement is found by. */
static void key_of(const char *text, const struct arguments *args, struct pp_buf *key)
{
	for (int i = 0; i < args->n; i++)
		pp_buf_char(key, args->types[i] == PQ_INT8     ? 'i'
				 : args->types[i] == PQ_FLOAT8 ? 'r'
				 : args->types[i] == PQ_TEXT   ? 't'
							       : 'n');
	pp_buf_char(key, ' ');
	pp_buf_str(key, text);
}

static int prepare_as(struct pp_sql *sql, const char *name, const char *text,
		      const struct arguments *args, struct pp_error *err)
{
	struct pp_server *server = sql->state;
	PP_AUTO_BUF struct pp_buf own = PP_BUF(PP_SERVER_KEY_BYTES * 4);
	int r;

	pp_sql_number(text, &own);
	if (own.failed)
		return pp_error_set(err, own.failed, "a statement does not fit");
	r = sent(sql,
		 server->pq.PQsendPrepare(server->conn, name, pp_buf_text(&own), args->n,
					  args->types),
		 err);
	return r ? r : read_answers(sql, NULL, NULL, err);
}

/* The statement's name in @name: "" for one too many, which is prepared each time. */
static int prepare(struct pp_sql *sql, const char *text, const struct arguments *args,
		   char name[16], struct pp_error *err)
{
	struct pp_server *server = sql->state;
	PP_AUTO_BUF struct pp_buf key = PP_BUF(PP_SERVER_KEY_BYTES);
	size_t i;
	int r;

	key_of(text, args, &key);
	if (key.failed)
		return pp_error_set(err, key.failed, "a statement does not fit");
	for (i = 0; i < server->n_kept; i++)
		if (!strcmp(server->kept[i], key.data))
			break;
	*name = '\0';
	if (i < PP_SERVER_KEPT)
		(void)snprintf(name, 16, "p%zu", i);
	if (i < server->n_kept)
		return 0;
	r = prepare_as(sql, name, text, args, err);
	if (!r && i < PP_SERVER_KEPT) {
		server->kept[server->n_kept++] = pp_take(key.data);
		key = PP_BUF(PP_SERVER_KEY_BYTES);
	}
	return r;
}

static int ask(struct pp_sql *sql, const char *text, const struct pp_sql_value *args, size_t n,
	       pp_sql_row *row, void *ctx, struct pp_error *err)
{
	struct pp_server *server = sql->state;
	struct arguments own;
	char name[16];
	int r;

	write_arguments(args, n, &own);
	r = prepare(sql, text, &own, name, err);
	if (r)
		return r;
	r = sent(sql,
		 server->pq.PQsendQueryPrepared(server->conn, name, own.n, own.values, own.lengths,
						own.formats, 0),
		 err);
	if (r)
		return r;
	(void)server->pq.PQsetSingleRowMode(server->conn);
	return read_answers(sql, row, ctx, err);
}

static bool is_lost(const struct pp_sql *sql)
{
	const struct pp_server *server = sql->state;

	return server->lost || server->pq.PQstatus(server->conn) != PQ_CONNECTION_OK;
}

static void close_server(struct pp_sql *sql)
{
	struct pp_server *server = sql->state;

	if (!server)
		return;
	pp_server_disconnect(server);
	if (server->password)
		explicit_bzero(server->password, strlen(server->password));
	free(server->password);
	free(server);
	sql->state = NULL;
}

static const struct pp_sql_engine engine = {
	.ask = ask,
	.script = script,
	.schema = pp_sql_schema_of_server,
	.is_lost = is_lost,
	.reopen = pp_server_connect,
	.close = close_server,
	.begin = "BEGIN",
	.begin_reading = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
	.lock_schema = "SELECT pg_advisory_xact_lock(1885696624)",
	.has_schema = "SELECT 1 FROM information_schema.tables WHERE table_schema = "
		      "current_schema() AND table_name = 'peerpath_schema'",
	.is_server = true,
};

/* libpq's own words about an address that it cannot read contain the address. */
static int take_password(struct pp_sql *sql, struct pp_error *err)
{
	struct pp_server *server = sql->state;
	struct pq_option *options;
	char *said = NULL;
	int r = 0;

	options = server->pq.PQconninfoParse(sql->where, &said);
	if (said)
		server->pq.PQfreemem(said);
	if (!options)
		return pp_error_set(err, -EINVAL,
				    "the address of the database is not one that libpq "
				    "understands: postgresql://USER@HOST:PORT/NAME");
	for (const struct pq_option *o = options; o->keyword && !r; o++) {
		if (strcmp(o->keyword, "password") != 0 || !o->val || !*o->val)
			continue;
		server->password = strdup(o->val);
		if (!server->password)
			r = pp_error_set(err, -ENOMEM, "out of memory");
	}
	server->pq.PQconninfoFree(options);
	return r;
}

int pp_postgresql_open(struct pp_sql *sql, struct pp_error *err)
{
	struct pp_server *server = calloc(1, sizeof(*server));
	int r;

	if (!server)
		return pp_error_set(err, -ENOMEM, "out of memory");
	r = pp_pq_load(&server->pq, err);
	if (r) {
		free(server);
		return r;
	}
	sql->state = server;
	sql->engine = &engine;
	r = take_password(sql, err);
	return r ? r : pp_server_connect(sql, err);
}
