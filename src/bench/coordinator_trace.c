/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the kernels of a pair's nodes say that its memory is registered: one look a node for all
 * rungs that are open, by an agent of its own, after registration and before the first byte.
 *
 * It may only take something away from what the rungs say of themselves, so nothing of it fails a
 * rung: a look that fails is a record that says so.
 */
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "bench/coordinator_state.h"
#include "base/banned.h"

enum { RECORDS_MOST = 64, LISTED_MOST = 16, WHY = 600 };

/* Questions have ten seconds; probes are put in and taken out besides. */
static const pp_ns LIMIT = 30 * PP_SECOND;

/* A process that is looked at. */
struct subject {
	struct pp_bench_rung *rung;
	unsigned int end;
	pid_t pid;
	const json_t *lkeys;
};

struct sight {
	struct subject subject[PP_TRACE_PIDS];
	unsigned int n;
	bool software;
};

/* Of rungs that are open on @node and were not looked at. */
static void collect(struct pp_climber *m, unsigned int node, struct sight *s)
{
	*s = (struct sight){.software = false};
	for (unsigned int r = 0; r < PP_RUNGS; r++) {
		for (unsigned int e = 0; e < 2; e++) {
			const json_t *opened = m->seat[r][e].opened;
			int64_t pid = pp_climb_number(opened, "pid", 0);

			if (r == PP_RUNG_TCP || m->pair->end[e].node != node ||
			    !pp_rung_is_open(m, (enum pp_rung)r) || pid <= 0 || pid > INT32_MAX ||
			    m->looked[r][e])
				continue;
			m->looked[r][e] = true;
			s->subject[s->n++] =
				(struct subject){.rung = &m->pair->rung[r],
						 .end = e,
						 .pid = (pid_t)pid,
						 .lkeys = json_object_get(opened, "lkeys")};
			s->software |= m->pair->end[e].simulated;
		}
	}
}

/* Which of @n words a member is; -1 none. */
static int word_of(const json_t *o, const char *key, const char *const *words, int n)
{
	const char *text = json_string_value(json_object_get(o, key));

	for (int i = 0; text && i < n; i++)
		if (!strcmp(text, words[i]))
			return i;
	return -1;
}

static struct pp_bench_sighting *sightings(struct pp_climb *c, const json_t *record,
					   unsigned int *ret_n)
{
	const json_t *list = json_object_get(record, "sightings"), *one;
	size_t n = json_array_size(list);
	struct pp_bench_sighting *all;

	*ret_n = 0;
	n = n < LISTED_MOST ? n : LISTED_MOST;
	all = pp_arena_array(c->b->arena, n + 1, sizeof(*all));
	for (size_t i = 0; all && i < n; i++) {
		one = json_array_get(list, i);
		all[(*ret_n)++] = (struct pp_bench_sighting){
			.surface = pp_climb_text(c, one, "surface"),
			.registration = pp_climb_text(c, one, "registration"),
			.raw = pp_climb_text(c, one, "raw"),
			.sufficient = json_is_true(json_object_get(one, "sufficient"))};
	}
	return all;
}

/* What the answer says of a surface. */
static struct pp_bench_missing surface_of(struct pp_climb *c, const json_t *answer,
					  const char *name)
{
	const json_t *list = json_object_get(answer, "surfaces"), *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		const char *text = pp_climb_text(c, one, "surface");

		if (i < PP_SURFACES && text && !strcmp(text, name))
			return (struct pp_bench_missing){.surface = name,
							 .state = pp_climb_text(c, one, "state"),
							 .why = pp_climb_text(c, one, "why"),
							 .how = pp_climb_text(c, one, "how")};
	}
	return (struct pp_bench_missing){.surface = name};
}

static struct pp_bench_missing *missing(struct pp_climb *c, const json_t *answer,
					const json_t *record, unsigned int *ret_n)
{
	const json_t *list = json_object_get(record, "missing");
	size_t n = json_array_size(list);
	struct pp_bench_missing *all;

	*ret_n = 0;
	n = n < LISTED_MOST ? n : LISTED_MOST;
	all = pp_arena_array(c->b->arena, n + 1, sizeof(*all));
	for (size_t i = 0; all && i < n; i++) {
		const char *name = json_string_value(json_array_get(list, i));

		for (unsigned int k = 0; name && k < PP_SURFACES; k++)
			if (!strcmp(name, pp_surface_name((enum pp_surface)k)))
				all[(*ret_n)++] =
					surface_of(c, answer, pp_surface_name((enum pp_surface)k));
	}
	return all;
}

/* A region under a key that the measured memory does not have; false where keys are not known. */
static bool is_other(const struct subject *s, int64_t lkey)
{
	const json_t *one;
	size_t i;

	if (lkey < 0 || !json_array_size(s->lkeys))
		return false;
	json_array_foreach(s->lkeys, i, one)
	{
		if (json_integer_value(one) == lkey)
			return false;
	}
	return true;
}

static void add(struct pp_climb *c, const struct subject *s, const struct pp_bench_evidence *e)
{
	struct pp_bench_rung *rung = s->rung;
	struct pp_bench_evidence *all;

	if (rung->n_evidence >= 2 * RECORDS_MOST)
		return;
	all = pp_arena_array(c->b->arena, (size_t)rung->n_evidence + 1, sizeof(*all));
	if (!all)
		return;
	if (rung->n_evidence)
		memcpy(all, rung->evidence, rung->n_evidence * sizeof(*all));
	all[rung->n_evidence++] = *e;
	rung->evidence = all;
}

static int64_t keys_of(const struct subject *of)
{
	size_t n = json_array_size(of->lkeys);

	return n ? (int64_t)n : -1;
}

static int64_t number(const json_t *record, const char *key)
{
	int64_t n = pp_climb_number(record, key, -1);

	return n < 0 ? -1 : n;
}

static void take_record(struct pp_climb *c, const struct sight *s, const struct subject *of,
			const json_t *answer, const json_t *record)
{
	static const char *const claims[] = {"proven", "unproven", "refuted"};
	static const char *const scopes[] = {"mr", "process"};
	int state = word_of(record, "state", claims, PP_ARRAY_LEN(claims));
	int scope = word_of(record, "scope", scopes, PP_ARRAY_LEN(scopes));
	const char *looked = json_string_value(json_object_get(answer, "looked"));
	struct pp_bench_evidence e = {
		.end = of->end,
		.about = PP_REGISTRATION,
		.scope = scope == 0 ? PP_OF_MR : PP_OF_PROCESS,
		.registration = pp_climb_text(c, record, "registration"),
		.state = state < 0 ? PP_UNPROVEN : (enum pp_claim)state,
		.gpu_memory = json_is_true(json_object_get(record, "gpu_memory")),
		.of_regions = keys_of(of),
		.pid = of->pid,
		.comm = pp_climb_text(c, record, "comm"),
		.hca = pp_climb_text(c, record, "hca"),
		.bdf = pp_climb_text(c, record, "bdf"),
		.mrn = number(record, "mrn"),
		.lkey = number(record, "lkey"),
		.length = number(record, "length_bytes"),
		.exporter = pp_climb_text(c, record, "exporter"),
		.importer = pp_climb_text(c, record, "importer"),
		.inode = number(record, "buffer_inode"),
		.why = pp_climb_text(c, record, "why"),
		.simulated = s->software || json_is_true(json_object_get(record, "simulated")),
		.took_ns = number(answer, "took_ns"),
	};

	if (scope < 0 || word_of(record, "about", (const char *const[]){"registration"}, 1))
		return;
	/* The registry of a software device is a library's word. */
	e.witness = e.simulated ? PP_BY_LIBRARY : PP_BY_KERNEL;
	e.other = !scope && is_other(of, e.lkey);
	e.sightings = sightings(c, record, &e.n_sightings);
	e.missing = missing(c, answer, record, &e.n_missing);
	if (looked && pp_clock_parse(looked, &e.looked))
		e.looked = 0;
	add(c, of, &e);
}

/* Nothing came of it: that is what is known of the process. */
static void take_nothing(struct pp_climb *c, const struct sight *s, const struct subject *of,
			 const char *why)
{
	const struct pp_bench_evidence e = {
		.end = of->end,
		.about = PP_REGISTRATION,
		.witness = s->software ? PP_BY_LIBRARY : PP_BY_KERNEL,
		.scope = PP_OF_PROCESS,
		.state = PP_UNPROVEN,
		.of_regions = keys_of(of),
		.pid = of->pid,
		.mrn = -1,
		.lkey = -1,
		.length = -1,
		.inode = -1,
		.took_ns = -1,
		.why = pp_arena_str(c->b->arena, why),
		.simulated = s->software,
	};

	add(c, of, &e);
}

static void take_answer(struct pp_climb *c, const struct sight *s, const json_t *answer,
			const char *why)
{
	const json_t *list = json_object_get(answer, "evidence"), *record;
	size_t i;

	for (unsigned int k = 0; k < s->n; k++) {
		const struct subject *of = &s->subject[k];
		unsigned int before = of->rung->n_evidence;

		json_array_foreach(list, i, record)
		{
			if (pp_climb_number(record, "pid", 0) == of->pid &&
			    of->rung->n_evidence - before < RECORDS_MOST)
				take_record(c, s, of, answer, record);
		}
		if (of->rung->n_evidence == before)
			take_nothing(c, s, of, why);
	}
}

static void order_look(struct pp_climb *c, const struct sight *s, struct pp_seat *seat,
		       struct pp_order *o)
{
	struct pp_json *j = pp_order_begin(o, seat, PP_DO_TRACE);

	pp_json_array(j, "pids");
	for (unsigned int i = 0; i < s->n; i++)
		pp_json_i64(j, NULL, s->subject[i].pid);
	pp_json_end_array(j);
	pp_json_bool(j, "software", s->software);
	pp_json_bool(j, "probes", !c->o->no_probes);
}

static void look_at(struct pp_climb *c, unsigned int node, const struct sight *s)
{
	struct pp_seat seat = {.node = node};
	struct pp_error err = {0};
	struct pp_order o;
	char why[WHY];

	if (pp_party_agent(c->party, node, &seat.channel, &err)) {
		(void)snprintf(why, sizeof(why), "not looked at: no agent for it: %.400s",
			       err.text);
		take_answer(c, s, NULL, why);
		return;
	}
	order_look(c, s, &seat, &o);
	(void)pp_climb_do(c, &o, 1, LIMIT);
	if (o.outcome == PP_ORDER_DONE)
		(void)snprintf(why, sizeof(why), "the look says nothing of this process");
	else
		(void)snprintf(why, sizeof(why), "not looked at: %.500s",
			       *o.why ? o.why : "the run ended");
	take_answer(c, s, o.answer, why);
	pp_orders_free(&o, 1);
	pp_seat_leave(&seat);
}

void pp_climb_trace(struct pp_climb *c, struct pp_climber *m)
{
	unsigned int ends = m->pair->end[0].node == m->pair->end[1].node ? 1 : 2;
	struct sight s;

	for (unsigned int e = 0; e < ends && !pp_climb_over(c); e++) {
		collect(m, m->pair->end[e].node, &s);
		if (s.n)
			look_at(c, m->pair->end[e].node, &s);
	}
}
