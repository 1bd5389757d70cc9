/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of the fleet. Times are texts in UTC: they sort as they pass, alike everywhere.
 */
#include "store/fleet.h"

#include "base/banned.h"

static const struct pp_sql_step steps[] = {
	{"CREATE TABLE documents (id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, kind TEXT "
	 "NOT NULL, at TEXT NOT NULL, dated INTEGER NOT NULL, simulated INTEGER NOT NULL, verdict "
	 "TEXT, sentence TEXT, topology TEXT, software TEXT) STRICT;"
	 "CREATE TABLE nodes (id TEXT NOT NULL PRIMARY KEY, host TEXT, by_name INTEGER NOT NULL, "
	 "first_seen TEXT NOT NULL, last_seen TEXT NOT NULL) STRICT;"
	 "CREATE INDEX nodes_host ON nodes (host, last_seen);"
	 "CREATE TABLE parts (part TEXT NOT NULL PRIMARY KEY, node TEXT NOT NULL) STRICT;"
	 "CREATE INDEX parts_node ON parts (node);"
	 "CREATE TABLE assemblies (digest TEXT NOT NULL PRIMARY KEY, node TEXT NOT NULL) STRICT;"
	 "CREATE TABLE sets (digest TEXT NOT NULL, fact TEXT NOT NULL, value TEXT NOT NULL, "
	 "PRIMARY "
	 "KEY (digest, fact)) STRICT;"
	 "CREATE TABLE results (document INTEGER NOT NULL, node TEXT NOT NULL, at TEXT NOT NULL, "
	 "simulated INTEGER NOT NULL, topology TEXT, software TEXT, flavour TEXT, facts TEXT, "
	 "verdict TEXT, identity TEXT, prerequisites TEXT, memory TEXT, library TEXT, application "
	 "TEXT, PRIMARY KEY (document, node)) STRICT;"
	 "CREATE INDEX results_node ON results (node, simulated, at);"
	 "CREATE TABLE states (node TEXT NOT NULL, simulated INTEGER NOT NULL, at TEXT NOT NULL, "
	 "topology TEXT, topology_since TEXT, software TEXT, software_since TEXT, flavour TEXT, "
	 "facts TEXT, judged_at TEXT, verdict TEXT, verdict_since TEXT, sentence TEXT, identity "
	 "TEXT, prerequisites TEXT, memory TEXT, library TEXT, application TEXT, picture TEXT, "
	 "PRIMARY KEY (node, simulated)) STRICT;"
	 "CREATE INDEX states_class ON states (simulated, topology, software);"
	 "CREATE TABLE pictures (digest TEXT NOT NULL PRIMARY KEY, svg TEXT NOT NULL) STRICT;"
	 "CREATE TABLE figures (document INTEGER NOT NULL, node TEXT NOT NULL, rail INTEGER NOT "
	 "NULL, what TEXT NOT NULL, size INTEGER, value REAL NOT NULL, unit TEXT) STRICT;"
	 "CREATE INDEX figures_node ON figures (node, document);"
	 "CREATE TABLE rails (node TEXT NOT NULL, simulated INTEGER NOT NULL, rail INTEGER NOT "
	 "NULL, what TEXT NOT NULL, size INTEGER, value REAL NOT NULL, unit TEXT, hca TEXT, gpu "
	 "TEXT, at TEXT NOT NULL, document INTEGER NOT NULL, PRIMARY KEY (node, simulated, rail, "
	 "what)) STRICT;"
	 "CREATE TABLE gains (document INTEGER NOT NULL, what TEXT NOT NULL, way TEXT, against "
	 "TEXT, size INTEGER, with_it REAL, without_it REAL, ratio REAL, unit TEXT, higher INTEGER "
	 "NOT NULL, proven INTEGER NOT NULL) STRICT;"
	 "CREATE INDEX gains_document ON gains (document)"},
	{NULL},
};

int pp_fleet_open(const char *where, unsigned int flags, struct pp_sql **ret, struct pp_error *err)
{
	struct pp_sql *sql = NULL;
	int r = flags & PP_SQL_READ_ONLY ? pp_sql_open_reader(where, &sql, err)
					 : pp_sql_open(where, flags, &sql, err);

	r = r ? r : pp_sql_migrate(sql, "fleet", steps, err);
	if (r)
		sql = pp_sql_close(sql);
	else
		*ret = sql;
	return r;
}

int pp_fleet_renew(struct pp_sql *sql, struct pp_error *err)
{
	bool other = false;
	int r = pp_sql_renew(sql, &other, err);

	if (!r && other)
		r = pp_sql_migrate(sql, "fleet", steps, err);
	/* Somebody else's file: it is looked at again with each question. */
	if (r && other)
		pp_sql_lose(sql);
	return r;
}

int pp_fleet_alive(struct pp_sql *sql, struct pp_error *err)
{
	int r = pp_fleet_renew(sql, err);

	return r ? r : pp_sql_ask(sql, "SELECT 1 FROM documents LIMIT 1", NULL, 0, NULL, NULL, err);
}
