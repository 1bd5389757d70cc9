/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/judge.h"

#include <errno.h>
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "daemon/judge_parts.h"
#include "daemon/ledger_parts.h"
#include "base/banned.h"

/* How long an object that nobody tells of any more is kept, unless it is the baseline's. */
static const int64_t GONE_NS = (int64_t)10 * 60 * 1000000000;

const char *pp_object_text(const char *object, char buf[PP_OBJECT_TEXT])
{
	unsigned char digest[crypto_generichash_BYTES_MIN];
	size_t len = strlen(object), at;

	if (len < PP_OBJECT_TEXT) {
		memcpy(buf, object, len + 1);
		pp_ledger_clean(buf);
		return buf;
	}
	/* Two that begin alike stay two. */
	(void)crypto_generichash(digest, sizeof(digest), (const unsigned char *)object, len, NULL,
				 0);
	len = pp_utf8_fit(object, len, PP_OBJECT_TEXT - 2 - 2 * sizeof(digest));
	memcpy(buf, object, len);
	buf[len++] = '~';
	for (at = 0; at < sizeof(digest); at++)
		(void)snprintf(buf + len + 2 * at, 3, "%02x", digest[at]);
	pp_ledger_clean(buf);
	return buf;
}

const char *pp_short_text(const char *text, char *buf, size_t size)
{
	size_t len = strlen(text);

	if (len < size) {
		memcpy(buf, text, len + 1);
		return buf;
	}
	len = pp_utf8_fit(text, len, size - 4);
	memcpy(buf, text, len);
	memcpy(buf + len, "...", 4);
	return buf;
}

const char *pp_level_reason(const struct pp_threshold *t, enum pp_signal_kind kind,
			    enum pp_signal_level level, char text[PP_REASON])
{
	bool bound = (t->above.given || t->below.given) && !t->ours;

	text[0] = '\0';
	if (!t->leveled && bound)
		(void)snprintf(text, PP_REASON,
			       "; no alarm: the site's policy has a bound, and no '%s = alarm'",
			       pp_signal_key(kind));
	else if (t->leveled && level == PP_LEVEL_ALARM)
		(void)snprintf(text, PP_REASON, "; an alarm by the site's policy");
	else if (t->leveled && level < t->level && pp_signal_shape(kind) == PP_SHAPE_EVENT)
		(void)snprintf(text, PP_REASON, "; %s by the site's policy when more than %.6g",
			       pp_level_name(t->level), t->above.number);
	else if (t->leveled && level < t->level)
		(void)snprintf(text, PP_REASON, "; %s after %.6g s by the site's policy",
			       pp_level_name(t->level), (double)t->time / 1e9);
	else if (t->leveled)
		(void)snprintf(text, PP_REASON, "; no more than %s by the site's policy",
			       pp_level_name(t->level));
	return text;
}

/* What a state is without having been seen so before: a call that hangs is never its own normal. */
static const char *constant_base(enum pp_signal_kind kind)
{
	if (kind == PP_SIGNAL_KEPT)
		return PP_KEPT_FINE;
	return kind == PP_SIGNAL_HUNG_CALL ? PP_HUNG_CALL_FINE : NULL;
}

static int take_base(struct pp_ledger *k, struct pp_subject *e, const struct pp_look *look,
		     bool bundled)
{
	const char *constant = constant_base(e->kind);

	e->has_base = true;
	e->base_bundled = bundled;
	e->base_number = pp_signal_shape(e->kind) == PP_SHAPE_GAUGE ? look->number : 0;
	pp_subject_changed(k, e, PP_NOW);
	return pp_text_set(&e->base, constant ? constant : look->value);
}

static int judge_unreadable(struct pp_ledger *k, struct pp_subject *e, const struct pp_look *look)
{
	char why[PP_OBJECT_TEXT];

	pp_object_text(look->unknown, why);
	if (e->unknown && !strcmp(e->unknown, why))
		return 0;
	pp_subject_changed(k, e, PP_NOW);
	return pp_text_set(&e->unknown, why);
}

/* Compared as it is kept: what is cleaned each time would be new each time. */
static int take_value(struct pp_ledger *k, struct pp_subject *e, const char *value)
{
	char *fresh = NULL;
	int r = pp_text_set(&fresh, value);

	if (r)
		return r;
	if (!e->value || strcmp(e->value, fresh) != 0)
		pp_subject_changed(k, e, PP_NOW);
	free(e->value);
	e->value = fresh;
	return 0;
}

static int judge_readable(struct pp_ledger *k, struct pp_subject *e, const struct pp_look *look,
			  const struct pp_round *round)
{
	int r = 0;

	if (e->unknown) {
		pp_subject_changed(k, e, PP_NOW);
		r = pp_text_set(&e->unknown, NULL);
	}
	if (!r && !e->has_base)
		r = take_base(k, e, look, false);
	if (!r)
		r = pp_text_set(&e->raw, look->raw);
	if (r)
		return r;
	switch (pp_signal_shape(e->kind)) {
	case PP_SHAPE_COUNTER:
		r = pp_judge_counter(k, e, look, round);
		break;
	case PP_SHAPE_GAUGE:
		r = pp_judge_gauge(k, e, look, round);
		break;
	default:
		r = take_value(k, e, look->value);
		if (!r)
			r = pp_judge_state(k, e, round);
	}
	e->known = true;
	e->number = pp_signal_shape(e->kind) == PP_SHAPE_STATE ? 0 : look->number;
	e->wall_ns = round->wall_ns;
	e->now_ns = round->now_ns;
	e->gone_ns = 0;
	e->away = false;
	e->dirty = true;
	return r;
}

/* A place where events come from: no state, which nothing is compared with. */
static int judge_watched(struct pp_ledger *k, struct pp_subject *e, const struct pp_look *look,
			 const struct pp_round *round)
{
	int r = 0;

	if (e->unknown) {
		pp_subject_changed(k, e, PP_NOW);
		r = pp_text_set(&e->unknown, NULL);
	}
	e->known = true;
	e->wall_ns = round->wall_ns;
	e->now_ns = round->now_ns;
	e->gone_ns = 0;
	e->away = false;
	return r ? r : take_value(k, e, look->value);
}

/* Does a look say what its shape must say? A watcher that does not is wrong, not the node. */
static bool is_whole(const struct pp_look *look)
{
	if (!look->object || look->kind >= PP_SIGNAL_KINDS)
		return false;
	if (look->unknown)
		return true;
	switch (pp_signal_shape(look->kind)) {
	case PP_SHAPE_COUNTER:
		return isfinite(look->number) && look->number >= 0;
	case PP_SHAPE_GAUGE:
		return isfinite(look->number);
	default:
		return look->value != NULL;
	}
}

static int judge_look(struct pp_ledger *k, const struct pp_look *look, const char *watcher,
		      const struct pp_round *round)
{
	char object[PP_OBJECT_TEXT];
	struct pp_subject *e;
	int r;

	if (!is_whole(look))
		return 0;
	if (pp_signal_shape(look->kind) == PP_SHAPE_EVENT && !look->unknown &&
	    look->yet != PP_LOOK_WATCHED)
		return pp_judge_event(k, look, round);
	r = pp_subject_get(k, look->kind, pp_object_text(look->object, object), &e);
	if (r == -E2BIG) {
		k->left_out++;
		return 0;
	}
	if (!r)
		r = pp_text_set(&e->watcher, watcher);
	if (r)
		return r;
	e->round = k->rounds;
	if (look->unknown)
		return judge_unreadable(k, e, look);
	if (look->yet == PP_LOOK_WATCHED)
		return judge_watched(k, e, look, round);
	return judge_readable(k, e, look, round);
}

/*
 * A watcher that cannot see at all says so of the kind: then nothing is known to be gone. That it
 * sees none is another thing.
 */
static bool is_blind(const struct pp_round *round, size_t from, size_t to,
		     const struct pp_subject *e)
{
	for (size_t i = from; i < to; i++)
		if (round->looks[i].kind == e->kind && round->looks[i].unknown &&
		    round->looks[i].yet != PP_LOOK_NONE)
			return true;
	return false;
}

/* Nobody told of it, though its watcher looked. */
static int judge_gone(struct pp_ledger *k, struct pp_subject *e, const struct pp_round *round)
{
	int r = 0;

	if (!e->gone_ns)
		e->gone_ns = round->now_ns;
	if (e->unknown)
		r = pp_text_set(&e->unknown, NULL);
	if (r)
		return r;
	if (e->kind == PP_SIGNAL_LINK_STATE || e->kind == PP_SIGNAL_TOPOLOGY) {
		if (!e->value || strcmp(e->value, PP_OBJECT_GONE) != 0)
			pp_subject_changed(k, e, PP_NOW);
		e->known = e->known || e->has_base;
		r = pp_text_set(&e->value, PP_OBJECT_GONE);
		return r ? r : pp_judge_state(k, e, round);
	}
	e->now_ns = 0; /* what counts began anew when it is back */
	e->away = true;
	e->beyond_ns = 0;
	if (e->of && !e->of->ended_ns && !e->of->quiet_now_ns)
		r = pp_case_end(k, e->of, round);
	if (!r && !e->base_bundled && round->now_ns - e->gone_ns >= GONE_NS) {
		e->dead = true;
		pp_ledger_urge(k, PP_SOON);
	}
	return r;
}

static int judge_absent(struct pp_ledger *k, const struct pp_round *round)
{
	int r = 0;

	for (size_t p = 0; !r && p < round->n_parts; p++) {
		size_t from = round->parts[p].from;
		size_t to = p + 1 < round->n_parts ? round->parts[p + 1].from : round->n;
		const char *watcher = round->parts[p].watcher;
		struct pp_subject *e = NULL;

		while (!r && (e = pp_subject_next(k, e))) {
			if (e->dead || e->round == k->rounds || !e->watcher ||
			    strcmp(e->watcher, watcher) != 0 || is_blind(round, from, to, e))
				continue;
			r = judge_gone(k, e, round);
		}
	}
	return r;
}

int pp_signals_judge(struct pp_ledger *k, const struct pp_round *round)
{
	int r = 0;

	k->rounds++;
	if (round->n_parts)
		k->round_ns = round->wall_ns;
	k->left_out = round->left_out;
	for (size_t p = 0; !r && p < round->n_parts; p++) {
		size_t to = p + 1 < round->n_parts ? round->parts[p + 1].from : round->n;

		for (size_t i = round->parts[p].from; !r && i < to; i++)
			r = judge_look(k, &round->looks[i], round->parts[p].watcher, round);
	}
	if (!r)
		r = judge_absent(k, round);
	if (!r)
		r = pp_judge_unknown(k, round);
	return r ? r : pp_cases_tick(k, round);
}

int pp_baseline_take(struct pp_ledger *k, const struct pp_round *round)
{
	char object[PP_OBJECT_TEXT];
	struct pp_subject *e;
	size_t part = 0;
	int r = 0;

	for (size_t i = 0; !r && i < round->n; i++) {
		const struct pp_look *look = &round->looks[i];
		enum pp_signal_shape shape;

		while (part + 1 < round->n_parts && round->parts[part + 1].from <= i)
			part++;
		shape = look->kind < PP_SIGNAL_KINDS ? pp_signal_shape(look->kind) : PP_SHAPE_EVENT;
		/* Of a counter only that it could be read: sums of another time are no baseline. */
		if (!is_whole(look) || shape == PP_SHAPE_EVENT ||
		    (look->unknown && !(shape == PP_SHAPE_COUNTER && look->yet == PP_LOOK_THERE)))
			continue;
		r = pp_subject_get(k, look->kind, pp_object_text(look->object, object), &e);
		if (r == -E2BIG) {
			r = 0;
			continue;
		}
		if (!r)
			r = pp_text_set(&e->watcher, round->parts[part].watcher);
		if (!r)
			r = take_base(k, e, look, true);
	}
	return r;
}
