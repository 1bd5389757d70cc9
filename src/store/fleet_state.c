/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a node is now and since when, kept up to date with each result, so that asking for what
 * drifted reads one row a node. A result that comes late does not move "now", only "since".
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "store/fleet_parts.h"
#include "base/banned.h"

static const size_t STATES_BYTES = (size_t)512 << 20;

static void copy(char *to, size_t size, const struct pp_sql_value *v)
{
	(void)snprintf(to, size, "%s", v->type == PP_SQL_TEXT ? v->text : "");
}

static int take_now(void *ctx, const struct pp_sql_value *c, size_t n)
{
	struct pp_fleet_now *now = ctx;

	if (n < 8)
		return -EBADMSG;
	now->there = true;
	copy(now->at, sizeof(now->at), &c[0]);
	copy(now->judged_at, sizeof(now->judged_at), &c[1]);
	copy(now->topology, sizeof(now->topology), &c[2]);
	copy(now->topology_since, sizeof(now->topology_since), &c[3]);
	copy(now->software, sizeof(now->software), &c[4]);
	copy(now->software_since, sizeof(now->software_since), &c[5]);
	copy(now->verdict, sizeof(now->verdict), &c[6]);
	copy(now->verdict_since, sizeof(now->verdict_since), &c[7]);
	return 0;
}

static int take_text(void *ctx, const struct pp_sql_value *c, size_t n)
{
	if (n)
		copy(ctx, 32, &c[0]);
	return 0;
}

/* From when on it was @value without another in between. */
static int since(struct pp_sql *sql, const char *node, bool simulated, const char *last_other,
		 const char *first, const char *value, char ret[32], struct pp_error *err)
{
	struct pp_sql_value args[] = {pp_sql_text(node), PP_SQL_INT(simulated), pp_sql_text(value),
				      pp_sql_text("")};
	char other[32] = "";
	int r = pp_sql_ask(sql, last_other, args, 3, take_text, other, err);

	args[3] = pp_sql_text(other);
	return r ? r : pp_sql_ask(sql, first, args, 4, take_text, ret, err);
}

/* @more: of which results; a peer's word on the software is no state. */
#define SINCE(column, more)                                                                      \
	"SELECT max(at) FROM results WHERE node = ? AND simulated = ? AND " column " <> ?" more, \
		"SELECT min(at) FROM results WHERE node = ? AND simulated = ? AND " column       \
		" = ? AND at > ?" more
#define WHOLE " AND facts IS NOT NULL"

/* A result of before: what is now stays, but may be older than was known. */
static int update_late(struct pp_sql *sql, const char *node, bool simulated,
		       struct pp_fleet_now *now, struct pp_error *err)
{
	struct pp_sql_value args[5];
	int r = 0;

	if (*now->topology)
		r = since(sql, node, simulated, SINCE("topology", WHOLE), now->topology,
			  now->topology_since, err);
	if (!r && *now->software)
		r = since(sql, node, simulated, SINCE("software", WHOLE), now->software,
			  now->software_since, err);
	if (!r && *now->verdict)
		r = since(sql, node, simulated, SINCE("verdict", ""), now->verdict,
			  now->verdict_since, err);
	args[0] = pp_sql_text(*now->topology_since ? now->topology_since : NULL);
	args[1] = pp_sql_text(*now->software_since ? now->software_since : NULL);
	args[2] = pp_sql_text(*now->verdict_since ? now->verdict_since : NULL);
	args[3] = pp_sql_text(node);
	args[4] = PP_SQL_INT(simulated);
	return r ? r
		 : pp_sql_send(sql,
			       "UPDATE states SET topology_since = ?, software_since = ?, "
			       "verdict_since = ? WHERE node = ? AND simulated = ?",
			       args, 5, err);
}

/* When the value began: as before when it is the same. */
static const char *begun(const char *old, const char *old_since, const char *new, const char *at)
{
	return new &&*old_since && !strcmp(old, new) ? old_since : new ? at : NULL;
}

static struct pp_sql_value gate(const struct pp_result *r, enum pp_gate g)
{
	return pp_sql_text(r->asked[g] ? pp_verdict_name(r->gate[g]) : NULL);
}

/* The two halves of a state: each changes when the result tells of it. */
#define FACTS                                                                                    \
	"at = ?, topology = ?, topology_since = ?, software = ?, software_since = ?, flavour = " \
	"?, "                                                                                    \
	"facts = ?"
#define VERDICT                                                                       \
	"judged_at = ?, verdict = ?, verdict_since = ?, sentence = ?, identity = ?, " \
	"prerequisites = ?, memory = ?, library = ?, application = ?"
#define OF " WHERE node = ? AND simulated = ?"

static int update(struct pp_sql *sql, const struct pp_result *result,
		  const struct pp_result_node *of, const char *node, const char *at,
		  const char *facts, const struct pp_fleet_now *now, bool whole, bool judged,
		  struct pp_error *err)
{
	static const char *const texts[2][2] = {
		{"", "UPDATE states SET " VERDICT OF},
		{"UPDATE states SET " FACTS OF, "UPDATE states SET " FACTS ", " VERDICT OF}};
	const char *verdict = pp_verdict_name(result->verdict);
	struct pp_sql_value args[18];
	size_t n = 0;

	if (whole) {
		args[n++] = pp_sql_text(at);
		args[n++] = pp_sql_text(of->topology);
		args[n++] =
			pp_sql_text(begun(now->topology, now->topology_since, of->topology, at));
		args[n++] = pp_sql_text(of->software);
		args[n++] =
			pp_sql_text(begun(now->software, now->software_since, of->software, at));
		args[n++] = pp_sql_text(of->flavour);
		args[n++] = pp_sql_text(facts);
	}
	if (judged) {
		args[n++] = pp_sql_text(at);
		args[n++] = pp_sql_text(verdict);
		args[n++] = pp_sql_text(begun(now->verdict, now->verdict_since, verdict, at));
		args[n++] = pp_sql_text(result->sentence);
		for (unsigned int g = 0; g < PP_GATES; g++)
			args[n++] = gate(result, (enum pp_gate)g);
	}
	args[n++] = pp_sql_text(node);
	args[n++] = PP_SQL_INT(result->simulated);
	return pp_sql_send(sql, texts[whole][judged], args, n, err);
}

static int read_now(struct pp_sql *sql, const char *node, bool simulated, struct pp_fleet_now *ret,
		    struct pp_error *err)
{
	const struct pp_sql_value who[] = {pp_sql_text(node), PP_SQL_INT(simulated)};

	*ret = (struct pp_fleet_now){.simulated = simulated};
	(void)snprintf(ret->node, sizeof(ret->node), "%s", node);
	return pp_sql_ask(sql,
			  "SELECT at, judged_at, topology, topology_since, software, "
			  "software_since, verdict, verdict_since FROM states WHERE node = ? AND "
			  "simulated = ?",
			  who, 2, take_now, ret, err);
}

/* As this transaction left it, else as the database has it. */
static int recall(struct pp_sql *sql, struct pp_fleet_memory *memory, const char *node,
		  bool simulated, struct pp_fleet_now **ret, struct pp_error *err)
{
	struct pp_fleet_now *now;
	int r;

	for (size_t i = 0; i < PP_FLEET_KEPT; i++) {
		now = &memory->state[i];
		if (now->there && now->simulated == simulated && !strcmp(now->node, node)) {
			*ret = now;
			return 0;
		}
	}
	now = &memory->state[memory->next_state++ % PP_FLEET_KEPT];
	r = read_now(sql, node, simulated, now, err);
	if (!r)
		*ret = now;
	return r;
}

static void set(char *to, size_t size, const char *text)
{
	(void)snprintf(to, size, "%s", text ? text : "");
}

/* What update() has told the database. */
static void follow(struct pp_fleet_now *now, const struct pp_result *result,
		   const struct pp_result_node *of, const char *at, bool whole, bool judged)
{
	const char *verdict = pp_verdict_name(result->verdict);
	char since[3][32];

	set(since[0], 32, begun(now->topology, now->topology_since, of->topology, at));
	set(since[1], 32, begun(now->software, now->software_since, of->software, at));
	set(since[2], 32, begun(now->verdict, now->verdict_since, verdict, at));
	if (whole) {
		set(now->at, sizeof(now->at), at);
		set(now->topology, sizeof(now->topology), of->topology);
		set(now->topology_since, sizeof(now->topology_since), since[0]);
		set(now->software, sizeof(now->software), of->software);
		set(now->software_since, sizeof(now->software_since), since[1]);
	}
	if (judged) {
		set(now->judged_at, sizeof(now->judged_at), at);
		set(now->verdict, sizeof(now->verdict), verdict);
		set(now->verdict_since, sizeof(now->verdict_since), since[2]);
	}
}

int pp_fleet_state_update(struct pp_sql *sql, struct pp_fleet_memory *memory,
			  const struct pp_result *result, const struct pp_result_node *of,
			  const char *node, const char *at, const char *facts, bool *ret_late,
			  struct pp_error *err)
{
	const struct pp_sql_value who[] = {pp_sql_text(node), PP_SQL_INT(result->simulated),
					   pp_sql_text("")};
	bool judged = result->judged && !strcmp(result->kind, "prove") && of == result->node;
	bool newer, newly_judged;
	struct pp_fleet_now *now;
	int r = recall(sql, memory, node, result->simulated, &now, err);

	if (r)
		return r;
	if (!now->there)
		r = pp_sql_send(sql, "INSERT INTO states (node, simulated, at) VALUES (?, ?, ?)",
				who, 3, err);
	now->there = true;
	newer = of->whole && strcmp(at, now->at) >= 0;
	*ret_late = of->whole && (!newer || !*now->at);
	newly_judged = judged && strcmp(at, now->judged_at) >= 0;
	if (!r && (newer || newly_judged)) {
		r = update(sql, result, of, node, at, facts, now, newer, newly_judged, err);
		follow(now, result, of, at, newer, newly_judged);
	}
	if (r || (newer == of->whole && newly_judged == judged))
		return r;
	return update_late(sql, node, result->simulated, now, err);
}

const char *pp_fleet_text(struct pp_arena *arena, const struct pp_sql_value *v)
{
	return v->type == PP_SQL_TEXT ? pp_arena_strn(arena, v->text, v->len) : NULL;
}

double pp_fleet_number(const struct pp_sql_value *v)
{
	return v->type == PP_SQL_REAL	   ? v->real
	       : v->type == PP_SQL_INTEGER ? (double)v->integer
					   : __builtin_nan("");
}

static int take_state(void *ctx, const struct pp_sql_value *c, size_t n)
{
	struct pp_fleet_states *all = ctx;
	struct pp_fleet_state *s;

	if (n < 18)
		return -EBADMSG;
	if (all->n == all->room) {
		size_t room = all->room ? 2 * all->room : 1024;

		s = pp_arena_array(&all->arena, room, sizeof(*s));
		if (!s)
			return -ENOMEM;
		if (all->n)
			memcpy(s, all->list, all->n * sizeof(*s));
		all->list = s;
		all->room = room;
	}
	s = &all->list[all->n++];
	s->node = pp_fleet_text(&all->arena, &c[0]);
	s->host = pp_fleet_text(&all->arena, &c[1]);
	s->topology = pp_fleet_text(&all->arena, &c[2]);
	s->software = pp_fleet_text(&all->arena, &c[3]);
	s->flavour = pp_fleet_text(&all->arena, &c[4]);
	s->facts = pp_fleet_text(&all->arena, &c[5]);
	s->gpus = pp_fleet_text(&all->arena, &c[6]);
	s->verdict = pp_fleet_text(&all->arena, &c[7]);
	s->topology_since = pp_fleet_text(&all->arena, &c[8]);
	s->software_since = pp_fleet_text(&all->arena, &c[9]);
	s->verdict_since = pp_fleet_text(&all->arena, &c[10]);
	s->at = pp_fleet_text(&all->arena, &c[11]);
	for (size_t i = 0; i < PP_GATES; i++)
		s->gate[i] = pp_fleet_text(&all->arena, &c[12 + i]);
	s->sentence = pp_fleet_text(&all->arena, &c[17]);
	return all->arena.failed ? -ENOMEM : 0;
}

int pp_fleet_states(struct pp_sql *sql, bool simulated, struct pp_fleet_states *ret,
		    struct pp_error *err)
{
	const struct pp_sql_value args[] = {PP_SQL_INT(simulated)};
	int r;

	*ret = (struct pp_fleet_states){.arena = PP_ARENA(STATES_BYTES)};
	r = pp_sql_ask(sql,
		       "SELECT s.node, n.host, s.topology, s.software, s.flavour, s.facts, "
		       "g.value, s.verdict, s.topology_since, s.software_since, s.verdict_since, "
		       "s.at, s.identity, s.prerequisites, s.memory, s.library, s.application, "
		       "CASE WHEN s.verdict = 'pass' THEN NULL ELSE s.sentence END FROM "
		       "states s JOIN nodes n ON n.id = s.node LEFT JOIN sets g ON g.digest = "
		       "s.facts AND g.fact = 'gpus' WHERE s.simulated = ? ORDER BY "
		       "coalesce(s.topology, ''), coalesce(s.software, ''), s.node",
		       args, 1, take_state, ret, err);
	return r == -ENOMEM ? pp_error_set(err, r, "out of memory") : r;
}

void pp_fleet_states_done(struct pp_fleet_states *s)
{
	pp_arena_done(&s->arena);
	*s = (struct pp_fleet_states){0};
}

bool pp_fleet_same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

size_t pp_fleet_end_of(const struct pp_fleet_states *s, size_t from, bool software)
{
	size_t i = from;

	while (i < s->n && pp_fleet_same(s->list[i].topology, s->list[from].topology) &&
	       (!software || pp_fleet_same(s->list[i].software, s->list[from].software)))
		i++;
	return i;
}

const char *pp_fleet_silence(pp_ns after, char ret[32])
{
	if (!after)
		return memcpy(ret, "", 1);
	return pp_clock_format(pp_clock_wall() - after, ret, 32);
}

void pp_fleet_out_when(struct pp_out *o, const char *at)
{
	if (at && !pp_out_is_json(o) && strlen(at) == strlen("2026-11-29T15:20:01Z"))
		pp_out_cellf(o, "%.16sZ", at);
	else
		pp_out_cell(o, at && *at ? at : NULL);
}

const char *pp_fleet_short(const char *digest, char text[9])
{
	if (!digest)
		return NULL;
	(void)snprintf(text, 9, "%.8s", digest);
	return text;
}
