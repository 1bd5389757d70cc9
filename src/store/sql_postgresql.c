/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PostgreSQL: arguments in its text form, statements prepared once for each connection. Inside a
 * transaction those whose answers nobody waits for go ahead of their answers, in libpq's pipeline
 * mode; a libpq that has none waits for each.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/sql_server.h"
#include "base/banned.h"

/* Outside of a transaction, and for what is no prepared statement. */
static int leave_pipeline(struct pp_sql *sql, struct pp_error *err)
{
	struct pp_server *server = sql->state;
	int r;

	if (!server->pipelined)
		return 0;
	r = server->n_ahead ? pp_server_settle(sql, NULL, NULL, err) : 0;
	server->pipelined = false;
	return r ? r : pp_server_sent(sql, server->pq.PQexitPipelineMode(server->conn), err);
}

static int script(struct pp_sql *sql, const char *text, struct pp_error *err)
{
	struct pp_server *server = sql->state;
	int r = leave_pipeline(sql, err);

	r = r ? r : pp_server_sent(sql, server->pq.PQsendQuery(server->conn, text), err);
	return r ? r : pp_server_answers(sql, NULL, NULL, err);
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

/* NULL goes as an argument of any type: else each way to have some would be kept. */
static bool is_kept(const char *kept, const char *key)
{
	while (*key != ' ' && *kept != ' ' && (*key == 'n' || *key == *kept)) {
		key++;
		kept++;
	}
	return !strcmp(kept, key);
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
	r = pp_server_sent(sql,
			   server->pq.PQsendPrepare(server->conn, name, pp_buf_text(&own), args->n,
						    args->types),
			   err);
	if (r)
		return r;
	/* At once also in a pipeline: a name behind an error there would stand for nothing. */
	return server->pipelined ? pp_server_settle(sql, NULL, NULL, err)
				 : pp_server_answers(sql, NULL, NULL, err);
}

static void name_of(size_t kept, char name[16])
{
	(void)snprintf(name, 16, "p%zu", kept);
}

/*
 * Which of those kept it is; PP_SERVER_KEPT: one too many, whose name is "" and which is prepared
 * each time.
 */
static int prepare(struct pp_sql *sql, const char *text, const struct arguments *args, size_t *ret,
		   struct pp_error *err)
{
	struct pp_server *server = sql->state;
	PP_AUTO_BUF struct pp_buf key = PP_BUF(PP_SERVER_KEY_BYTES);
	char name[16] = "";
	size_t i;
	int r;

	key_of(text, args, &key);
	if (key.failed)
		return pp_error_set(err, key.failed, "a statement does not fit");
	for (i = 0; i < server->n_kept; i++)
		if (is_kept(server->kept[i], key.data))
			break;
	*ret = i;
	if (i < server->n_kept)
		return 0;
	if (i < PP_SERVER_KEPT)
		name_of(i, name);
	r = prepare_as(sql, name, text, args, err);
	if (!r && i < PP_SERVER_KEPT) {
		server->kept[server->n_kept++] = pp_take(key.data);
		key = PP_BUF(PP_SERVER_KEY_BYTES);
	}
	return r;
}

/* Prepared and on its way; @ret as prepare() gives it. */
static int send_it(struct pp_sql *sql, const char *text, const struct pp_sql_value *args, size_t n,
		   size_t *ret, struct pp_error *err)
{
	struct pp_server *server = sql->state;
	struct arguments own;
	char name[16] = "";
	int r;

	write_arguments(args, n, &own);
	r = prepare(sql, text, &own, ret, err);
	if (r)
		return r;
	if (*ret < PP_SERVER_KEPT)
		name_of(*ret, name);
	return pp_server_sent(sql,
			      server->pq.PQsendQueryPrepared(server->conn, name, own.n, own.values,
							     own.lengths, own.formats, 0),
			      err);
}

static int ask(struct pp_sql *sql, const char *text, const struct pp_sql_value *args, size_t n,
	       pp_sql_row *row, void *ctx, struct pp_error *err)
{
	struct pp_server *server = sql->state;
	int r = sql->begun ? 0 : leave_pipeline(sql, err);
	size_t kept;

	r = r ? r : send_it(sql, text, args, n, &kept, err);
	if (r)
		return r;
	if (server->pipelined)
		return pp_server_settle(sql, row, ctx, err);
	(void)server->pq.PQsetSingleRowMode(server->conn);
	return pp_server_answers(sql, row, ctx, err);
}

static int settle(struct pp_sql *sql, struct pp_error *err)
{
	struct pp_server *server = sql->state;

	return server->n_ahead ? pp_server_settle(sql, NULL, NULL, err) : 0;
}

/* The server works on what it has while the program goes on. */
enum { FLUSH_EACH = 16 };

static int send_ahead(struct pp_sql *sql, const char *text, const struct pp_sql_value *args,
		      size_t n, struct pp_error *err)
{
	struct pp_server *server = sql->state;
	size_t kept;
	int r = 0;

	if (!server->pq.PQenterPipelineMode || !server->pq.PQexitPipelineMode ||
	    !server->pq.PQpipelineSync)
		return ask(sql, text, args, n, NULL, NULL, err);
	if (!server->pipelined)
		r = pp_server_sent(sql, server->pq.PQenterPipelineMode(server->conn), err);
	if (r)
		return r;
	server->pipelined = true;
	if (server->n_ahead == PP_SERVER_AHEAD || server->ahead_bytes > PP_SERVER_AHEAD_BYTES)
		r = pp_server_settle(sql, NULL, NULL, err);
	r = r ? r : send_it(sql, text, args, n, &kept, err);
	if (r)
		return r;
	if (kept == PP_SERVER_KEPT)
		return pp_server_settle(sql, NULL, NULL, err);
	server->ahead[server->n_ahead++] = (unsigned char)kept;
	for (size_t i = 0; i < n; i++)
		server->ahead_bytes += args[i].type == PP_SQL_TEXT ? args[i].len : 8;
	if (server->n_ahead % FLUSH_EACH == 0)
		(void)server->pq.PQflush(server->conn);
	return 0;
}

static int64_t changed(struct pp_sql *sql)
{
	struct pp_server *server = sql->state;
	int64_t n = server->changed;

	server->changed = 0;
	return n;
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
	.send = send_ahead,
	.settle = settle,
	.changed = changed,
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
