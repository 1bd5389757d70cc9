/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/keep.h"
#include "daemon/state_make.h"
#include "base/banned.h"

static const char *copy(struct pp_arena *arena, const char *text)
{
	return text ? pp_arena_str(arena, text) : NULL;
}

static int by_kind(const void *a, const void *b)
{
	const struct pp_look *one = a, *two = b;

	if (one->kind != two->kind)
		return one->kind < two->kind ? -1 : 1;
	return strcmp(one->object, two->object);
}

static int make_looks(const struct pp_ledger *k, struct pp_arena *arena, struct pp_state *s)
{
	struct pp_look *looks = pp_arena_array(arena, k->n_subjects + 1, sizeof(*looks));
	const struct pp_subject *e = NULL;
	size_t n = 0;

	if (!looks)
		return -ENOMEM;
	while ((e = pp_subject_next(k, e))) {
		if (e->dead || (!e->known && !e->unknown) || e->kind == PP_SIGNAL_WATCHER)
			continue;
		/* The last figure of what is gone is no figure of now. */
		if (e->away && pp_signal_shape(e->kind) != PP_SHAPE_STATE)
			continue;
		looks[n++] = (struct pp_look){
			.kind = e->kind,
			.object = copy(arena, e->object),
			.value = e->unknown ? NULL : copy(arena, e->value),
			.number = e->number,
			.unknown = copy(arena, e->unknown),
			.raw = copy(arena, e->raw),
		};
	}
	qsort(looks, n, sizeof(*looks), by_kind);
	s->looks = looks;
	s->n_looks = n;
	return 0;
}

static void one_signal(const struct pp_case *c, struct pp_arena *arena, struct pp_signal *ret)
{
	*ret = (struct pp_signal){
		.kind = c->kind,
		.object = copy(arena, c->object),
		.level = c->level,
		.before = copy(arena, c->before),
		.after = copy(arena, c->after),
		.text = copy(arena, c->text),
		.next = pp_signal_next(c->kind),
		.raw = copy(arena, c->raw),
		.since_ns = c->since_ns,
		.last_ns = c->last_ns,
		.ended_ns = c->ended_ns,
		.count = c->count,
		.n_earlier = c->n_earlier,
	};
	if (c->n_earlier) {
		struct pp_earlier *list = pp_arena_array(arena, c->n_earlier, sizeof(*list));

		if (list)
			memcpy(list, c->earlier, c->n_earlier * sizeof(*list));
		ret->earlier = list;
	}
}

/* Open ones in their order, then those that ended, the newest first. */
static int make_signals(const struct pp_ledger *k, struct pp_arena *arena, struct pp_state *s)
{
	struct pp_signal *signals = pp_arena_array(arena, k->n_cases + 1, sizeof(*signals));
	size_t n = 0;

	if (!signals)
		return -ENOMEM;
	for (size_t i = 0; i < k->n_cases; i++)
		if (!k->cases[i]->ended_ns)
			one_signal(k->cases[i], arena, &signals[n++]);
	for (size_t i = k->n_cases; i-- > 0;)
		if (k->cases[i]->ended_ns)
			one_signal(k->cases[i], arena, &signals[n++]);
	s->signals = signals;
	s->n_signals = n;
	return 0;
}

int pp_state_make(const struct pp_ledger *k, int64_t wall_ns, struct pp_arena *arena,
		  struct pp_state *ret)
{
	struct pp_state s = {.now_ns = wall_ns,
			     .node = copy(arena, k->node),
			     .version = PEERPATH_VERSION,
			     .baseline = *k->baseline ? copy(arena, k->baseline) : NULL,
			     .baseline_ns = k->baseline_ns,
			     .started_ns = k->started_ns,
			     .round_ns = k->round_ns,
			     .period_ns = k->period_ns,
			     .rounds = k->rounds,
			     .n_checks = k->n_checks};
	struct pp_state_check *checks = pp_arena_array(arena, PP_LEDGER_CHECKS, sizeof(*checks));
	int r;

	if (!checks)
		return -ENOMEM;
	memcpy(checks, k->check, sizeof(k->check));
	s.checks = checks;
	r = make_looks(k, arena, &s);
	if (!r)
		r = make_signals(k, arena, &s);
	if (!r && arena->failed)
		r = -ENOMEM;
	if (!r)
		*ret = s;
	return r;
}

int pp_state_load(const char *where, struct pp_arena *arena, struct pp_state *ret,
		  struct pp_error *err)
{
	struct pp_ledger *k = NULL;
	struct pp_sql *sql = NULL;
	size_t odd;
	int r = pp_sql_open_reader(where, &sql, err);

	if (r)
		return r;
	r = pp_keep_prepare(sql, err);
	if (!r)
		r = pp_keep_load(sql, NULL, pp_clock_wall(), pp_clock_monotonic(), &k, &odd, err);
	pp_sql_close(sql);
	if (r)
		return r;
	r = pp_state_make(k, k->saved_ns, arena, ret);
	pp_ledger_free(k);
	return r ? pp_error_set(err, r, "out of memory") : 0;
}
