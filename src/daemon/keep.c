/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/keep.h"

#include "daemon/keep_parts.h"
#include "base/banned.h"

static const struct pp_sql_step steps[] = {
	{"CREATE TABLE monitor_about (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) STRICT;"
	 "CREATE TABLE monitor_look (kind TEXT NOT NULL, object TEXT NOT NULL, watcher TEXT,"
	 " has_base INTEGER NOT NULL, bundled INTEGER NOT NULL, base TEXT, base_number REAL NOT "
	 "NULL,"
	 " known INTEGER NOT NULL, value TEXT, raw TEXT, number REAL NOT NULL,"
	 " wall_ns INTEGER NOT NULL, unknown TEXT, normal REAL NOT NULL, normal_n INTEGER NOT NULL,"
	 " rate REAL NOT NULL, away INTEGER NOT NULL, PRIMARY KEY (kind, object)) STRICT;"
	 "CREATE TABLE monitor_signal (id INTEGER NOT NULL PRIMARY KEY, kind TEXT NOT NULL,"
	 " level TEXT NOT NULL, object TEXT NOT NULL, before TEXT, after TEXT, text TEXT, raw TEXT,"
	 " since_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL, ended_ns INTEGER NOT NULL,"
	 " count INTEGER NOT NULL, restless INTEGER NOT NULL) STRICT;"
	 "CREATE TABLE monitor_telling (id INTEGER NOT NULL PRIMARY KEY, signal INTEGER NOT NULL,"
	 " wall_ns INTEGER NOT NULL, level TEXT NOT NULL, line TEXT NOT NULL, text TEXT NOT NULL)"
	 " STRICT;"
	 "CREATE TABLE monitor_event (number INTEGER NOT NULL PRIMARY KEY, kind TEXT NOT NULL,"
	 " name TEXT NOT NULL, signal INTEGER NOT NULL, wall_ns INTEGER NOT NULL) STRICT;"
	 "CREATE UNIQUE INDEX monitor_event_name ON monitor_event (kind, name);"
	 "CREATE TABLE monitor_mark (watcher TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,"
	 " PRIMARY KEY (watcher, key)) STRICT;"
	 "CREATE TABLE monitor_check (name TEXT NOT NULL PRIMARY KEY, verdict TEXT NOT NULL,"
	 " simulated INTEGER NOT NULL, run_ns INTEGER NOT NULL, duration_ns INTEGER NOT NULL)"
	 " STRICT"},
	{"CREATE TABLE monitor_earlier (signal INTEGER NOT NULL, place INTEGER NOT NULL,"
	 " of INTEGER NOT NULL, kind TEXT NOT NULL, level TEXT NOT NULL, object TEXT NOT NULL,"
	 " at_ns INTEGER NOT NULL, PRIMARY KEY (signal, place)) STRICT"},
	{NULL},
};

int pp_keep_prepare(struct pp_sql *sql, struct pp_error *err)
{
	return pp_sql_migrate(sql, "monitor", steps, err);
}

void pp_keep_all_dirty(struct pp_ledger *k)
{
	struct pp_subject *e = NULL;
	struct pp_mark *m = NULL;

	while ((e = pp_subject_next(k, e)))
		e->dirty = true;
	while ((m = pp_mark_next(k, m)))
		m->dirty = true;
	for (size_t i = 0; i < k->n_cases; i++)
		k->cases[i]->dirty = true;
	for (size_t i = 0; i < k->n_names; i++)
		k->ring[i]->stored = false;
	for (size_t i = 0; i < k->n_tellings; i++)
		k->tellings[i].stored = false;
	pp_ledger_urge(k, PP_NOW);
}
