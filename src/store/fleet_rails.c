/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rails by their position over all nodes of one wiring. A rail is slow everywhere when its median
 * is below SLOW of the median of all rails there, and so are two of three of its nodes: then it is
 * no node's fault but the wiring's, a switch's, a plane's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/fleet_parts.h"
#include "base/banned.h"

#define SLOW 0.9
enum { LEAST_NODES = 3, RAILS = 256, VALUES = 4 << 20 };

struct rail {
	int64_t number;
	size_t from, to; /* of the values, ascending */
};

struct group {
	struct pp_out *o;
	char topology[80], what[64], unit[16];
	double *value, *sorted;
	size_t n, room;
	struct rail rail[RAILS];
	size_t n_rails, slow;
};

static double median(const double *v, size_t n)
{
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void out_rail(struct group *g, const struct rail *rail, double all)
{
	size_t n = rail->to - rail->from, below = 0;
	double of_rail = median(g->value + rail->from, n);
	char own[9];
	bool slow;

	for (size_t i = rail->from; i < rail->to; i++)
		below += g->value[i] < SLOW * all;
	slow = n >= LEAST_NODES && of_rail < SLOW * all && 3 * below >= 2 * n;
	g->slow += slow;
	pp_out_cell(g->o, !*g->topology		 ? NULL
			  : pp_out_is_json(g->o) ? g->topology
						 : pp_fleet_short(g->topology, own));
	pp_out_cell(g->o, g->what);
	pp_out_cell_i64(g->o, rail->number);
	pp_out_cell_i64(g->o, (int64_t)n);
	pp_out_cell_double(g->o, of_rail);
	pp_out_cell_double(g->o, all);
	pp_out_cell(g->o, g->unit);
	pp_out_cell_i64(g->o, (int64_t)below);
	pp_out_cell_bool(g->o, slow);
}

static void end_group(struct group *g)
{
	double all;

	if (!g->n)
		return;
	memcpy(g->sorted, g->value, g->n * sizeof(*g->value));
	qsort(g->sorted, g->n, sizeof(*g->sorted), by_value);
	all = median(g->sorted, g->n);
	for (size_t i = 0; i < g->n_rails; i++)
		out_rail(g, &g->rail[i], all);
	g->n = 0;
	g->n_rails = 0;
}

static int add_value(struct group *g, double value)
{
	size_t room = g->room ? 2 * g->room : 4096;
	double *grown;

	if (g->n == VALUES)
		return -EFBIG;
	if (g->n == g->room) {
		grown = reallocarray(g->value, room, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		g->value = grown;
		grown = reallocarray(g->sorted, room, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		g->sorted = grown;
		g->room = room;
	}
	g->value[g->n++] = value;
	return 0;
}

static int take_row(void *ctx, const struct pp_sql_value *c, size_t n)
{
	struct group *g = ctx;
	struct rail *rail;

	if (n < 5 || c[0].type != PP_SQL_TEXT || c[1].type != PP_SQL_TEXT ||
	    c[2].type != PP_SQL_INTEGER)
		return -EBADMSG;
	if (strcmp(g->topology, c[0].text) != 0 || strcmp(g->what, c[1].text) != 0)
		end_group(g);
	if (!g->n_rails) {
		(void)snprintf(g->topology, sizeof(g->topology), "%s", c[0].text);
		(void)snprintf(g->what, sizeof(g->what), "%s", c[1].text);
		(void)snprintf(g->unit, sizeof(g->unit), "%s",
			       c[4].type == PP_SQL_TEXT ? c[4].text : "");
	}
	rail = g->n_rails ? &g->rail[g->n_rails - 1] : NULL;
	if (!rail || rail->number != c[2].integer) {
		if (g->n_rails == RAILS)
			return 0;
		rail = &g->rail[g->n_rails++];
		*rail = (struct rail){.number = c[2].integer, .from = g->n};
	}
	rail->to = g->n + 1;
	return add_value(g, pp_fleet_number(&c[3]));
}

int pp_fleet_rails(struct pp_sql *sql, bool simulated, struct pp_out *o, size_t *ret_found,
		   struct pp_error *err)
{
	static const struct pp_out_column columns[] = {
		{"topology", "WIRING", false},
		{"what", "WHAT", true},
		{"rail", "RAIL", false},
		{"nodes", "NODES", false},
		{"median", "MEDIAN", false},
		{"all_rails", "ALL RAILS", false},
		{"unit", "UNIT", false},
		{"nodes_below", "BELOW", false},
		{"slow_everywhere", "SLOW EVERYWHERE", false}};
	const struct pp_sql_value args[] = {PP_SQL_INT(simulated)};
	struct group *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return pp_error_set(err, -ENOMEM, "out of memory");
	g->o = o;
	pp_out_double(o, "slow_below_ratio", NULL, SLOW);
	pp_out_table(o, "rails", columns, PP_ARRAY_LEN(columns));
	r = pp_sql_ask(
		sql,
		"SELECT coalesce(s.topology, ''), r.what, r.rail, r.value, r.unit FROM rails "
		"r LEFT JOIN states s ON s.node = r.node AND s.simulated = r.simulated WHERE "
		"r.simulated = ? ORDER BY 1, 2, 3, 4",
		args, 1, take_row, g, err);
	if (!r)
		end_group(g);
	else if (!err->code)
		(void)pp_error_set(err, r, "%s",
				   r == -EFBIG ? "more rails than are read" : "out of memory");
	pp_out_table_end(o);
	pp_out_u64(o, "slow", NULL, g->slow);
	if (!r)
		*ret_found = g->slow;
	free(g->value);
	free(g->sorted);
	free(g);
	return r;
}
