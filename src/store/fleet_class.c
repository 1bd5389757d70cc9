/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classes of equal nodes, and who is unlike its like.
 *
 *   wiring      one of FEW nodes or fewer, where others with the same model of GPU are at least
 *               MANY alike
 *   software    in one wiring, another fingerprint than more than half of the nodes have
 *   module      in one wiring, another flavour of NVIDIA's module than more than half
 *   verdict     in one wiring and software, a worse one than more than half
 *
 * Where no half agrees there is nothing to be unlike, and the classes say so.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/fleet_parts.h"
#include "base/banned.h"

enum { MANY = 3, FEW = 2, EXPLAINED = 200, FACTS_SHOWN = 4, VALUES = 512 };

/* A value and how many have it. */
struct tally {
	const char *value[VALUES];
	size_t count[VALUES], n, all;
};

static void tally_add(struct tally *t, const char *value)
{
	size_t i;

	t->all++;
	if (!value)
		return;
	for (i = 0; i < t->n; i++)
		if (!strcmp(t->value[i], value))
			break;
	if (i == VALUES)
		return;
	if (i == t->n) {
		t->value[t->n] = value;
		t->count[t->n++] = 0;
	}
	t->count[i]++;
}

/* What more than half have; NULL: nothing. */
static const char *tally_norm(const struct tally *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (2 * t->count[i] > t->all)
			return t->value[i];
	return NULL;
}

static bool same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* "open 98, proprietary 2": the most frequent first. */
static void tally_text(const struct tally *t, struct pp_buf *out)
{
	bool done[VALUES] = {false};

	for (size_t k = 0; k < t->n && k < 8; k++) {
		size_t best = VALUES;

		for (size_t i = 0; i < t->n; i++)
			if (!done[i] && (best == VALUES || t->count[i] > t->count[best] ||
					 (t->count[i] == t->count[best] &&
					  strcmp(t->value[i], t->value[best]) < 0)))
				best = i;
		done[best] = true;
		pp_buf_printf(out, "%s%s %zu", k ? ", " : "", t->value[best], t->count[best]);
	}
	if (t->n > 8)
		pp_buf_printf(out, ", and %zu more", t->n - 8);
}

/* The end of the states that share their wiring, and their software if @software. */
static size_t end_of(const struct pp_fleet_states *s, size_t from, bool software)
{
	size_t i = from;

	while (i < s->n && same(s->list[i].topology, s->list[from].topology) &&
	       (!software || same(s->list[i].software, s->list[from].software)))
		i++;
	return i;
}

static void out_class(struct pp_out *o, const struct pp_fleet_states *s, size_t from, size_t to)
{
	PP_AUTO_BUF struct pp_buf flavours = PP_BUF(4096), verdicts = PP_BUF(4096);
	const struct pp_fleet_state *first = &s->list[from];
	struct tally *t = calloc(2, sizeof(*t));
	char own[9];
	bool mixed;

	if (!t) {
		for (int i = 0; i < 8; i++)
			pp_out_cell(o, "out of memory");
		return;
	}
	for (size_t i = from; i < to; i++) {
		tally_add(&t[0], s->list[i].flavour ? s->list[i].flavour : "unknown");
		tally_add(&t[1], s->list[i].verdict ? s->list[i].verdict : "none");
	}
	mixed = t[0].n > 1;
	tally_text(&t[0], &flavours);
	tally_text(&t[1], &verdicts);
	free(t);
	pp_out_cell(o, pp_out_is_json(o) ? first->topology : pp_fleet_short(first->topology, own));
	pp_out_cell(o, pp_out_is_json(o) ? first->software : pp_fleet_short(first->software, own));
	pp_out_cell_i64(o, (int64_t)(to - from));
	pp_out_cell(o, first->gpus);
	pp_out_cell(o, pp_buf_text(&flavours));
	pp_out_cell_bool(o, mixed);
	pp_out_cell(o, pp_buf_text(&verdicts));
	pp_out_cell(o, first->host ? first->host : first->node);
}

int pp_fleet_classes(struct pp_sql *sql, bool simulated, struct pp_out *o, struct pp_error *err)
{
	static const struct pp_out_column columns[] = {
		{"topology", "WIRING", false},	{"software", "SOFTWARE", false},
		{"nodes", "NODES", false},	{"gpus", "GPUS", true},
		{"flavours", "MODULES", true},	{"flavours_mixed", NULL, false},
		{"verdicts", "VERDICTS", true}, {"one_of_them", "ONE OF THEM", false}};
	static const struct pp_out_column wirings[] = {{"topology", "WIRING", false},
						       {"nodes", "NODES", false},
						       {"flavours", "MODULES, MIXED", true}};
	struct pp_fleet_states s = {0};
	struct tally *t = calloc(1, sizeof(*t));
	int r = t ? pp_fleet_states(sql, simulated, &s, err)
		  : pp_error_set(err, -ENOMEM, "out of memory");
	char own[9];

	if (r)
		goto out;
	pp_out_u64(o, "total", NULL, s.n);
	pp_out_table(o, "classes", columns, PP_ARRAY_LEN(columns));
	for (size_t i = 0, end; i < s.n; i = end) {
		end = end_of(&s, i, true);
		out_class(o, &s, i, end);
	}
	pp_out_table_end(o);
	/* One wiring with two flavours is what a migration leaves half done. */
	pp_out_heading(o, "Module flavours mixed in one wiring");
	pp_out_table(o, "mixed", wirings, PP_ARRAY_LEN(wirings));
	for (size_t i = 0, end; i < s.n; i = end) {
		PP_AUTO_BUF struct pp_buf text = PP_BUF(4096);

		end = end_of(&s, i, false);
		*t = (struct tally){0};
		for (size_t k = i; k < end; k++)
			tally_add(t, s.list[k].flavour);
		if (t->n < 2)
			continue;
		tally_text(t, &text);
		pp_out_cell(o, pp_out_is_json(o) ? s.list[i].topology
						 : pp_fleet_short(s.list[i].topology, own));
		pp_out_cell_i64(o, (int64_t)(end - i));
		pp_out_cell(o, pp_buf_text(&text));
	}
	pp_out_table_end(o);
out:
	free(t);
	pp_fleet_states_done(&s);
	return r;
}

struct looking {
	struct pp_sql *sql;
	struct pp_out *o;
	struct pp_error *err;
	const struct pp_fleet_states *s;
	struct tally *tally;
	size_t n, explained;
	/* Rows come by class: the next one often differs in the same. */
	const char *here, *there;
	struct pp_buf difference;
};

static int explain(struct looking *l, const char *here, const char *there)
{
	if (same(l->here, here) && same(l->there, there))
		return 0;
	pp_buf_reset(&l->difference);
	l->here = here;
	l->there = there;
	return l->explained++ < EXPLAINED ? pp_fleet_difference(l->sql, here, there, FACTS_SHOWN,
								&l->difference, l->err)
					  : 0;
}

static int out_odd(struct looking *l, const struct pp_fleet_state *s, const char *what,
		   const char *value, const char *norm, const char *since, const char *like)
{
	int r = like ? explain(l, s->facts, like) : 0;
	char a[9], b[9];
	bool brief = !pp_out_is_json(l->o) && like;

	pp_out_cell(l->o, s->node);
	pp_out_cell(l->o, s->host);
	pp_out_cell(l->o, what);
	pp_out_cell(l->o, brief ? pp_fleet_short(value, a) : value);
	pp_out_cell(l->o, brief ? pp_fleet_short(norm, b) : norm);
	pp_out_cell(l->o, since);
	pp_out_cell(l->o, like && l->difference.len ? pp_buf_text(&l->difference) : NULL);
	l->n++;
	return r;
}

/* The facts that most of those with @norm share: any of them stands for all. */
static const char *facts_of_norm(const struct pp_fleet_states *s, size_t from, size_t to,
				 const char *norm)
{
	for (size_t i = from; i < to; i++)
		if (same(s->list[i].software, norm) && s->list[i].facts)
			return s->list[i].facts;
	return NULL;
}

static int odd_software(struct looking *l, size_t from, size_t to)
{
	const char *software, *flavour, *like;
	int r = 0;

	if (!l->s->list[from].topology || to - from < MANY)
		return 0;
	*l->tally = (struct tally){0};
	for (size_t i = from; i < to; i++)
		tally_add(l->tally, l->s->list[i].software);
	software = tally_norm(l->tally);
	like = software ? facts_of_norm(l->s, from, to, software) : NULL;
	*l->tally = (struct tally){0};
	for (size_t i = from; i < to; i++)
		tally_add(l->tally, l->s->list[i].flavour);
	flavour = tally_norm(l->tally);
	for (size_t i = from; i < to && !r; i++) {
		const struct pp_fleet_state *s = &l->s->list[i];

		if (software && s->software && strcmp(s->software, software) != 0)
			r = out_odd(l, s, "software", s->software, software, s->software_since,
				    like);
		if (!r && flavour && s->flavour && strcmp(s->flavour, flavour) != 0)
			r = out_odd(l, s, "module", s->flavour, flavour, s->software_since, NULL);
	}
	return r;
}

static int odd_verdict(struct looking *l, size_t from, size_t to)
{
	enum pp_verdict usual, is;
	const char *norm;
	int r = 0;

	if (to - from < MANY)
		return 0;
	*l->tally = (struct tally){0};
	for (size_t i = from; i < to; i++)
		tally_add(l->tally, l->s->list[i].verdict);
	norm = tally_norm(l->tally);
	if (!norm || pp_verdict_parse(norm, &usual))
		return 0;
	for (size_t i = from; i < to && !r; i++) {
		const struct pp_fleet_state *s = &l->s->list[i];

		if (s->verdict && !pp_verdict_parse(s->verdict, &is) && is > usual)
			r = out_odd(l, s, "verdict", s->verdict, norm, s->verdict_since, NULL);
	}
	return r;
}

/* "NVIDIA H200" of "8 x NVIDIA H200 96.00...": the model stands behind the count. */
static bool same_model(const char *a, const char *b)
{
	const char *x = a ? strstr(a, " x ") : NULL, *y = b ? strstr(b, " x ") : NULL;
	const char *end;

	if (!x || !y)
		return false;
	end = strrchr(x, ' ');
	return end > x + 2 && !strncmp(x, y, (size_t)(end - x));
}

/* Of the software that most of them have. */
static const char *facts_of_most(const struct pp_fleet_states *s, size_t from, size_t to)
{
	size_t most = 0, at = from;

	for (size_t i = from, end; i < to; i = end) {
		end = end_of(s, i, true);
		if (end - i > most) {
			most = end - i;
			at = i;
		}
	}
	return s->list[at].facts;
}

/* The largest wiring with the same model; as few comparisons as there are wirings. */
static int odd_wiring(struct looking *l, size_t from, size_t to)
{
	const struct pp_fleet_state *first = &l->s->list[from];
	size_t best = 0, best_at = 0;
	const char *like;
	int r = 0;

	if (to - from > FEW || !first->topology)
		return 0;
	for (size_t i = 0, end; i < l->s->n; i = end) {
		end = end_of(l->s, i, false);
		if (i != from && end - i > best && l->s->list[i].topology &&
		    same_model(first->gpus, l->s->list[i].gpus)) {
			best = end - i;
			best_at = i;
		}
	}
	if (best < MANY)
		return 0;
	like = facts_of_most(l->s, best_at, best_at + best);
	for (size_t i = from; i < to && !r; i++)
		r = out_odd(l, &l->s->list[i], "wiring", l->s->list[i].topology,
			    l->s->list[best_at].topology, l->s->list[i].topology_since, like);
	return r;
}

static int look(struct looking *l)
{
	size_t wirings = 0;
	int r = 0;

	for (size_t i = 0, end; i < l->s->n && !r; i = end, wirings++) {
		end = end_of(l->s, i, false);
		/* As many wirings as nodes is no fleet with a norm: bounded work. */
		if (wirings < VALUES)
			r = odd_wiring(l, i, end);
		r = r ? r : odd_software(l, i, end);
		for (size_t k = i, last; k < end && !r; k = last) {
			last = end_of(l->s, k, true);
			r = odd_verdict(l, k, last);
		}
	}
	return r;
}

int pp_fleet_odd(struct pp_sql *sql, bool simulated, struct pp_out *o, size_t *ret_found,
		 struct pp_error *err)
{
	static const struct pp_out_column columns[] = {{"node", "NODE", false},
						       {"host", "NAME", false},
						       {"what", "WHAT", false},
						       {"value", "IS", false},
						       {"norm", "OTHERS", false},
						       {"since", "SINCE", false},
						       {"differs", "HERE AND THERE", true}};
	struct pp_fleet_states s;
	struct looking l = {.sql = sql, .o = o, .err = err, .s = &s, .difference = PP_BUF(16384)};
	int r = pp_fleet_states(sql, simulated, &s, err);

	l.tally = r ? NULL : calloc(1, sizeof(*l.tally));
	if (!r && !l.tally)
		r = pp_error_set(err, -ENOMEM, "out of memory");
	if (!r) {
		pp_out_u64(o, "total", NULL, s.n);
		pp_out_table(o, "odd", columns, PP_ARRAY_LEN(columns));
		r = look(&l);
		pp_out_table_end(o);
		if (!l.n)
			pp_out_para(o, 0, "Nobody is unlike its like among %zu nodes.", s.n);
	}
	if (!r)
		*ret_found = l.n;
	free(l.tally);
	pp_buf_done(&l.difference);
	pp_fleet_states_done(&s);
	return r;
}
