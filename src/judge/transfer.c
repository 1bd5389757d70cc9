/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From rungs to rows and from pairs to the run.
 */
#include "judge/transfer.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "judge/transfer_parts.h"
#include "base/banned.h"

enum { ARENA_LIMIT = 512 << 20, SENTENCE = 640 };

const struct pp_margins pp_margins_default = {
	.spread = 0.05, .gpu_host = 0.90, .hop = 0.70, .from = 1 << 20};

const char *pp_size_text(struct pp_arena *a, uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	unsigned int i = 0;

	while (i + 1 < PP_ARRAY_LEN(units) && bytes >= 1024 && bytes % 1024 == 0) {
		bytes /= 1024;
		i++;
	}
	return pp_arena_printf(a, "%" PRIu64 " %s", bytes, units[i]);
}

static void keep_also(struct pp_remarks *m, const char *sentence)
{
	for (unsigned int i = 0; i < m->n_also; i++)
		if (!strcmp(m->also[i], sentence))
			return;
	if (m->n_also < PP_TRANSFER_ALSO)
		m->also[m->n_also++] = sentence;
}

void pp_remark(struct pp_transfer_case *c, enum pp_rung rung, enum pp_verdict verdict,
	       enum pp_remark_kind kind, const char *next, const char *fmt, ...)
{
	struct pp_remarks *m = &c->rung[rung];
	char text[SENTENCE];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (kind == PP_REMARK_SOUND && verdict >= PP_UNKNOWN)
		m->whole = false;
	if (m->sentence && !strcmp(m->sentence, text))
		return;
	if (m->sentence && verdict <= m->verdict && m->n_also == PP_TRANSFER_ALSO)
		return;
	if (m->sentence && verdict <= m->verdict)
		return keep_also(m, pp_arena_str(c->arena, text));
	if (m->sentence)
		keep_also(m, m->sentence);
	m->sentence = pp_arena_str(c->arena, text);
	m->verdict = verdict;
	m->next = next;
}

/* Marked so, or memory that can be nothing else. */
static bool is_simulated(const struct pp_bench *b, const struct pp_bench_pair *p)
{
	bool yes = b->simulated;

	for (unsigned int i = 0; i < 2; i++) {
		const struct pp_bench_end *e = &p->end[i];

		yes |= e->simulated;
		yes |= e->node < b->n_nodes && b->nodes[e->node].simulated;
	}
	for (unsigned int i = 0; i < PP_RUNGS; i++)
		yes |= p->rung[i].simulated || p->rung[i].memory == PP_MEMORY_SIM;
	return yes;
}

/* Nobody asked for a simulation, and the device is no hardware all the same. */
static const char *software_of(const struct pp_bench_pair *p)
{
	const char *first = pp_bench_software(&p->end[0]);

	return first ? first : pp_bench_software(&p->end[1]);
}

/* What a rung on which nothing was remarked says. */
static const char *good_sentence(struct pp_transfer_case *c, enum pp_rung rung)
{
	const struct pp_figure *f = pp_figure_largest(c, rung);
	const char *compared = "";
	uint64_t checked = 0;

	for (unsigned int i = 0; i < c->p->n_cells; i++)
		if (c->p->cells[i].rung == rung)
			checked += c->p->cells[i].checked;
	if (!f)
		return "ran";
	if (checked)
		compared = pp_arena_printf(c->arena, "; %" PRIu64 " bytes compared, none wrong",
					   checked);
	if (rung == PP_RUNG_TCP || isnan(f->host))
		return pp_arena_printf(c->arena, "%.0f MB/s at %s%s", f->median,
				       pp_size_text(c->arena, f->cell->size), compared);
	return pp_arena_printf(c->arena, "%.0f MB/s at %s, %.2f of host memory%s", f->median,
			       pp_size_text(c->arena, f->cell->size), f->host, compared);
}

static const char *with_also(struct pp_transfer_case *c, const struct pp_remarks *m)
{
	const char *text = m->sentence;

	for (unsigned int i = 0; i < m->n_also; i++)
		text = pp_arena_printf(c->arena, "%s; %s", text, m->also[i]);
	return text;
}

static struct pp_transfer_row *add_row(struct pp_transfer_case *c, enum pp_rung rung)
{
	struct pp_transfer_row *row = &c->t->rows[c->t->n_rows++];

	*row = (struct pp_transfer_row){.pair = c->pair, .rung = rung};
	return row;
}

static void rung_row(struct pp_transfer_case *c, enum pp_rung rung)
{
	struct pp_transfer_row *row = add_row(c, rung);
	struct pp_remarks *m = &c->rung[rung];

	if (!m->sentence)
		m->sentence = good_sentence(c, rung);
	row->verdict = m->verdict;
	row->sentence = with_also(c, m);
	row->hop = m->hop;
	row->counter = m->counter;
	row->cause = m->cause;
	row->next = m->next;
	row->mechanism = m->mechanism;
	row->registered = m->registered;
	row->claim = m->claim;
	row->witness = m->witness;
	row->seen = m->seen;
	row->exercised = c->simulated && m->whole && m->moved;
	/* nothing that is no hardware passes */
	if (c->simulated && row->verdict == PP_PASS)
		row->verdict = PP_UNKNOWN;
}

static bool is_beside_staged(const struct pp_figure *f, const struct pp_bench_cell *cell)
{
	return f && cell->measure == PP_BANDWIDTH && !cell->together && !isnan(f->staged);
}

/* Least size from which direct beats staged at every larger size too; 0 none. */
static void wins_from(struct pp_transfer_case *c)
{
	uint64_t lost = 0, won = UINT64_MAX;
	bool any = false;

	for (unsigned int i = 0; i < c->p->n_cells; i++) {
		const struct pp_bench_cell *cell = &c->p->cells[i];
		const struct pp_figure *f = pp_figure_of(c, cell);

		if (is_beside_staged(f, cell) && f->staged <= 1 && cell->size > lost)
			lost = cell->size;
		any |= is_beside_staged(f, cell);
	}
	for (unsigned int i = 0; i < c->p->n_cells; i++) {
		const struct pp_bench_cell *cell = &c->p->cells[i];

		if (is_beside_staged(pp_figure_of(c, cell), cell) && cell->size > lost &&
		    cell->size < won)
			won = cell->size;
	}
	c->wins_from = won == UINT64_MAX ? 0 : won;
	c->never_wins |= any && !c->wins_from;
}

static void totals(struct pp_transfer_case *c)
{
	struct pp_transfer *t = c->t;

	wins_from(c);
	for (unsigned int i = 0; i < PP_RUNGS; i++) {
		const struct pp_figure *f = pp_rung_is_direct((enum pp_rung)i)
						    ? pp_figure_largest(c, (enum pp_rung)i)
						    : NULL;

		if (f && !isnan(f->host) && !(t->gpu_host <= f->host))
			t->gpu_host = f->host;
		if (f && !isnan(f->staged) && !(t->direct_staged <= f->staged))
			t->direct_staged = f->staged;
	}
	if (c->wins_from > t->direct_wins_from)
		t->direct_wins_from = c->wins_from;
}

static int judge_pair(struct pp_transfer_case *c, unsigned int *figures)
{
	struct pp_transfer_row *row = add_row(c, PP_RUNGS);
	int r;

	c->p = &c->b->pairs[c->pair];
	c->simulated = is_simulated(c->b, c->p);
	c->t->simulated |= c->simulated;
	c->software = c->simulated ? NULL : software_of(c->p);
	c->simulated |= c->software != NULL;
	if (c->software)
		c->t->software = c->software;
	r = pp_transfer_figures(c, figures);
	if (r)
		return r;
	totals(c);
	for (unsigned int k = 0; k < PP_RUNGS; k++) {
		/* host memory first: what it says decides whether GPU memory is judged */
		enum pp_rung rung = k == 0 ? PP_RUNG_HOST : k == 1 ? PP_RUNG_TCP : (enum pp_rung)k;
		bool judged = rung == PP_RUNG_HOST || pp_rung_is_direct(rung);

		pp_transfer_rung(c, rung);
		pp_transfer_registration(c, rung);
		if (!judged || (rung != PP_RUNG_HOST && c->rung[PP_RUNG_HOST].fabric))
			continue;
		pp_transfer_margins(c, rung);
		pp_transfer_losses(c, rung);
	}
	pp_transfer_pair(c, row);
	for (unsigned int i = 0; i < PP_RUNGS; i++)
		rung_row(c, (enum pp_rung)i);
	return 0;
}

static void conclude(struct pp_transfer *t, const struct pp_bench *b)
{
	const struct pp_transfer_row *worst = NULL;

	t->passed = t->simulated && b->whole && b->n_pairs;
	t->verdict = PP_PASS;
	for (unsigned int i = 0; i < t->n_rows; i++) {
		const struct pp_transfer_row *row = &t->rows[i];

		if (row->rung != PP_RUNGS)
			continue;
		t->passed &= row->exercised;
		if (!worst || row->verdict > worst->verdict)
			worst = row;
	}
	if (worst) {
		t->verdict = worst->verdict;
		t->sentence = worst->sentence;
		t->next = worst->next;
	}
	if (!b->n_pairs || (!b->whole && t->verdict < PP_FAIL)) {
		t->verdict = PP_UNKNOWN;
		t->next = "peerpath bench PEER";
		t->sentence = pp_arena_printf(&t->arena, "the run is not whole: %s",
					      b->ended ? b->ended : "nothing was measured");
	}
	if ((t->simulated || t->software) && t->verdict < PP_UNKNOWN)
		t->verdict = PP_UNKNOWN;
	if (!t->simulated)
		return;
	if (t->passed) {
		t->next = "peerpath prove --peer HOST";
		t->sentence = pp_arena_printf(
			&t->arena, "chain exercised in simulation%s%s; no hardware was measured",
			worst->verdict == PP_DEGRADED ? ", with a remark: " : "",
			worst->verdict == PP_DEGRADED ? worst->sentence : "");
	} else {
		t->sentence = pp_arena_printf(&t->arena, "simulation failed: %s", t->sentence);
	}
}

int pp_transfer_judge(const struct pp_bench *b, const struct pp_margins *margins,
		      const struct pp_known_set *known, const struct pp_facts *facts,
		      struct pp_transfer *ret)
{
	struct pp_transfer t = {.gpu_host = NAN, .direct_staged = NAN, .simulated = b->simulated};
	struct pp_transfer_case c = {
		.b = b, .margins = margins, .known = known, .facts = facts, .t = &t};
	unsigned int cells = 0, figures = 0;
	int r = 0;

	t.arena = PP_ARENA(ARENA_LIMIT);
	c.arena = &t.arena;
	for (unsigned int i = 0; i < b->n_pairs; i++)
		cells += b->pairs[i].n_cells;
	t.figures = pp_arena_array(&t.arena, (size_t)cells + 1, sizeof(*t.figures));
	t.rows = pp_arena_array(&t.arena, (size_t)b->n_pairs * (PP_RUNGS + 1) + 1, sizeof(*t.rows));
	if (!t.figures || !t.rows)
		r = -ENOMEM;
	for (c.pair = 0; c.pair < b->n_pairs && !r; c.pair++)
		r = judge_pair(&c, &figures);
	if (!r)
		r = pp_transfer_index(&t);
	if (c.never_wins)
		t.direct_wins_from = 0;
	if (!r)
		conclude(&t, b);
	if (r || t.arena.failed) {
		pp_arena_done(&t.arena);
		return r ? r : -ENOMEM;
	}
	*ret = t;
	return 0;
}

void pp_transfer_done(struct pp_transfer *t)
{
	pp_arena_done(&t->arena);
	*t = (struct pp_transfer){0};
}
