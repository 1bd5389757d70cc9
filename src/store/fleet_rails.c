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
enum { LEAST_NODES = 3, GROUPS = 8192, VALUES = 4 << 20 };
static const size_t NODES_BYTES = (size_t)256 << 20;

/* What was measured of one rail on all nodes of a wiring. */
struct group {
	const char *topology, *what, *unit;
	int64_t rail;
	double *value;
	size_t n, room;
};

struct node {
	const char *id, *topology;
};

struct rails {
	struct pp_arena arena;	  /* of nodes and texts */
	struct node *node;	  /* by id */
	size_t n_nodes, room, at; /* @at: where the rows are, which come by id too */
	struct group group[GROUPS];
	size_t n, last;
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

static int by_place(const void *a, const void *b)
{
	const struct group *x = a, *y = b;
	int r = strcmp(x->topology, y->topology);

	r = r ? r : strcmp(x->what, y->what);
	return r ? r : (x->rail > y->rail) - (x->rail < y->rail);
}

static int take_node(void *ctx, const struct pp_sql_value *c, size_t n)
{
	struct rails *all = ctx;
	struct node *grown;

	if (n < 2)
		return -EBADMSG;
	if (all->n_nodes == all->room) {
		all->room = all->room ? 2 * all->room : 1024;
		grown = pp_arena_array(&all->arena, all->room, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		if (all->n_nodes)
			memcpy(grown, all->node, all->n_nodes * sizeof(*grown));
		all->node = grown;
	}
	grown = &all->node[all->n_nodes++];
	grown->id = pp_fleet_text(&all->arena, &c[0]);
	grown->topology = pp_fleet_text(&all->arena, &c[1]);
	return all->arena.failed || !grown->id || !grown->topology ? -ENOMEM : 0;
}

static bool is_it(const struct group *g, const char *topology, const char *what, int64_t rail)
{
	return g->rail == rail && !strcmp(g->what, what) && !strcmp(g->topology, topology);
}

/* Nodes of one wiring have the same rows in the same order: the next group is the likely one. */
static struct group *find(struct rails *all, const char *topology, const struct pp_sql_value *c)
{
	struct group *g;

	for (size_t i = 0; i < all->n; i++) {
		size_t at = (all->last + 1 + i) % all->n;

		if (!is_it(&all->group[at], topology, c[2].text, c[1].integer))
			continue;
		all->last = at;
		return &all->group[at];
	}
	if (all->n == GROUPS)
		return NULL;
	all->last = all->n;
	g = &all->group[all->n++];
	*g = (struct group){.topology = topology,
			    .what = pp_fleet_text(&all->arena, &c[2]),
			    .unit = pp_fleet_text(&all->arena, &c[4]),
			    .rail = c[1].integer};
	return g;
}

static int add_value(struct group *g, double value)
{
	size_t room = g->room ? 2 * g->room : 64;
	double *grown;

	if (g->n == VALUES)
		return -EFBIG;
	if (g->n == g->room) {
		grown = reallocarray(g->value, room, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		g->value = grown;
		g->room = room;
	}
	g->value[g->n++] = value;
	return 0;
}

/* node, rail, what, value, unit */
static int take_row(void *ctx, const struct pp_sql_value *c, size_t n)
{
	struct rails *all = ctx;
	const char *topology = "";
	struct group *g;

	if (n < 5 || c[0].type != PP_SQL_TEXT || c[1].type != PP_SQL_INTEGER ||
	    c[2].type != PP_SQL_TEXT)
		return -EBADMSG;
	while (all->at < all->n_nodes && strcmp(all->node[all->at].id, c[0].text) < 0)
		all->at++;
	if (all->at < all->n_nodes && !strcmp(all->node[all->at].id, c[0].text))
		topology = all->node[all->at].topology;
	g = find(all, topology, c);
	if (!g)
		return -EFBIG;
	return all->arena.failed ? -ENOMEM : add_value(g, pp_fleet_number(&c[3]));
}

static bool out_rail(struct pp_out *o, const struct group *g, double all)
{
	double of_rail = median(g->value, g->n);
	size_t below = 0;
	char own[9];
	bool slow;

	for (size_t i = 0; i < g->n; i++)
		below += g->value[i] < SLOW * all;
	slow = g->n >= LEAST_NODES && of_rail < SLOW * all && 3 * below >= 2 * g->n;
	pp_out_cell(o, !*g->topology	   ? NULL
		       : pp_out_is_json(o) ? g->topology
					   : pp_fleet_short(g->topology, own));
	pp_out_cell(o, g->what);
	pp_out_cell_i64(o, g->rail);
	pp_out_cell_i64(o, (int64_t)g->n);
	pp_out_cell_double(o, of_rail);
	pp_out_cell_double(o, all);
	pp_out_cell(o, g->unit);
	pp_out_cell_i64(o, (int64_t)below);
	pp_out_cell_bool(o, slow);
	return slow;
}

/* All rails of one wiring and measure: the median of all their values, then each beside it. */
static int out_rails(struct pp_out *o, struct group *g, size_t n, size_t *slow)
{
	size_t total = 0, at = 0;
	double *all, of_all;

	for (size_t i = 0; i < n; i++)
		total += g[i].n;
	all = reallocarray(NULL, total ? total : 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		qsort(g[i].value, g[i].n, sizeof(*g[i].value), by_value);
		memcpy(all + at, g[i].value, g[i].n * sizeof(*all));
		at += g[i].n;
	}
	qsort(all, total, sizeof(*all), by_value);
	of_all = median(all, total);
	free(all);
	for (size_t i = 0; i < n; i++)
		*slow += out_rail(o, &g[i], of_all);
	return 0;
}

static int out_all(struct pp_out *o, struct rails *all, size_t *slow)
{
	int r = 0;

	qsort(all->group, all->n, sizeof(*all->group), by_place);
	for (size_t i = 0, end; i < all->n && !r; i = end) {
		for (end = i; end < all->n; end++)
			if (strcmp(all->group[end].topology, all->group[i].topology) != 0 ||
			    strcmp(all->group[end].what, all->group[i].what) != 0)
				break;
		r = out_rails(o, &all->group[i], end - i, slow);
	}
	return r;
}

static int ask(struct pp_sql *sql, bool simulated, struct rails *all, struct pp_error *err)
{
	const struct pp_sql_value args[] = {PP_SQL_INT(simulated)};
	int r = pp_sql_ask(sql,
			   "SELECT node, coalesce(topology, '') FROM states WHERE simulated = ? "
			   "ORDER BY node",
			   args, 1, take_node, all, err);

	return r ? r
		 : pp_sql_ask(sql,
			      "SELECT node, rail, what, value, unit FROM rails WHERE simulated = ? "
			      "ORDER BY node, rail, what",
			      args, 1, take_row, all, err);
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
	struct rails *all = calloc(1, sizeof(*all));
	size_t slow = 0;
	int r;

	if (!all)
		return pp_error_set(err, -ENOMEM, "out of memory");
	all->arena = PP_ARENA(NODES_BYTES);
	pp_out_double(o, "slow_below_ratio", NULL, SLOW);
	pp_out_table(o, "rails", columns, PP_ARRAY_LEN(columns));
	pp_out_spare(o, "nodes_below nodes");
	r = ask(sql, simulated, all, err);
	r = r ? r : out_all(o, all, &slow);
	if (r && !err->code)
		(void)pp_error_set(err, r, "%s",
				   r == -EFBIG ? "more rails than are read" : "out of memory");
	pp_out_table_end(o);
	pp_out_u64(o, "slow", NULL, slow);
	if (!r)
		*ret_found = slow;
	for (size_t i = 0; i < all->n; i++)
		free(all->group[i].value);
	pp_arena_done(&all->arena);
	free(all);
	return r;
}
