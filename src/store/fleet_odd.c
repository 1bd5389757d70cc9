/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is unlike its like, and who was not heard from.
 *
 *   wiring      one of FEW nodes or fewer, where others with the same model of GPU are at least
 *               MANY alike
 *   software    in one wiring, another fingerprint than more than half of the nodes have
 *   module      in one wiring, another flavour of NVIDIA's module than more than half
 *   verdict     in one wiring and software, a worse one than more than half
 *   silent      what is known of it is older than was asked for: it may be anything by now
 *
 * Where no half agrees there is nothing to be unlike, and the classes say so.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "store/fleet_parts.h"
#include "store/fleet_tally.h"
#include "base/banned.h"

enum { MANY = 3, FEW = 2, EXPLAINED = 200, FACTS_SHOWN = 4, WIRINGS = 512, REASON = 160 };

struct looking {
	struct pp_sql *sql;
	struct pp_out *o;
	struct pp_error *err;
	const struct pp_fleet_states *s;
	struct pp_fleet_tally *tally;
	size_t n, explained;
	/* Rows come by class: the next one often differs in the same. */
	const char *here, *there;
	struct pp_buf difference;
};

static int explain(struct looking *l, const char *here, const char *there)
{
	if (pp_fleet_same(l->here, here) && pp_fleet_same(l->there, there))
		return 0;
	pp_buf_reset(&l->difference);
	l->here = here;
	l->there = there;
	return l->explained++ < EXPLAINED ? pp_fleet_difference(l->sql, here, there, FACTS_SHOWN,
								&l->difference, l->err)
					  : 0;
}

struct finding {
	const char *what, *value, *norm, *since;
	const char *like; /* facts of those that it is unlike; @value and @norm are digests then */
	const char *why;  /* else */
};

static int out_odd(struct looking *l, const struct pp_fleet_state *s, const struct finding *f)
{
	int r = f->like ? explain(l, s->facts, f->like) : 0;
	char a[9], b[9];
	bool brief = !pp_out_is_json(l->o) && f->like;

	pp_out_cell(l->o, s->node);
	pp_out_cell(l->o, s->host);
	pp_out_cell(l->o, f->what);
	pp_out_cell(l->o, brief ? pp_fleet_short(f->value, a) : f->value);
	pp_out_cell(l->o, brief ? pp_fleet_short(f->norm, b) : f->norm);
	pp_fleet_out_when(l->o, f->since);
	pp_out_cell(l->o, f->like && l->difference.len ? pp_buf_text(&l->difference) : f->why);
	l->n++;
	return r;
}

/* The facts that most of those with @norm share: any of them stands for all. */
static const char *facts_of_norm(const struct pp_fleet_states *s, size_t from, size_t to,
				 const char *norm)
{
	for (size_t i = from; i < to; i++)
		if (pp_fleet_same(s->list[i].software, norm) && s->list[i].facts)
			return s->list[i].facts;
	return NULL;
}

static int odd_software(struct looking *l, size_t from, size_t to)
{
	const char *software, *flavour, *like;
	int r = 0;

	if (!l->s->list[from].topology || to - from < MANY)
		return 0;
	*l->tally = (struct pp_fleet_tally){0};
	for (size_t i = from; i < to; i++)
		pp_fleet_tally_add(l->tally, l->s->list[i].software);
	software = pp_fleet_tally_norm(l->tally);
	like = software ? facts_of_norm(l->s, from, to, software) : NULL;
	*l->tally = (struct pp_fleet_tally){0};
	for (size_t i = from; i < to; i++)
		pp_fleet_tally_add(l->tally, l->s->list[i].flavour);
	flavour = pp_fleet_tally_norm(l->tally);
	for (size_t i = from; i < to && !r; i++) {
		const struct pp_fleet_state *s = &l->s->list[i];

		if (software && s->software && strcmp(s->software, software) != 0)
			r = out_odd(l, s,
				    &(struct finding){"software", s->software, software,
						      s->software_since, like, NULL});
		if (!r && flavour && s->flavour && strcmp(s->flavour, flavour) != 0)
			r = out_odd(l, s,
				    &(struct finding){"module", s->flavour, flavour,
						      s->software_since, NULL, NULL});
	}
	return r;
}

/* "prerequisites: ACS redirects ...": the first gate as bad as the whole, and what it found. */
static void reason_of(const struct pp_fleet_state *s, struct pp_buf *out)
{
	size_t n = s->sentence ? strlen(s->sentence) : 0;
	int gate = 0;

	while (gate < PP_GATES && !pp_fleet_same(s->gate[gate], s->verdict))
		gate++;
	if (gate < PP_GATES)
		pp_buf_printf(out, "%s%s", pp_gate_name((enum pp_gate)gate), n ? ": " : "");
	if (n > REASON)
		for (n = REASON; (s->sentence[n] & 0xc0) == 0x80; n--)
			;
	pp_buf_add(out, s->sentence ? s->sentence : "", n);
	if (s->sentence && s->sentence[n])
		pp_buf_str(out, "...");
}

static int out_verdict(struct looking *l, const struct pp_fleet_state *s, const char *norm)
{
	PP_AUTO_BUF struct pp_buf why = PP_BUF(1024);

	reason_of(s, &why);
	return out_odd(l, s,
		       &(struct finding){"verdict", s->verdict, norm, s->verdict_since, NULL,
					 why.len ? pp_buf_text(&why) : NULL});
}

static int odd_verdict(struct looking *l, size_t from, size_t to)
{
	enum pp_verdict usual, is;
	const char *norm;
	int r = 0;

	if (to - from < MANY)
		return 0;
	*l->tally = (struct pp_fleet_tally){0};
	for (size_t i = from; i < to; i++)
		pp_fleet_tally_add(l->tally, l->s->list[i].verdict);
	norm = pp_fleet_tally_norm(l->tally);
	if (!norm || pp_verdict_parse(norm, &usual))
		return 0;
	for (size_t i = from; i < to && !r; i++) {
		const struct pp_fleet_state *s = &l->s->list[i];

		if (s->verdict && !pp_verdict_parse(s->verdict, &is) && is > usual)
			r = out_verdict(l, s, norm);
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
		end = pp_fleet_end_of(s, i, true);
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
		end = pp_fleet_end_of(l->s, i, false);
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
		r = out_odd(l, &l->s->list[i],
			    &(struct finding){"wiring", l->s->list[i].topology,
					      l->s->list[best_at].topology,
					      l->s->list[i].topology_since, like, NULL});
	return r;
}

static int look(struct looking *l)
{
	size_t wirings = 0;
	int r = 0;

	for (size_t i = 0, end; i < l->s->n && !r; i = end, wirings++) {
		end = pp_fleet_end_of(l->s, i, false);
		/* As many wirings as nodes is no fleet with a norm: bounded work. */
		if (wirings < WIRINGS)
			r = odd_wiring(l, i, end);
		r = r ? r : odd_software(l, i, end);
		for (size_t k = i, last; k < end && !r; k = last) {
			last = pp_fleet_end_of(l->s, k, true);
			r = odd_verdict(l, k, last);
		}
	}
	return r;
}

static int odd_silent(struct looking *l, const char *before)
{
	int r = 0;

	for (size_t i = 0; i < l->s->n && !r; i++) {
		const struct pp_fleet_state *s = &l->s->list[i];

		if (s->at && *s->at && strcmp(s->at, before) < 0)
			r = out_odd(l, s,
				    &(struct finding){"silent", s->verdict, NULL, s->at, NULL,
						      "not heard from since"});
	}
	return r;
}

int pp_fleet_odd(struct pp_sql *sql, bool simulated, pp_ns silent_after, struct pp_out *o,
		 size_t *ret_found, struct pp_error *err)
{
	static const struct pp_out_column columns[] = {
		{"node", "NODE", false}, {"host", "NAME", false},   {"what", "WHAT", false},
		{"value", "IS", false},	 {"norm", "OTHERS", false}, {"since", "SINCE", false},
		{"differs", "WHY", true}};
	struct pp_fleet_states s;
	char before[32];
	struct looking l = {.sql = sql, .o = o, .err = err, .s = &s, .difference = PP_BUF(16384)};
	int r = pp_fleet_states(sql, simulated, &s, err);

	l.tally = r ? NULL : calloc(1, sizeof(*l.tally));
	if (!r && !l.tally)
		r = pp_error_set(err, -ENOMEM, "out of memory");
	if (!r) {
		pp_out_u64(o, "total", NULL, s.n);
		pp_out_u64(o, "silent_after_s", NULL, (uint64_t)(silent_after / PP_SECOND));
		pp_out_table(o, "odd", columns, PP_ARRAY_LEN(columns));
		pp_out_spare(o, "node norm since");
		r = look(&l);
		r = r ? r : odd_silent(&l, pp_fleet_silence(silent_after, before));
		pp_out_table_end(o);
		if (!l.n)
			pp_out_para(o, 0, "Nobody is unlike its like, or silent, among %zu nodes.",
				    s.n);
	}
	if (!r)
		*ret_found = l.n;
	free(l.tally);
	pp_buf_done(&l.difference);
	pp_fleet_states_done(&s);
	return r;
}
