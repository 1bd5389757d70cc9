/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sql_server.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/banned.h"

/* One line, without control bytes, without the password. */
static void tell(const struct pp_server *server, const char *said, char *text, size_t size)
{
	const char *secret = server->password;
	size_t len = secret ? strlen(secret) : 0;
	char *at;

	(void)snprintf(text, size, "%s", said && *said ? said : "no reason given");
	text[strcspn(text, "\n")] = '\0';
	pp_sanitize(text, false);
	while (len && (at = strstr(text, secret)))
		memmove(at, at + len, strlen(at + len) + 1);
}

int pp_server_fail(struct pp_sql *sql, int code, struct pp_error *err)
{
	struct pp_server *server = sql->state;
	char text[384];

	tell(server, server->conn ? server->pq.PQerrorMessage(server->conn) : NULL, text,
	     sizeof(text));
	return pp_error_set(err, code, "PostgreSQL: %s", text);
}

/* SQLSTATE: a class of two characters, then the case (PostgreSQL's manual, appendix A). */
static int code_of(const char *state)
{
	static const struct {
		const char *state;
		int code;
	} rows[] = {
		{"23505", -EEXIST},   {"53100", -ENOSPC}, {"53200", -ENOMEM},  {"25006", -EROFS},
		{"55P03", -EBUSY},    {"40", -EBUSY},	  {"42501", -EACCES},  {"22021", -EILSEQ},
		{"57P", -ECONNRESET}, {"08P01", -EINVAL}, {"08", -ECONNRESET}, {"54", -EFBIG},
		{"58", -EIO},	      {"XX", -EBADMSG},
	};

	for (size_t i = 0; i < PP_ARRAY_LEN(rows); i++)
		if (!strncmp(state, rows[i].state, strlen(rows[i].state)))
			return rows[i].code;
	return -EINVAL;
}

int pp_server_refused(struct pp_sql *sql, const struct pg_result *answer, struct pp_error *err)
{
	struct pp_server *server = sql->state;
	const char *state = server->pq.PQresultErrorField(answer, PQ_DIAG_SQLSTATE);
	int code = state ? code_of(state) : -ECONNRESET;
	char text[384];

	if (code == -ECONNRESET)
		server->lost = true;
	tell(server, server->pq.PQresultErrorField(answer, PQ_DIAG_PRIMARY), text, sizeof(text));
	return pp_error_set(err, code, "PostgreSQL: %s%s",
			    code == -ENOSPC ? "the server's disk is full: " : "", text);
}

/* 0 when the socket is ready. */
static int wait_for(int fd, short events, pp_ns deadline)
{
	struct pollfd p = {.fd = fd, .events = events};
	pp_ns left;
	int r;

	do {
		left = deadline - pp_clock_monotonic();
		if (left <= 0)
			return -ETIMEDOUT;
		r = poll(&p, 1, (int)(left / PP_MILLISECOND) + 1);
	} while (r == 0 || (r < 0 && errno == EINTR));
	return r < 0 ? -errno : 0;
}

int pp_server_answer(struct pp_sql *sql, pp_ns deadline, struct pg_result **ret,
		     struct pp_error *err)
{
	struct pp_server *server = sql->state;
	const struct pq *pq = &server->pq;
	int flushed, r;

	while ((flushed = pq->PQflush(server->conn)) > 0 || pq->PQisBusy(server->conn)) {
		r = wait_for(pq->PQsocket(server->conn),
			     (short)(POLLIN | (flushed > 0 ? POLLOUT : 0)), deadline);
		if (r) {
			server->lost = true;
			return pp_error_set(err, r, "PostgreSQL: no answer to a statement in %d s",
					    PP_SQL_STATEMENT_MS / 1000);
		}
		if (!pq->PQconsumeInput(server->conn))
			break;
	}
	*ret = pq->PQgetResult(server->conn);
	if (pq->PQstatus(server->conn) != PQ_CONNECTION_OK) {
		pq->PQclear(*ret);
		*ret = NULL;
		server->lost = true;
		return pp_server_fail(sql, -ECONNRESET, err);
	}
	return 0;
}

static void keep_quiet(void *ctx, const char *message)
{
	(void)ctx;
	(void)message;
}

static int poll_connection(struct pp_sql *sql, struct pp_error *err)
{
	struct pp_server *server = sql->state;
	pp_ns deadline = pp_clock_monotonic() + PP_SQL_WAIT_MS * PP_MILLISECOND;
	int state = PQ_POLLING_WRITING, r;

	while (state != PQ_POLLING_OK) {
		if (state == PQ_POLLING_FAILED)
			return pp_server_fail(sql, -ECONNREFUSED, err);
		r = wait_for(server->pq.PQsocket(server->conn),
			     state == PQ_POLLING_READING ? POLLIN : POLLOUT, deadline);
		if (r)
			return pp_error_set(err, r, "PostgreSQL: the server did not answer in %d s",
					    PP_SQL_WAIT_MS / 1000);
		state = server->pq.PQconnectPoll(server->conn);
	}
	return 0;
}

/* Alike for all: how numbers are written, and how long another writer is waited for. */
static int set_session(struct pp_sql *sql, struct pp_error *err)
{
	int r = sql->engine->script(sql,
				    "SET extra_float_digits = 1; SET standard_conforming_strings = "
				    "on; SET lock_timeout = '5s'",
				    err);

	if (!r && (sql->flags & PP_SQL_READ_ONLY))
		r = sql->engine->script(sql, "SET default_transaction_read_only = on", err);
	return r;
}

void pp_server_disconnect(struct pp_server *server)
{
	if (server->conn)
		server->pq.PQfinish(server->conn);
	server->conn = NULL;
	for (size_t i = 0; i < server->n_kept; i++)
		free(server->kept[i]);
	server->n_kept = 0;
	server->n_ahead = server->ahead_bytes = 0;
	server->pipelined = false;
}

int pp_server_connect(struct pp_sql *sql, struct pp_error *err)
{
	const char *const keys[] = {"dbname", "client_encoding", "application_name", NULL};
	const char *const values[] = {sql->where, "UTF8", "peerpath", NULL};
	struct pp_server *server = sql->state;
	int r;

	pp_server_disconnect(server);
	server->lost = false;
	server->conn = server->pq.PQconnectStartParams(keys, values, 1);
	if (!server->conn)
		return pp_error_set(err, -ENOMEM, "out of memory");
	if (server->pq.PQstatus(server->conn) != PQ_CONNECTION_OK &&
	    server->pq.PQsocket(server->conn) < 0)
		return pp_server_fail(sql, -ECONNREFUSED, err);
	(void)server->pq.PQsetNoticeProcessor(server->conn, keep_quiet, NULL);
	r = poll_connection(sql, err);
	if (r)
		return r;
	(void)server->pq.PQsetnonblocking(server->conn, 1);
	return set_session(sql, err);
}
