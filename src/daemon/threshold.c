/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/threshold.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/near.h"
#include "judge/policy.h"
#include "judge/rule.h"
#include "base/banned.h"

enum { OBJECTS_MOST = 256, TEXTS = 64 << 10 };

struct of_object {
	enum pp_signal_kind kind;
	const char *object;
	struct pp_threshold threshold;
};

struct pp_thresholds {
	struct pp_arena arena; /* names, since the policy may be read anew */
	struct pp_threshold kind[PP_SIGNAL_KINDS];
	struct of_object object[OBJECTS_MOST];
	size_t n;
};

static struct pp_threshold *place(struct pp_thresholds *t, enum pp_signal_kind kind,
				  const char *object)
{
	if (!object)
		return &t->kind[kind];
	for (size_t i = 0; i < t->n; i++)
		if (t->object[i].kind == kind && !strcmp(t->object[i].object, object))
			return &t->object[i].threshold;
	if (t->n == OBJECTS_MOST)
		return NULL;
	t->object[t->n] = (struct of_object){.kind = kind,
					     .object = pp_arena_str(&t->arena, object),
					     .threshold = t->kind[kind]};
	return &t->object[t->n++].threshold;
}

static void put(struct pp_threshold *at, const struct pp_policy_watch *w)
{
	const struct pp_bound bound = {.given = true, .percent = w->percent, .number = w->number};

	switch (w->part) {
	case PP_WATCH_LEVEL:
		at->leveled = true;
		at->level = (enum pp_signal_level)w->level;
		return;
	case PP_WATCH_FOR:
		at->time = w->time;
		return;
	case PP_WATCH_ABOVE:
	case PP_WATCH_BELOW:
		/* A bound of the site replaces ours, whichever side it is on. */
		if (at->ours)
			at->above = at->below = (struct pp_bound){0};
		at->ours = false;
		*(w->part == PP_WATCH_ABOVE ? &at->above : &at->below) = bound;
		return;
	}
}

static int refuse(const struct pp_policy *policy, const struct pp_policy_watch *w,
		  struct pp_error *err, const char *why)
{
	return pp_error_set(err, -EINVAL, "%s:%u: '%s': %s", pp_policy_name(policy), w->line,
			    w->key, why);
}

static int unknown_key(const struct pp_policy *policy, const struct pp_policy_watch *w,
		       struct pp_error *err)
{
	struct pp_near near = PP_NEAR(w->key);

	for (unsigned int i = 0; i < PP_SIGNAL_KINDS; i++)
		pp_near_offer(&near, pp_signal_key((enum pp_signal_kind)i));
	return pp_error_set(err, -EINVAL, "%s:%u: no signal is called '%s'%s%s%s",
			    pp_policy_name(policy), w->line, w->key,
			    near.best ? "; did you mean '" : "", near.best ? near.best : "",
			    near.best ? "'?" : "");
}

static int take(struct pp_thresholds *t, const struct pp_policy *policy,
		const struct pp_policy_watch *w, struct pp_error *err)
{
	bool bound = w->part == PP_WATCH_ABOVE || w->part == PP_WATCH_BELOW;
	enum pp_signal_kind kind;
	enum pp_signal_shape shape;
	struct pp_threshold *at;

	if (pp_signal_find(w->key, &kind))
		return unknown_key(policy, w, err);
	shape = pp_signal_shape(kind);
	if (bound && shape == PP_SHAPE_STATE)
		return refuse(policy, w, err, "a state has no number: info, early or alarm");
	if (w->part == PP_WATCH_BELOW && shape != PP_SHAPE_GAUGE)
		return refuse(policy, w, err, "only a gauge can be below something");
	if (w->percent && shape != PP_SHAPE_GAUGE)
		return refuse(policy, w, err, "only a gauge has a normal to be a share of");
	/* Numbers of all kinds are 0 or more, but for an application's. */
	if (bound && kind != PP_SIGNAL_SLO && w->number < 0)
		return refuse(policy, w, err, "it is never below 0");
	if (w->part == PP_WATCH_BELOW && kind != PP_SIGNAL_SLO && w->number <= 0)
		return refuse(policy, w, err, "it is never below 0");
	if (w->percent && w->number <= 0)
		return refuse(policy, w, err, "a share of what is normal is more than 0%");
	at = place(t, kind, w->object);
	if (!at)
		return refuse(policy, w, err, "more objects than there may be");
	put(at, w);
	return 0;
}

/* An alarm without a bound would be one that nobody declared a threshold for. */
static const char *lacks_bound(const struct pp_threshold *t, enum pp_signal_kind kind)
{
	enum pp_signal_shape shape = pp_signal_shape(kind);

	if (!t->leveled || t->level != PP_LEVEL_ALARM)
		return NULL;
	if ((t->above.given || t->below.given) && !t->ours)
		return NULL;
	if (shape == PP_SHAPE_GAUGE)
		return "an alarm needs .above or .below of the site's";
	return shape == PP_SHAPE_COUNTER ? "an alarm needs .above, growth per second" : NULL;
}

static int check(const struct pp_thresholds *t, const struct pp_policy *policy,
		 struct pp_error *err)
{
	const char *why;

	for (unsigned int i = 0; i < PP_SIGNAL_KINDS; i++) {
		why = lacks_bound(&t->kind[i], (enum pp_signal_kind)i);
		/*
		 * "slo = alarm" for all, the bounds for each: the objects are looked at below, and
		 * a gauge without a bound is beyond none. A counter without one is open when it
		 * moves.
		 */
		for (size_t o = 0; why && o < t->n; o++)
			if (t->object[o].kind == (enum pp_signal_kind)i &&
			    pp_signal_shape((enum pp_signal_kind)i) == PP_SHAPE_GAUGE)
				why = NULL;
		if (why)
			return pp_error_set(err, -EINVAL, "%s: '%s = alarm': %s",
					    pp_policy_name(policy),
					    pp_signal_key((enum pp_signal_kind)i), why);
	}
	for (size_t i = 0; i < t->n; i++) {
		why = lacks_bound(&t->object[i].threshold, t->object[i].kind);
		if (why)
			return pp_error_set(
				err, -EINVAL, "%s: '%s/%s = alarm': %s", pp_policy_name(policy),
				pp_signal_key(t->object[i].kind), t->object[i].object, why);
	}
	return 0;
}

/* Whatever the number is, one of the two is broken; told with the line that is behind. */
static int check_sides(struct pp_thresholds *t, const struct pp_policy *policy,
		       const struct pp_policy_watch *w, struct pp_error *err)
{
	enum pp_signal_kind kind;
	const struct pp_threshold *at;

	if (w->part != PP_WATCH_ABOVE && w->part != PP_WATCH_BELOW)
		return 0;
	(void)pp_signal_find(w->key, &kind);
	at = place(t, kind, w->object);
	if (at && at->above.given && at->below.given && at->above.percent == at->below.percent &&
	    at->above.number < at->below.number)
		return refuse(policy, w, err,
			      ".above is less than .below: nothing would be within both");
	return 0;
}

/* Kinds first, so that an object starts from what is said of its kind, in whatever order. */
static int take_all(struct pp_thresholds *t, const struct pp_policy *policy, struct pp_error *err)
{
	const struct pp_policy_watch *w;
	int r = 0;

	for (unsigned int pass = 0; !r && pass < 2; pass++)
		for (size_t i = 0; !r && (w = pp_policy_watch_at(policy, i)); i++)
			if (!w->object == !pass)
				r = take(t, policy, w, err);
	for (size_t i = 0; !r && (w = pp_policy_watch_at(policy, i)); i++)
		r = check_sides(t, policy, w, err);
	return r ? r : check(t, policy, err);
}

int pp_thresholds_new(const struct pp_policy *policy, struct pp_thresholds **ret,
		      struct pp_error *err)
{
	struct pp_thresholds *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return pp_error_set(err, -ENOMEM, "out of memory");
	t->arena = PP_ARENA(TEXTS);
	for (unsigned int i = 0; i < PP_SIGNAL_KINDS; i++)
		t->kind[i].level = pp_signal_usual((enum pp_signal_kind)i);
	t->kind[PP_SIGNAL_BAR1_FREE].below =
		(struct pp_bound){.given = true, .percent = true, .number = 25};
	t->kind[PP_SIGNAL_BAR1_FREE].ours = true;
	r = take_all(t, policy, err);
	if (!r && t->arena.failed)
		r = pp_error_set(err, -ENOMEM, "out of memory");
	if (r)
		pp_thresholds_free(t);
	else
		*ret = t;
	return r;
}

struct pp_thresholds *pp_thresholds_free(struct pp_thresholds *t)
{
	if (t)
		pp_arena_done(&t->arena);
	free(t);
	return NULL;
}

const char *pp_threshold_object(const struct pp_thresholds *t, size_t i, enum pp_signal_kind *ret)
{
	if (i >= t->n)
		return NULL;
	*ret = t->object[i].kind;
	return t->object[i].object;
}

const struct pp_threshold *pp_threshold_of(const struct pp_thresholds *t, enum pp_signal_kind kind,
					   const char *object)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->object[i].kind == kind && !strcmp(t->object[i].object, object))
			return &t->object[i].threshold;
	return &t->kind[kind];
}

double pp_bound_number(const struct pp_bound *b, double normal)
{
	return b->percent ? b->number / 100 * normal : b->number;
}

const char *pp_bound_text(const struct pp_bound *b, const char *word, double normal, char *text,
			  size_t size)
{
	if (b->percent)
		(void)snprintf(text, size, "%s %g%% of what is normal, %.6g", word, b->number,
			       normal);
	else
		(void)snprintf(text, size, "%s %.6g", word, b->number);
	return text;
}

/* The monitor forbids nothing itself: but a policy that `check` refuses is none here either. */
static int check_forbidden(const struct pp_policy *policy, struct pp_error *err)
{
	struct pp_rules *rules = NULL;
	int r = pp_policy_word(policy, 0) ? pp_rules_load(NULL, &rules, err) : 0;

	if (!r && rules)
		r = pp_policy_check(policy, rules, err);
	pp_rules_free(rules);
	return r;
}

int pp_thresholds_load(const char *path, struct pp_thresholds **ret, struct pp_error *err)
{
	struct pp_policy *policy = NULL;
	int r = pp_policy_load(path, &policy, err);

	if (!r)
		r = check_forbidden(policy, err);
	if (!r)
		r = pp_thresholds_new(policy, ret, err);
	pp_policy_free(policy);
	return r;
}
