/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words against the baseline's, and what can no longer be read.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/judge_parts.h"
#include "base/banned.h"

/* An alarm that the policy gives time to pass is early until then. */
static enum pp_signal_level level_now(const struct pp_threshold *t, enum pp_signal_kind kind,
				      int64_t held)
{
	enum pp_signal_level usual = pp_signal_usual(kind);

	if (!t->leveled)
		return usual;
	return t->level > usual && held < t->time ? usual : t->level;
}

int pp_judge_state(struct pp_ledger *k, struct pp_subject *e, const struct pp_round *round)
{
	const struct pp_threshold *t = pp_threshold_of(round->thresholds, e->kind, e->object);
	bool differs = e->has_base && strcmp(e->base, e->value) != 0;
	struct pp_shown s = {.on = differs, .before = e->base, .after = e->value, .raw = e->raw};
	char text[PP_SENTENCE], now[240], was[240], reason[PP_REASON];

	if (!differs)
		e->beyond_ns = 0;
	else if (!e->beyond_ns)
		e->beyond_ns = round->now_ns;
	s.quiet_ns = PP_QUIET_NS;
	if (differs) {
		s.level = level_now(t, e->kind, round->now_ns - e->beyond_ns);
		/* A restart does not take an alarm back that has been given. */
		if (e->of && !e->of->ended_ns && e->of->level > s.level && t->leveled &&
		    e->of->level <= t->level)
			s.level = e->of->level;
		(void)snprintf(text, sizeof(text), "%s of %s is %s; %s %s%s",
			       pp_signal_key(e->kind), e->object,
			       pp_short_text(e->value, now, sizeof(now)),
			       e->base_bundled ? "the baseline has" : "at the first look it was",
			       pp_short_text(e->base, was, sizeof(was)),
			       pp_level_reason(t, e->kind, s.level, reason));
		s.text = text;
	}
	return pp_case_show(k, e, &s, round);
}

/* How many of a kind cannot be read that could be, and the first of them. */
struct lost {
	size_t n;
	const struct pp_subject *first;
};

static int show_lost(struct pp_ledger *k, enum pp_signal_kind kind, const struct lost *lost,
		     const struct pp_round *round)
{
	const struct pp_threshold *t =
		pp_threshold_of(round->thresholds, PP_SIGNAL_WATCHER, pp_signal_key(kind));
	char text[PP_SENTENCE], why[240], object[240];
	struct pp_shown s = {.on = lost->n > 0, .before = "can be read", .quiet_ns = PP_QUIET_NS};
	struct pp_subject *e = pp_subject_find(k, PP_SIGNAL_WATCHER, pp_signal_key(kind));
	int r = 0;

	if (!e && !s.on)
		return 0;
	if (!e)
		r = pp_subject_get(k, PP_SIGNAL_WATCHER, pp_signal_key(kind), &e);
	if (r)
		return r == -E2BIG ? 0 : r;
	e->round = k->rounds;
	e->has_base = e->known = e->dirty = true;
	r = pp_text_set(&e->base, "can be read");
	if (!r)
		r = pp_text_set(&e->value, s.on ? "unknown" : "can be read");
	if (s.on) {
		s.level = level_now(t, PP_SIGNAL_WATCHER, 0);
		s.after = "unknown";
		(void)snprintf(text, sizeof(text), "%s of %s can no longer be read: %s%s",
			       pp_signal_key(kind),
			       pp_short_text(lost->first->object, object, sizeof(object)),
			       pp_short_text(lost->first->unknown, why, sizeof(why)),
			       lost->n > 1 ? "; nor can others of the kind" : "");
		s.text = text;
	}
	return r ? r : pp_case_show(k, e, &s, round);
}

int pp_judge_unknown(struct pp_ledger *k, const struct pp_round *round)
{
	struct lost lost[PP_SIGNAL_KINDS] = {0};
	const struct pp_subject *e = NULL;
	int r = 0;

	while ((e = pp_subject_next(k, e))) {
		if (e->dead || !e->unknown || (!e->known && !e->has_base))
			continue;
		if (!lost[e->kind].n++ || strcmp(e->object, lost[e->kind].first->object) < 0)
			lost[e->kind].first = e;
	}
	for (unsigned int i = 0; !r && i < PP_SIGNAL_KINDS; i++)
		if (i != PP_SIGNAL_WATCHER)
			r = show_lost(k, (enum pp_signal_kind)i, &lost[i], round);
	return r;
}
