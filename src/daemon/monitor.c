/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/monitor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/baseline.h"
#include "daemon/keeper.h"
#include "daemon/outlet.h"
#include "daemon/state_make.h"
#include "daemon/threshold.h"
#include "node/source.h"
#include "base/banned.h"

/* A disk that is full, or a server that is away, is tried again after so long. */
static const int64_t AGAIN_NS = 5 * PP_SECOND, SOON_NS = 60 * PP_SECOND, LATER_NS = 600 * PP_SECOND;

struct pp_monitor {
	struct pp_monitor_options o;
	struct pp_thresholds *thresholds;
	struct pp_keeper keeper;
	struct pp_ledger *k;
	struct pp_watching watching;
	struct pp_outlet outlet;
	int64_t saved_ns, tried_ns; /* monotonic; 0: never */
	char save_error[512];	    /* said once */
	bool named;		    /* objects of the policy that are not there were said */
};

static void say(const struct pp_monitor *m, const char *text)
{
	m->o.say(m->o.ctx, text);
}

static const char *recall(void *ctx, const char *watcher, const char *key)
{
	const struct pp_monitor *m = ctx;

	return pp_mark_get(m->k, watcher, key);
}

static int remember(void *ctx, const char *watcher, const char *key, const char *value)
{
	struct pp_monitor *m = ctx;
	int r = pp_mark_set(m->k, watcher, key, value);

	return r == -E2BIG ? 0 : r;
}

static int take_baseline(struct pp_monitor *m, struct pp_error *err)
{
	struct pp_parts parts;
	const struct pp_baseline_options options = {
		.path = m->o.baseline,
		.simulate = m->o.simulate,
		.any_node = m->o.any_node,
		.parts = &parts,
		.watchers = m->o.watchers,
		.thresholds = m->thresholds,
		.wall_ns = pp_clock_wall(),
		.now_ns = pp_clock_monotonic(),
	};
	struct pp_baseline_taken taken;
	char line[5000];
	int r;

	if (!m->o.baseline) {
		if (!*m->k->baseline)
			say(m,
			    m->k->n_subjects
				    ? "no baseline is given: what was seen at the first look is it"
				    : "no baseline is given: the first look is it");
		return 0;
	}
	pp_parts_read(m->o.source, &parts);
	r = pp_baseline_read(&options, m->k, &taken, err);
	if (r)
		return r;
	(void)snprintf(line, sizeof(line), "baseline %s, verdict %s%s: %zu looks of '%s'%s",
		       taken.id, pp_verdict_name(taken.verdict),
		       taken.simulated ? " in simulation" : "", taken.looks, taken.path,
		       taken.like == PP_PARTS_OTHER	? ", which is of another node"
		       : taken.like == PP_PARTS_UNKNOWN ? "; whose it is no part tells"
							: "");
	say(m, line);
	return 0;
}

static void text_file(struct pp_source *s, const char *path, char *ret, size_t size)
{
	if (pp_source_text(s, path, ret, size))
		*ret = '\0';
}

/* Sums of another boot are no sums of this one. */
static void check_boot(struct pp_monitor *m)
{
	char boot[sizeof(m->k->boot)];
	struct pp_subject *e = NULL;

	text_file(m->o.source, "/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	if (!strcmp(boot, m->k->boot))
		return;
	while ((e = pp_subject_next(m->k, e)))
		if (pp_signal_shape(e->kind) == PP_SHAPE_COUNTER)
			e->away = true;
	(void)snprintf(m->k->boot, sizeof(m->k->boot), "%s", boot);
}

static void say_unkept(struct pp_monitor *m)
{
	char line[512];

	(void)snprintf(line, sizeof(line),
		       "cannot write what is known: %.300s; watching goes on in memory",
		       m->keeper.why);
	pp_say_once(&m->o, m->save_error, line);
}

/* Once. */
static void say_aside(struct pp_monitor *m)
{
	char line[512];

	if (!*m->keeper.aside)
		return;
	(void)snprintf(line, sizeof(line),
		       "the database was damaged and is now '%.200s'; a new one begins",
		       m->keeper.aside);
	say(m, line);
	*m->keeper.aside = '\0';
}

static int open_ledger(struct pp_monitor *m, struct pp_error *err)
{
	char node[256], line[512];
	size_t odd = 0;
	int r;

	text_file(m->o.source, "/proc/sys/kernel/hostname", node, sizeof(node));
	if (!*node)
		text_file(m->o.source, "/etc/hostname", node, sizeof(node));
	r = pp_keeper_open(m->o.where, *node ? node : NULL, &m->keeper, &m->k, &odd, err);
	if (r)
		return r;
	say_aside(m);
	if (odd) {
		(void)snprintf(line, sizeof(line),
			       "%zu rows of the database are not as this program writes them: left "
			       "out",
			       odd);
		say(m, line);
	}
	if (*m->keeper.why)
		say_unkept(m);
	m->k->started_ns = pp_clock_wall();
	m->k->period_ns = pp_watching_period(&m->watching);
	m->outlet.shown = m->k->told;
	check_boot(m);
	return 0;
}

static void begin_watching(struct pp_monitor *m)
{
	m->watching = (struct pp_watching){
		.watchers = m->o.watchers,
		.period_ns = m->o.period_ns,
		.alive = m->o.alive,
		.alive_ctx = m->o.ctx,
		.context = {.source = m->o.source,
			    .live = pp_source_may_ask(m->o.source),
			    .logs = m->o.logs,
			    .slo = m->o.slo,
			    .recall = recall,
			    .remember = remember,
			    .ctx = m},
	};
}

int pp_monitor_open(const struct pp_monitor_options *options, struct pp_monitor **ret,
		    struct pp_error *err)
{
	struct pp_monitor *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return pp_error_set(err, -ENOMEM, "out of memory");
	m->o = *options;
	m->keeper.lock = -1;
	begin_watching(m);
	r = pp_thresholds_load(m->o.policy, &m->thresholds, err);
	if (!r)
		r = pp_outlet_open(&m->o, &m->outlet, err);
	if (!r)
		r = open_ledger(m, err);
	if (!r)
		r = take_baseline(m, err);
	if (r)
		pp_monitor_close(m);
	else
		*ret = m;
	return r;
}

/* True when everything that changed is in the database. */
static bool save(struct pp_monitor *m, int64_t wall_ns, int64_t now_ns)
{
	struct pp_error err = {0};
	int r;

	m->tried_ns = now_ns;
	r = pp_keeper_save(&m->keeper, m->k, wall_ns, &err);
	if (r) {
		say_unkept(m);
		return false;
	}
	say_aside(m);
	if (*m->save_error)
		say(m, "what is known can be written again, and has been");
	pp_say_once(&m->o, m->save_error, "");
	m->saved_ns = now_ns;
	return true;
}

static bool is_time_to_save(const struct pp_monitor *m, int64_t now_ns)
{
	if (m->k->urgency == PP_NOT_URGENT)
		return false;
	if (*m->save_error)
		return now_ns - m->tried_ns >= AGAIN_NS;
	return m->k->urgency == PP_NOW || !m->saved_ns ||
	       now_ns - m->saved_ns >= (m->k->urgency == PP_SOON ? SOON_NS : LATER_NS);
}

/* One part more, behind those of the watchers. */
static int look_at_keeper(struct pp_monitor *m, struct pp_round *round)
{
	struct pp_watching *w = &m->watching;
	int r;

	if (round->n_parts == PP_WATCHERS_MOST)
		return 0;
	w->part[round->n_parts++] = (struct pp_round_part){"monitor", w->looks.n};
	r = pp_keeper_look(&m->keeper, &w->looks);
	round->looks = w->looks.looks;
	round->n = w->looks.n;
	return r;
}

/* May be there later (a process, a figure): no fault, but a name that is misspelt is never. */
static void say_strange(struct pp_monitor *m)
{
	enum pp_signal_kind kind;
	const char *object;
	char line[512];

	for (size_t i = 0; (object = pp_threshold_object(m->thresholds, i, &kind)); i++) {
		if (pp_signal_shape(kind) == PP_SHAPE_EVENT || kind == PP_SIGNAL_WATCHER ||
		    kind == PP_SIGNAL_HUNG_CALL || pp_subject_find(m->k, kind, object))
			continue;
		(void)snprintf(
			line, sizeof(line),
			"the policy names '%s/%.200s', and nothing that is watched is called "
			"so now: peerpath monitor --show has the names",
			pp_signal_key(kind), object);
		say(m, line);
	}
	m->named = true;
}

int pp_monitor_round(struct pp_monitor *m, struct pp_error *err)
{
	struct pp_round round = {.thresholds = m->thresholds};
	int r;

	round.now_ns = m->watching.context.now_ns = pp_clock_monotonic();
	round.wall_ns = m->watching.context.wall_ns = pp_clock_wall();
	r = pp_watching_look(&m->watching, &round, err);
	if (r)
		return r;
	r = look_at_keeper(m, &round);
	if (!r)
		r = pp_signals_judge(m->k, &round);
	if (r)
		return pp_error_set(err, r, "out of memory");
	if (!m->named)
		say_strange(m);
	if (is_time_to_save(m, round.now_ns))
		(void)save(m, round.wall_ns, round.now_ns);
	/* What is not written is told too: an alarm does not wait for a disk. */
	pp_outlet_tell(&m->outlet, m->k, round.now_ns);
	return 0;
}

int64_t pp_monitor_next(const struct pp_monitor *m)
{
	return pp_watching_next(&m->watching);
}

int pp_monitor_reload(struct pp_monitor *m, struct pp_error *err)
{
	struct pp_thresholds *fresh = NULL;
	int r = pp_outlet_reopen(&m->outlet, err);

	if (!r)
		r = pp_thresholds_load(m->o.policy, &fresh, err);
	if (r)
		return r;
	pp_thresholds_free(m->thresholds);
	m->thresholds = fresh;
	m->named = false;
	return take_baseline(m, err);
}

struct pp_monitor *pp_monitor_close(struct pp_monitor *m)
{
	if (!m)
		return NULL;
	if (m->k && (m->saved_ns || *m->save_error)) {
		/* With the last numbers, so that growth meanwhile is seen at the next start. */
		pp_ledger_urge(m->k, PP_NOW);
		(void)save(m, pp_clock_wall(), pp_clock_monotonic());
	}
	pp_watching_done(&m->watching);
	pp_keeper_close(&m->keeper);
	pp_outlet_close(&m->outlet);
	pp_ledger_free(m->k);
	pp_thresholds_free(m->thresholds);
	free(m);
	return NULL;
}

const struct pp_ledger *pp_monitor_ledger(const struct pp_monitor *m)
{
	return m->k;
}

int pp_monitor_state(const struct pp_monitor *m, struct pp_arena *arena, struct pp_state *ret)
{
	return pp_state_make(m->k, pp_clock_wall(), arena, ret);
}

const char *pp_monitor_status(const struct pp_monitor *m, char *text, size_t size)
{
	unsigned int open[PP_LEVEL_ALARM + 1] = {0};

	for (size_t i = 0; i < m->k->n_cases; i++)
		if (!m->k->cases[i]->ended_ns)
			open[m->k->cases[i]->level]++;
	(void)snprintf(text, size, "%zu looks; open signals: %u alarm, %u early, %u info",
		       m->k->n_subjects, open[PP_LEVEL_ALARM], open[PP_LEVEL_EARLY],
		       open[PP_LEVEL_INFO]);
	return text;
}
