/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the host.pays: processors' time in use, the share of time in which some task waited, and
 * bytes through the memory controllers. Each is a rate between two looks, so the first gives none.
 *
 * The counters of memory controllers run between looks; only a live machine that lets us has them.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/watch.h"
#include "node/pressure.h"
#include "trace/uncore.h"
#include "base/banned.h"

enum { STAT = 4096 };
static const char PROC_STAT[] = "/proc/stat";

struct host {
	bool begun;
	int64_t at_ns;
	struct pp_processor_time cpu;
	int cpu_error;
	double waited[PP_PRESSURES];
	int wait_error[PP_PRESSURES];
	struct pp_uncore *uncore; /* NULL: cannot be counted, and why */
	bool counting;
	struct pp_error why;
};

/* The start of the file is enough: a machine of many processors has a long one. */
static int read_cpu(struct pp_source *s, struct pp_processor_time *ret)
{
	char text[STAT];
	size_t len = 0;
	int r = pp_source_read(s, PROC_STAT, text, sizeof(text) - 1, &len);

	if (r && r != -EFBIG)
		return r;
	text[len < sizeof(text) ? len : sizeof(text) - 1] = '\0';
	return pp_processor_time_parse(text, ret);
}

static int look_at_cpu(struct pp_watch_context *at, struct host *h, struct pp_looks *into)
{
	struct pp_processor_time now;
	const struct pp_processor_time before = h->cpu;
	bool had = h->begun && !h->cpu_error;
	int r = read_cpu(at->source, &now);

	h->cpu_error = r;
	if (r)
		return pp_look_unknown(into, PP_SIGNAL_HOST_CPU, "node", "%s: %s", PROC_STAT,
				       pp_source_why(r));
	h->cpu = now;
	if (!had || now.all <= before.all || now.busy < before.busy)
		return 0;
	return pp_look_number(into, PP_SIGNAL_HOST_CPU, "node", PROC_STAT,
			      (double)(now.busy - before.busy) / (double)(now.all - before.all));
}

static int look_at_pressure(struct pp_watch_context *at, struct host *h, enum pp_pressure of,
			    double seconds, struct pp_looks *into)
{
	double now, before = h->waited[of];
	bool had = h->begun && !h->wait_error[of];
	int r = pp_pressure_read(at->source, of, &now);

	h->wait_error[of] = r;
	if (r)
		return pp_look_unknown(into, PP_SIGNAL_HOST_PRESSURE, pp_pressure_names[of],
				       "/proc/pressure/%s: %s", pp_pressure_names[of],
				       pp_source_why(r));
	h->waited[of] = now;
	if (!had || seconds <= 0 || now < before)
		return 0;
	return pp_look_number(into, PP_SIGNAL_HOST_PRESSURE, pp_pressure_names[of], NULL,
			      fmin((now - before) / seconds, 1));
}

static void start(struct pp_watch_context *at, struct host *h)
{
	h->counting = false;
	if (h->uncore && !pp_uncore_start(h->uncore, &h->why))
		h->counting = true;
	(void)at;
}

/* Once: what this machine has. */
static int find_uncore(struct pp_watch_context *at, struct host *h)
{
	h->uncore = calloc(1, sizeof(*h->uncore));
	if (!h->uncore)
		return -ENOMEM;
	if (at->live && !pp_uncore_find(at->source, h->uncore, &h->why))
		return 0;
	if (!at->live)
		(void)pp_error_set(&h->why, -ENODATA, "a recording counts nothing");
	free(h->uncore);
	h->uncore = NULL;
	return 0;
}

static int look_at_memory(struct pp_watch_context *at, struct host *h, double seconds,
			  struct pp_looks *into)
{
	double bytes[PP_UNCORE_KINDS], sum;
	bool had = h->counting;
	int r = 0;

	if (had) {
		r = pp_uncore_stop(h->uncore, bytes, &h->why);
		h->counting = false;
		sum = bytes[PP_UNCORE_MEMORY_READ] + bytes[PP_UNCORE_MEMORY_WRITE];
		if (!r && seconds > 0 && isfinite(sum))
			r = pp_look_number(into, PP_SIGNAL_HOST_MEMORY, "node", NULL,
					   sum / seconds);
		if (r == -ENOMEM)
			return r;
	}
	start(at, h);
	if (h->counting)
		return 0;
	return pp_look_unknown(into, PP_SIGNAL_HOST_MEMORY, "node", "%s",
			       h->why.text[0] ? h->why.text : "cannot be counted");
}

static int look_now(struct pp_watch_context *at, struct host *h, struct pp_looks *into)
{
	double seconds = h->begun ? (double)(at->now_ns - h->at_ns) / PP_SECOND : 0;
	int r = h->begun ? 0 : find_uncore(at, h);

	if (!r)
		r = look_at_cpu(at, h, into);
	for (int i = 0; !r && i < PP_PRESSURES; i++)
		r = look_at_pressure(at, h, (enum pp_pressure)i, seconds, into);
	if (!r)
		r = look_at_memory(at, h, seconds, into);
	h->at_ns = at->now_ns;
	h->begun = true;
	return r;
}

static int look(struct pp_watch_context *at, void **state, struct pp_looks *into,
		struct pp_error *err)
{
	struct host *h = pp_watch_state(state, sizeof(*h));
	int r = h ? look_now(at, h, into) : -ENOMEM;

	return r ? pp_error_set(err, r, "watching the host. %s", pp_source_why(r)) : 0;
}

static void end(void *state)
{
	struct host *h = state;
	double bytes[PP_UNCORE_KINDS];

	if (h && h->counting)
		(void)pp_uncore_stop(h->uncore, bytes, &h->why);
	if (h)
		free(h->uncore);
	free(h);
}

const struct pp_watcher pp_watch_host = {
	.name = "host", .period_ms = 15000, .look = look, .end = end};
