/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/application.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/statistics.h"
#include "base/banned.h"

enum { FIGURES_SHOWN = 3 };
static const double DOUBT = 0.05;

static const char MEASURE[] = "peerpath prove --canary FILE -- COMMAND";

enum level { LEVEL_NONE, LEVEL_MET, LEVEL_OPEN, LEVEL_MISSED };

/* A metric with a level, and its runs. */
struct held {
	const struct pp_metric *metric;
	enum level level;
	double median;
	size_t n, good, more; /* @more: runs that would tell if they are as the better side */
};

/* The sign test: how likely at least @k of @n are on one side if both are as likely. */
static double chance(size_t n, size_t k)
{
	double sum = 0;

	for (size_t i = k; i <= n; i++)
		sum += exp(lgamma((double)n + 1) - lgamma((double)i + 1) -
			   lgamma((double)(n - i) + 1) - (double)n * M_LN2);
	return sum;
}

static size_t still_needed(size_t n, size_t k)
{
	size_t more = 0;

	while (more < PP_CANARY_REPEATS && chance(n + more, k + more) > DOUBT)
		more++;
	return more;
}

static struct held hold(const struct pp_trial *t, size_t metric)
{
	const struct pp_metric *m = &t->canary.metric[metric];
	struct held h = {.metric = m, .median = NAN};
	double value[PP_TRIAL_RUNS];

	for (size_t i = 0; i < t->n_runs && h.n < PP_TRIAL_RUNS; i++) {
		double v = t->run[i].value[metric];

		if (t->run[i].void_why || !isfinite(v))
			continue;
		h.good += m->higher_is_better ? v >= m->slo : v <= m->slo;
		value[h.n++] = v;
	}
	h.median = pp_median(value, h.n);
	if (isnan(m->slo))
		return h;
	h.level = chance(h.n, h.good) <= DOUBT	       ? LEVEL_MET
		  : chance(h.n, h.n - h.good) <= DOUBT ? LEVEL_MISSED
						       : LEVEL_OPEN;
	h.more = still_needed(h.n, h.good > h.n - h.good ? h.good : h.n - h.good);
	return h;
}

/* Of all metrics that have a level: the worst, and the first of them that is so. */
static struct held hold_all(const struct pp_trial *t)
{
	struct held worst = {0};

	for (size_t i = 0; i < t->canary.n_metrics; i++) {
		struct held h = hold(t, i);

		if (h.level > worst.level)
			worst = h;
	}
	return worst;
}

static void show_path(const struct pp_trial *t, char *text, size_t size)
{
	const struct pp_trial_path *p = &t->path;

	if (!p->path)
		(void)snprintf(text, size, "its path was not looked at");
	else
		(void)snprintf(text, size, "path %.40s by %.40s (%.20s)", p->path,
			       p->mechanism ? p->mechanism : "an unknown mechanism",
			       p->claim_mechanism ? p->claim_mechanism : "unproven");
}

/* "throughput 1034 tokens/s (at least 1000: 5 of 5 runs)" */
static size_t show_figure(const struct pp_trial *t, size_t metric, char *text, size_t size)
{
	const struct pp_metric *m = &t->canary.metric[metric];
	struct held h = hold(t, metric);
	size_t n;

	n = (size_t)snprintf(text, size, "; %.48s %.4g%s%.24s", m->name, h.median,
			     m->unit ? " " : "", m->unit ? m->unit : "");
	if (n < size && !isnan(m->slo))
		n += (size_t)snprintf(text + n, size - n, " (%s %.4g: %zu of %zu)",
				      m->higher_is_better ? "at least" : "at most", m->slo, h.good,
				      h.n);
	return n < size ? n : size - 1;
}

static void show_evidence(const struct pp_trial *t, char *text, size_t size)
{
	size_t valid = pp_trial_valid(t), at, shown = 0;
	char path[160];

	show_path(t, path, sizeof(path));
	at = (size_t)snprintf(text, size, "%s%zu run%s of %.48s that count, %zu void; %s",
			      t->simulated ? "simulated: " : "", valid, valid == 1 ? "" : "s",
			      t->canary.workload, t->n_runs - valid, path);
	for (size_t i = 0; at < size && i < t->canary.n_metrics && shown < FIGURES_SHOWN; i++) {
		if (t->canary.metric[i].is_host)
			continue;
		shown++;
		at += show_figure(t, i, text + at, size - at);
	}
}

#define SAY(ret, v, ...)                                                               \
	do {                                                                           \
		(ret)->verdict = (v);                                                  \
		(void)snprintf((ret)->sentence, sizeof((ret)->sentence), __VA_ARGS__); \
	} while (0)

static void by_level(const struct pp_trial *t, const struct held *h,
		     struct pp_gate_application *ret)
{
	const char *name = t->canary.workload;
	size_t n = t->n_runs, valid = pp_trial_valid(t);

	switch (h->level) {
	case LEVEL_MET:
		SAY(ret, PP_PASS,
		    "%.64s meets the service level that was declared; whether a change has "
		    "brought that is for a comparison",
		    name);
		return;
	case LEVEL_MISSED:
		SAY(ret, PP_FAIL, "%.64s misses its service level: %.48s", name, h->metric->name);
		(void)snprintf(
			ret->raise, sizeof(ret->raise),
			"%.48s %s %.4g; with the direct path off it says whether the path is "
			"the cause",
			h->metric->name, h->metric->higher_is_better ? "of at least" : "of at most",
			h->metric->slo);
		(void)snprintf(ret->next, sizeof(ret->next), "NCCL_NET_GDR_LEVEL=LOC %s", MEASURE);
		return;
	case LEVEL_OPEN:
		SAY(ret, PP_UNKNOWN,
		    "these runs do not tell whether %.64s meets its service level: %.48s", name,
		    h->metric->name);
		(void)snprintf(ret->raise, sizeof(ret->raise),
			       "%zu more runs (repeats of the canary file)", h->more);
		break;
	default:
		SAY(ret, PP_UNKNOWN, "%.64s was measured, and no service level was declared for it",
		    name);
		(void)snprintf(ret->raise, sizeof(ret->raise),
			       "slo = BOUND for a metric of the canary file, or --before with a "
			       "result of before the change");
	}
	if (!valid) {
		SAY(ret, PP_UNKNOWN, "no run of %.64s counts", name);
		(void)snprintf(ret->raise, sizeof(ret->raise), "a run that counts: %.240s",
			       n && t->run[0].void_why ? t->run[0].void_why : "there was none");
	}
	(void)snprintf(ret->next, sizeof(ret->next), "%s", MEASURE);
}

/* Beside what was before: its sentence and its next step are the gate's. */
static void by_comparison(const struct pp_comparison *c, const struct held *h,
			  struct pp_gate_application *ret)
{
	SAY(ret, c->verdict, "%s", c->sentence);
	if (c->verdict == PP_PASS && h->level == LEVEL_MISSED) {
		SAY(ret, PP_DEGRADED, "%.200s; but the service level is missed: %.48s", c->sentence,
		    h->metric->name);
		(void)snprintf(ret->raise, sizeof(ret->raise), "%.48s on the good side of %.4g",
			       h->metric->name, h->metric->slo);
	} else if (c->verdict != PP_PASS) {
		(void)snprintf(ret->raise, sizeof(ret->raise), "%s", c->next);
	}
	if (ret->verdict != PP_PASS)
		(void)snprintf(ret->next, sizeof(ret->next), "%s",
			       c->verdict == PP_FAIL ? "peerpath profile rollback --dry-run"
						     : "peerpath compare BEFORE AFTER");
}

void pp_gate_application_judge(const struct pp_trial *t, const struct pp_comparison *c,
			       struct pp_gate_application *ret)
{
	struct pp_gate_application g = {.simulated = t->simulated || (c && c->simulated)};
	struct held h = hold_all(t);

	show_evidence(t, g.evidence, sizeof(g.evidence));
	if (c)
		by_comparison(c, &h, &g);
	else
		by_level(t, &h, &g);
	g.passed = pp_trial_valid(t) && g.verdict != PP_FAIL && h.level != LEVEL_MISSED;
	if (g.simulated) {
		char said[sizeof(g.sentence)];

		(void)snprintf(said, sizeof(said), "%s", g.sentence);
		if (!strstr(said, "simulation"))
			(void)snprintf(g.sentence, sizeof(g.sentence),
				       "chain exercised in simulation: %.340s", said);
		g.verdict = PP_UNKNOWN;
		(void)snprintf(g.raise, sizeof(g.raise), "the same on hardware");
		(void)snprintf(g.next, sizeof(g.next), "%s", MEASURE);
	}
	*ret = g;
}

void pp_gate_application_write(struct pp_json *j, const char *key,
			       const struct pp_gate_application *g)
{
	pp_json_object(j, key);
	pp_json_str(j, "verdict", pp_verdict_name(g->verdict));
	pp_json_str(j, "claim", g->sentence);
	pp_json_str(j, "evidence", g->evidence);
	pp_json_str(j, "raise", *g->raise ? g->raise : NULL);
	pp_json_str(j, "next", *g->next ? g->next : NULL);
	pp_json_bool(j, "simulated", g->simulated);
	if (g->simulated)
		pp_json_bool(j, "passed", g->passed);
	pp_json_end_object(j);
}
