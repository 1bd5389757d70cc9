/* SPDX-License-Identifier: Apache-2.0 */
/*
 * B, and what came of all probes: an answer like any other, so that a recording holds it.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "trace/prober_parts.h"
#include "trace/process.h"
#include "base/banned.h"

enum { LATE_TRIES = 20, LATE_MS = 5, PROFILE_BYTES = 1 << 20, COLUMNS = 3 };

/* By device and number; an entry may be told twice, when the kernel's message was full. */
static int by_region(const void *a, const void *b)
{
	const struct pp_event *x = a, *y = b;
	int r = strcmp(x->hca, y->hca);

	return r ? r : (x->mrn > y->mrn) - (x->mrn < y->mrn);
}

static size_t unique(struct pp_event *e, size_t n)
{
	size_t kept = 0;

	qsort(e, n, sizeof(*e), by_region);
	for (size_t i = 0; i < n; i++)
		if (!kept || by_region(&e[kept - 1], &e[i]))
			e[kept++] = e[i];
	return kept;
}

/* How many regions of the dump have no event among these, which are sorted. */
static size_t missing(const struct pp_resources *r, const struct pp_event *e, size_t n)
{
	struct pp_event key = {.mrn = 0};
	size_t without = 0;

	for (size_t i = 0; i < r->n; i++) {
		const struct pp_resource *mr = &r->item[i];

		if (mr->kind != PP_RESOURCE_MR)
			continue;
		(void)snprintf(key.hca, sizeof(key.hca), "%s", r->device[mr->device].name);
		key.mrn = mr->id;
		without += !bsearch(&key, e, n, sizeof(*e), by_region);
	}
	return without;
}

/* Only regions, moved behind all other events; returns where they begin. */
static size_t gather(struct pp_event *e, size_t n, size_t from)
{
	size_t start = n;
	struct pp_event swap;

	for (size_t i = n; i-- > from;) {
		if (e[i].kind != PP_EVENT_REGION)
			continue;
		swap = e[--start];
		e[start] = e[i];
		e[i] = swap;
	}
	return start;
}

int pp_prober_self(struct pp_prober *p, struct pp_source *s, struct pp_resources *ret,
		   struct pp_error *err)
{
	struct pp_answer answer;
	size_t from = p->n, start, without = 0;
	int r;

	if (p->report[PP_SURFACE_SELF_PROBE].state != PP_SURFACE_READ &&
	    p->report[PP_SURFACE_SELF_PROBE].state != PP_SURFACE_CUT)
		return pp_error_set(err, -EOPNOTSUPP, "%s", p->report[PP_SURFACE_SELF_PROBE].why);
	r = pp_resources_ask(s, &answer);
	if (r)
		return pp_error_set(err, r, "no memory");
	r = pp_resources_read(&answer, ret);
	pp_answer_done(&answer);
	if (r)
		return pp_error_set(err, r, "no memory");
	/* what a processor has written last may come a moment later */
	for (int i = 0; i < LATE_TRIES; i++) {
		r = pp_prober_drain(p, err);
		if (r)
			break;
		start = gather(p->event, p->n, from);
		p->n = start + unique(p->event + start, p->n - start);
		without = missing(ret, p->event + start, p->n - start);
		if (!without)
			break;
		(void)poll(NULL, 0, LATE_MS);
	}
	if (r) {
		pp_resources_done(ret);
		return r;
	}
	if (without)
		pp_prober_report(p, PP_SURFACE_SELF_PROBE, PP_SURFACE_CUT,
				 "%zu regions of the dump had no event", without);
	return 0;
}

/* "  a3r   17   2": the last column counts returns and hits that the kernel missed. */
static uint64_t misses_in(char *text, const struct pp_kprobes *k)
{
	char *line, *save = text, *word;
	uint64_t sum = 0, misses;

	while ((line = strsep(&save, "\n"))) {
		const char *column[COLUMNS] = {NULL};
		int n = 0;

		while (n < COLUMNS && (word = strsep(&line, " \t")))
			if (*word)
				column[n++] = word;
		if (n == COLUMNS && pp_kprobe_find(k, column[0], strlen(column[0])) &&
		    !pp_parse_u64(column[2], 0, UINT64_MAX, &misses) &&
		    __builtin_add_overflow(sum, misses, &sum))
			sum = UINT64_MAX;
	}
	return sum;
}

static uint64_t misses(const struct pp_prober *p)
{
	char path[PP_TRACEFS_PATH + 32], *text = malloc(PROFILE_BYTES);
	uint64_t sum = 0;
	size_t n;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/kprobe_profile", p->tracefs.top);
	f = text ? fopen(path, "re") : NULL;
	if (f) {
		n = fread(text, 1, PROFILE_BYTES - 1, f);
		text[n] = '\0';
		sum = misses_in(text, &p->kprobes);
		(void)fclose(f);
	}
	free(text);
	return sum;
}

struct telling {
	const struct pp_prober *prober;
	uint64_t lost;
};

/* In the helper: the parent's events are here too. */
static int tell(struct pp_json *data, const void *arg, struct pp_error *err)
{
	const struct telling *t = arg;
	const struct pp_prober *p = t->prober;

	(void)err;
	pp_json_array(data, "events");
	for (size_t i = 0; i < p->n; i++)
		pp_event_write(data, &p->event[i]);
	pp_json_end_array(data);
	pp_json_u64(data, "lost", t->lost > INT64_MAX ? INT64_MAX : t->lost);
	pp_json_object(data, "surfaces");
	for (int i = 0; i < PP_SURFACES; i++) {
		if (p->report[i].state == PP_SURFACE_UNASKED)
			continue;
		pp_json_object(data, pp_surface_name((enum pp_surface)i));
		pp_json_str(data, "state", pp_surface_state_name(p->report[i].state));
		pp_json_str(data, "why", p->report[i].why);
		pp_json_end_object(data);
	}
	pp_json_end_object(data);
	return 0;
}

/* What was watched from the start is not all there is, when a module came meanwhile. */
static void look_for_unwatched(struct pp_prober *p)
{
	const char *function;

	if (p->report[PP_SURFACE_LIVE_PROBE].state != PP_SURFACE_READ)
		return;
	function = pp_kprobes_unwatched(&p->kprobes, p->btf);
	if (function)
		pp_prober_report(p, PP_SURFACE_LIVE_PROBE, PP_SURFACE_CUT,
				 "%s was not watched: its module was loaded meanwhile", function);
}

int pp_prober_answer(struct pp_prober *p, struct pp_source *s, struct pp_answer *ret)
{
	const struct telling t = {.prober = p, .lost = p->lost + misses(p)};
	const struct pp_question q = {.name = "trace-events", .run = tell, .arg = &t};

	look_for_unwatched(p);
	return pp_ask(s, &q, ret);
}

struct sweep {
	const struct pp_tracefs *tracefs;
	char removed[PP_TRACEFS_NAME]; /* the last: an owner is told for each of its probes */
	unsigned int n;
	int error;
};

/* "PID-START-NS": is that tracer gone? Of another PID namespace nothing is known. */
static void remove_dead(void *arg, const char *owner)
{
	struct sweep *s = arg;
	char text[PP_TRACEFS_NAME], *save = text;
	const char *own = strrchr(s->tracefs->owner, '-'), *ns = strrchr(owner, '-');
	const char *pid, *start;
	uint64_t number, started;
	int r;

	(void)snprintf(text, sizeof(text), "%s", owner);
	pid = strsep(&save, "-");
	start = strsep(&save, "-");
	if (!own || !ns || strcmp(own, ns) != 0 || !pid || !start ||
	    pp_parse_u64(pid, 1, INT32_MAX, &number) ||
	    pp_parse_u64(start, 0, UINT64_MAX, &started) || pp_process_is((pid_t)number, started) ||
	    !strcmp(s->removed, owner))
		return;
	(void)snprintf(s->removed, sizeof(s->removed), "%s", owner);
	r = pp_tracefs_remove(s->tracefs, owner);
	s->n += r == 0;
	s->error = r ? r : s->error;
}

int pp_prober_sweep(unsigned int *ret_removed, struct pp_error *err)
{
	struct pp_tracefs tracefs;
	struct sweep s = {.tracefs = &tracefs};
	int r = pp_tracefs_open(&tracefs, err);

	if (r)
		return r;
	r = pp_tracefs_owners(&tracefs, remove_dead, &s);
	if (r || s.error)
		return pp_error_set(err, r ? r : s.error,
				    "%s: what a killed tracer has left stays: %s", tracefs.top,
				    pp_errno_name(r ? r : s.error));
	*ret_removed = s.n;
	return 0;
}
