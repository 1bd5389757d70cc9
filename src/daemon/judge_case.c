/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a signal: begins, comes again, rises, ends; each is told once.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "daemon/earlier.h"
#include "daemon/judge_parts.h"
#include "base/banned.h"

enum { LINE_MOST = 48 << 10, CHANGES_TOLD = 3 };

static void time_of(struct pp_json *j, const char *key, int64_t wall)
{
	char text[32];

	pp_json_str(j, key, wall ? pp_clock_format(wall, text, sizeof(text)) : NULL);
}

static void write_line(const struct pp_ledger *k, const struct pp_case *c, const char *what,
		       const char *text, uint64_t id, int64_t wall_ns, struct pp_buf *line)
{
	struct pp_json j = PP_JSON(line, false);
	char name[64];

	(void)snprintf(name, sizeof(name), "%s-%s-%llu", k->id, k->run, (unsigned long long)id);
	pp_json_object(&j, NULL);
	pp_json_str(&j, "schema", "peerpath.signal/1");
	pp_json_str(&j, "id", name);
	time_of(&j, "time", wall_ns);
	pp_json_str(&j, "node", k->node);
	pp_json_u64(&j, "signal", c->id);
	pp_json_str(&j, "what", what);
	pp_json_str(&j, "kind", pp_signal_key(c->kind));
	pp_json_str(&j, "object", c->object);
	pp_json_str(&j, "level", pp_level_name(c->level));
	pp_json_str(&j, "before", c->before);
	pp_json_str(&j, "after", c->after);
	pp_json_str(&j, "text", text);
	pp_json_str(&j, "next", pp_signal_next(c->kind));
	pp_json_str(&j, "raw", c->raw);
	time_of(&j, "since", c->since_ns);
	time_of(&j, "ended", c->ended_ns);
	pp_json_u64(&j, "count", c->count);
	pp_earlier_write(&j, c->level, c->earlier, c->n_earlier);
	pp_json_end_object(&j);
}

/* What is now; what it was is the beginning's. */
static const char *end_of(const struct pp_case *c, char text[PP_SENTENCE])
{
	const struct pp_subject *e = c->subject;
	char value[240];
	int n = snprintf(text, PP_SENTENCE, "%s of %s", pp_signal_key(c->kind), c->object);
	char *to = text + n;
	size_t left = PP_SENTENCE - (size_t)n;

	if (pp_signal_shape(c->kind) == PP_SHAPE_EVENT)
		(void)snprintf(to, left, ": not again: %s",
			       pp_short_text(c->after ? c->after : "", value, sizeof(value)));
	else if (!e || e->away)
		(void)snprintf(to, left, ": nobody tells of it any more");
	else if (c->kind == PP_SIGNAL_WATCHER)
		(void)snprintf(text, PP_SENTENCE, "%s can be read again", c->object);
	else if (pp_signal_shape(c->kind) == PP_SHAPE_STATE)
		(void)snprintf(to, left,
			       c->kind == PP_SIGNAL_HUNG_CALL ? ": %s again" : " is %s again",
			       pp_short_text(e->value ? e->value : "", value, sizeof(value)));
	else if (pp_signal_shape(c->kind) == PP_SHAPE_COUNTER)
		(void)snprintf(to, left, ": quiet for long enough");
	else
		(void)snprintf(to, left, " is within its bounds again");
	return text;
}

/* What people read. */
static void write_text(const struct pp_case *c, const char *what, const char *said, bool rings,
		       struct pp_buf *text)
{
	char earlier[PP_SENTENCE];

	pp_buf_printf(text, "%s: %s", what, said ? said : "");
	if (!strcmp(what, "ends") && c->count > 1)
		pp_buf_printf(text, " (came more than once)");
	if (rings && c->n_earlier)
		pp_buf_printf(text, "; in the hour before: %s",
			      pp_earlier_text(c->earlier, c->n_earlier, earlier, sizeof(earlier)));
}

int pp_case_tell(struct pp_ledger *k, struct pp_case *c, const char *what,
		 const struct pp_round *round)
{
	struct pp_telling t = {.of = c->id, .wall_ns = round->wall_ns, .level = c->level};
	struct pp_buf line = PP_BUF(LINE_MOST), text = PP_BUF(LINE_MOST);
	char over[PP_SENTENCE];
	const char *said = strcmp(what, "ends") != 0 ? c->text : end_of(c, over);
	/* Whoever is woken wants to know what changed before; that stays with the alarm. */
	bool rings = c->level == PP_LEVEL_ALARM && strcmp(what, "changes") != 0 &&
		     strcmp(what, "ends") != 0;
	int r = rings ? pp_earlier_take(k, c, round->wall_ns) : 0;

	if (r)
		return r;
	t.id = k->last_telling + 1;
	write_line(k, c, what, said, t.id, round->wall_ns, &line);
	write_text(c, what, said, rings, &text);
	if (line.failed || text.failed || !line.data || !text.data) {
		pp_buf_done(&line);
		pp_buf_done(&text);
		return -ENOMEM;
	}
	k->last_telling = t.id;
	c->told_ns = round->wall_ns;
	t.line = line.data;
	t.text = text.data;
	pp_ledger_urge(k, PP_NOW);
	return pp_telling_add(k, &t);
}

static int set_texts(struct pp_case *c, const struct pp_shown *s)
{
	int r = pp_text_set(&c->before, s->before);

	if (!r)
		r = pp_text_set(&c->after, s->after);
	if (!r)
		r = pp_text_set(&c->text, s->text);
	return r ? r : pp_text_set(&c->raw, s->raw);
}

static int begin(struct pp_ledger *k, struct pp_subject *e, const struct pp_shown *s,
		 const struct pp_round *round)
{
	struct pp_case *c;
	int r;

	if (e->of)
		pp_case_detach(e->of);
	r = pp_case_new(k, e->kind, e->object, &c);
	if (r)
		return r;
	e->of = c;
	c->subject = e;
	c->level = s->level;
	c->count = 1;
	c->since_ns = c->last_ns = round->wall_ns;
	c->last_now_ns = round->now_ns;
	r = set_texts(c, s);
	pp_case_changed(k, c, PP_NOW);
	return r ? r : pp_case_tell(k, c, "begins", round);
}

/* It was over, and is there again before it was quiet for long. */
static int reopen(struct pp_ledger *k, struct pp_case *c, const struct pp_shown *s,
		  const struct pp_round *round)
{
	int r = set_texts(c, s);

	c->ended_ns = 0;
	c->restless = true;
	c->count++;
	c->level = s->level;
	c->last_ns = round->wall_ns;
	c->last_now_ns = round->now_ns;
	pp_case_changed(k, c, PP_NOW);
	return r ? r : pp_case_tell(k, c, "returns", round);
}

static int go_on(struct pp_ledger *k, struct pp_case *c, const struct pp_shown *s,
		 const struct pp_round *round)
{
	bool other = !s->numbers && s->after && c->after && strcmp(s->after, c->after) != 0;
	bool rises = s->level > c->level, falls = s->level < c->level;
	int r;

	c->last_now_ns = round->now_ns;
	if (c->quiet_now_ns) {
		c->quiet_now_ns = 0;
		c->count++;
		pp_case_changed(k, c, PP_SOON);
	}
	if (!other && !rises && !falls) {
		c->last_ns = round->wall_ns;
		c->dirty = true; /* written along with what is worth a write */
		return s->numbers ? pp_text_set(&c->after, s->after) : 0;
	}
	r = set_texts(c, s);
	if (other)
		c->count++;
	c->level = s->level;
	c->last_ns = round->wall_ns;
	pp_case_changed(k, c, PP_NOW);
	if (r || (other && !rises && c->count > CHANGES_TOLD))
		return r;
	return pp_case_tell(k, c, rises ? "rises" : "changes", round);
}

int pp_case_end(struct pp_ledger *k, struct pp_case *c, const struct pp_round *round)
{
	c->ended_ns = round->wall_ns;
	c->last_now_ns = round->now_ns;
	c->quiet_now_ns = 0;
	pp_case_changed(k, c, PP_NOW);
	return pp_case_tell(k, c, "ends", round);
}

int pp_case_show(struct pp_ledger *k, struct pp_subject *e, const struct pp_shown *shown,
		 const struct pp_round *round)
{
	struct pp_case *c = e->of;

	if (shown->on) {
		if (!c)
			return begin(k, e, shown, round);
		if (!c->ended_ns)
			return go_on(k, c, shown, round);
		return round->now_ns - c->last_now_ns < shown->quiet_ns ? reopen(k, c, shown, round)
									: begin(k, e, shown, round);
	}
	if (!c || c->ended_ns || c->quiet_now_ns)
		return 0;
	if (!c->restless)
		return pp_case_end(k, c, round);
	/* It comes and goes: over only when it has been quiet. */
	c->quiet_now_ns = round->now_ns;
	return 0;
}

static int tick(struct pp_ledger *k, struct pp_case *c, const struct pp_round *round)
{
	const struct pp_threshold *t = pp_threshold_of(round->thresholds, c->kind, c->object);
	bool event = pp_signal_shape(c->kind) == PP_SHAPE_EVENT;
	int64_t quiet = event && t->time ? t->time : PP_QUIET_NS;
	int64_t since = event ? c->last_now_ns : c->quiet_now_ns;

	if (c->ended_ns || (!event && !c->quiet_now_ns) || round->now_ns - since < quiet)
		return 0;
	return pp_case_end(k, c, round);
}

int pp_cases_tick(struct pp_ledger *k, const struct pp_round *round)
{
	int r = 0;

	for (size_t i = 0; !r && i < k->n_cases; i++)
		r = tick(k, k->cases[i], round);
	return r;
}
