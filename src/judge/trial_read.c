/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trial's document back. It may be anybody's: each list has a maximum, each number is finite or
 * unknown, and what decides (simulated, void, a margin) must be there.
 */
#include "judge/trial.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/banned.h"

enum { TEXT = 4096 };
static const char SCHEMA[] = "peerpath.canary/";

struct reading {
	struct pp_trial *t;
	struct pp_error *err;
	bool failed; /* err is set */
};

static void refuse(struct reading *r, const char *what, const char *why)
{
	if (!r->failed)
		pp_error_set(r->err, -EBADMSG, "%s %s", what, why);
	r->failed = true;
}

static const char *text(struct reading *r, const json_t *from, const char *key, bool needed)
{
	const json_t *v = json_object_get(from, key);

	if ((!v || json_is_null(v)) && !needed)
		return NULL;
	if (!json_is_string(v) || json_string_length(v) > TEXT ||
	    strlen(json_string_value(v)) != json_string_length(v)) {
		refuse(r, key, "is no text");
		return "";
	}
	return pp_arena_str(&r->t->arena, json_string_value(v));
}

static bool truth(struct reading *r, const json_t *from, const char *key)
{
	const json_t *v = json_object_get(from, key);

	if (!json_is_boolean(v))
		refuse(r, key, "is neither true nor false");
	return json_is_true(v);
}

static double real(struct reading *r, const json_t *from, const char *key)
{
	const json_t *v = json_object_get(from, key);

	if (!v || json_is_null(v))
		return NAN;
	if (!json_is_number(v) || !isfinite(json_number_value(v))) {
		refuse(r, key, "is no finite number");
		return NAN;
	}
	return json_number_value(v);
}

/* Elements of a list; @max at most. */
static size_t length(struct reading *r, const json_t *from, const char *key, size_t max)
{
	const json_t *v = json_object_get(from, key);

	if (!json_is_array(v) || json_array_size(v) > max) {
		refuse(r, key, "is no list, or a longer one than is read");
		return 0;
	}
	return json_array_size(v);
}

static const json_t *member(const json_t *from, const char *key, size_t i)
{
	return json_array_get(json_object_get(from, key), i);
}

static int word(struct reading *r, const json_t *from, const char *key, const char *(*name)(int),
		int n)
{
	const char *v = json_string_value(json_object_get(from, key));

	for (int i = 0; v && i < n; i++)
		if (!strcmp(name(i), v))
			return i;
	refuse(r, key, "is no word that this version knows");
	return 0;
}

static const char *source_name(int i)
{
	return pp_metric_source_name((enum pp_metric_source)i);
}

static const char *reduce_name(int i)
{
	return pp_metric_reduce_name((enum pp_metric_reduce)i);
}

static const char *direction_name(int i)
{
	return i ? "higher" : "lower";
}

static const char *group_name(int i)
{
	return i ? "host" : "slo";
}

static void read_metric(struct reading *r, const json_t *from, struct pp_metric *m)
{
	double skip = real(r, from, "skip");

	m->name = text(r, from, "name", true);
	m->what = text(r, from, "what", true);
	m->unit = text(r, from, "unit", false);
	m->source = (enum pp_metric_source)word(r, from, "source", source_name, PP_METRIC_SOURCES);
	m->reduce = (enum pp_metric_reduce)word(r, from, "reduce", reduce_name, PP_REDUCES);
	m->higher_is_better = word(r, from, "direction", direction_name, 2);
	m->is_host = word(r, from, "group", group_name, 2);
	m->skip = skip >= 0 && skip <= PP_METRIC_VALUES ? (size_t)skip : 0;
	m->margin = real(r, from, "margin");
	m->is_ratio = truth(r, from, "margin_is_ratio");
	m->slo = real(r, from, "slo");
	if (!(m->margin > 0) || (m->is_ratio && m->margin >= 1))
		refuse(r, "margin", "is none: above 0, and below 1 for a ratio");
	for (const struct pp_metric *other = r->t->canary.metric; other < m; other++)
		if (!strcmp(other->name, m->name))
			refuse(r, "name", "is that of another metric as well");
}

static void read_workload(struct reading *r, const json_t *from)
{
	struct pp_canary *c = &r->t->canary;
	const json_t *keys = json_object_get(from, "workload");
	void *at;

	if (!json_is_object(keys) || json_object_size(keys) > PP_CANARY_KEYS)
		refuse(r, "workload", "is no object, or a larger one than is read");
	for (at = json_object_iter((json_t *)(uintptr_t)keys); at && !r->failed;
	     at = json_object_iter_next((json_t *)(uintptr_t)keys, at)) {
		const char *name = json_object_iter_key(at);

		c->key[c->n_keys++] = (struct pp_canary_key){pp_arena_str(&r->t->arena, name),
							     text(r, keys, name, true)};
	}
	c->workload = text(r, keys, "name", true);
}

static void read_changed(struct reading *r, const json_t *from)
{
	struct pp_canary *c = &r->t->canary;
	size_t n = length(r, from, "changed", PP_CANARY_CHANGES);

	for (size_t i = 0; i < n && !r->failed; i++) {
		const char *v = json_string_value(member(from, "changed", i));
		const struct pp_change_word *w = pp_change_words;

		while (w->word && (!v || strcmp(w->word, v) != 0))
			w++;
		if (!w->word)
			refuse(r, "changed", "has a word that this version does not know");
		c->changed[c->n_changed++] = w->word;
	}
}

static void read_node(struct reading *r, const json_t *from, struct pp_trial_node *n)
{
	const json_t *software = json_object_get(from, "software");
	void *at;

	n->id = text(r, from, "id", true);
	n->topology_class = text(r, from, "topology_class", false);
	n->simulated = truth(r, from, "simulated");
	if (!json_is_object(software) || json_object_size(software) > PP_TRIAL_FACTS)
		refuse(r, "software", "is no object, or a larger one than is read");
	for (at = json_object_iter((json_t *)(uintptr_t)software); at && !r->failed;
	     at = json_object_iter_next((json_t *)(uintptr_t)software, at)) {
		const char *key = json_object_iter_key(at);

		n->fact[n->n_facts++] = (struct pp_trial_fact){pp_arena_str(&r->t->arena, key),
							       text(r, software, key, false)};
	}
}

static void read_run(struct reading *r, const json_t *from, struct pp_trial_run *run)
{
	const struct pp_canary *c = &r->t->canary;
	const char *started = text(r, from, "started", false);
	const json_t *values = json_object_get(from, "values");
	double took = real(r, from, "took_s");

	if (started && pp_clock_parse(started, &run->started))
		refuse(r, "started", "is no time");
	run->took = took >= 0 && took < 1e9 ? (pp_ns)(took * PP_SECOND) : 0;
	if (!json_object_get(from, "void"))
		refuse(r, "void", "is missing");
	run->void_why = text(r, from, "void", false);
	if (!json_is_object(values))
		refuse(r, "values", "is no object");
	for (size_t i = 0; i < c->n_metrics; i++)
		run->value[i] = real(r, values, c->metric[i].name);
}

static void read_path(struct reading *r, const json_t *from)
{
	const json_t *p = json_object_get(from, "path");
	struct pp_trial_path *path = &r->t->path;

	path->path = text(r, p, "path", false);
	path->mechanism = text(r, p, "mechanism", false);
	path->claim = text(r, p, "claim_gdr", false);
	path->claim_mechanism = text(r, p, "claim_mechanism", false);
	path->why = text(r, p, "why", false);
}

static void read_all(struct reading *r, const json_t *from)
{
	struct pp_trial *t = r->t;

	t->simulated = truth(r, from, "simulated");
	read_workload(r, from);
	read_changed(r, from);
	t->canary.n_metrics = length(r, from, "metrics", PP_CANARY_METRICS);
	for (size_t i = 0; i < t->canary.n_metrics && !r->failed; i++)
		read_metric(r, member(from, "metrics", i), &t->canary.metric[i]);
	read_path(r, from);
	t->n_nodes = length(r, from, "nodes", PP_TRIAL_NODES);
	t->node = pp_arena_array(&t->arena, t->n_nodes ? t->n_nodes : 1, sizeof(*t->node));
	for (size_t i = 0; t->node && i < t->n_nodes && !r->failed; i++)
		read_node(r, member(from, "nodes", i), &t->node[i]);
	t->n_runs = length(r, from, "runs", PP_TRIAL_RUNS);
	t->run = pp_arena_array(&t->arena, t->n_runs ? t->n_runs : 1, sizeof(*t->run));
	for (size_t i = 0; t->run && i < t->n_runs && !r->failed; i++)
		read_run(r, member(from, "runs", i), &t->run[i]);
}

/* "peerpath.canary/1" */
static int check_schema(const json_t *document, struct pp_error *err)
{
	const char *schema = json_string_value(json_object_get(document, "schema"));

	if (!schema || strncmp(schema, SCHEMA, sizeof(SCHEMA) - 1) != 0)
		return pp_error_set(err, -EBADMSG, "no result of canary (its schema is %.60s)",
				    schema ? schema : "missing");
	if (strcmp(schema + sizeof(SCHEMA) - 1, "1") != 0)
		return pp_error_set(err, -EPROTONOSUPPORT,
				    "%.60s is newer than this peerpath reads", schema);
	return 0;
}

int pp_trial_read(const char *name, const char *bytes, size_t len, struct pp_trial *ret,
		  struct pp_error *err)
{
	struct pp_trial t = {.arena = PP_ARENA((size_t)PP_TRIAL_BYTES * 4)};
	struct reading r = {.t = &t, .err = err};
	json_error_t why;
	json_t *document = NULL;
	int e = 0;

	if (len > PP_TRIAL_BYTES)
		return pp_error_set(err, -EFBIG, "%s: longer than %d MiB", name,
				    PP_TRIAL_BYTES >> 20);
	document = json_loadb(bytes, len, JSON_REJECT_DUPLICATES, &why);
	if (!document)
		e = pp_error_set(err, -EBADMSG, "line %d: %.200s", why.line, why.text);
	e = e ? e : check_schema(document, err);
	if (!e) {
		read_all(&r, document);
		e = r.failed ? err->code : 0;
	}
	t.file = pp_arena_str(&t.arena, name);
	if (!e && t.arena.failed)
		e = pp_error_set(err, -ENOMEM, "out of memory");
	json_decref(document);
	if (e) {
		pp_error_prefix(err, "%s", name);
		pp_arena_done(&t.arena);
		return e;
	}
	*ret = t;
	return 0;
}

void pp_trial_done(struct pp_trial *t)
{
	pp_canary_done(&t->canary);
	pp_arena_done(&t->arena);
}
