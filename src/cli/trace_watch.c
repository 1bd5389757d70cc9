/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace --watch: looks again and again, and writes one line for each change. A region that goes
 * and comes back with the same process, hca and length by another path has changed its path.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/interrupt.h"
#include "cli/trace_show.h"
#include "base/banned.h"

enum { LINE_MAX_BYTES = 64 << 10 };

/* What is kept of a region between looks. */
struct kept {
	char hca[64], comm[32];
	const char *by; /* static: name of a surface, "" none */
	pid_t pid;
	uint32_t mrn, lkey;
	uint64_t length;
	bool has_mrn, simulated, known, gpu, matched;
	enum pp_registration how;
	enum pp_claim state;
};

struct watching {
	struct pp_tracing *t;
	struct kept *now;
	size_t n;
	bool changed; /* a path */
	bool failed;  /* the reader has gone */
};

static int by_key(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;
	int r = strcmp(x->hca, y->hca);

	if (x->simulated != y->simulated)
		return x->simulated - y->simulated;
	if (r)
		return r;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->mrn != y->mrn)
		return x->mrn < y->mrn ? -1 : 1;
	if (x->lkey != y->lkey)
		return x->lkey < y->lkey ? -1 : 1;
	return x->length < y->length ? -1 : x->length > y->length;
}

static struct kept keep(const struct pp_region *r)
{
	struct kept k = {
		.by = r->n_sightings ? pp_surface_name(r->sighting[0].by) : "",
		.pid = r->pid,
		.mrn = r->mrn,
		.lkey = r->has_keys ? r->lkey : 0,
		.length = r->length,
		.has_mrn = r->has_mrn,
		.simulated = r->simulated,
		.known = r->known,
		.gpu = r->gpu_memory,
		.how = r->registration,
		.state = r->state,
	};

	(void)snprintf(k.hca, sizeof(k.hca), "%s", r->hca);
	(void)snprintf(k.comm, sizeof(k.comm), "%s", r->comm);
	return k;
}

/* Rows that live, sorted. -ENOMEM. */
static int take(const struct pp_trace_table *t, struct kept **ret, size_t *ret_n)
{
	struct kept *all = calloc(t->n + 1, sizeof(*all));
	size_t n = 0;

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < t->n; i++)
		if (!t->region[i].gone)
			all[n++] = keep(&t->region[i]);
	qsort(all, n, sizeof(*all), by_key);
	*ret = all;
	*ret_n = n;
	return 0;
}

static const char *way(const struct kept *k)
{
	return k->known ? pp_registration_name(k->how) : "unknown";
}

static void line_json(struct pp_buf *b, const char *what, const struct kept *k,
		      const struct kept *before)
{
	struct pp_json j = PP_JSON(b, /* is_pretty= */ false);
	char time[32];

	pp_json_object(&j, NULL);
	pp_json_str(&j, "schema", "peerpath.trace-change/1");
	pp_json_str(&j, "time", pp_clock_format(pp_clock_wall(), time, sizeof(time)));
	pp_json_str(&j, "change", what);
	pp_json_str(&j, "about", pp_about_name(PP_REGISTRATION));
	pp_json_str(&j, "hca", k->hca);
	if (k->pid)
		pp_json_i64(&j, "pid", k->pid);
	else
		pp_json_null(&j, "pid");
	pp_json_str(&j, "comm", k->comm);
	if (k->has_mrn)
		pp_json_u64(&j, "mrn", k->mrn);
	pp_json_u64(&j, "lkey", k->lkey);
	pp_json_u64(&j, "length_bytes", k->length);
	pp_json_str(&j, "registration", k->known ? pp_registration_name(k->how) : NULL);
	pp_json_str(&j, "state", pp_claim_name(k->state));
	pp_json_bool(&j, "gpu_memory", k->gpu);
	if (before)
		pp_json_str(&j, "registration_before", way(before));
	pp_json_bool(&j, "simulated", k->simulated);
	pp_json_end_object(&j);
	pp_buf_char(b, '\n');
}

static void line_text(struct pp_buf *b, const char *what, const struct kept *k,
		      const struct kept *before)
{
	char time[32], mrn[16] = "-";

	if (k->has_mrn)
		(void)snprintf(mrn, sizeof(mrn), "%" PRIu32, k->mrn);
	pp_buf_printf(b, "%s %-4s %s mrn %s lkey 0x%" PRIx32 " mrlen %" PRIu64 " pid %d %s ",
		      pp_clock_format(pp_clock_wall(), time, sizeof(time)), what, k->hca, mrn,
		      k->lkey, k->length, k->pid, k->comm);
	if (before)
		pp_buf_printf(b, "%s -> ", way(before));
	pp_buf_printf(b, "%s%s%s%s%s\n", way(k),
		      k->known && !k->simulated && k->state != PP_PROVEN ? "?" : "",
		      *k->by ? " by " : "", k->by, k->simulated ? " (simulated)" : "");
}

static void tell(struct watching *w, const char *what, const struct kept *k,
		 const struct kept *before)
{
	struct pp_buf PP_AUTO_BUF b = PP_BUF(LINE_MAX_BYTES);

	if (pp_out_is_json(w->t->session.out))
		line_json(&b, what, k, before);
	else
		line_text(&b, what, k, before);
	w->failed |= b.failed || fwrite(pp_buf_text(&b), 1, b.len, stdout) != b.len;
}

/* A region of @old that is not in @new, or the reverse, is unmatched. */
static void match(struct watching *w, struct kept *old, size_t n_old, struct kept *new,
		  size_t n_new)
{
	size_t i = 0, k = 0;

	while (i < n_old && k < n_new) {
		int r = by_key(&old[i], &new[k]);

		if (!r) {
			old[i].matched = new[k].matched = true;
			if (old[i].known && new[k].known && old[i].how != new[k].how) {
				tell(w, "path", &new[k], &old[i]);
				w->changed = true;
			}
		}
		i += r <= 0;
		k += r >= 0;
	}
}

static bool again(const struct kept *a, const struct kept *b)
{
	return !a->matched && !b->matched && a->pid == b->pid && a->length == b->length &&
	       a->simulated == b->simulated && !strcmp(a->hca, b->hca) && a->known && b->known &&
	       a->how != b->how;
}

enum { AGAIN_MOST = 4096 }; /* pairs of gone and new ones are looked at by pairs */

static void compare(struct watching *w, struct kept *new, size_t n_new)
{
	match(w, w->now, w->n, new, n_new);
	for (size_t i = 0; i < w->n && w->n < AGAIN_MOST && n_new < AGAIN_MOST; i++)
		for (size_t k = 0; k < n_new && !w->now[i].matched; k++) {
			if (!again(&w->now[i], &new[k]))
				continue;
			tell(w, "path", &new[k], &w->now[i]);
			w->now[i].matched = new[k].matched = w->changed = true;
		}
	for (size_t i = 0; i < w->n; i++)
		if (!w->now[i].matched)
			tell(w, "gone", &w->now[i], NULL);
	for (size_t k = 0; k < n_new; k++)
		if (!new[k].matched)
			tell(w, "new", &new[k], NULL);
	for (size_t k = 0; k < n_new; k++)
		new[k].matched = false;
}

static int step(struct watching *w, bool first)
{
	struct kept *new = NULL;
	size_t n = 0;
	int code = pp_tracing_look(w->t);

	if (!code && take(&w->t->look.table, &new, &n))
		code = pp_complain(w->t->args, PP_EXIT_INTERNAL, "out of memory");
	if (code)
		return code;
	if (first)
		(void)pp_complain(w->t->args, 0, "watching; %zu regions now; Ctrl-C ends it", n);
	else
		compare(w, new, n);
	w->failed |= fflush(stdout) != 0;
	free(w->now);
	w->now = new;
	w->n = n;
	return 0;
}

static bool process_ended(const struct pp_tracing *t)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d", t->pid);
	return t->pid && pp_source_probe(t->session.src, path) == 0;
}

int pp_trace_watch(struct pp_tracing *t)
{
	struct watching w = {.t = t};
	enum pp_surface_state netlink;
	int code;

	pp_tracing_probe(t, /* live= */ false);
	code = step(&w, /* first= */ true);

	while (!code && !pp_interrupted() && !w.failed && !process_ended(t)) {
		(void)poll(NULL, 0, (int)(t->period / PP_MILLISECOND));
		if (!pp_interrupted())
			code = step(&w, /* first= */ false);
	}
	netlink =
		t->looked ? t->look.table.surface[PP_SURFACE_RESOURCES].state : PP_SURFACE_UNASKED;
	if (!code)
		code = w.changed		    ? PP_EXIT_BAD
		       : netlink == PP_SURFACE_READ ? PP_EXIT_PASS
						    : PP_EXIT_UNKNOWN;
	free(w.now);
	pp_tracing_unprobe(t);
	/* Everything is written: there is no document. */
	t->session.out = pp_out_free(t->session.out);
	return code;
}
