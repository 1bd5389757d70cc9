/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of the state is a metric. Labels are bounded: devices by what is plugged in, signals and
 * levels by their tables, figures of an application by its watcher; processes are counted, never
 * named. What node_exporter tells of an InfiniBand port (states, rates, errors, discards) is not
 * told again.
 */
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "daemon/metrics.h"
#include "base/banned.h"

enum { KINDS = PP_SIGNAL_KINDS, LEVELS = PP_LEVEL_ALARM + 1 };
static const double NS = 1e9;

static double seconds(int64_t ns)
{
	return (double)ns / NS;
}

static void one(struct pp_metrics *m, const char *name, enum pp_metrics_type type, const char *unit,
		const char *help, double value)
{
	pp_metrics_family(m, name, type, unit, help);
	pp_metrics_sample(m, NULL, 0, value);
}

/* The value of a look that is known; "" else. */
static const char *word(const struct pp_state *s, enum pp_signal_kind kind, const char *object)
{
	for (size_t i = 0; i < s->n_looks; i++)
		if (s->looks[i].kind == kind && s->looks[i].value && !s->looks[i].unknown &&
		    !strcmp(s->looks[i].object, object))
			return s->looks[i].value;
	return "";
}

static void infos(struct pp_metrics *m, const struct pp_state *s)
{
	const struct pp_metrics_label build[] = {{"version", s->version}};
	const struct pp_metrics_label node[] = {
		{"node", s->node},
		{"kernel", word(s, PP_SIGNAL_FINGERPRINT, "kernel.release")},
		{"driver", word(s, PP_SIGNAL_FINGERPRINT, "nvidia.version")},
		{"module_flavour", word(s, PP_SIGNAL_FLAVOUR, "node")},
		{"peermem", word(s, PP_SIGNAL_PEERMEM, "node")},
	};
	const struct pp_metrics_label bundle[] = {{"bundle", s->baseline}};

	pp_metrics_family(m, "peerpath_build", PP_METRICS_INFO, "", "The program that watches.");
	pp_metrics_sample(m, build, PP_ARRAY_LEN(build), 1);
	pp_metrics_family(m, "peerpath_node", PP_METRICS_INFO, "", "The node that is watched.");
	pp_metrics_sample(m, node, PP_ARRAY_LEN(node), 1);
	if (!s->baseline)
		return;
	pp_metrics_family(m, "peerpath_baseline", PP_METRICS_INFO, "",
			  "The bundle that the node is compared with.");
	pp_metrics_sample(m, bundle, PP_ARRAY_LEN(bundle), 1);
	if (s->baseline_ns)
		one(m, "peerpath_baseline_timestamp_seconds", PP_METRICS_GAUGE, "seconds",
		    "When the baseline was taken, since 1970.", seconds(s->baseline_ns));
}

static void monitor(struct pp_metrics *m, const struct pp_state *s)
{
	one(m, "peerpath_monitor_start_timestamp_seconds", PP_METRICS_GAUGE, "seconds",
	    "When the monitor was started, since 1970.", seconds(s->started_ns));
	if (s->round_ns)
		one(m, "peerpath_monitor_last_round_timestamp_seconds", PP_METRICS_GAUGE, "seconds",
		    "When the monitor looked last, since 1970.", seconds(s->round_ns));
	if (s->period_ns)
		one(m, "peerpath_monitor_period_seconds", PP_METRICS_GAUGE, "seconds",
		    "How often it looks at what it looks at most often.", seconds(s->period_ns));
	one(m, "peerpath_monitor_rounds", PP_METRICS_COUNTER, "",
	    "Rounds of looks since the monitor was started.", (double)s->rounds);
}

/* One sample a check and state: exactly one of a check is 1. */
static void check_states(struct pp_metrics *m, const struct pp_state *s)
{
	static const enum pp_verdict all[] = {PP_PASS, PP_DEGRADED, PP_FAIL, PP_UNKNOWN};

	pp_metrics_family(m, "peerpath_check_status", PP_METRICS_GAUGE, "",
			  "The last verdict of a gate: 1 for the state that it has.");
	for (size_t i = 0; i < s->n_checks; i++)
		for (size_t k = 0; k < PP_ARRAY_LEN(all); k++) {
			const struct pp_metrics_label labels[] = {
				{"check", s->checks[i].name},
				{"state", pp_verdict_name(all[k])},
			};

			pp_metrics_sample(m, labels, PP_ARRAY_LEN(labels),
					  s->checks[i].verdict == all[k]);
		}
}

enum check_number { RUN, DURATION, SIMULATED };

static void check_number(struct pp_metrics *m, const struct pp_state *s, const char *name,
			 const char *unit, const char *help, enum check_number which)
{
	pp_metrics_family(m, name, PP_METRICS_GAUGE, unit, help);
	for (size_t i = 0; i < s->n_checks; i++) {
		const struct pp_state_check *c = &s->checks[i];
		const struct pp_metrics_label labels[] = {{"check", c->name}};

		/* What is not known is left out: a 0 would be a time. */
		if ((which == DURATION && !c->duration_ns) || (which == RUN && !c->run_ns))
			continue;
		pp_metrics_sample(m, labels, PP_ARRAY_LEN(labels),
				  which == SIMULATED  ? c->simulated
				  : which == DURATION ? seconds(c->duration_ns)
						      : seconds(c->run_ns));
	}
}

static void checks(struct pp_metrics *m, const struct pp_state *s)
{
	if (!s->n_checks)
		return;
	check_states(m, s);
	check_number(m, s, "peerpath_check_last_run_timestamp_seconds", "seconds",
		     "When the gate was judged last, since 1970.", RUN);
	check_number(m, s, "peerpath_check_duration_seconds", "seconds", "How long the gate took.",
		     DURATION);
	check_number(m, s, "peerpath_check_simulated", "",
		     "1: the gate was exercised in simulation and proves nothing.", SIMULATED);
}

/* All kinds and levels, so that a rule sees a 0 and not nothing. */
static void signals(struct pp_metrics *m, const struct pp_state *s)
{
	unsigned int open[KINDS][LEVELS] = {{0}};
	double last[KINDS] = {0};

	for (size_t i = 0; i < s->n_signals; i++) {
		const struct pp_signal *one = &s->signals[i];

		if ((unsigned int)one->kind >= KINDS || (unsigned int)one->level >= LEVELS)
			continue;
		open[one->kind][one->level] += !one->ended_ns;
		if (seconds(one->last_ns) > last[one->kind])
			last[one->kind] = seconds(one->last_ns);
	}
	pp_metrics_family(m, "peerpath_signals_open", PP_METRICS_GAUGE, "",
			  "Signals that are open now, by what they tell and how serious that is.");
	for (int k = 0; k < KINDS; k++)
		for (int l = 0; l < LEVELS; l++) {
			const struct pp_metrics_label labels[] = {
				{"signal", pp_signal_key((enum pp_signal_kind)k)},
				{"level", pp_level_name((enum pp_signal_level)l)},
			};

			pp_metrics_sample(m, labels, PP_ARRAY_LEN(labels), open[k][l]);
		}
	pp_metrics_family(m, "peerpath_signal_last_timestamp_seconds", PP_METRICS_GAUGE, "seconds",
			  "When a signal of this kind was seen last, since 1970.");
	for (int k = 0; k < KINDS; k++) {
		const struct pp_metrics_label label = {"signal",
						       pp_signal_key((enum pp_signal_kind)k)};

		if (last[k] > 0)
			pp_metrics_sample(m, &label, 1, last[k]);
	}
}

/* How many things each kind looks at, and how many of them cannot be read. */
static void coverage(struct pp_metrics *m, const struct pp_state *s)
{
	unsigned int objects[KINDS] = {0}, unknown[KINDS] = {0};

	for (size_t i = 0; i < s->n_looks; i++) {
		if ((unsigned int)s->looks[i].kind >= KINDS)
			continue;
		objects[s->looks[i].kind]++;
		unknown[s->looks[i].kind] += s->looks[i].unknown != NULL;
	}
	for (int pass = 0; pass < 2; pass++) {
		pp_metrics_family(m, pass ? "peerpath_watched_unknown" : "peerpath_watched",
				  PP_METRICS_GAUGE, "",
				  pass ? "Of what is watched: how much cannot be read now."
				       : "Things that are watched, by the signal they may give.");
		for (int k = 0; k < KINDS; k++) {
			const struct pp_metrics_label label = {
				"signal", pp_signal_key((enum pp_signal_kind)k)};

			if (objects[k])
				pp_metrics_sample(m, &label, 1, pass ? unknown[k] : objects[k]);
		}
	}
}

/* "0000:17:00.0 port 1", "0000:17:00.0 port 1 interface" -> device and port. */
static bool split_port(const char *object, char device[64], char port[8])
{
	static const char PORT[] = " port ";
	const char *at = strstr(object, PORT);
	size_t n = at ? strspn(at + sizeof(PORT) - 1, "0123456789") : 0;

	if (!at || !n || n >= 8 || at - object >= 64)
		return false;
	(void)snprintf(device, 64, "%.*s", (int)(at - object), object);
	(void)snprintf(port, 8, "%.*s", (int)n, at + sizeof(PORT) - 1);
	return true;
}

static const struct {
	enum pp_signal_kind kind;
	const char *name, *help;
} by_port[] = {
	{PP_SIGNAL_RETRANSMITS, "peerpath_port_retransmits",
	 "Packets that an RDMA port sent again, and its time-outs."},
	{PP_SIGNAL_OUT_OF_SEQUENCE, "peerpath_port_out_of_sequence",
	 "Packets that came out of their order."},
	{PP_SIGNAL_PAUSES, "peerpath_port_pfc_pauses",
	 "Pause frames of priority flow control, sent and received."},
	{PP_SIGNAL_CNPS, "peerpath_port_cnps",
	 "Congestion notifications that a port sent, and that slowed it down."},
};

static void port_counters(struct pp_metrics *m, const struct pp_state *s)
{
	char device[64], port[8];

	for (size_t f = 0; f < PP_ARRAY_LEN(by_port); f++) {
		bool begun = false;

		for (size_t i = 0; i < s->n_looks; i++) {
			const struct pp_look *l = &s->looks[i];
			const struct pp_metrics_label labels[] = {{"device", device},
								  {"port", port}};

			if (l->kind != by_port[f].kind || l->unknown ||
			    !split_port(l->object, device, port))
				continue;
			if (!begun)
				pp_metrics_family(m, by_port[f].name, PP_METRICS_COUNTER, "",
						  by_port[f].help);
			begun = true;
			pp_metrics_sample(m, labels, PP_ARRAY_LEN(labels), l->number);
		}
	}
}

static const struct {
	enum pp_signal_kind kind;
	const char *name, *unit, *label, *help; /* label NULL: one of the node */
} gauges[] = {
	{PP_SIGNAL_BAR1_FREE, "peerpath_gpu_bar1_free_bytes", "bytes", "device",
	 "What is left of a GPU's BAR1 window."},
	{PP_SIGNAL_HOST_CPU, "peerpath_host_cpu_busy_ratio", "ratio", NULL,
	 "Share of the processors' time in use."},
	{PP_SIGNAL_HOST_PRESSURE, "peerpath_host_pressure_ratio", "ratio", "resource",
	 "Share of time in which some task waited for it."},
	{PP_SIGNAL_HOST_MEMORY, "peerpath_host_memory_traffic_bytes_per_second", "bytes_per_second",
	 NULL, "Traffic of the host's memory controllers."},
	{PP_SIGNAL_SLO, "peerpath_application_figure", "", "figure",
	 "A figure of the application, as it tells it."},
};

static void gauges_of(struct pp_metrics *m, const struct pp_state *s)
{
	for (size_t f = 0; f < PP_ARRAY_LEN(gauges); f++) {
		bool begun = false;

		for (size_t i = 0; i < s->n_looks; i++) {
			const struct pp_look *l = &s->looks[i];
			const struct pp_metrics_label label = {gauges[f].label, l->object};

			if (l->kind != gauges[f].kind || l->unknown)
				continue;
			if (!begun)
				pp_metrics_family(m, gauges[f].name, PP_METRICS_GAUGE,
						  gauges[f].unit, gauges[f].help);
			else if (!gauges[f].label)
				continue;
			begun = true;
			pp_metrics_sample(m, &label, gauges[f].label != NULL, l->number);
		}
	}
}

/* Processes by the path that their GPU memory goes; words of watch_registrations.c. */
static void registrations(struct pp_metrics *m, const struct pp_state *s)
{
	static const char *const ways[] = {"dmabuf",	  "peermem",   "data-direct", "efa-p2p",
					   "host-staged", "host-only", "mixed",	      "unknown"};
	unsigned int count[PP_ARRAY_LEN(ways)] = {0};
	bool any = false;

	for (size_t i = 0; i < s->n_looks; i++) {
		const struct pp_look *l = &s->looks[i];
		const char *way = l->unknown ? "unknown" : l->value ? l->value : "unknown";

		if (l->kind != PP_SIGNAL_REGISTRATION || strncmp(l->object, "pid ", 4) != 0)
			continue;
		any = true;
		for (size_t k = 0; k < PP_ARRAY_LEN(ways); k++)
			count[k] += !strncmp(way, ways[k], strlen(ways[k]));
	}
	if (!any)
		return;
	pp_metrics_family(m, "peerpath_processes", PP_METRICS_GAUGE, "",
			  "Processes that hold an hca, by how their GPU memory is registered.");
	for (size_t k = 0; k < PP_ARRAY_LEN(ways); k++) {
		const struct pp_metrics_label label = {"registration", ways[k]};

		pp_metrics_sample(m, &label, 1, count[k]);
	}
}

void pp_metrics_write(const struct pp_state *s, enum pp_metrics_format format, struct pp_buf *to)
{
	struct pp_metrics m = {.to = to, .format = format};

	infos(&m, s);
	monitor(&m, s);
	checks(&m, s);
	signals(&m, s);
	coverage(&m, s);
	port_counters(&m, s);
	gauges_of(&m, s);
	registrations(&m, s);
	pp_metrics_end(&m);
}
