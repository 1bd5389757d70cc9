/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/canary_key.h"

#include <errno.h>
#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "judge/pattern.h"
#include "base/banned.h"

enum { NUMBER = 32, PATTERN = 512 };
static const pp_ns TIMEOUT_MAX = 7 * 86400 * PP_SECOND;

const struct pp_change_word pp_change_words[] = {
	{"path", NULL},
	{"environment", NULL},
	{"module-flavour", "nvidia.flavour"},
	{"peermem", "nvidia_peermem.loaded"},
	{"driver", "nvidia.version"},
	{"kernel", "kernel.release"},
	{"rdma-stack", "rdma.stack"},
	{"rdma-stack-version", "rdma.stack_version"},
	{"libibverbs", "libibverbs.version"},
	{"firmware", "hca.firmware"},
	{"cuda", "cuda.driver_api"},
	{"nccl", "nccl.version"},
	{"ucx", "ucx.version"},
	{"libfabric", "libfabric.version"},
	{"os", "os.version"},
	{"image", "limits.container_image"},
	{"simulation", "simulated"},
	{NULL, NULL},
};

static const char *const sources[PP_METRIC_SOURCES] = {
	[PP_METRIC_PATTERN] = "pattern",
	[PP_METRIC_JSON] = "json",
	[PP_METRIC_PROMETHEUS] = "prometheus",
	[PP_METRIC_SECONDS] = "seconds",
	[PP_METRIC_HOST] = "host",
};

const char *const pp_host_words[PP_HOST_WORDS] = {
	[PP_HOST_CPU_SECONDS] = "cpu-seconds",
	[PP_HOST_CPU_PRESSURE] = "cpu-pressure",
	[PP_HOST_MEMORY_PRESSURE] = "memory-pressure",
	[PP_HOST_IO_PRESSURE] = "io-pressure",
};

static const char *const reduces[PP_REDUCES] = {
	[PP_REDUCE_MEDIAN] = "median", [PP_REDUCE_MEAN] = "mean",   [PP_REDUCE_MIN] = "min",
	[PP_REDUCE_MAX] = "max",       [PP_REDUCE_FIRST] = "first", [PP_REDUCE_LAST] = "last",
	[PP_REDUCE_SUM] = "sum",       [PP_REDUCE_P50] = "p50",	    [PP_REDUCE_P95] = "p95",
	[PP_REDUCE_P99] = "p99",
};

const char *pp_metric_source_name(enum pp_metric_source s)
{
	return sources[s];
}

const char *pp_metric_reduce_name(enum pp_metric_reduce r)
{
	return reduces[r];
}

/* "3", "0.5", "-2e-3": decimal, finite, nothing else. */
static int number(const char *text, double *ret)
{
	char *end;
	double value;

	if (strlen(text) >= NUMBER || text[strspn(text, "0123456789.eE+-")])
		return -EINVAL;
	value = strtod(text, &end);
	if (end == text || *end || !isfinite(value))
		return -EINVAL;
	*ret = value;
	return 0;
}

static int word(const char *const *table, size_t n, const char *value, int *ret)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(table[i], value)) {
			*ret = (int)i;
			return 0;
		}
	return -EINVAL;
}

static const char *keep(struct pp_canary_reading *r, const char *value)
{
	return pp_arena_str(&r->c->arena, value);
}

static int take_repeats(struct pp_canary_reading *r, const char *value)
{
	uint64_t n;
	int e = pp_parse_u64(value, 1, PP_CANARY_REPEATS, &n);

	r->c->repeats = e ? r->c->repeats : (size_t)n;
	return e;
}

static int take_warmup(struct pp_canary_reading *r, const char *value)
{
	uint64_t n;
	int e = pp_parse_u64(value, 0, PP_CANARY_REPEATS, &n);

	r->c->warmup = e ? 0 : (size_t)n;
	return e;
}

static int take_timeout(struct pp_canary_reading *r, const char *value)
{
	pp_ns t;
	int e = pp_parse_duration(value, TIMEOUT_MAX, &t);

	if (!e && t <= 0)
		e = -ERANGE;
	r->c->timeout = e ? r->c->timeout : t;
	return e;
}

static int take_endpoint(struct pp_canary_reading *r, const char *value)
{
	if (strncmp(value, "http://", 7) != 0)
		return -EINVAL;
	r->c->prometheus = keep(r, value);
	return 0;
}

static int take_source(struct pp_canary_reading *r, enum pp_metric_source source, const char *value)
{
	if (!*value || r->has_source)
		return -EINVAL;
	r->has_source = true;
	r->metric->source = source;
	r->metric->what = keep(r, value);
	return 0;
}

/* @groups: that the pattern must have. */
static int check_pattern(const char *value, size_t groups)
{
	regex_t re;
	int e;

	if (strlen(value) > PATTERN || pp_pattern_atoms(value) > PP_PATTERN_ATOMS)
		return -EINVAL;
	e = regcomp(&re, value, REG_EXTENDED | REG_NEWLINE);
	if (e)
		return -EINVAL;
	e = re.re_nsub < groups ? -EINVAL : 0;
	regfree(&re);
	return e;
}

static int take_pattern(struct pp_canary_reading *r, const char *value)
{
	int e = check_pattern(value, 1);

	return e ? e : take_source(r, PP_METRIC_PATTERN, value);
}

static int take_json(struct pp_canary_reading *r, const char *value)
{
	return take_source(r, PP_METRIC_JSON, value);
}

static int take_prometheus(struct pp_canary_reading *r, const char *value)
{
	return take_source(r, PP_METRIC_PROMETHEUS, value);
}

static int take_seconds(struct pp_canary_reading *r, const char *value)
{
	int e = check_pattern(value, 0);

	return e ? e : take_source(r, PP_METRIC_SECONDS, value);
}

static int take_host(struct pp_canary_reading *r, const char *value)
{
	int i, e = word(pp_host_words, PP_HOST_WORDS, value, &i);

	r->metric->is_host = true;
	return e ? e : take_source(r, PP_METRIC_HOST, value);
}

static int take_reduce(struct pp_canary_reading *r, const char *value)
{
	int i, e = word(reduces, PP_REDUCES, value, &i);

	r->metric->reduce = e ? PP_REDUCE_MEDIAN : (enum pp_metric_reduce)i;
	return e;
}

static int take_skip(struct pp_canary_reading *r, const char *value)
{
	uint64_t n;
	int e = pp_parse_u64(value, 0, 1 << 20, &n);

	r->metric->skip = e ? 0 : (size_t)n;
	return e;
}

static int take_unit(struct pp_canary_reading *r, const char *value)
{
	r->metric->unit = keep(r, value);
	return *value ? 0 : -EINVAL;
}

static int take_direction(struct pp_canary_reading *r, const char *value)
{
	static const char *const ways[] = {"lower", "higher"};
	int i, e = word(ways, PP_ARRAY_LEN(ways), value, &i);

	r->metric->higher_is_better = !e && i;
	r->has_direction = true;
	return e;
}

static int take_margin(struct pp_canary_reading *r, const char *value)
{
	size_t len = strlen(value);
	char text[NUMBER];
	double margin;

	if (!len || len >= sizeof(text))
		return -EINVAL;
	(void)memcpy(text, value, len + 1);
	r->metric->is_ratio = text[len - 1] == '%';
	if (r->metric->is_ratio)
		text[len - 1] = '\0';
	if (number(pp_trim(text), &margin) || !(margin > 0))
		return -EINVAL;
	if (r->metric->is_ratio && margin >= 100)
		return -ERANGE;
	r->metric->margin = r->metric->is_ratio ? margin / 100 : margin;
	return 0;
}

static int take_slo(struct pp_canary_reading *r, const char *value)
{
	return number(value, &r->metric->slo);
}

static int take_group(struct pp_canary_reading *r, const char *value)
{
	static const char *const groups[] = {"slo", "host"};
	int i, e = word(groups, PP_ARRAY_LEN(groups), value, &i);

	r->metric->is_host = !e && i;
	return e;
}

static int add_change(struct pp_canary *c, const char *text)
{
	for (size_t i = 0; i < c->n_changed; i++)
		if (!strcmp(c->changed[i], text))
			return -EEXIST;
	for (const struct pp_change_word *w = pp_change_words; w->word; w++)
		if (!strcmp(w->word, text) && c->n_changed < PP_CANARY_CHANGES) {
			c->changed[c->n_changed++] = w->word;
			return 0;
		}
	return -EINVAL;
}

static int take_changed(struct pp_canary_reading *r, const char *value)
{
	char *rest = (char *)(uintptr_t)keep(r, value), *part;
	int e = 0;

	while (!e && (part = strsep(&rest, ",")))
		e = add_change(r->c, pp_trim(part));
	return e;
}

const struct pp_canary_entry pp_canary_run_keys[] = {
	{"repeats", "1 to 1000", take_repeats},
	{"warmup", "0 to 1000", take_warmup},
	{"timeout", "a time above 0, as 10m", take_timeout},
	{"prometheus", "http://HOST:PORT/PATH", take_endpoint},
	{NULL, NULL, NULL},
};

const struct pp_canary_entry pp_canary_metric_keys[] = {
	{"pattern",
	 "one source for a metric: an extended regular expression with a group, at most 512 "
	 "bytes and two counted repeats",
	 take_pattern},
	{"json", "one source for a metric: a member, as step.tokens_per_s", take_json},
	{"prometheus", "one source for a metric: a sample, as name{label=\"x\"}", take_prometheus},
	{"seconds", "one source for a metric: wall, or a pattern that ends it", take_seconds},
	{"host", "one source for a metric: cpu-seconds, cpu-pressure, memory-pressure, io-pressure",
	 take_host},
	{"reduce", "median, mean, min, max, first, last, sum, p50, p95, p99", take_reduce},
	{"skip", "how many first values do not count", take_skip},
	{"unit", "a unit, as tokens/s", take_unit},
	{"direction", "higher or lower: which is better", take_direction},
	{"margin", "above 0: 3% (below 100 %), or a number in the metric's unit", take_margin},
	{"slo", "a number in the metric's unit", take_slo},
	{"group", "slo or host", take_group},
	{NULL, NULL, NULL},
};

const struct pp_canary_entry pp_canary_change_keys[] = {
	{"changed",
	 "words once each, with commas: path, environment, module-flavour, peermem, driver, "
	 "kernel, "
	 "rdma-stack, rdma-stack-version, libibverbs, firmware, cuda, nccl, ucx, libfabric, os, "
	 "image",
	 take_changed},
	{NULL, NULL, NULL},
};
