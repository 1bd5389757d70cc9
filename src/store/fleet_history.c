/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the direct path gained, everywhere and in time: the farm's own knowledge of when it pays.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/fleet_parts.h"
#include "base/banned.h"

enum { RATIOS = 4 << 20, GROUPS = 8192, KEYS = 5 };
static const size_t GAINS_BYTES = (size_t)64 << 20;

/* Gains of one class, software, what, way, comparison and size. */
struct group {
	const char *key[KEYS], *unit;
	int64_t size;
	bool higher;
	double *ratio;
	size_t n, room, proven;
	/* Of the last in time; of several then, the least. */
	char last[32];
	double of_last, with, without;
};

struct gains {
	struct pp_arena arena;
	struct group group[GROUPS];
	size_t n, at;
};

static const char *text(const struct pp_sql_value *v)
{
	return v->type == PP_SQL_TEXT ? v->text : "";
}

static void cell(struct pp_out *o, const char *value)
{
	pp_out_cell(o, *value ? value : NULL);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void figure(struct pp_out *o, double value)
{
	if (pp_out_is_json(o) || value != value)
		pp_out_cell_double(o, value);
	else
		pp_out_cellf(o, "%.4g", value);
}

static void out_group(struct pp_out *o, struct group *g)
{
	size_t m = g->n / 2;
	char own[9];

	qsort(g->ratio, g->n, sizeof(*g->ratio), by_value);
	for (int i = 0; i < 2; i++) /* what is no digest ("mixed") is short enough */
		cell(o, pp_out_is_json(o) ? g->key[i] : pp_fleet_short(g->key[i], own));
	for (int i = 2; i < KEYS; i++)
		cell(o, g->key[i]);
	if (g->size < 0)
		pp_out_cell(o, NULL);
	else
		pp_out_cell_i64(o, g->size);
	pp_out_cell_i64(o, (int64_t)g->n);
	pp_out_cell_i64(o, (int64_t)g->proven);
	figure(o, g->n % 2 ? g->ratio[m] : (g->ratio[m - 1] + g->ratio[m]) / 2);
	figure(o, g->ratio[0]);
	figure(o, g->ratio[g->n - 1]);
	pp_out_cell(o, g->higher ? "higher" : "lower");
	figure(o, g->with);
	figure(o, g->without);
	cell(o, g->unit);
	pp_fleet_out_when(o, g->last);
}

static int add_ratio(struct group *g, double ratio)
{
	size_t room = g->room ? 2 * g->room : 64;
	double *grown;

	if (g->n == RATIOS)
		return -EFBIG;
	if (g->n == g->room) {
		grown = reallocarray(g->ratio, room, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		g->ratio = grown;
		g->room = room;
	}
	g->ratio[g->n++] = ratio;
	return 0;
}

static bool is_it(const struct group *g, const struct pp_sql_value *c)
{
	if (g->size != c[5].integer)
		return false;
	for (int i = KEYS - 1; i >= 0; i--)
		if (strcmp(g->key[i], text(&c[i])) != 0)
			return false;
	return true;
}

static struct group *find(struct gains *all, const struct pp_sql_value *c)
{
	struct group *g;

	for (size_t i = 0; i < all->n; i++) {
		size_t at = (all->at + i) % all->n;

		if (!is_it(&all->group[at], c))
			continue;
		all->at = at;
		return &all->group[at];
	}
	if (all->n == GROUPS)
		return NULL;
	all->at = all->n;
	g = &all->group[all->n++];
	*g = (struct group){.size = c[5].integer, .higher = c[8].integer != 0};
	for (int i = 0; i < KEYS; i++)
		g->key[i] = pp_arena_str(&all->arena, text(&c[i]));
	g->unit = pp_arena_str(&all->arena, text(&c[7]));
	return g;
}

/* Where several are the last, one of them is taken whatever order they came in. */
static void take_last(struct group *g, const struct pp_sql_value *c)
{
	double ratio = pp_fleet_number(&c[6]), with = pp_fleet_number(&c[10]);
	int later = strcmp(text(&c[12]), g->last);

	if (later < 0 ||
	    (!later && (ratio > g->of_last || (ratio >= g->of_last && !(with < g->with)))))
		return;
	(void)snprintf(g->last, sizeof(g->last), "%s", text(&c[12]));
	g->of_last = ratio;
	g->with = with;
	g->without = pp_fleet_number(&c[11]);
}

/* topology, software, what, way, against, size, ratio, unit, higher, proven, with, without, at */
static int take_gain(void *ctx, const struct pp_sql_value *c, size_t n)
{
	struct gains *all = ctx;
	struct group *g;

	if (n < 13 || c[5].type != PP_SQL_INTEGER || c[8].type != PP_SQL_INTEGER ||
	    c[9].type != PP_SQL_INTEGER)
		return -EBADMSG;
	g = find(all, c);
	if (!g)
		return -EFBIG;
	if (all->arena.failed)
		return -ENOMEM;
	g->proven += c[9].integer != 0;
	take_last(g, c);
	return add_ratio(g, pp_fleet_number(&c[6]));
}

static int by_key(const void *a, const void *b)
{
	const struct group *x = a, *y = b;
	int r = 0;

	for (int i = 0; i < KEYS && !r; i++)
		r = strcmp(x->key[i], y->key[i]);
	return r ? r : (x->size > y->size) - (x->size < y->size);
}

/* The table of what was found; empties @all. */
static void out_gains(struct gains *all, bool write, struct pp_out *o)
{
	static const struct pp_out_column columns[] = {{"topology", "WIRING", false},
						       {"software", "SOFTWARE", false},
						       {"what", "WHAT", true},
						       {"way", "WAY", true},
						       {"against", "AGAINST", true},
						       {"size_bytes", "BYTES", false},
						       {"measured", "N", false},
						       {"proven", "PROVEN", false},
						       {"median_ratio", "MEDIAN", false},
						       {"lowest_ratio", "LOWEST", false},
						       {"highest_ratio", "HIGHEST", false},
						       {"better", "BETTER", false},
						       {"last_with", NULL, false},
						       {"last_without", NULL, false},
						       {"unit", NULL, false},
						       {"last_at", "LAST", false}};

	pp_out_table(o, "gains", columns, PP_ARRAY_LEN(columns));
	pp_out_spare(o,
		     "last_at better lowest_ratio highest_ratio software measured proven topology");
	qsort(all->group, all->n, sizeof(*all->group), by_key);
	for (size_t i = 0; i < all->n; i++) {
		if (write)
			out_group(o, &all->group[i]);
		free(all->group[i].ratio);
	}
	pp_out_table_end(o);
	pp_arena_done(&all->arena);
}

static int find_gains(struct pp_sql *sql, bool simulated, const struct pp_history_filter *f,
		      const char *node, struct gains *all, struct pp_error *err)
{
	PP_AUTO_BUF struct pp_buf what = PP_BUF(2048), topology = PP_BUF(2048);
	PP_AUTO_BUF struct pp_buf software = PP_BUF(2048);
	const struct pp_sql_value yes = PP_SQL_INT(1), no = PP_SQL_INT(0);
	struct pp_sql_value args[9];

	pp_fleet_like(f->what, "%", &what);
	pp_fleet_like(f->topology, "", &topology);
	pp_fleet_like(f->software, "", &software);
	if (what.failed || topology.failed || software.failed)
		return pp_error_set(err, -EINVAL, "a filter is too long");
	args[0] = PP_SQL_INT(simulated);
	args[1] = f->what ? no : yes;
	args[2] = pp_sql_text(pp_buf_text(&what));
	args[3] = f->topology ? no : yes;
	args[4] = pp_sql_text(pp_buf_text(&topology));
	args[5] = f->software ? no : yes;
	args[6] = pp_sql_text(pp_buf_text(&software));
	args[7] = node ? no : yes;
	args[8] = pp_sql_text(node ? node : "");
	return pp_sql_ask(
		sql,
		"SELECT coalesce(d.topology, ''), coalesce(d.software, ''), g.what, "
		"coalesce(g.way, ''), coalesce(g.against, ''), coalesce(g.size, -1), "
		"g.ratio, g.unit, g.higher, g.proven, g.with_it, g.without_it, d.at FROM "
		"gains g JOIN documents d ON d.id = g.document WHERE d.simulated = ? AND "
		"g.ratio IS NOT NULL AND (1 = ? OR lower(g.what) LIKE lower(?) ESCAPE '\\') AND "
		"(1 = ? OR lower(d.topology) LIKE lower(?) ESCAPE '\\') AND (1 = ? OR "
		"lower(d.software) LIKE lower(?) ESCAPE '\\') AND (1 = ? OR g.document IN "
		"(SELECT document FROM results WHERE node = ?))",
		args, PP_ARRAY_LEN(args), take_gain, all, err);
}

static int gains(struct pp_sql *sql, bool simulated, const struct pp_history_filter *f,
		 const char *node, struct pp_out *o, struct pp_error *err)
{
	struct gains *all = calloc(1, sizeof(*all));
	int r;

	if (!all)
		return pp_error_set(err, -ENOMEM, "out of memory");
	all->arena = PP_ARENA(GAINS_BYTES);
	r = find_gains(sql, simulated, f, node, all, err);
	if (r && !err->code)
		(void)pp_error_set(err, r, "%s",
				   r == -EFBIG ? "more gains than are read" : "out of memory");
	out_gains(all, !r, o);
	free(all);
	return r;
}

/* A change of the node's state; equal ones in a row are one. */
struct trend {
	struct pp_out *o;
	char last[256];
	size_t n;
};

static int take_state(void *ctx, const struct pp_sql_value *c, size_t n)
{
	struct trend *t = ctx;
	char now[256], own[9];

	if (n < 5)
		return -EBADMSG;
	(void)snprintf(now, sizeof(now), "%s|%s|%s|%s", text(&c[1]), text(&c[2]), text(&c[3]),
		       text(&c[4]));
	if (!strcmp(now, t->last))
		return 0;
	(void)snprintf(t->last, sizeof(t->last), "%s", now);
	pp_fleet_out_when(t->o, text(&c[0]));
	cell(t->o, text(&c[1]));
	cell(t->o, text(&c[2]));
	for (size_t i = 3; i < 5; i++)
		cell(t->o, pp_out_is_json(t->o) || !*text(&c[i]) ? text(&c[i])
								 : pp_fleet_short(c[i].text, own));
	return 0;
}

static int take_figure(void *ctx, const struct pp_sql_value *c, size_t n)
{
	struct pp_out *o = ctx;

	if (n < 6)
		return -EBADMSG;
	pp_fleet_out_when(o, text(&c[0]));
	cell(o, text(&c[1]));
	for (size_t i = 2; i < 4; i++)
		if (c[i].type == PP_SQL_INTEGER && c[i].integer >= 0)
			pp_out_cell_i64(o, c[i].integer);
		else
			pp_out_cell(o, NULL);
	figure(o, pp_fleet_number(&c[4]));
	cell(o, text(&c[5]));
	return 0;
}

static int trend(struct pp_sql *sql, bool simulated, const char *node, struct pp_out *o,
		 struct pp_error *err)
{
	static const struct pp_out_column states[] = {{"at", "FROM", false},
						      {"verdict", "VERDICT", false},
						      {"flavour", "MODULE", false},
						      {"topology", "WIRING", false},
						      {"software", "SOFTWARE", false}};
	static const struct pp_out_column figures[] = {
		{"at", "AT", false},	   {"what", "WHAT", true},
		{"rail", "RAIL", false},   {"size_bytes", "BYTES", false},
		{"value", "VALUE", false}, {"unit", "UNIT", false}};
	const struct pp_sql_value args[] = {pp_sql_text(node), PP_SQL_INT(simulated)};
	struct trend t = {.o = o};
	int r;

	pp_out_str(o, "node", NULL, node);
	pp_out_heading(o, "What changed");
	pp_out_table(o, "changes", states, PP_ARRAY_LEN(states));
	r = pp_sql_ask(
		sql,
		"SELECT at, verdict, flavour, topology, software FROM results WHERE node = ? "
		"AND simulated = ? AND facts IS NOT NULL ORDER BY at, document",
		args, 2, take_state, &t, err);
	pp_out_table_end(o);
	if (r)
		return r;
	pp_out_heading(o, "What was measured, the newest 200");
	pp_out_table(o, "figures", figures, PP_ARRAY_LEN(figures));
	r = pp_sql_ask(sql,
		       "SELECT d.at, f.what, f.rail, coalesce(f.size, -1), f.value, f.unit FROM "
		       "figures f JOIN documents d ON d.id = f.document WHERE f.node = ? AND "
		       "d.simulated = ? ORDER BY d.at DESC, f.what, f.rail, f.document LIMIT 200",
		       args, 2, take_figure, o, err);
	pp_out_table_end(o);
	return r;
}

int pp_fleet_history(struct pp_sql *sql, bool simulated, const struct pp_history_filter *f,
		     struct pp_out *o, struct pp_error *err)
{
	char id[PP_NODE_ID];
	int r = f->node ? pp_fleet_find(sql, f->node, id, err) : 0;

	if (r)
		return r;
	r = gains(sql, simulated, f, f->node ? id : NULL, o, err);
	return r || !f->node ? r : trend(sql, simulated, id, o, err);
}
