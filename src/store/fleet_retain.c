/* SPDX-License-Identifier: Apache-2.0 */
#include "store/fleet_retain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

static const int64_t SPAN = (int64_t)1 << 28; /* of ids: a byte each */
static const size_t NODE_BYTES = (size_t)256 << 20;

/* What a document says of the node that is looked at. */
struct row {
	int64_t document;
	const char *at, *topology, *software, *verdict; /* NULL: not told */
	bool simulated, whole;
};

struct retaining {
	struct pp_retain *r;
	const char *before;
	bool with_gains;
	struct pp_arena arena; /* of one node's rows */
	char node[PP_NODE_ID];
	struct row *row; /* by world, time, id */
	size_t n, room;
};

static unsigned char *flag(const struct pp_retain *r, int64_t document)
{
	/* The byte behind the last is of all that came in meanwhile: nobody reads it. */
	return &r->flag[document < r->first || document > r->last ? r->last - r->first + 1
								  : document - r->first];
}

static void need(const struct retaining *g, const struct row *row)
{
	if (row)
		*flag(g->r, row->document) |= PP_RETAIN_NEEDED;
}

static const char *topology(const struct row *row)
{
	return row->whole ? row->topology : NULL;
}

static const char *software(const struct row *row)
{
	return row->whole ? row->software : NULL;
}

static const char *verdict(const struct row *row)
{
	return row->verdict;
}

static const char *facts(const struct row *row)
{
	return row->whole ? "whole" : NULL;
}

/* The last of [@row, @end) that tells it, before the time asked for if @old. */
static const struct row *last(const struct retaining *g, const struct row *row,
			      const struct row *end, const char *(*tells)(const struct row *row),
			      bool old)
{
	while (end-- > row)
		if (tells(end) && (!old || strcmp(end->at, g->before) < 0))
			return end;
	return NULL;
}

/* The value that is now: what was another last, and what began it. */
static void need_since(const struct retaining *g, const struct row *row, const struct row *end,
		       const char *(*tells)(const struct row *row))
{
	const struct row *now = last(g, row, end, tells, false), *other = now, *first = row;

	if (!now)
		return;
	while (other >= row && (!tells(other) || !strcmp(tells(other), tells(now))))
		other--;
	if (other >= row)
		need(g, other);
	first = other >= row ? other + 1 : row;
	while (first < now && (!tells(first) || strcmp(tells(first), tells(now)) != 0 ||
			       (other >= row && !strcmp(first->at, other->at))))
		first++;
	need(g, first);
}

/* Whole results of hardware beside which @gain is classified; see fleet_classify.c. */
static void need_class(const struct retaining *g, const struct row *const *whole, size_t n,
		       const struct row *gain)
{
	size_t low = 0, high = n, at;

	while (low < high) {
		at = low + (high - low) / 2;
		if (strcmp(whole[at]->at, gain->at) <= 0)
			low = at + 1;
		else
			high = at;
	}
	if (low)
		need(g, whole[low - 1]);
	if (low < n && (!low || !whole[low - 1]->topology || !whole[low - 1]->software))
		need(g, whole[low]);
}

static int need_classes(struct retaining *g)
{
	const struct row **whole = pp_arena_array(&g->arena, g->n, sizeof(const struct row *));
	size_t n = 0;

	if (!whole)
		return -EFBIG;
	for (size_t i = 0; i < g->n; i++)
		if (g->row[i].whole && !g->row[i].simulated)
			whole[n++] = &g->row[i];
	for (size_t i = 0; i < g->n; i++) {
		const struct row *row = &g->row[i];

		if (!row->whole && (*flag(g->r, row->document) & PP_RETAIN_GAINS) &&
		    !(g->with_gains && strcmp(row->at, g->before) < 0))
			need_class(g, whole, n, row);
	}
	return 0;
}

static void need_of_world(const struct retaining *g, const struct row *row, const struct row *end)
{
	if (row == end)
		return;
	need(g, end - 1);
	for (int old = 0; old < 2; old++) {
		need(g, last(g, row, end, facts, old));
		need(g, last(g, row, end, verdict, old));
	}
	need_since(g, row, end, topology);
	need_since(g, row, end, software);
	need_since(g, row, end, verdict);
}

static int end_node(struct retaining *g)
{
	const struct row *end = g->row + g->n, *simulated = g->row;
	int r;

	if (!g->n)
		return 0;
	while (simulated < end && !simulated->simulated)
		simulated++;
	need_of_world(g, g->row, simulated);
	need_of_world(g, simulated, end);
	for (const struct row *row = g->row; row < end; row++)
		if (strcmp(row->at, g->before) < 0)
			*flag(g->r, row->document) |= PP_RETAIN_OLD;
	r = need_classes(g);
	pp_arena_done(&g->arena);
	g->row = NULL;
	g->n = g->room = 0;
	return r;
}

static int grow(struct retaining *g)
{
	size_t room = g->room ? 2 * g->room : 64;
	struct row *grown = pp_arena_array(&g->arena, room, sizeof(*grown));

	if (!grown)
		return -EFBIG;
	if (g->n)
		memcpy(grown, g->row, g->n * sizeof(*grown));
	g->row = grown;
	g->room = room;
	return 0;
}

/* node, simulated, at, document, topology, software, verdict, whole */
static int take_row(void *ctx, const struct pp_sql_value *c, size_t n)
{
	struct retaining *g = ctx;
	struct row *row;

	if (n < 8 || c[0].type != PP_SQL_TEXT || c[1].type != PP_SQL_INTEGER ||
	    c[2].type != PP_SQL_TEXT || c[3].type != PP_SQL_INTEGER || c[7].type != PP_SQL_INTEGER)
		return -EBADMSG;
	if (strcmp(g->node, c[0].text) != 0) {
		if (end_node(g))
			return -EFBIG;
		(void)snprintf(g->node, sizeof(g->node), "%s", c[0].text);
	}
	if (g->n == g->room && grow(g))
		return -EFBIG;
	row = &g->row[g->n++];
	*row = (struct row){.simulated = c[1].integer != 0,
			    .at = pp_fleet_text(&g->arena, &c[2]),
			    .document = c[3].integer,
			    .topology = pp_fleet_text(&g->arena, &c[4]),
			    .software = pp_fleet_text(&g->arena, &c[5]),
			    .verdict = pp_fleet_text(&g->arena, &c[6]),
			    .whole = c[7].integer != 0};
	return g->arena.failed ? -EFBIG : 0;
}

static int take_range(void *ctx, const struct pp_sql_value *c, size_t n)
{
	struct pp_retain *r = ctx;

	if (n < 2 || c[0].type != PP_SQL_INTEGER || c[1].type != PP_SQL_INTEGER)
		return 0; /* an empty table */
	r->first = c[0].integer;
	r->last = c[1].integer;
	return 0;
}

struct marking {
	struct pp_retain *r;
	unsigned char flag;
};

static int take_mark(void *ctx, const struct pp_sql_value *c, size_t n)
{
	const struct marking *m = ctx;

	if (n < 1 || c[0].type != PP_SQL_INTEGER)
		return -EBADMSG;
	*flag(m->r, c[0].integer) |= m->flag;
	return 0;
}

static int mark(struct pp_sql *sql, struct pp_retain *r, const char *ask, unsigned char with,
		struct pp_error *err)
{
	struct marking m = {.r = r, .flag = with};

	return pp_sql_ask(sql, ask, NULL, 0, take_mark, &m, err);
}

static int make(struct pp_sql *sql, struct pp_retain *r, struct pp_error *err)
{
	int64_t span;
	int ret = pp_sql_ask(sql, "SELECT min(id), max(id) FROM documents", NULL, 0, take_range, r,
			     err);

	if (ret)
		return ret;
	if (__builtin_sub_overflow(r->last, r->first, &span) || span < 0 || span >= SPAN)
		return pp_error_set(err, -EFBIG, "the documents' ids lie too far apart");
	r->flag = calloc((size_t)span + 2, 1);
	return r->flag ? 0 : pp_error_set(err, -ENOMEM, "out of memory");
}

int pp_retain(struct pp_sql *sql, const char *before, bool with_gains, struct pp_retain *ret,
	      struct pp_error *err)
{
	struct retaining g = {.r = ret,
			      .before = before,
			      .with_gains = with_gains,
			      .arena = PP_ARENA(NODE_BYTES)};
	int r;

	*ret = (struct pp_retain){0};
	r = make(sql, ret, err);
	r = r ? r : mark(sql, ret, "SELECT DISTINCT document FROM gains", PP_RETAIN_GAINS, err);
	if (!r)
		r = pp_sql_ask(sql,
			       "SELECT node, simulated, at, document, topology, software, verdict, "
			       "CASE WHEN facts IS NULL THEN 0 ELSE 1 END FROM results ORDER BY "
			       "node, simulated, at, document",
			       NULL, 0, take_row, &g, err);
	r = r ? r : end_node(&g);
	if (r == -EFBIG && !err->code)
		(void)pp_error_set(err, r, "a node has more results than are looked at");
	pp_arena_done(&g.arena);
	/* What was measured of a rail last is shown however long ago it was. */
	r = r ? r : mark(sql, ret, "SELECT DISTINCT document FROM rails", PP_RETAIN_NEEDED, err);
	return r ? r
		 : mark(sql, ret, "SELECT DISTINCT document FROM figures", PP_RETAIN_FIGURES, err);
}

void pp_retain_done(struct pp_retain *r)
{
	free(r->flag);
	*r = (struct pp_retain){0};
}
