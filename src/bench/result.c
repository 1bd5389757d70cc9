/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/result.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/banned.h"

enum { ARENA_LIMIT = 256 << 20 };

static const char *const rungs[PP_RUNGS] = {
	[PP_RUNG_TCP] = "tcp",	     [PP_RUNG_HOST] = "host",
	[PP_RUNG_DMABUF] = "dmabuf", [PP_RUNG_PEERMEM] = "peermem",
	[PP_RUNG_STAGED] = "staged", [PP_RUNG_DATA_DIRECT] = "data-direct",
};

static const char *const measures[PP_MEASURES] = {
	[PP_BANDWIDTH] = "bandwidth",
	[PP_BIDIRECTIONAL] = "bidirectional",
	[PP_LATENCY] = "latency",
};

static const char *const patterns[] = {
	[PP_PAIRS] = "pairs",
	[PP_RING] = "ring",
	[PP_ALL_TO_ALL] = "all-to-all",
	[PP_INCAST] = "incast",
};

static const char *const states[] = {
	[PP_BENCH_RUN] = "run",
	[PP_BENCH_SKIPPED] = "skipped",
	[PP_BENCH_FAILED] = "failed",
	[PP_BENCH_VOID] = "void",
	[PP_BENCH_NOT_REACHED] = "not reached",
};

int pp_bench_new(struct pp_bench **ret)
{
	struct pp_bench *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->arena = malloc(sizeof(*b->arena));
	if (!b->arena) {
		free(b);
		return -ENOMEM;
	}
	*b->arena = PP_ARENA(ARENA_LIMIT);
	*ret = b;
	return 0;
}

struct pp_bench *pp_bench_free(struct pp_bench *b)
{
	if (!b)
		return NULL;
	pp_arena_done(b->arena);
	free(b->arena);
	free(b);
	return NULL;
}

static int find(const char *const *words, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(words[i], text))
			return (int)i;
	return -EINVAL;
}

const char *pp_rung_name(enum pp_rung r)
{
	return rungs[r];
}

int pp_rung_parse(const char *text, enum pp_rung *ret)
{
	int i = find(rungs, PP_ARRAY_LEN(rungs), text);

	if (i >= 0)
		*ret = (enum pp_rung)i;
	return i < 0 ? i : 0;
}

const char *pp_measure_name(enum pp_measure m)
{
	return measures[m];
}

int pp_measure_parse(const char *text, enum pp_measure *ret)
{
	int i = find(measures, PP_ARRAY_LEN(measures), text);

	if (i >= 0)
		*ret = (enum pp_measure)i;
	return i < 0 ? i : 0;
}

const char *pp_pattern_name(enum pp_pattern p)
{
	return patterns[p];
}

int pp_pattern_parse(const char *text, enum pp_pattern *ret)
{
	int i = find(patterns, PP_ARRAY_LEN(patterns), text);

	if (i >= 0)
		*ret = (enum pp_pattern)i;
	return i < 0 ? i : 0;
}

const char *pp_bench_software(const struct pp_bench_end *e)
{
	if (e->simulated || !e->hca || strncmp(e->hca, "virtual/", 8) != 0)
		return NULL;
	return e->driver ? e->driver : e->hca;
}

const char *pp_bench_state_name(enum pp_bench_state s)
{
	return states[s];
}
