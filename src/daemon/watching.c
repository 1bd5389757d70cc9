/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/watching.h"

#include "base/clock.h"
#include "base/banned.h"

/* A round of those that look each round; and what is nearly due looks along with the others, so
 * that a node at rest is woken once. */
static const int64_t ROUND_NS = 10 * PP_SECOND, NEARLY_NS = 500 * PP_MILLISECOND;
enum { TEXTS = 16 << 20 };

static int64_t period_of(const struct pp_watching *w, size_t i)
{
	int64_t own = (int64_t)w->watchers[i]->period_ms * PP_MILLISECOND;

	if (w->period_ns)
		return w->period_ns;
	return own ? own : ROUND_NS;
}

static bool is_due(const struct pp_watching *w, size_t i)
{
	int64_t slack = period_of(w, i) / 4 < NEARLY_NS ? period_of(w, i) / 4 : NEARLY_NS;

	return w->context.now_ns + slack >= w->next_ns[i];
}

/* *ret_looked false: its answer is still to come. */
static int look(struct pp_watching *w, size_t i, bool *ret_looked, struct pp_error *err)
{
	const struct pp_watcher *watcher = w->watchers[i];
	const char *name = watcher->apart ? watcher->apart(&w->context) : NULL;

	*ret_looked = true;
	if (name)
		return pp_apart_look(&w->apart[i], watcher, name, &w->context, &w->looks,
				     ret_looked, err);
	return watcher->look(&w->context, &w->state[i], &w->looks, err);
}

int pp_watching_look(struct pp_watching *w, struct pp_round *round, struct pp_error *err)
{
	size_t n = 0;
	bool looked;
	int r = 0;

	pp_arena_done(&w->arena);
	w->arena = PP_ARENA(TEXTS);
	w->looks = (struct pp_looks){.arena = &w->arena};
	for (size_t i = 0; !r && i < PP_WATCHERS_MOST && w->watchers[i]; i++) {
		if (!is_due(w, i))
			continue;
		w->next_ns[i] = w->context.now_ns + period_of(w, i);
		w->part[n++] = (struct pp_round_part){w->watchers[i]->name, w->looks.n};
		r = look(w, i, &looked, err);
		n -= !looked;
		if (w->alive)
			w->alive(w->alive_ctx);
	}
	if (r)
		return err->code ? r : pp_error_set(err, r, "a watcher ran out of memory");
	round->looks = w->looks.looks;
	round->n = w->looks.n;
	round->parts = w->part;
	round->n_parts = n;
	round->left_out = w->looks.left_out;
	return 0;
}

int64_t pp_watching_next(const struct pp_watching *w)
{
	int64_t next = w->context.now_ns + ROUND_NS;

	for (size_t i = 0; i < PP_WATCHERS_MOST && w->watchers[i]; i++)
		if (w->next_ns[i] < next)
			next = w->next_ns[i];
	return next;
}

int64_t pp_watching_period(const struct pp_watching *w)
{
	int64_t least = INT64_MAX;

	for (size_t i = 0; i < PP_WATCHERS_MOST && w->watchers[i]; i++)
		if (period_of(w, i) < least)
			least = period_of(w, i);
	return least < INT64_MAX ? least : 0;
}

void pp_watching_done(struct pp_watching *w)
{
	for (size_t i = 0; i < PP_WATCHERS_MOST && w->watchers[i]; i++) {
		w->apart[i] = pp_apart_free(w->apart[i]);
		if (w->watchers[i]->end && w->state[i])
			w->watchers[i]->end(w->state[i]);
	}
	pp_arena_done(&w->arena);
	*w = (struct pp_watching){0};
}
