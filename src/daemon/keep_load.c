/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "daemon/earlier.h"
#include "daemon/keep_parts.h"
#include "daemon/ledger_parts.h"
#include "base/banned.h"

/* Numbers go on from the largest there is: from this on a row is nobody's of ours. */
static const int64_t NUMBER_MOST = INT64_MAX / 2;

struct load {
	struct pp_sql *sql;
	struct pp_ledger *k;
	int64_t wall_ns, now_ns;
	size_t odd; /* rows left out */
	struct pp_error *err;
};

static const char *text_of(const struct pp_sql_value *v)
{
	return v->type == PP_SQL_TEXT ? v->text : NULL;
}

static int64_t int_of(const struct pp_sql_value *v)
{
	return v->type == PP_SQL_INTEGER ? v->integer : -1;
}

/* -1 for what is no number, which no caller takes for one. */
static double real_of(const struct pp_sql_value *v)
{
	if (v->type == PP_SQL_INTEGER)
		return (double)v->integer;
	return v->type == PP_SQL_REAL && isfinite(v->real) ? v->real : -1;
}

static bool is_flag(const struct pp_sql_value *v)
{
	return v->type == PP_SQL_INTEGER && (v->integer == 0 || v->integer == 1);
}

static bool is_number(const struct pp_sql_value *v)
{
	return int_of(v) > 0 && int_of(v) < NUMBER_MOST;
}

/* Of a clock that ran ahead when it was written; or of somebody's making. */
static int64_t past(const struct load *l, int64_t wall_ns)
{
	return wall_ns < 0 ? 0 : wall_ns > l->wall_ns ? l->wall_ns : wall_ns;
}

static int odd(struct load *l)
{
	l->odd++;
	return 0;
}

static int on_about(void *ctx, const struct pp_sql_value *c, size_t n)
{
	struct load *l = ctx;
	struct pp_ledger *k = l->k;
	const char *name = text_of(&c[0]), *value = n == 2 ? text_of(&c[1]) : NULL;
	struct {
		const char *name;
		char *to;
		size_t size;
	} words[] = {{"id", k->id, sizeof(k->id)},
		     {"node", k->node, sizeof(k->node)},
		     {"boot", k->boot, sizeof(k->boot)},
		     {"baseline", k->baseline, sizeof(k->baseline)}};
	uint64_t number;

	if (!name || !value)
		return odd(l);
	for (size_t i = 0; i < PP_ARRAY_LEN(words); i++) {
		if (strcmp(words[i].name, name) != 0)
			continue;
		if (strlen(value) >= words[i].size || !pp_is_text(value, strlen(value)))
			return odd(l);
		memcpy(words[i].to, value, strlen(value) + 1);
		return 0;
	}
#define X(key, field)                                                       \
	if (!strcmp(name, key)) {                                           \
		if (pp_parse_u64(value, 0, (uint64_t)NUMBER_MOST, &number)) \
			return odd(l);                                      \
		k->field = (__typeof__(k->field))number;                    \
		return 0;                                                   \
	}
	PP_KEEP_NUMBERS(X)
#undef X
	return 0;
}

static int set_texts(char **const to[], const struct pp_sql_value *const from[], size_t n)
{
	int r = 0;

	for (size_t i = 0; !r && i < n; i++)
		r = pp_text_set(to[i], text_of(from[i]));
	return r;
}

static int on_look(void *ctx, const struct pp_sql_value *c, size_t n)
{
	struct load *l = ctx;
	enum pp_signal_kind kind;
	enum pp_signal_shape shape;
	struct pp_subject *e;
	int r;

	if (n != PP_KEEP_LOOK_COLUMNS || !text_of(&c[0]) || !text_of(&c[1]) ||
	    pp_signal_find(text_of(&c[0]), &kind) || !is_flag(&c[3]) || !is_flag(&c[4]) ||
	    !is_flag(&c[7]) || !is_flag(&c[16]) || int_of(&c[14]) < 0 ||
	    int_of(&c[14]) > NUMBER_MOST)
		return odd(l);
	shape = pp_signal_shape(kind);
	/* What a rule compares must be there. */
	if (shape == PP_SHAPE_STATE &&
	    ((int_of(&c[3]) && !text_of(&c[5])) || (int_of(&c[7]) && !text_of(&c[8]))))
		return odd(l);
	r = pp_subject_get(l->k, kind, text_of(&c[1]), &e);
	if (r)
		return r == -E2BIG ? odd(l) : r;
	{
		char **const to[] = {&e->watcher, &e->base, &e->value, &e->raw, &e->unknown};
		const struct pp_sql_value *const from[] = {&c[2], &c[5], &c[8], &c[9], &c[12]};

		r = set_texts(to, from, PP_ARRAY_LEN(to));
	}
	e->has_base = int_of(&c[3]);
	e->base_bundled = int_of(&c[4]);
	e->base_number = real_of(&c[6]);
	e->known = int_of(&c[7]);
	e->number = real_of(&c[10]);
	e->wall_ns = past(l, int_of(&c[11]));
	e->normal = real_of(&c[13]);
	e->n_normal = (uint64_t)int_of(&c[14]);
	e->rate = real_of(&c[15]) > 0 ? real_of(&c[15]) : 0;
	e->away = int_of(&c[16]);
	return r;
}

/*
 * An open state, counter or gauge belongs to its look, so that it ends when that says so. Where its
 * look was left out an empty one takes its place, which the next look fills.
 */
static int attach(struct load *l, struct pp_case *c)
{
	int64_t ago = l->wall_ns - (c->ended_ns ? c->ended_ns : c->last_ns);
	struct pp_subject *e;
	int r = 0;

	/* Times of another process, as if they were of this one's clock. */
	c->last_now_ns = l->now_ns - ago;
	if (pp_signal_shape(c->kind) == PP_SHAPE_EVENT)
		return 0;
	e = pp_subject_find(l->k, c->kind, c->object);
	if (!e && !c->ended_ns)
		r = pp_subject_get(l->k, c->kind, c->object, &e);
	if (r || !e || (e->of && !e->of->ended_ns))
		return r == -E2BIG ? 0 : r;
	if (e->of)
		pp_case_detach(e->of);
	e->of = c;
	c->subject = e;
	return 0;
}

static int on_signal(void *ctx, const struct pp_sql_value *c, size_t n)
{
	struct load *l = ctx;
	struct pp_ledger *k = l->k;
	enum pp_signal_kind kind;
	enum pp_signal_level level;
	struct pp_case *new;
	uint64_t last = k->last_case;
	int r;

	if (n != PP_KEEP_SIGNAL_COLUMNS || !is_number(&c[0]) || !text_of(&c[1]) ||
	    pp_signal_find(text_of(&c[1]), &kind) || !text_of(&c[2]) ||
	    pp_level_find(text_of(&c[2]), &level) || !text_of(&c[3]) || !is_number(&c[11]) ||
	    !is_flag(&c[12]))
		return odd(l);
	if (k->n_cases && k->cases[k->n_cases - 1]->id >= (uint64_t)int_of(&c[0]))
		return odd(l);
	if (k->n_cases >= 2 * PP_LEDGER_SUBJECTS)
		return odd(l);
	r = pp_case_new(k, kind, text_of(&c[3]), &new);
	if (r)
		return r;
	new->id = (uint64_t)int_of(&c[0]);
	k->last_case = new->id > last ? new->id : last;
	new->level = level;
	{
		char **const to[] = {&new->before, &new->after, &new->text, &new->raw};
		const struct pp_sql_value *const from[] = {&c[4], &c[5], &c[6], &c[7]};

		r = set_texts(to, from, PP_ARRAY_LEN(to));
	}
	new->since_ns = past(l, int_of(&c[8]));
	new->last_ns = past(l, int_of(&c[9]));
	new->ended_ns = past(l, int_of(&c[10]));
	new->count = (uint64_t)int_of(&c[11]);
	new->restless = int_of(&c[12]);
	new->told_ns = new->ended_ns ? new->ended_ns : new->restless ? new->last_ns : new->since_ns;
	return r ? r : attach(l, new);
}

static int on_earlier(void *ctx, const struct pp_sql_value *c, size_t n)
{
	struct load *l = ctx;
	struct pp_earlier e = {0};
	struct pp_case *of;
	int r;

	if (n != 6 || !is_number(&c[0]) || !is_number(&c[1]) || !text_of(&c[2]) ||
	    pp_signal_find(text_of(&c[2]), &e.kind) || !text_of(&c[3]) ||
	    pp_level_find(text_of(&c[3]), &e.level) || !text_of(&c[4]))
		return odd(l);
	/* That of a signal which ended long ago is not read either. */
	of = pp_case_find(l->k, (uint64_t)int_of(&c[0]));
	if (!of)
		return 0;
	e.of = (uint64_t)int_of(&c[1]);
	e.at_ns = past(l, int_of(&c[5]));
	(void)snprintf(e.object, sizeof(e.object), "%s", text_of(&c[4]));
	pp_ledger_clean(e.object);
	r = pp_earlier_add(of, &e);
	return r == -E2BIG ? odd(l) : r;
}

static int on_telling(void *ctx, const struct pp_sql_value *c, size_t n)
{
	struct load *l = ctx;
	struct pp_ledger *k = l->k;
	struct pp_telling t = {.stored = true};
	int r;

	if (n != 6 || !is_number(&c[0]) || int_of(&c[1]) < 0 || !text_of(&c[3]) ||
	    pp_level_find(text_of(&c[3]), &t.level) || !text_of(&c[4]) || !text_of(&c[5]) ||
	    (k->n_tellings && k->tellings[k->n_tellings - 1].id >= (uint64_t)int_of(&c[0])))
		return odd(l);
	/* A line is one line, whoever wrote the row. */
	if (!pp_is_text(text_of(&c[4]), strlen(text_of(&c[4]))) || strchr(text_of(&c[4]), '\n'))
		return odd(l);
	t.id = (uint64_t)int_of(&c[0]);
	t.of = (uint64_t)int_of(&c[1]);
	t.wall_ns = past(l, int_of(&c[2]));
	t.line = strdup(text_of(&c[4]));
	t.text = strdup(text_of(&c[5]));
	if (!t.line || !t.text) {
		free(t.line);
		free(t.text);
		return -ENOMEM;
	}
	pp_sanitize(t.text, false);
	r = pp_telling_add(k, &t);
	if (t.id > k->last_telling)
		k->last_telling = t.id;
	return r;
}

static int on_event(void *ctx, const struct pp_sql_value *c, size_t n)
{
	struct load *l = ctx;
	enum pp_signal_kind kind;
	uint64_t number;
	int r;

	if (n != 5 || !is_number(&c[0]) || !text_of(&c[1]) ||
	    pp_signal_find(text_of(&c[1]), &kind) || !text_of(&c[2]) || int_of(&c[3]) < 0)
		return odd(l);
	if (pp_event_name_has(l->k, kind, text_of(&c[2])))
		return odd(l);
	number = l->k->last_name;
	r = pp_event_name_add(l->k, kind, text_of(&c[2]), (uint64_t)int_of(&c[3]),
			      past(l, int_of(&c[4])), true);
	if (r)
		return r;
	/* Its own number, and none that is given out again. */
	l->k->ring[l->k->n_names - 1]->number = (uint64_t)int_of(&c[0]);
	l->k->last_name = number > (uint64_t)int_of(&c[0]) ? number : (uint64_t)int_of(&c[0]);
	return 0;
}

static int on_mark(void *ctx, const struct pp_sql_value *c, size_t n)
{
	struct load *l = ctx;
	int r;

	if (n != 3 || !text_of(&c[0]) || !text_of(&c[1]) || !text_of(&c[2]))
		return odd(l);
	r = pp_mark_set(l->k, text_of(&c[0]), text_of(&c[1]), text_of(&c[2]));
	return r == -E2BIG ? odd(l) : r;
}

static int on_check(void *ctx, const struct pp_sql_value *c, size_t n)
{
	struct load *l = ctx;
	struct pp_ledger *k = l->k;
	struct pp_state_check check = {0};
	const char *name = n == 5 ? pp_ledger_check_name(text_of(&c[0])) : NULL;

	if (!name || !text_of(&c[1]) || pp_verdict_parse(text_of(&c[1]), &check.verdict) ||
	    !is_flag(&c[2]) || k->n_checks == PP_LEDGER_CHECKS)
		return odd(l);
	check.name = name;
	check.simulated = int_of(&c[2]);
	check.run_ns = past(l, int_of(&c[3]));
	check.duration_ns = int_of(&c[4]) > 0 ? int_of(&c[4]) : 0;
	k->check[k->n_checks++] = check;
	return 0;
}

static int load_all(struct load *l)
{
	const struct pp_ledger *k = l->k;
	const struct {
		const char *text;
		pp_sql_row *row;
		const uint64_t *after; /* what stands for '?' */
		uint64_t less;
	} rows[] = {
		{"SELECT name, value FROM monitor_about", on_about, NULL, 0},
		{"SELECT " PP_KEEP_LOOK " FROM monitor_look ORDER BY kind, object", on_look, NULL,
		 0},
		{"SELECT " PP_KEEP_SIGNAL
		 " FROM monitor_signal WHERE ended_ns = 0 OR id > ? ORDER BY id",
		 on_signal, &k->last_case, PP_LEDGER_ENDED},
		{"SELECT signal, of, kind, level, object, at_ns FROM monitor_earlier"
		 " ORDER BY signal, place",
		 on_earlier, NULL, 0},
		{"SELECT id, signal, wall_ns, level, line, text FROM monitor_telling"
		 " WHERE id > ? ORDER BY id",
		 on_telling, &k->told, 0},
		{"SELECT number, kind, name, signal, wall_ns FROM monitor_event"
		 " WHERE number > ? ORDER BY number",
		 on_event, &k->last_name, PP_LEDGER_NAMED},
		{"SELECT watcher, key, value FROM monitor_mark", on_mark, NULL, 0},
		{"SELECT name, verdict, simulated, run_ns, duration_ns FROM monitor_check"
		 " ORDER BY name",
		 on_check, NULL, 0},
	};
	int r = 0;

	for (size_t i = 0; !r && i < PP_ARRAY_LEN(rows); i++) {
		struct pp_sql_value args[1] = {PP_SQL_INT(0)};

		if (rows[i].after && *rows[i].after > rows[i].less)
			args[0].integer = (int64_t)(*rows[i].after - rows[i].less);
		r = pp_sql_ask(l->sql, rows[i].text, args, rows[i].after ? 1 : 0, rows[i].row, l,
			       l->err);
	}
	return r;
}

int pp_keep_load(struct pp_sql *sql, const char *node, int64_t wall_ns, int64_t now_ns,
		 struct pp_ledger **ret, size_t *ret_odd, struct pp_error *err)
{
	struct load l = {.sql = sql, .wall_ns = wall_ns, .now_ns = now_ns, .err = err};
	int r = pp_ledger_new(node, &l.k);

	if (r)
		return pp_error_set(err, r, "out of memory");
	r = load_all(&l);
	if (r) {
		pp_ledger_free(l.k);
		return err->code ? r : pp_error_set(err, r, "out of memory");
	}
	if (node)
		(void)snprintf(l.k->node, sizeof(l.k->node), "%s", node);
	for (struct pp_mark *m = NULL; (m = pp_mark_next(l.k, m));)
		m->dirty = false;
	l.k->urgency = PP_NOT_URGENT;
	*ret = l.k;
	*ret_odd = l.odd;
	return 0;
}
