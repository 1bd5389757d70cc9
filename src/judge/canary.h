/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_canary: a canary file: what the workload is, which figures of it count and by how much
 * they may move, and what was changed on purpose. Declared before anything runs.
 *
 *   [workload]
 *   name = llm-7b
 *   revision = 3f2a91c
 *   seed = 7
 *
 *   [run]
 *   repeats = 5
 *   timeout = 10m
 *
 *   [metric throughput]
 *   pattern = tokens/s: ([0-9.]+)
 *   skip = 10
 *   reduce = median
 *   direction = higher
 *   unit = tokens/s
 *   margin = 3%
 *   slo = 1000
 *
 *   [change]
 *   changed = path, module-flavour
 *
 * [workload] takes any key: what is written there must be equal in both arms. A metric has one
 * source: `pattern` (extended regular expression over what the command prints, its first group),
 * `json` (member of JSON lines, "step.tokens_per_s"), `prometheus` (a sample's name with labels),
 * `seconds` ("wall": of the whole command; else a pattern: until its first match), or `host`: a
 * word of pp_host_words, what the run cost the node's host.
 */
#ifndef PP_JUDGE_CANARY_H
#define PP_JUDGE_CANARY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"

enum {
	PP_CANARY_KEYS = 32,
	PP_CANARY_METRICS = 32,
	PP_CANARY_CHANGES = 16,
	PP_CANARY_REPEATS = 1000,
	PP_CANARY_FILE = 256 << 10,
};

enum pp_metric_source {
	PP_METRIC_PATTERN,
	PP_METRIC_JSON,
	PP_METRIC_PROMETHEUS,
	PP_METRIC_SECONDS,
	PP_METRIC_HOST,
	PP_METRIC_SOURCES
};

/* What becomes of many values of one run. */
enum pp_metric_reduce {
	PP_REDUCE_MEDIAN,
	PP_REDUCE_MEAN,
	PP_REDUCE_MIN,
	PP_REDUCE_MAX,
	PP_REDUCE_FIRST,
	PP_REDUCE_LAST,
	PP_REDUCE_SUM,
	PP_REDUCE_P50,
	PP_REDUCE_P95,
	PP_REDUCE_P99,
	PP_REDUCES
};

struct pp_metric {
	const char *name;
	enum pp_metric_source source;
	const char *what; /* the pattern, member or sample; "wall" */
	enum pp_metric_reduce reduce;
	size_t skip; /* first values of a run that do not count: not steady yet */
	const char *unit;
	bool higher_is_better;
	double margin;	 /* above 0 */
	bool is_ratio;	 /* of the margin: 0.03 for "3%"; else in the metric's unit */
	double slo;	 /* bound on the good side; NaN: none */
	bool is_host;	 /* group = host: pressure on the host, no service level */
	unsigned int at; /* line of its section */
};

struct pp_canary_key {
	const char *name, *value;
};

struct pp_canary {
	const char *file;
	const char *workload;			  /* its name */
	struct pp_canary_key key[PP_CANARY_KEYS]; /* of [workload], the name among them */
	size_t n_keys;
	size_t repeats, warmup;
	pp_ns timeout;
	const char *prometheus; /* URL of an endpoint; NULL */
	struct pp_metric metric[PP_CANARY_METRICS];
	size_t n_metrics;
	const char *changed[PP_CANARY_CHANGES]; /* words of pp_change_words */
	size_t n_changed;
	struct pp_arena arena;
};

/* What may be declared to differ, and which fact of a node's software it is; NULL: none of it. */
struct pp_change_word {
	const char *word, *fact;
};
extern const struct pp_change_word pp_change_words[]; /* ends with word NULL */

/* What a run costs the host. */
enum pp_host_word {
	PP_HOST_CPU_SECONDS,	 /* user and system, of the command and all that it starts */
	PP_HOST_CPU_PRESSURE,	 /* share of the time that some task of the node was kept waiting */
	PP_HOST_MEMORY_PRESSURE, /* for memory */
	PP_HOST_IO_PRESSURE,
	PP_HOST_WORDS
};
extern const char *const pp_host_words[PP_HOST_WORDS]; /* "cpu-seconds", "cpu-pressure", ... */

/* @name is used in messages: "file:line: ...". -EINVAL, -EFBIG, -ENOMEM. pp_canary_done(). */
int pp_canary_parse(const char *name, const char *text, size_t len, struct pp_canary *ret,
		    struct pp_error *err);
void pp_canary_done(struct pp_canary *c);

const char *pp_metric_source_name(enum pp_metric_source s);
const char *pp_metric_reduce_name(enum pp_metric_reduce r);

#endif
