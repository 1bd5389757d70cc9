/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of figures for each metric; a line goes to every metric that reads lines.
 */
#include "judge/metric.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/statistics.h"
#include "base/banned.h"

enum { NUMBER = 64, PARTS = 16 };

struct figures {
	double *value; /* owned */
	size_t n, room;
	size_t odd;  /* places where a figure should be and is none */
	bool failed; /* too many, or no memory */
	bool compiled;
	regex_t re;
};

struct pp_metric_reader {
	const struct pp_canary *c;
	struct figures of[PP_CANARY_METRICS];
	char line[PP_METRIC_LINE + 1];
	size_t len;
	bool over; /* the line at hand is longer than that */
};

static void add(struct figures *f, double value)
{
	if (f->failed)
		return;
	if (!isfinite(value)) {
		f->odd++;
		return;
	}
	if (f->n == f->room) {
		size_t room = f->room ? 2 * f->room : 64;
		double *grown = room <= PP_METRIC_VALUES
					? reallocarray(f->value, room, sizeof(*grown))
					: NULL;

		f->failed = !grown;
		if (!grown)
			return;
		f->value = grown;
		f->room = room;
	}
	f->value[f->n++] = value;
}

/* A figure as programs print it: digits, point, exponent; no commas, no units, no NaN. */
static double figure(const char *text, size_t len)
{
	char copy[NUMBER], *end;
	double value;

	while (len && (text[len - 1] == ' ' || text[len - 1] == '\t'))
		len--;
	if (!len || len >= sizeof(copy))
		return NAN;
	(void)memcpy(copy, text, len);
	copy[len] = '\0';
	if (copy[strspn(copy, "0123456789.eE+-")])
		return NAN;
	value = strtod(copy, &end);
	return *end ? NAN : value;
}

int pp_metric_reader_new(const struct pp_canary *c, struct pp_metric_reader **ret)
{
	struct pp_metric_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->c = c;
	for (size_t i = 0; i < c->n_metrics; i++) {
		const struct pp_metric *m = &c->metric[i];

		if (m->source != PP_METRIC_PATTERN && m->source != PP_METRIC_SECONDS)
			continue;
		/* The file's parser has compiled it before: only memory can be short. */
		if (regcomp(&r->of[i].re, m->what, REG_EXTENDED | REG_NEWLINE)) {
			pp_metric_reader_free(r);
			return -ENOMEM;
		}
		r->of[i].compiled = true;
	}
	*ret = r;
	return 0;
}

struct pp_metric_reader *pp_metric_reader_free(struct pp_metric_reader *r)
{
	for (size_t i = 0; r && i < r->c->n_metrics; i++) {
		if (r->of[i].compiled)
			regfree(&r->of[i].re);
		free(r->of[i].value);
	}
	free(r);
	return NULL;
}

/* All matches in the line: several figures may stand in one. */
static void by_pattern(struct figures *f, const char *line)
{
	regmatch_t m[2];
	int flags = 0;

	while (!regexec(&f->re, line, PP_ARRAY_LEN(m), m, flags)) {
		if (m[1].rm_so >= 0)
			add(f, figure(line + m[1].rm_so, (size_t)(m[1].rm_eo - m[1].rm_so)));
		/* A match of nothing would be found again for ever. */
		if (m[0].rm_eo == m[0].rm_so && !line[m[0].rm_eo])
			return;
		line += m[0].rm_eo + (m[0].rm_eo == m[0].rm_so);
		flags = REG_NOTBOL;
	}
}

static const json_t *member(const json_t *object, const char *path)
{
	char copy[256], *rest = copy, *part;

	if (snprintf(copy, sizeof(copy), "%s", path) >= (int)sizeof(copy))
		return NULL;
	for (int i = 0; object && i < PARTS && (part = strsep(&rest, ".")); i++)
		object = json_object_get(object, part);
	return rest ? NULL : object;
}

static void by_json(struct pp_metric_reader *r, const char *line)
{
	const struct pp_canary *c = r->c;
	json_t *object = NULL;

	for (size_t i = 0; i < c->n_metrics && *line == '{'; i++) {
		const json_t *value;

		if (c->metric[i].source != PP_METRIC_JSON)
			continue;
		if (!object && !(object = json_loads(line, JSON_REJECT_DUPLICATES, NULL)))
			return;
		value = member(object, c->metric[i].what);
		if (value)
			add(&r->of[i], json_is_number(value) ? json_number_value(value) : NAN);
	}
	json_decref(object);
}

static void take_line(struct pp_metric_reader *r, pp_ns since)
{
	const struct pp_canary *c = r->c;
	const char *at = r->line;

	r->line[r->len] = '\0';
	r->len = 0;
	/* Bytes of value 0 end a line for every reader of text. */
	for (size_t i = 0; i < c->n_metrics; i++) {
		struct figures *f = &r->of[i];
		const struct pp_metric *m = &c->metric[i];

		if (m->source == PP_METRIC_PATTERN)
			by_pattern(f, at);
		else if (m->source == PP_METRIC_SECONDS && !f->n && strcmp(m->what, "wall") != 0 &&
			 !regexec(&f->re, at, 0, NULL, 0))
			add(f, (double)since / PP_SECOND);
	}
	by_json(r, at + strspn(at, " \t"));
}

void pp_metric_reader_push(struct pp_metric_reader *r, const char *bytes, size_t len, pp_ns since)
{
	for (size_t i = 0; i < len; i++) {
		char c = bytes[i];

		/* Bars of progress are printed over each other. */
		if (c != '\n' && c != '\r') {
			if (r->len == PP_METRIC_LINE)
				r->over = true;
			else
				r->line[r->len++] = c;
			continue;
		}
		if (r->over)
			r->len = 0;
		else if (r->len)
			take_line(r, since);
		r->over = false;
	}
}

/* A sample's line is its name with labels, its value, and perhaps a time. */
static void take_sample(struct pp_metric_reader *r, const char *line, size_t len)
{
	const struct pp_canary *c = r->c;

	for (size_t i = 0; i < c->n_metrics; i++) {
		const struct pp_metric *m = &c->metric[i];
		size_t name = strlen(m->what), value;

		if (m->source != PP_METRIC_PROMETHEUS || len <= name ||
		    memcmp(line, m->what, name) != 0 || line[name] != ' ')
			continue;
		while (name < len && line[name] == ' ')
			name++;
		for (value = 0; name + value < len && line[name + value] != ' ';)
			value++;
		add(&r->of[i], figure(line + name, value));
	}
}

void pp_metric_reader_scrape(struct pp_metric_reader *r, const char *text, size_t len)
{
	while (len) {
		const char *end = memchr(text, '\n', len);
		size_t n = end ? (size_t)(end - text) : len;

		if (n && *text != '#')
			take_sample(r, text, n);
		text += n + (end != NULL);
		len -= n + (end != NULL);
	}
}

void pp_metric_reader_host(struct pp_metric_reader *r, enum pp_host_word what, double value)
{
	const struct pp_canary *c = r->c;

	for (size_t i = 0; i < c->n_metrics && isfinite(value); i++)
		if (c->metric[i].source == PP_METRIC_HOST &&
		    !strcmp(c->metric[i].what, pp_host_words[what]))
			add(&r->of[i], value);
}

static double mean(const double *v, size_t n, double of)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[i];
	return sum / of;
}

static double reduce(enum pp_metric_reduce how, const double *v, size_t n)
{
	switch (how) {
	case PP_REDUCE_MEDIAN:
	case PP_REDUCE_P50:
		return pp_median(v, n);
	case PP_REDUCE_MEAN:
		return mean(v, n, (double)n);
	case PP_REDUCE_SUM:
		return mean(v, n, 1);
	case PP_REDUCE_MIN:
		return pp_quantile(v, n, 0);
	case PP_REDUCE_MAX:
		return pp_quantile(v, n, 1);
	case PP_REDUCE_FIRST:
		return v[0];
	case PP_REDUCE_LAST:
		return v[n - 1];
	case PP_REDUCE_P95:
		return pp_quantile(v, n, 0.95);
	case PP_REDUCE_P99:
		return pp_quantile(v, n, 0.99);
	case PP_REDUCES:
		break;
	}
	return NAN;
}

static void finish(const struct figures *f, const struct pp_metric *m, struct pp_metric_value *ret)
{
	size_t skip = f->n < m->skip ? f->n : m->skip;

	*ret = (struct pp_metric_value){.value = NAN, .seen = f->n - skip};
	if (f->failed)
		(void)snprintf(ret->why, sizeof(ret->why), "more than %d figures",
			       PP_METRIC_VALUES);
	else if (f->odd)
		(void)snprintf(ret->why, sizeof(ret->why), "%zu of %zu are no finite numbers",
			       f->odd, f->odd + f->n);
	else if (!f->n)
		(void)snprintf(ret->why, sizeof(ret->why), "%s '%.80s' was not seen",
			       pp_metric_source_name(m->source), m->what);
	else if (!ret->seen)
		(void)snprintf(ret->why, sizeof(ret->why),
			       "%zu figures, and the first %zu do not count (skip)", f->n, m->skip);
	else
		ret->value = reduce(m->reduce, f->value + skip, ret->seen);
	if (!*ret->why && !isfinite(ret->value))
		(void)snprintf(ret->why, sizeof(ret->why), "their %s is no finite number",
			       pp_metric_reduce_name(m->reduce));
}

void pp_metric_reader_end(struct pp_metric_reader *r, pp_ns took, struct pp_metric_value *ret)
{
	const struct pp_canary *c = r->c;

	/* Who ended well has said all of it; what did not end well is void in any case. */
	pp_metric_reader_push(r, "\n", 1, took);
	for (size_t i = 0; i < c->n_metrics; i++) {
		if (c->metric[i].source == PP_METRIC_SECONDS && !strcmp(c->metric[i].what, "wall"))
			add(&r->of[i], (double)took / PP_SECOND);
		finish(&r->of[i], &c->metric[i], &ret[i]);
	}
}
