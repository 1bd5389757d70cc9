/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schemas, versioned. A version is how many steps were taken; steps are only ever added, so a
 * larger one was written by a newer program.
 */
#include "store/sql.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/sql_engine.h"
#include "base/banned.h"

enum { SCHEMA_BYTES = 1 << 20, NAME = 64 };

static int take_number(void *ctx, const struct pp_sql_value *columns, size_t n)
{
	int64_t *ret = ctx;

	if (n && columns[0].type == PP_SQL_INTEGER)
		*ret = columns[0].integer;
	return 0;
}

static int version_of(struct pp_sql *sql, const char *name, int64_t *ret, struct pp_error *err)
{
	const struct pp_sql_value args[] = {pp_sql_text(name)};
	int64_t there = 0;
	int r = pp_sql_ask(sql, sql->engine->has_schema, NULL, 0, take_number, &there, err);

	*ret = 0;
	if (r || !there)
		return r;
	return pp_sql_ask(sql, "SELECT version FROM peerpath_schema WHERE name = ?", args, 1,
			  take_number, ret, err);
}

static int take_name(void *ctx, const struct pp_sql_value *columns, size_t n)
{
	char *name = ctx;

	if (n && columns[0].type == PP_SQL_TEXT)
		(void)snprintf(name, NAME, "%.*s", (int)columns[0].len, columns[0].text);
	return 0;
}

/* A file with tables of another program, or of another part of this one, is not written to. */
static int refuse_others(struct pp_sql *sql, const char *name, struct pp_error *err)
{
	const struct pp_sql_value args[] = {pp_sql_text(name), pp_sql_text(name)};
	char other[NAME] = "";
	int64_t foreign = 0, there = 0;
	int r = sql->engine->is_foreign ? pp_sql_ask(sql, sql->engine->is_foreign, NULL, 0,
						     take_number, &foreign, err)
					: 0;

	if (r || !sql->engine->is_foreign)
		return r;
	if (foreign)
		return pp_error_set(err, -EPROTONOSUPPORT,
				    "%s: holds tables of another program; it is left as it is",
				    sql->where);
	r = pp_sql_ask(sql, sql->engine->has_schema, NULL, 0, take_number, &there, err);
	if (r || !there)
		return r;
	r = pp_sql_ask(sql,
		       "SELECT name FROM peerpath_schema WHERE name <> ? AND NOT EXISTS "
		       "(SELECT 1 FROM peerpath_schema WHERE name = ?) ORDER BY name LIMIT 1",
		       args, 2, take_name, other, err);
	if (r || !*other)
		return r;
	return pp_error_set(err, -EPROTONOSUPPORT,
			    "%s: is the database of '%s', not of '%s'; it is left as it is",
			    sql->where, other, name);
}

static int script(struct pp_sql *sql, const char *text, struct pp_error *err)
{
	PP_AUTO_BUF struct pp_buf own = PP_BUF(SCHEMA_BYTES);

	sql->engine->schema(text, &own);
	if (own.failed)
		return pp_error_set(err, own.failed, "a step of the schema does not fit");
	return sql->engine->script(sql, pp_buf_text(&own), err);
}

static int take_steps(struct pp_sql *sql, const char *name, const struct pp_sql_step *steps,
		      int64_t newest, struct pp_error *err)
{
	const struct pp_sql_value args[] = {pp_sql_text(name), PP_SQL_INT(newest)};
	int64_t version = 0;
	int r = 0;

	if (sql->engine->lock_schema)
		r = pp_sql_run(sql, sql->engine->lock_schema, NULL, 0, err);
	if (!r)
		r = script(sql,
			   "CREATE TABLE IF NOT EXISTS peerpath_schema (name TEXT NOT NULL PRIMARY "
			   "KEY, version INTEGER NOT NULL) STRICT",
			   err);
	/* Another may have taken them between the first look and the lock. */
	r = r ? r : version_of(sql, name, &version, err);
	for (int64_t i = version; !r && i < newest; i++) {
		r = script(sql, steps[i].text, err);
		if (r)
			pp_error_prefix(err, "step %lld of schema %s", (long long)i + 1, name);
	}
	if (!r && version < newest)
		r = pp_sql_run(sql,
			       "INSERT INTO peerpath_schema (name, version) VALUES (?, ?) "
			       "ON CONFLICT (name) DO UPDATE SET version = excluded.version",
			       args, 2, err);
	return r;
}

int pp_sql_migrate(struct pp_sql *sql, const char *name, const struct pp_sql_step *steps,
		   struct pp_error *err)
{
	int64_t newest = 0, version;
	int r;

	while (steps[newest].text)
		newest++;
	r = version_of(sql, name, &version, err);
	if (!r && !version)
		r = refuse_others(sql, name, err);
	if (r)
		return r;
	if (version < 0 || version > newest)
		return pp_error_set(err, -EPROTONOSUPPORT,
				    "the database has version %lld of schema %s, this program "
				    "knows %lld: use the newer program",
				    (long long)version, name, (long long)newest);
	if (version == newest)
		return 0;
	if (sql->flags & PP_SQL_READ_ONLY && !version)
		return pp_error_set(err, -EBADMSG,
				    "the database is no %s's: it has none of its tables", name);
	if (sql->flags & PP_SQL_READ_ONLY)
		return pp_error_set(err, -EROFS,
				    "the database has version %lld of schema %s, %lld is needed, "
				    "and it was opened to read",
				    (long long)version, name, (long long)newest);
	r = pp_sql_begin(sql, err);
	if (r)
		return r;
	r = take_steps(sql, name, steps, newest, err);
	if (r)
		pp_sql_rollback(sql);
	else
		r = pp_sql_commit(sql, err);
	return r;
}
