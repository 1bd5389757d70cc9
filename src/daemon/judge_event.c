/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens once. What names an event is kept with the signal that it made, and both are
 * written with the position behind it: daemon/keep.h.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/judge_parts.h"
#include "base/banned.h"

/* Beyond PP_LEDGER_EVENTS different ones at a time, who floods a log gets one signal for all. */
static const char many[] = "more different lines than are kept apart";

static struct pp_case *open_one(const struct pp_ledger *k, enum pp_signal_kind kind,
				const char *object, const char *value, size_t *ret_open)
{
	*ret_open = 0;
	for (size_t i = k->n_cases; i-- > 0;) {
		struct pp_case *c = k->cases[i];

		if (c->ended_ns || pp_signal_shape(c->kind) != PP_SHAPE_EVENT)
			continue;
		++*ret_open;
		if (c->kind == kind && !strcmp(c->object, object) && c->after &&
		    !strcmp(c->after, value))
			return c;
	}
	return NULL;
}

static enum pp_signal_level level_of(const struct pp_threshold *t, enum pp_signal_kind kind,
				     uint64_t count)
{
	enum pp_signal_level usual = pp_signal_usual(kind);

	if (!t->leveled && !t->above.given)
		return usual;
	if (t->above.given && (double)count <= t->above.number)
		return usual;
	return t->leveled ? t->level : usual;
}

static int set_text(struct pp_case *c, const struct pp_threshold *t)
{
	char text[PP_SENTENCE], value[480], bound[96] = "", reason[PP_REASON];

	if (t->above.given && c->level == PP_LEVEL_ALARM)
		(void)snprintf(bound, sizeof(bound), " (more than %.6g times)", t->above.number);
	(void)snprintf(text, sizeof(text), "%s of %s: %s%s%s", pp_signal_key(c->kind), c->object,
		       pp_short_text(c->after ? c->after : "", value, sizeof(value)), bound,
		       pp_level_reason(t, c->kind, c->level, reason));
	return pp_text_set(&c->text, text);
}

static int begin(struct pp_ledger *k, const struct pp_look *look, const char *object,
		 const char *value, const struct pp_round *round, struct pp_case **ret)
{
	const struct pp_threshold *t = pp_threshold_of(round->thresholds, look->kind, object);
	struct pp_case *c;
	int r = pp_case_new(k, look->kind, object, &c);

	if (r)
		return r;
	c->count = 1;
	c->level = level_of(t, look->kind, 1);
	c->since_ns = c->last_ns = round->wall_ns;
	c->last_now_ns = round->now_ns;
	r = pp_text_set(&c->after, value);
	if (!r)
		r = pp_text_set(&c->raw, look->raw);
	if (!r)
		r = set_text(c, t);
	pp_case_changed(k, c, PP_NOW);
	*ret = c;
	return r ? r : pp_case_tell(k, c, "begins", round);
}

static int again(struct pp_ledger *k, struct pp_case *c, const struct pp_look *look,
		 const struct pp_round *round)
{
	const struct pp_threshold *t = pp_threshold_of(round->thresholds, c->kind, c->object);
	enum pp_signal_level level = level_of(t, c->kind, ++c->count);
	int r = pp_text_set(&c->raw, look->raw);

	c->last_ns = round->wall_ns;
	c->last_now_ns = round->now_ns;
	pp_case_changed(k, c, PP_NOW);
	if (r || level <= c->level)
		return r;
	c->level = level;
	r = set_text(c, t);
	return r ? r : pp_case_tell(k, c, "rises", round);
}

int pp_judge_event(struct pp_ledger *k, const struct pp_look *look, const struct pp_round *round)
{
	char object[PP_OBJECT_TEXT], name[PP_OBJECT_TEXT];
	char *PP_AUTO_FREE value = NULL;
	struct pp_case *c;
	size_t open;
	int r;

	pp_object_text(look->object, object);
	if (look->named && pp_event_name_has(k, look->kind, pp_object_text(look->named, name)))
		return 0;
	r = pp_text_set(&value, look->value);
	if (r)
		return r;
	c = open_one(k, look->kind, object, value, &open);
	if (!c && open >= PP_LEDGER_EVENTS) {
		r = pp_text_set(&value, many);
		if (!r)
			c = open_one(k, look->kind, "node", value, &open);
		(void)snprintf(object, sizeof(object), "node");
	}
	if (!r)
		r = c ? again(k, c, look, round) : begin(k, look, object, value, round, &c);
	if (r || !look->named)
		return r;
	return pp_event_name_add(k, look->kind, name, c->id, round->wall_ns, false);
}
