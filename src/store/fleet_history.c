/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the direct path gained, everywhere and in time: the farm's own knowledge of when it pays.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/fleet_parts.h"
#include "base/banned.h"

enum { RATIOS = 1 << 20 };

/* Gains of one class, software, what, way, comparison and size. */
struct group {
	struct pp_out *o;
	char key[6][PP_RESULT_TEXT + 1];
	char unit[32], first[32], last[32];
	int64_t size;
	double *ratio;
	size_t n, room, proven;
	double with, without; /* of the last in time */
	bool higher;
};

static const char *text(const struct pp_sql_value *v)
{
	return v->type == PP_SQL_TEXT ? v->text : "";
}

static void cell(struct pp_out *o, const char *value)
{
	pp_out_cell(o, *value ? value : NULL);
}

static void figure(struct pp_out *o, double value)
{
	if (pp_out_is_json(o) || value != value)
		pp_out_cell_double(o, value);
	else
		pp_out_cellf(o, "%.4g", value);
}

static void end_group(struct group *g)
{
	size_t m = g->n / 2;
	char own[9];

	if (!g->n)
		return;
	for (int i = 0; i < 2; i++) /* what is no digest ("mixed") is short enough */
		cell(g->o, pp_out_is_json(g->o) ? g->key[i] : pp_fleet_short(g->key[i], own));
	cell(g->o, g->key[2]);
	cell(g->o, g->key[3]);
	cell(g->o, g->key[4]);
	if (g->size < 0)
		pp_out_cell(g->o, NULL);
	else
		pp_out_cell_i64(g->o, g->size);
	pp_out_cell_i64(g->o, (int64_t)g->n);
	pp_out_cell_i64(g->o, (int64_t)g->proven);
	figure(g->o, g->n % 2 ? g->ratio[m] : (g->ratio[m - 1] + g->ratio[m]) / 2);
	figure(g->o, g->ratio[0]);
	figure(g->o, g->ratio[g->n - 1]);
	pp_out_cell(g->o, g->higher ? "higher" : "lower");
	figure(g->o, g->with);
	figure(g->o, g->without);
	cell(g->o, g->unit);
	cell(g->o, g->last);
	g->n = g->proven = 0;
	*g->last = '\0';
}

static int add_ratio(struct group *g, double ratio)
{
	size_t room = g->room ? 2 * g->room : 1024;
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

/* topology, software, what, way, against, size, ratio, unit, higher, proven, with, without, at */
static int take_gain(void *ctx, const struct pp_sql_value *c, size_t n)
{
	struct group *g = ctx;
	bool same = true;

	if (n < 13 || c[5].type != PP_SQL_INTEGER || c[8].type != PP_SQL_INTEGER ||
	    c[9].type != PP_SQL_INTEGER)
		return -EBADMSG;
	for (size_t i = 0; i < 5; i++)
		same = same && !strcmp(g->key[i], text(&c[i]));
	if (!same || g->size != c[5].integer)
		end_group(g);
	if (!g->n) {
		for (size_t i = 0; i < 5; i++)
			(void)snprintf(g->key[i], sizeof(g->key[i]), "%s", text(&c[i]));
		g->size = c[5].integer;
		g->higher = c[8].integer != 0;
		(void)snprintf(g->unit, sizeof(g->unit), "%s", text(&c[7]));
	}
	g->proven += c[9].integer != 0;
	if (strcmp(text(&c[12]), g->last) > 0) {
		(void)snprintf(g->last, sizeof(g->last), "%s", text(&c[12]));
		g->with = pp_fleet_number(&c[10]);
		g->without = pp_fleet_number(&c[11]);
	}
	return add_ratio(g, pp_fleet_number(&c[6]));
}

static int gains(struct pp_sql *sql, bool simulated, const struct pp_history_filter *f,
		 const char *node, struct pp_out *o, struct pp_error *err)
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
	PP_AUTO_BUF struct pp_buf what = PP_BUF(2048), topology = PP_BUF(2048);
	PP_AUTO_BUF struct pp_buf software = PP_BUF(2048);
	const struct pp_sql_value yes = PP_SQL_INT(1), no = PP_SQL_INT(0);
	struct pp_sql_value args[9];
	struct group *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return pp_error_set(err, -ENOMEM, "out of memory");
	pp_fleet_like(f->what, "%", &what);
	pp_fleet_like(f->topology, "", &topology);
	pp_fleet_like(f->software, "", &software);
	if (what.failed || topology.failed || software.failed) {
		free(g);
		return pp_error_set(err, -EINVAL, "a filter is too long");
	}
	args[0] = PP_SQL_INT(simulated);
	args[1] = f->what ? no : yes;
	args[2] = pp_sql_text(pp_buf_text(&what));
	args[3] = f->topology ? no : yes;
	args[4] = pp_sql_text(pp_buf_text(&topology));
	args[5] = f->software ? no : yes;
	args[6] = pp_sql_text(pp_buf_text(&software));
	args[7] = node ? no : yes;
	args[8] = pp_sql_text(node ? node : "");
	g->o = o;
	pp_out_table(o, "gains", columns, PP_ARRAY_LEN(columns));
	r = pp_sql_ask(
		sql,
		"SELECT coalesce(d.topology, ''), coalesce(d.software, ''), g.what, "
		"coalesce(g.way, ''), coalesce(g.against, ''), coalesce(g.size, -1), "
		"g.ratio, g.unit, g.higher, g.proven, g.with_it, g.without_it, d.at FROM "
		"gains g JOIN documents d ON d.id = g.document WHERE d.simulated = ? AND "
		"g.ratio IS NOT NULL AND (1 = ? OR lower(g.what) LIKE lower(?) ESCAPE '\\') AND "
		"(1 = ? OR lower(d.topology) LIKE lower(?) ESCAPE '\\') AND (1 = ? OR "
		"lower(d.software) LIKE lower(?) ESCAPE '\\') AND (1 = ? OR g.document IN "
		"(SELECT document FROM results WHERE node = ?)) ORDER BY 1, 2, 3, 4, 5, 6, "
		"7, 13, g.document, coalesce(g.with_it, 0), coalesce(g.without_it, 0)",
		args, PP_ARRAY_LEN(args), take_gain, g, err);
	if (!r)
		end_group(g);
	else if (!err->code)
		(void)pp_error_set(err, r, "%s",
				   r == -EFBIG ? "more gains than are read" : "out of memory");
	pp_out_table_end(o);
	free(g->ratio);
	free(g);
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
	cell(t->o, text(&c[0]));
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
	cell(o, text(&c[0]));
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
