/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libpq by dlopen: the calls that are used, with their published prototypes and values
 * (PostgreSQL's manual, chapter "libpq"; soname libpq.so.5 since version 8.2).
 */
#ifndef PP_STORE_SQL_PQ_H
#define PP_STORE_SQL_PQ_H

#include "base/error.h"

struct pg_conn;
struct pg_result;
typedef unsigned int pq_oid;

enum { PQ_POLLING_FAILED, PQ_POLLING_READING, PQ_POLLING_WRITING, PQ_POLLING_OK };
enum { PQ_CONNECTION_OK };
enum {
	PQ_EMPTY_QUERY = 0,
	PQ_COMMAND_OK = 1,
	PQ_TUPLES_OK = 2,
	PQ_SINGLE_TUPLE = 9,
	PQ_PIPELINE_SYNC = 10,
	PQ_PIPELINE_ABORTED = 11,
};
enum { PQ_DIAG_SQLSTATE = 'C', PQ_DIAG_PRIMARY = 'M' };
enum {
	PQ_BOOL = 16,
	PQ_INT8 = 20,
	PQ_INT2 = 21,
	PQ_INT4 = 23,
	PQ_TEXT = 25,
	PQ_FLOAT4 = 700,
	PQ_FLOAT8 = 701,
	PQ_NUMERIC = 1700,
};

struct pq_option {
	char *keyword, *envvar, *compiled, *val, *label, *dispchar;
	int dispsize;
};

/* name, what it returns, what it takes */
#define PQ_CALLS(X)                                                                                \
	X(PQconninfoParse, struct pq_option *, (const char *, char **))                            \
	X(PQconninfoFree, void, (struct pq_option *))                                              \
	X(PQfreemem, void, (void *))                                                               \
	X(PQconnectStartParams, struct pg_conn *, (const char *const *, const char *const *, int)) \
	X(PQconnectPoll, int, (struct pg_conn *))                                                  \
	X(PQfinish, void, (struct pg_conn *))                                                      \
	X(PQstatus, int, (const struct pg_conn *))                                                 \
	X(PQsocket, int, (const struct pg_conn *))                                                 \
	X(PQerrorMessage, const char *, (const struct pg_conn *))                                  \
	X(PQsetnonblocking, int, (struct pg_conn *, int))                                          \
	X(PQsetNoticeProcessor, void *,                                                            \
	  (struct pg_conn *, void (*)(void *, const char *), void *))                              \
	X(PQsendQuery, int, (struct pg_conn *, const char *))                                      \
	X(PQsendPrepare, int, (struct pg_conn *, const char *, const char *, int, const pq_oid *)) \
	X(PQsendQueryPrepared, int,                                                                \
	  (struct pg_conn *, const char *, int, const char *const *, const int *, const int *,     \
	   int))                                                                                   \
	X(PQsetSingleRowMode, int, (struct pg_conn *))                                             \
	X(PQflush, int, (struct pg_conn *))                                                        \
	X(PQconsumeInput, int, (struct pg_conn *))                                                 \
	X(PQisBusy, int, (struct pg_conn *))                                                       \
	X(PQgetResult, struct pg_result *, (struct pg_conn *))                                     \
	X(PQclear, void, (struct pg_result *))                                                     \
	X(PQresultStatus, int, (const struct pg_result *))                                         \
	X(PQresultErrorField, const char *, (const struct pg_result *, int))                       \
	X(PQcmdTuples, const char *, (struct pg_result *))                                         \
	X(PQntuples, int, (const struct pg_result *))                                              \
	X(PQnfields, int, (const struct pg_result *))                                              \
	X(PQftype, pq_oid, (const struct pg_result *, int))                                        \
	X(PQgetisnull, int, (const struct pg_result *, int, int))                                  \
	X(PQgetvalue, const char *, (const struct pg_result *, int, int))                          \
	X(PQgetlength, int, (const struct pg_result *, int, int))

/* Since version 14; NULL in an older one. */
#define PQ_PIPELINE_CALLS(X)                            \
	X(PQenterPipelineMode, int, (struct pg_conn *)) \
	X(PQexitPipelineMode, int, (struct pg_conn *))  \
	X(PQpipelineSync, int, (struct pg_conn *))

struct pq {
#define X(name, type, takes) type(*name) takes;
	PQ_CALLS(X)
	PQ_PIPELINE_CALLS(X)
#undef X
};

/* -ENOENT, one line, when the machine has none. Never unloaded. */
int pp_pq_load(struct pq *ret, struct pp_error *err);

#endif
