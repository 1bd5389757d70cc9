/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "daemon/keep_parts.h"
#include "base/banned.h"

/* The connection and what to say of it, through all of a save. */
struct save {
	struct pp_sql *sql;
	struct pp_ledger *k;
	struct pp_error *err;
};

static int run(const struct save *s, const char *text, const struct pp_sql_value *args, size_t n)
{
	return pp_sql_run(s->sql, text, args, n, s->err);
}

static int about(const struct save *s, const char *name, const char *value)
{
	const struct pp_sql_value args[] = {pp_sql_text(name), pp_sql_text(value)};

	return run(s,
		   "INSERT INTO monitor_about (name, value) VALUES (?, ?) "
		   "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
		   args, PP_ARRAY_LEN(args));
}

static int about_number(const struct save *s, const char *name, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return about(s, name, text);
}

static int save_about(const struct save *s)
{
	const struct pp_ledger *k = s->k;
	const struct {
		const char *name, *value;
	} words[] = {{"id", k->id},
		     {"node", k->node},
		     {"boot", k->boot},
		     {"baseline", k->baseline},
		     {"version", PEERPATH_VERSION}};
	int r = 0;

	for (size_t i = 0; !r && i < PP_ARRAY_LEN(words); i++)
		r = about(s, words[i].name, words[i].value);
#define X(name, field) r = r ? r : about_number(s, name, (uint64_t)k->field);
	PP_KEEP_NUMBERS(X)
#undef X
	return r;
}

static int save_checks(const struct save *s)
{
	int r = run(s, "DELETE FROM monitor_check", NULL, 0);

	for (size_t i = 0; !r && i < s->k->n_checks; i++) {
		const struct pp_state_check *c = &s->k->check[i];
		const struct pp_sql_value args[] = {pp_sql_text(c->name),
						    pp_sql_text(pp_verdict_name(c->verdict)),
						    PP_SQL_INT(c->simulated), PP_SQL_INT(c->run_ns),
						    PP_SQL_INT(c->duration_ns)};

		r = run(s,
			"INSERT INTO monitor_check (name, verdict, simulated, run_ns, duration_ns)"
			" VALUES (?, ?, ?, ?, ?)",
			args, PP_ARRAY_LEN(args));
	}
	return r;
}

static int save_subject(const struct save *s, const struct pp_subject *e)
{
	const struct pp_sql_value args[PP_KEEP_LOOK_COLUMNS] = {
		pp_sql_text(pp_signal_key(e->kind)),
		pp_sql_text(e->object),
		pp_sql_text(e->watcher),
		PP_SQL_INT(e->has_base),
		PP_SQL_INT(e->base_bundled),
		pp_sql_text(e->base),
		PP_SQL_NUM(e->base_number),
		PP_SQL_INT(e->known),
		pp_sql_text(e->value),
		pp_sql_text(e->raw),
		PP_SQL_NUM(e->number),
		PP_SQL_INT(e->wall_ns),
		pp_sql_text(e->unknown),
		PP_SQL_NUM(e->normal),
		PP_SQL_INT((int64_t)e->n_normal),
		PP_SQL_NUM(e->rate),
		PP_SQL_INT(e->away),
	};

	if (e->dead)
		return run(s, "DELETE FROM monitor_look WHERE kind = ? AND object = ?", args, 2);
	return run(s,
		   "INSERT INTO monitor_look (" PP_KEEP_LOOK ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?,"
		   " ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (kind, object) DO UPDATE SET"
		   " watcher = excluded.watcher, has_base = excluded.has_base,"
		   " bundled = excluded.bundled, base = excluded.base,"
		   " base_number = excluded.base_number, known = excluded.known,"
		   " value = excluded.value, raw = excluded.raw, number = excluded.number,"
		   " wall_ns = excluded.wall_ns, unknown = excluded.unknown,"
		   " normal = excluded.normal, normal_n = excluded.normal_n,"
		   " rate = excluded.rate, away = excluded.away",
		   args, PP_ARRAY_LEN(args));
}

static int save_case(const struct save *s, const struct pp_case *c)
{
	const struct pp_sql_value args[PP_KEEP_SIGNAL_COLUMNS] = {
		PP_SQL_INT((int64_t)c->id),
		pp_sql_text(pp_signal_key(c->kind)),
		pp_sql_text(pp_level_name(c->level)),
		pp_sql_text(c->object),
		pp_sql_text(c->before),
		pp_sql_text(c->after),
		pp_sql_text(c->text),
		pp_sql_text(c->raw),
		PP_SQL_INT(c->since_ns),
		PP_SQL_INT(c->last_ns),
		PP_SQL_INT(c->ended_ns),
		PP_SQL_INT((int64_t)c->count),
		PP_SQL_INT(c->restless),
	};

	return run(s,
		   "INSERT INTO monitor_signal (" PP_KEEP_SIGNAL ") VALUES (?, ?, ?, ?, ?, ?, ?, ?,"
		   " ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET level = excluded.level,"
		   " before = excluded.before, after = excluded.after, text = excluded.text,"
		   " raw = excluded.raw, last_ns = excluded.last_ns,"
		   " ended_ns = excluded.ended_ns, count = excluded.count,"
		   " restless = excluded.restless",
		   args, PP_ARRAY_LEN(args));
}

/* They change only as a whole, with the alarm that names them. */
static int save_earlier(const struct save *s, const struct pp_case *c)
{
	const struct pp_sql_value of[] = {PP_SQL_INT((int64_t)c->id)};
	int r = run(s, "DELETE FROM monitor_earlier WHERE signal = ?", of, 1);

	for (size_t i = 0; !r && i < c->n_earlier; i++) {
		const struct pp_earlier *e = &c->earlier[i];
		const struct pp_sql_value args[] = {of[0],
						    PP_SQL_INT((int64_t)i),
						    PP_SQL_INT((int64_t)e->of),
						    pp_sql_text(pp_signal_key(e->kind)),
						    pp_sql_text(pp_level_name(e->level)),
						    pp_sql_text(e->object),
						    PP_SQL_INT(e->at_ns)};

		r = run(s,
			"INSERT INTO monitor_earlier (signal, place, of, kind, level, object,"
			" at_ns) VALUES (?, ?, ?, ?, ?, ?, ?)",
			args, PP_ARRAY_LEN(args));
	}
	return r;
}

static int save_looks(const struct save *s)
{
	const struct pp_subject *e = NULL;
	int r = 0;

	while (!r && (e = pp_subject_next(s->k, e)))
		if (e->dirty || e->dead)
			r = save_subject(s, e);
	for (size_t i = 0; !r && i < s->k->n_cases; i++)
		if (s->k->cases[i]->dirty) {
			r = save_case(s, s->k->cases[i]);
			if (!r && s->k->cases[i]->level == PP_LEVEL_ALARM)
				r = save_earlier(s, s->k->cases[i]);
		}
	return r;
}

static int save_names(const struct save *s)
{
	const struct pp_ledger *k = s->k;
	int r = 0;

	/* The newest stand at the end. */
	for (size_t i = k->n_names; !r && i > 0 && !k->ring[i - 1]->stored; i--) {
		const struct pp_event_name *n = k->ring[i - 1];
		const struct pp_sql_value args[] = {
			PP_SQL_INT((int64_t)n->number), pp_sql_text(pp_signal_key(n->kind)),
			pp_sql_text(n->name), PP_SQL_INT((int64_t)n->of), PP_SQL_INT(n->wall_ns)};

		/* One that memory forgot, for there were so many since, may still be there. */
		r = run(s,
			"INSERT INTO monitor_event (number, kind, name, signal, wall_ns)"
			" VALUES (?, ?, ?, ?, ?) ON CONFLICT (kind, name) DO NOTHING",
			args, PP_ARRAY_LEN(args));
	}
	return r;
}

static int save_tellings(const struct save *s)
{
	int r = 0;

	for (size_t i = 0; !r && i < s->k->n_tellings; i++) {
		const struct pp_telling *t = &s->k->tellings[i];
		const struct pp_sql_value args[] = {
			PP_SQL_INT((int64_t)t->id), PP_SQL_INT((int64_t)t->of),
			PP_SQL_INT(t->wall_ns),	    pp_sql_text(pp_level_name(t->level)),
			pp_sql_text(t->line),	    pp_sql_text(t->text)};

		if (!t->stored)
			r = run(s,
				"INSERT INTO monitor_telling (id, signal, wall_ns, level, line,"
				" text) VALUES (?, ?, ?, ?, ?, ?)",
				args, PP_ARRAY_LEN(args));
	}
	return r;
}

static int save_marks(const struct save *s)
{
	const struct pp_mark *m = NULL;
	int r = 0;

	while (!r && (m = pp_mark_next(s->k, m))) {
		const struct pp_sql_value args[] = {pp_sql_text(m->watcher), pp_sql_text(m->key),
						    pp_sql_text(m->value)};

		if (!m->dirty)
			continue;
		if (!*m->value)
			r = run(s, "DELETE FROM monitor_mark WHERE watcher = ? AND key = ?", args,
				2);
		else
			r = run(s,
				"INSERT INTO monitor_mark (watcher, key, value) VALUES (?, ?, ?)"
				" ON CONFLICT (watcher, key) DO UPDATE SET value = excluded.value",
				args, 3);
	}
	return r;
}

static int prune(const struct save *s)
{
	static const char *const texts[] = {
		"DELETE FROM monitor_signal WHERE ended_ns <> 0 AND id <= ?",
		"DELETE FROM monitor_telling WHERE id <= ?",
		"DELETE FROM monitor_event WHERE number <= ?",
	};
	const int64_t upto[] = {(int64_t)s->k->last_case - PP_KEEP_SIGNALS,
				(int64_t)s->k->last_telling - PP_KEEP_TELLINGS,
				(int64_t)s->k->last_name - PP_KEEP_NAMES};
	int r = 0;

	for (size_t i = 0; !r && i < PP_ARRAY_LEN(texts); i++) {
		const struct pp_sql_value args[] = {PP_SQL_INT(upto[i])};

		if (upto[i] > 0)
			r = run(s, texts[i], args, 1);
	}
	if (!r && upto[0] > 0)
		r = run(s,
			"DELETE FROM monitor_earlier WHERE signal NOT IN"
			" (SELECT id FROM monitor_signal)",
			NULL, 0);
	return r;
}

/* Only now is it known to be there. */
static void all_clean(struct pp_ledger *k)
{
	struct pp_subject *e = NULL;
	struct pp_mark *m = NULL;

	while ((e = pp_subject_next(k, e)))
		e->dirty = false;
	while ((m = pp_mark_next(k, m)))
		m->dirty = false;
	for (size_t i = 0; i < k->n_cases; i++)
		k->cases[i]->dirty = false;
	for (size_t i = 0; i < k->n_names; i++)
		k->ring[i]->stored = true;
	for (size_t i = 0; i < k->n_tellings; i++)
		k->tellings[i].stored = true;
	pp_subjects_bury(k);
	pp_marks_bury(k);
	pp_cases_forget(k);
	k->urgency = PP_NOT_URGENT;
}

int pp_keep_save(struct pp_sql *sql, struct pp_ledger *k, int64_t wall_ns, struct pp_error *err)
{
	static int (*const parts[])(const struct save *) = {
		save_about, save_checks, save_looks, save_names, save_tellings, save_marks, prune};
	const int64_t before = k->saved_ns;
	const struct save s = {.sql = sql, .k = k, .err = err};
	int r = pp_sql_begin(sql, err);

	if (r)
		return r;
	k->saved_ns = wall_ns;
	for (size_t i = 0; !r && i < PP_ARRAY_LEN(parts); i++)
		r = parts[i](&s);
	if (r) {
		pp_sql_rollback(sql);
		k->saved_ns = before;
		return r;
	}
	r = pp_sql_commit(sql, err);
	if (!r)
		all_clean(k);
	return r;
}
