/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of facts, compared.
 */
#include <errno.h>
#include <string.h>

#include "store/fleet_parts.h"
#include "base/banned.h"

static const size_t SETS_BYTES = (size_t)4 << 20;

struct difference {
	struct pp_buf *out;
	size_t most, n;
};

static int take(void *ctx, const struct pp_sql_value *c, size_t n)
{
	struct difference *d = ctx;

	if (n < 3 || c[0].type != PP_SQL_TEXT)
		return -EBADMSG;
	if (d->n++ < d->most)
		pp_buf_printf(d->out, "%s%s: %s here, %s there", d->out->len ? "; " : "", c[0].text,
			      c[1].type == PP_SQL_TEXT ? c[1].text : "not known",
			      c[2].type == PP_SQL_TEXT ? c[2].text : "not known");
	return 0;
}

#define DIFFERENCE                                                                               \
	"SELECT f.fact, a.value, b.value FROM (SELECT fact FROM sets WHERE digest = ? UNION "    \
	"SELECT fact FROM sets WHERE digest = ?) f LEFT JOIN sets a ON a.digest = ? AND a.fact " \
	"= f.fact LEFT JOIN sets b ON b.digest = ? AND b.fact = f.fact WHERE coalesce(a.value, " \
	"'') <> coalesce(b.value, '') ORDER BY f.fact"

static int ask(struct pp_sql *sql, const char *here, const char *there, pp_sql_row *row, void *ctx,
	       struct pp_error *err)
{
	const struct pp_sql_value args[] = {pp_sql_text(here), pp_sql_text(there),
					    pp_sql_text(here), pp_sql_text(there)};

	return pp_sql_ask(sql, DIFFERENCE, args, 4, row, ctx, err);
}

int pp_fleet_difference(struct pp_sql *sql, const char *here, const char *there, size_t most,
			struct pp_buf *out, struct pp_error *err)
{
	struct difference d = {.out = out, .most = most};
	int r;

	if (!here || !there)
		return 0;
	r = ask(sql, here, there, take, &d, err);
	if (!r && d.n > most)
		pp_buf_printf(out, "; and %zu more", d.n - most);
	return r;
}

struct compared {
	struct pp_arena arena;
	const char *name[2], *facts[2];
	struct pp_out *o;
	size_t rows;
};

static int take_node(void *ctx, const struct pp_sql_value *c, size_t n)
{
	struct compared *x = ctx;

	if (n < 3)
		return -EBADMSG;
	x->name[x->rows] = pp_fleet_text(&x->arena, &c[1]);
	x->facts[x->rows] = pp_fleet_text(&x->arena, &c[2]);
	if (!x->name[x->rows])
		x->name[x->rows] = pp_fleet_text(&x->arena, &c[0]);
	return 0;
}

static int out_row(void *ctx, const struct pp_sql_value *c, size_t n)
{
	struct compared *x = ctx;

	if (n < 3)
		return -EBADMSG;
	for (size_t i = 0; i < 3; i++)
		pp_out_cell(x->o, c[i].type == PP_SQL_TEXT ? c[i].text : NULL);
	x->rows++;
	return 0;
}

static int rail_row(void *ctx, const struct pp_sql_value *c, size_t n)
{
	struct compared *x = ctx;
	double a, b;

	if (n < 5)
		return -EBADMSG;
	a = pp_fleet_number(&c[2]);
	b = pp_fleet_number(&c[3]);
	pp_out_cell_i64(x->o, c[0].integer);
	pp_out_cell(x->o, c[1].text);
	pp_out_cell_double(x->o, a);
	pp_out_cell_double(x->o, b);
	pp_out_cell(x->o, c[4].type == PP_SQL_TEXT ? c[4].text : NULL);
	return 0;
}

static int rails(struct pp_sql *sql, bool simulated, const char *a, const char *b,
		 struct compared *x, struct pp_error *err)
{
	static const struct pp_out_column columns[] = {{"rail", "RAIL", false},
						       {"what", "WHAT", true},
						       {"a", "A", false},
						       {"b", "B", false},
						       {"unit", "UNIT", false}};
	const struct pp_sql_value args[] = {pp_sql_text(b), PP_SQL_INT(simulated), pp_sql_text(a),
					    PP_SQL_INT(simulated)};
	int r;

	pp_out_heading(x->o, "Rails that both measured");
	pp_out_table(x->o, "rails", columns, PP_ARRAY_LEN(columns));
	r = pp_sql_ask(sql,
		       "SELECT a.rail, a.what, a.value, b.value, a.unit FROM rails a JOIN rails b "
		       "ON b.node = ? AND b.simulated = ? AND b.rail = a.rail AND b.what = a.what "
		       "WHERE a.node = ? AND a.simulated = ? ORDER BY a.rail, a.what",
		       args, 4, rail_row, x, err);
	pp_out_table_end(x->o);
	return r;
}

static int compare(struct pp_sql *sql, bool simulated, char id[2][PP_NODE_ID], struct compared *x,
		   struct pp_error *err)
{
	static const struct pp_out_column columns[] = {
		{"fact", "FACT", false}, {"a", "A", true}, {"b", "B", true}};
	int r = 0;

	for (x->rows = 0; x->rows < 2 && !r; x->rows++) {
		const struct pp_sql_value args[] = {pp_sql_text(id[x->rows]),
						    PP_SQL_INT(simulated)};

		r = pp_sql_ask(sql,
			       "SELECT n.id, n.host, s.facts FROM nodes n LEFT JOIN states s ON "
			       "s.node = n.id AND s.simulated = ? WHERE n.id = ?",
			       (const struct pp_sql_value[]){args[1], args[0]}, 2, take_node, x,
			       err);
	}
	if (r)
		return r;
	pp_out_str(x->o, "a", "A", x->name[0]);
	pp_out_str(x->o, "a_id", NULL, id[0]);
	pp_out_str(x->o, "b", "B", x->name[1]);
	pp_out_str(x->o, "b_id", NULL, id[1]);
	pp_out_bool(x->o, "comparable", NULL, x->facts[0] && x->facts[1]);
	if (!x->facts[0] || !x->facts[1])
		pp_out_para(x->o, 0,
			    "Facts of %s are not known: only its name was ever in a result.",
			    x->facts[0] ? x->name[1] : x->name[0]);
	x->rows = 0;
	pp_out_heading(x->o, "Facts that differ");
	pp_out_table(x->o, "facts", columns, PP_ARRAY_LEN(columns));
	if (x->facts[0] && x->facts[1])
		r = ask(sql, x->facts[0], x->facts[1], out_row, x, err);
	pp_out_table_end(x->o);
	if (!r && !x->rows && x->facts[0] && x->facts[1])
		pp_out_para(x->o, 0, "None: they are alike.");
	return r ? r : rails(sql, simulated, id[0], id[1], x, err);
}

int pp_fleet_diff(struct pp_sql *sql, bool simulated, const char *a, const char *b,
		  struct pp_out *o, struct pp_error *err)
{
	struct compared x = {.arena = PP_ARENA(SETS_BYTES), .o = o};
	char id[2][PP_NODE_ID];
	int r = pp_fleet_find(sql, a, id[0], err);

	r = r ? r : pp_fleet_find(sql, b, id[1], err);
	r = r ? r : compare(sql, simulated, id, &x, err);
	pp_arena_done(&x.arena);
	return r;
}
