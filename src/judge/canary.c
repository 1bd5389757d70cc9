/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sections of a canary file. What is misspelt is refused: a metric that is silently not measured
 * would look like one that did not change.
 */
#include "judge/canary.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/ini.h"
#include "base/near.h"
#include "judge/canary_key.h"
#include "base/banned.h"

static const pp_ns TIMEOUT = 600 * PP_SECOND;

static const char *keep(struct pp_canary_reading *r, const char *value)
{
	return pp_arena_str(&r->c->arena, value);
}

/* A metric is whole when the next section begins, or the file ends. */
static int close_metric(struct pp_canary_reading *r, struct pp_error *err)
{
	const struct pp_metric *m = r->metric;

	if (!m)
		return 0;
	r->metric = NULL;
	if (!r->has_source)
		return pp_error_set(err, -EINVAL,
				    "metric '%s' (line %u) has no source: one of pattern, json, "
				    "prometheus, seconds, host",
				    m->name, m->at);
	if (!r->has_direction || !(m->margin > 0))
		return pp_error_set(err, -EINVAL, "metric '%s' (line %u) needs %s", m->name, m->at,
				    r->has_direction ? "margin: by how much it may move, as 3%"
						     : "direction: higher or lower is better");
	return 0;
}

static int open_metric(struct pp_canary_reading *r, const char *name, unsigned int line,
		       struct pp_error *err)
{
	struct pp_canary *c = r->c;

	if (!*name || strlen(name) > 64)
		return pp_error_set(err, -EINVAL,
				    "a metric needs a name of 64 characters at most, "
				    "as [metric throughput]");
	for (size_t i = 0; i < c->n_metrics; i++)
		if (!strcmp(c->metric[i].name, name))
			return pp_error_set(err, -EINVAL, "metric '%s' is declared twice", name);
	if (c->n_metrics == PP_CANARY_METRICS)
		return pp_error_set(err, -EFBIG, "more than %d metrics", PP_CANARY_METRICS);
	r->metric = &c->metric[c->n_metrics++];
	*r->metric = (struct pp_metric){.name = keep(r, name), .slo = NAN, .at = line};
	r->has_source = r->has_direction = false;
	return 0;
}

static int open_section(struct pp_canary_reading *r, const char *section, unsigned int line,
			struct pp_error *err)
{
	static const char *const names[] = {"workload", "run", "metric NAME", "change"};
	struct pp_near near = PP_NEAR(section);
	int e = close_metric(r, err);

	r->section = keep(r, section);
	if (e)
		return e;
	if (!strncmp(section, "metric", 6) && (section[6] == ' ' || !section[6]))
		return open_metric(r, section + 6 + (section[6] == ' '), line, err);
	for (size_t i = 0; i < PP_ARRAY_LEN(names); i++) {
		if (i != 2 && !strcmp(names[i], section))
			return 0;
		pp_near_offer(&near, names[i]);
	}
	return pp_error_set(err, -EINVAL, "unknown section '%s'%s%s%s", section,
			    near.best ? "; did you mean [" : "", near.best ? near.best : "",
			    near.best ? "]?" : "");
}

static int by_table(struct pp_canary_reading *r, const struct pp_canary_entry *table,
		    const char *key, const char *value, struct pp_error *err)
{
	struct pp_near near = PP_NEAR(key);

	for (; table->key; table++) {
		if (strcmp(table->key, key) != 0) {
			pp_near_offer(&near, table->key);
			continue;
		}
		if (table->read(r, value))
			return pp_error_set(err, -EINVAL, "'%s = %.80s': it takes %s", key, value,
					    table->takes);
		return 0;
	}
	return pp_error_set(err, -EINVAL, "[%s] has no '%s'%s%s%s", r->section, key,
			    near.best ? "; did you mean '" : "", near.best ? near.best : "",
			    near.best ? "'?" : "");
}

static int on_workload(struct pp_canary_reading *r, const char *key, const char *value,
		       struct pp_error *err)
{
	struct pp_canary *c = r->c;

	for (size_t i = 0; i < c->n_keys; i++)
		if (!strcmp(c->key[i].name, key))
			return pp_error_set(err, -EINVAL, "'%s' is given twice", key);
	if (c->n_keys == PP_CANARY_KEYS)
		return pp_error_set(err, -EFBIG, "more than %d keys of the workload",
				    PP_CANARY_KEYS);
	if (!*value)
		return pp_error_set(err, -EINVAL, "'%s' has no value", key);
	c->key[c->n_keys++] = (struct pp_canary_key){keep(r, key), keep(r, value)};
	if (!strcmp(key, "name"))
		c->workload = c->key[c->n_keys - 1].value;
	return 0;
}

static int on_key(void *arg, const char *section, const char *key, const char *value,
		  unsigned int line, struct pp_error *err)
{
	struct pp_canary_reading *r = arg;

	if (!key)
		return open_section(r, section, line, err);
	if (r->metric)
		return by_table(r, pp_canary_metric_keys, key, value, err);
	if (!strcmp(section, "workload"))
		return on_workload(r, key, value, err);
	return by_table(r, !strcmp(section, "run") ? pp_canary_run_keys : pp_canary_change_keys,
			key, value, err);
}

/* What only the whole file shows. */
static int check(const struct pp_canary *c, struct pp_error *err)
{
	if (!c->workload)
		return pp_error_set(err, -EINVAL, "[workload] needs 'name'");
	if (!c->n_metrics)
		return pp_error_set(err, -EINVAL,
				    "no metric: without a [metric NAME] nothing is compared");
	for (size_t i = 0; i < c->n_metrics; i++)
		if (c->metric[i].source == PP_METRIC_PROMETHEUS && !c->prometheus)
			return pp_error_set(err, -EINVAL,
					    "metric '%s' is read from an endpoint: [run] needs "
					    "'prometheus = http://...'",
					    c->metric[i].name);
	return 0;
}

int pp_canary_parse(const char *name, const char *text, size_t len, struct pp_canary *ret,
		    struct pp_error *err)
{
	struct pp_canary c = {
		.repeats = 5, .timeout = TIMEOUT, .arena = PP_ARENA(PP_CANARY_FILE * 4)};
	struct pp_canary_reading r = {.c = &c};
	int e;

	if (len > PP_CANARY_FILE)
		return pp_error_set(err, -EFBIG, "%s: longer than %d bytes", name, PP_CANARY_FILE);
	e = pp_ini_parse(name, text, len, on_key, &r, err);
	if (!e) {
		e = close_metric(&r, err);
		e = e ? e : check(&c, err);
		if (e)
			pp_error_prefix(err, "%s", name);
	}
	c.file = pp_arena_str(&c.arena, name);
	if (!e && c.arena.failed)
		e = pp_error_set(err, -ENOMEM, "%s: out of memory", name);
	if (e)
		pp_arena_done(&c.arena);
	else
		*ret = c;
	return e;
}

void pp_canary_done(struct pp_canary *c)
{
	pp_arena_done(&c->arena);
}
