/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums that grow, and numbers with bounds.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/judge_parts.h"
#include "base/banned.h"

/* A number is within again when it has come back by this share of its bound. */
static const double BACK = 0.1;
static const double ROUND_32 = 4294967296.0;

enum {
	NORMAL_LEAST = 10, /* looks before a mean is called what is normal */
	NORMAL_MOST = 240, /* of so many: older ones fade */
};

static double seconds_since(const struct pp_subject *e, const struct pp_round *round)
{
	int64_t ns = e->now_ns ? round->now_ns - e->now_ns : round->wall_ns - e->wall_ns;

	return ns > 1000000 ? (double)ns / 1e9 : 1e-3;
}

/*
 * How much more there is than at the last look. A sum that is smaller began anew: what it has by
 * now is of an unknown time, and no growth. One of 32 bits that goes round continues from 0: taken
 * for that only if so much is in proportion to what it did before.
 */
static double growth_of(const struct pp_subject *e, double number, double seconds)
{
	double over = number + ROUND_32 - e->number, likely = 8 * e->rate * seconds;

	if (!e->known || e->away)
		return 0;
	if (number >= e->number)
		return number - e->number;
	if (e->number < ROUND_32 && over <= (likely > 65536 ? likely : 65536))
		return over;
	return 0;
}

struct growth {
	double more, seconds, rate;
};

static void counter_text(const struct pp_subject *e, const struct growth *g,
			 const struct pp_threshold *t, enum pp_signal_level level, char *text,
			 size_t size)
{
	char bound[96], reason[PP_REASON];

	(void)snprintf(text, size, "%s of %s: %.6g more within %.3g s, %.3g per second%s%s%s",
		       pp_signal_key(e->kind), e->object, g->more, g->seconds, g->rate,
		       t->above.given ? ", " : "",
		       t->above.given ? pp_bound_text(&t->above, "above", NAN, bound, sizeof(bound))
				      : "",
		       pp_level_reason(t, e->kind, level, reason));
}

/* Since when a bound has been broken; true when for as long as the policy wants. */
static bool held(struct pp_subject *e, bool beyond, int64_t time, const struct pp_round *round)
{
	if (!beyond)
		e->beyond_ns = 0;
	else if (!e->beyond_ns)
		e->beyond_ns = round->now_ns;
	return beyond && round->now_ns - e->beyond_ns >= time;
}

static bool is_open(const struct pp_subject *e)
{
	return e->of && !e->of->ended_ns && !e->of->quiet_now_ns;
}

/* With a bound `.for` is how long it must be broken. */
static int64_t quiet_of(const struct pp_threshold *t)
{
	return t->time && !t->above.given ? t->time : PP_QUIET_NS;
}

int pp_judge_counter(struct pp_ledger *k, struct pp_subject *e, const struct pp_look *look,
		     const struct pp_round *round)
{
	const struct pp_threshold *t = pp_threshold_of(round->thresholds, e->kind, e->object);
	struct growth g = {.seconds = seconds_since(e, round)};
	struct pp_shown s = {.numbers = true, .quiet_ns = PP_QUIET_NS, .raw = e->raw};
	char text[PP_SENTENCE], before[40], after[40];
	double bound = t->above.number;

	g.more = growth_of(e, look->number, g.seconds);
	g.rate = g.more / g.seconds;
	e->rate = g.rate;
	if (t->above.given ? g.rate > bound * (1 - BACK) : g.more > 0)
		e->moved_ns = round->now_ns;
	s.level = t->leveled ? t->level : pp_signal_usual(e->kind);
	if (t->above.given)
		s.on = held(e, g.rate > (is_open(e) ? bound * (1 - BACK) : bound), t->time,
			    round) ||
		       (is_open(e) && e->beyond_ns);
	else
		s.on = g.more > 0;
	if (!s.on && is_open(e)) {
		/* A restart counts as a look that moved: how long it was quiet is not known. */
		if (!e->moved_ns)
			e->moved_ns = round->now_ns;
		if (round->now_ns - e->moved_ns < quiet_of(t))
			return 0;
	}
	if (s.on) {
		(void)snprintf(before, sizeof(before), "%.15g", e->number);
		(void)snprintf(after, sizeof(after), "%.15g", look->number);
		counter_text(e, &g, t, s.level, text, sizeof(text));
		s.before = before;
		s.after = after;
		s.text = text;
	}
	return pp_case_show(k, e, &s, round);
}

/* What is normal for it: what the baseline has, else its own mean; NAN: not known yet. */
static double normal_of(const struct pp_subject *e)
{
	if (e->base_bundled)
		return e->base_number;
	return e->n_normal >= NORMAL_LEAST ? e->normal : NAN;
}

static void learn(struct pp_subject *e, double number)
{
	if (e->n_normal < NORMAL_MOST)
		e->n_normal++;
	e->normal += (number - e->normal) / (double)e->n_normal;
}

/* The bound that is broken, with its word; NULL: none. An open one is broken until it is back. */
static const struct pp_bound *broken(const struct pp_subject *e, const struct pp_threshold *t,
				     double number, const char **ret_word)
{
	double normal = normal_of(e), back = is_open(e) ? BACK : 0, bound;

	if (t->above.given) {
		bound = pp_bound_number(&t->above, normal);
		*ret_word = "above";
		if (number > bound - fabs(bound) * back)
			return &t->above;
	}
	if (t->below.given) {
		bound = pp_bound_number(&t->below, normal);
		*ret_word = "below";
		if (number < bound + fabs(bound) * back)
			return &t->below;
	}
	return NULL;
}

int pp_judge_gauge(struct pp_ledger *k, struct pp_subject *e, const struct pp_look *look,
		   const struct pp_round *round)
{
	const struct pp_threshold *t = pp_threshold_of(round->thresholds, e->kind, e->object);
	struct pp_shown s = {.numbers = true, .quiet_ns = PP_QUIET_NS, .raw = e->raw};
	char text[PP_SENTENCE], before[40], after[40], bound[96], reason[PP_REASON], number[48];
	const struct pp_bound *by;
	const char *word = "";

	by = broken(e, t, look->number, &word);
	s.on = held(e, by != NULL, t->time, round) || (by && is_open(e));
	if (!by)
		learn(e, look->number);
	s.level = t->leveled ? t->level : pp_signal_usual(e->kind);
	if (s.on) {
		(void)snprintf(before, sizeof(before), "%.6g", normal_of(e));
		(void)snprintf(after, sizeof(after), "%.6g", look->number);
		(void)snprintf(text, sizeof(text), "%s of %s is %s, %s%s", pp_signal_key(e->kind),
			       e->object, pp_signal_number(e->kind, look->number, number),
			       pp_bound_text(by, word, normal_of(e), bound, sizeof(bound)),
			       pp_level_reason(t, e->kind, s.level, reason));
		s.before = isnan(normal_of(e)) ? NULL : before;
		s.after = after;
		s.text = text;
	}
	return pp_case_show(k, e, &s, round);
}
