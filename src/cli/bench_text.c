/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page of a run: who with whom, the numbers, what moved besides, what was refused, and the
 * verdict with the next command last, where the eye is.
 */
#include "cli/bench_text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "base/banned.h"

enum { FEW_ROWS = 24 };

static const char *or_unknown(const char *text)
{
	return text ? text : "unknown";
}

static const char *node_name(const struct pp_bench *b, const struct pp_bench_end *e)
{
	const struct pp_bench_node *n = e->node < b->n_nodes ? &b->nodes[e->node] : NULL;

	return !n ? "?" : n->id ? n->id : n->host ? n->host : "?";
}

static void end_line(struct pp_out *o, const struct pp_bench *b, const struct pp_bench_end *e,
		     const char *label)
{
	pp_out_para(o, 11, "  %-9s%s %s (%s%s%s) port %u, %s, %s%s; %s%s%s%s%s%s", label,
		    node_name(b, e), or_unknown(e->device), or_unknown(e->hca),
		    pp_bench_software(e) ? ", software: " : "",
		    pp_bench_software(e) ? pp_bench_software(e) : "", e->port,
		    e->gid_type ? e->gid_type : "no GID",
		    e->netdev ? e->netdev : or_unknown(e->link_layer),
		    e->simulated ? ", simulated" : "", e->gpu ? "GPU " : "no GPU",
		    e->gpu ? e->gpu : "", e->gpu && e->gpu_name ? " " : "",
		    e->gpu && e->gpu_name ? e->gpu_name : "", e->gpu && e->distance ? ", " : "",
		    e->gpu && e->distance ? e->distance : "");
}

static void quality_line(struct pp_out *o, const struct pp_bench_end *e)
{
	char class[32] = "unknown", priority[32] = "unknown";

	if (e->traffic_class >= 0)
		(void)snprintf(class, sizeof(class), "%d", e->traffic_class);
	if (e->priority >= 0)
		(void)snprintf(priority, sizeof(priority), "%d", e->priority);
	pp_out_para(o, 11, "  %-9straffic class %s -> priority %s; MTU %u bytes; CPUs %s", "with",
		    class, priority, e->mtu, e->cpus ? e->cpus : "not pinned");
}

/* One line a port and counter, all cells of a rung together. */
struct moved {
	unsigned int end;
	enum pp_rung rung;
	const char *name;
	int64_t delta;
};

enum { MOVED = 128 };

static unsigned int collect(const struct pp_bench_pair *pair, struct moved moved[MOVED])
{
	unsigned int n = 0, at;

	for (unsigned int i = 0; i < pair->n_cells; i++) {
		const struct pp_bench_cell *c = &pair->cells[i];

		for (unsigned int k = 0; k < c->n_counters; k++) {
			const struct pp_bench_counter *x = &c->counters[k];

			if (!x->delta || !x->name)
				continue;
			for (at = 0; at < n; at++)
				if (moved[at].end == x->end && moved[at].rung == c->rung &&
				    !strcmp(moved[at].name, x->name))
					break;
			if (at == MOVED)
				continue;
			if (at == n)
				moved[n++] = (struct moved){x->end, c->rung, x->name, 0};
			if (__builtin_add_overflow(moved[at].delta, x->delta, &moved[at].delta))
				moved[at].delta = INT64_MAX;
		}
	}
	return n;
}

static void counters(struct pp_out *o, const struct pp_bench *b, const struct pp_bench_pair *pair)
{
	static const struct pp_out_column columns[] = {{NULL, "port at", true},
						       {NULL, "rung", false},
						       {NULL, "counter", true},
						       {NULL, "moved by", false}};
	struct moved moved[MOVED];
	unsigned int n = collect(pair, moved);

	if (!n)
		return;
	pp_out_heading(o, "Counters that moved");
	pp_out_table(o, NULL, columns, PP_ARRAY_LEN(columns));
	for (unsigned int i = 0; i < n && i < FEW_ROWS; i++) {
		enum pp_loss loss = pp_counter_loss(moved[i].name);

		pp_out_cell(o, node_name(b, &pair->end[moved[i].end & 1]));
		pp_out_cell(o, pp_rung_name(moved[i].rung));
		pp_out_cellf(o, "%s%s%s%s", moved[i].name, loss < PP_LOSSES ? " (" : "",
			     loss < PP_LOSSES ? pp_loss_name(loss) : "",
			     loss < PP_LOSSES ? ")" : "");
		pp_out_cellf(o, "%" PRIi64, moved[i].delta);
	}
	pp_out_table_end(o);
	if (n > FEW_ROWS)
		pp_out_para(o, 2, "  ... %u more; --json has all.", n - FEW_ROWS);
}

static void negatives(struct pp_out *o, const struct pp_bench_pair *pair)
{
	static const struct pp_out_column columns[] = {
		{NULL, "rung", false}, {NULL, "asked for", true}, {NULL, "answer", true}};
	bool open = false;

	for (unsigned int i = 0; i < PP_RUNGS; i++) {
		const struct pp_bench_rung *r = &pair->rung[i];

		for (unsigned int k = 0; k < r->n_negatives; k++) {
			const struct pp_bench_negative *n = &r->negatives[k];

			if (!open) {
				pp_out_heading(o, "What must be refused");
				pp_out_table(o, NULL, columns, PP_ARRAY_LEN(columns));
			}
			open = true;
			pp_out_cell(o, pp_rung_name((enum pp_rung)i));
			pp_out_cell(o, n->kind);
			pp_out_cellf(o, "%s%s%s",
				     !n->run	  ? "not run"
				     : n->refused ? "refused"
						  : "NOT refused",
				     n->status ? ": " : "", n->status ? n->status : "");
		}
	}
	if (open)
		pp_out_table_end(o);
}

static void attempt_row(struct pp_out *o, const struct pp_bench *b,
			const struct pp_bench_pair *pair, const struct pp_bench_attempt *a)
{
	char text[128];

	pp_out_cell(o, node_name(b, &pair->end[a->end & 1]));
	pp_out_cell(o, a->how);
	if (a->cuda)
		(void)snprintf(text, sizeof(text), "CUDA error %d", a->error);
	else
		(void)pp_errno_text(a->error, text, sizeof(text));
	pp_out_cellf(o, "%s: %s%s%s%s", or_unknown(a->call), text, a->arguments ? " (" : "",
		     a->arguments ? a->arguments : "", a->arguments ? ")" : "");
}

static void attempts(struct pp_out *o, const struct pp_bench *b, const struct pp_bench_pair *pair)
{
	static const struct pp_out_column columns[] = {
		{NULL, "node", true}, {NULL, "way", false}, {NULL, "call that failed", true}};
	unsigned int shown = 0;

	for (unsigned int i = 0; i < PP_RUNGS; i++) {
		const struct pp_bench_rung *r = &pair->rung[i];

		for (unsigned int k = 0; k < r->n_attempts && shown < FEW_ROWS; k++) {
			if (!r->attempts[k].error)
				continue;
			if (!shown++) {
				pp_out_heading(o, "Registrations that failed");
				pp_out_table(o, NULL, columns, PP_ARRAY_LEN(columns));
			}
			attempt_row(o, b, pair, &r->attempts[k]);
		}
	}
	if (shown)
		pp_out_table_end(o);
}

static double worst_skew(const struct pp_bench_pair *pair)
{
	double worst = NAN;

	for (unsigned int i = 0; i < pair->n_cells; i++)
		if (!isnan(pair->cells[i].arrival_skew) && !(pair->cells[i].arrival_skew <= worst))
			worst = pair->cells[i].arrival_skew;
	return worst;
}

/* By which way a software device carried it: each rung, what the first end sent and the second. */
static void links(struct pp_out *o, const struct pp_bench_pair *pair)
{
	char text[256] = "";

	for (unsigned int i = 0; i < PP_RUNGS; i++) {
		const char *const *link = pair->rung[i].link;
		size_t len = strlen(text);

		if (!link[0] && !link[1])
			continue;
		(void)snprintf(text + len, sizeof(text) - len, "%s%s %.12s/%.12s", len ? ", " : "",
			       pp_rung_name((enum pp_rung)i), link[0] ? link[0] : "-",
			       link[1] ? link[1] : "-");
	}
	if (*text)
		pp_out_para(o, 11, "  %-9s%s (sent by the first end/by the second)", "carried",
			    text);
}

static void one_pair(struct pp_out *o, const struct pp_bench *b, const struct pp_bench_pair *pair,
		     const struct pp_transfer *t)
{
	double skew = worst_skew(pair);
	char name[256];

	(void)snprintf(name, sizeof(name), "%s", pair->name ? pair->name : "a pair");
	pp_sanitize(name, false); /* a heading is taken as it is */
	pp_out_heading(o, name);
	end_line(o, b, &pair->end[0], "from");
	end_line(o, b, &pair->end[1], "to");
	quality_line(o, &pair->end[0]);
	if (!isnan(skew))
		pp_out_para(o, 11,
			    "  %-9s%.1f us between the first and the last end that was ready",
			    "skew", skew);
	links(o, pair);
	pp_bench_tables(o, pair, t);
	counters(o, b, pair);
	negatives(o, pair);
	attempts(o, b, pair);
}

static void more(struct pp_out *o, const char *what, const char *text)
{
	if (!text)
		return;
	pp_out_cell(o, " ");
	pp_out_cell(o, " ");
	pp_out_cellf(o, "%s%s%s", what ? what : "", what ? ": " : "", text);
}

/* Rungs that were not run say so in one line, not in six. */
static void verdict_rows(struct pp_out *o, const struct pp_bench *b, const struct pp_transfer *t)
{
	static const struct pp_out_column columns[] = {
		{NULL, "VERDICT", false}, {NULL, "RUNG", false}, {NULL, "WHAT, NEXT", true}};

	pp_out_heading(o, "Verdicts");
	pp_out_table(o, NULL, columns, PP_ARRAY_LEN(columns));
	for (unsigned int i = 0; i < t->n_rows; i++) {
		const struct pp_transfer_row *row = &t->rows[i];
		bool whole = row->rung == PP_RUNGS;

		if (!whole && b->pairs[row->pair].rung[row->rung].state == PP_BENCH_SKIPPED)
			continue;
		if (row->exercised)
			pp_out_cell(o, pp_transfer_row_word(t, row));
		else
			pp_out_cell_verdict(o, row->verdict);
		pp_out_cell(o, whole ? "pair" : pp_rung_name(row->rung));
		if (whole)
			pp_out_cellf(o, "%s: %s", b->pairs[row->pair].name, row->sentence);
		else
			pp_out_cell(o, row->sentence);
		if (!whole)
			more(o, NULL, row->seen);
		if (whole)
			more(o, "next", row->next);
		else if (row->verdict != PP_UNKNOWN || !row->exercised)
			more(o, "next", row->next);
	}
	pp_out_table_end(o);
}

static void skipped(struct pp_out *o, const struct pp_bench *b)
{
	for (unsigned int i = 0; i < b->n_pairs && i < FEW_ROWS; i++)
		for (unsigned int k = 0; k < PP_RUNGS; k++) {
			const struct pp_bench_rung *r = &b->pairs[i].rung[k];

			if (r->state == PP_BENCH_SKIPPED)
				pp_out_para(o, 4, "  %s was not run: %s",
					    pp_rung_name((enum pp_rung)k),
					    r->why ? r->why : "no reason given");
		}
}

/* Who keeps the others waiting, repeat after repeat. */
static void straggler(struct pp_out *o, const struct pp_bench *b)
{
	const struct pp_bench_node *last = NULL;
	char line[256];

	for (unsigned int i = 0; i < b->n_nodes; i++)
		if (b->nodes[i].arrival_skew > 0 &&
		    (!last || b->nodes[i].arrival_skew > last->arrival_skew))
			last = &b->nodes[i];
	if (!last || b->n_nodes < 2)
		return;
	(void)snprintf(line, sizeof(line), "%s, %.1f us after the first (median)",
		       last->id ? last->id : or_unknown(last->host), last->arrival_skew);
	pp_out_str(o, NULL, "last to be ready", line);
}

static void overall(struct pp_out *o, const struct pp_bench *b, const struct pp_transfer *t,
		    const struct pp_margins *m)
{
	char line[256];

	pp_out_heading(o, "Result");
	pp_out_str(o, NULL, "verdict", pp_transfer_word(t));
	pp_out_str(o, NULL, "because", t->sentence);
	(void)snprintf(line, sizeof(line),
		       "repeats within %.1f %%; GPU/host >= %.2f and >= %.2f of the narrowest hop, "
		       "from %" PRIu64 " bytes up",
		       100 * m->spread, m->gpu_host, m->hop, m->from);
	pp_out_str(o, NULL, "margins", line);
	if (t->direct_wins_from && !t->simulated && !t->software) {
		(void)snprintf(line, sizeof(line), "beats staging from %" PRIu64 " bytes up",
			       t->direct_wins_from);
		pp_out_str(o, NULL, "direct", line);
	}
	if (!isnan(t->direct_staged) && t->direct_staged > 1 && !t->simulated && !t->software)
		pp_out_str(o, NULL, "gain",
			   "of the transfer alone; whether the application gains is gate 4");
	straggler(o, b);
	for (unsigned int i = 0; i < b->n_nodes; i++)
		if (b->nodes[i].busy)
			pp_out_str(o, NULL, "in use", b->nodes[i].busy);
	if (b->second)
		pp_out_str(o, NULL, "second witness", b->second);
	if (t->next)
		pp_out_str(o, NULL, "next", t->next);
}

void pp_bench_text(struct pp_out *o, const struct pp_bench *b, const struct pp_transfer *t,
		   const struct pp_margins *m)
{
	if (pp_out_is_json(o))
		return;
	if (t->simulated)
		pp_out_para(o, 2,
			    "SIMULATION: no hardware was measured; no speed here is a network's.");
	else if (t->software)
		pp_out_para(o, 2,
			    "%s is software in the kernel: no hardware was measured; no speed here "
			    "is a NIC's.",
			    t->software);
	for (unsigned int i = 0; i < b->n_pairs; i++)
		one_pair(o, b, &b->pairs[i], t);
	if (b->n_pairs)
		verdict_rows(o, b, t);
	skipped(o, b);
	overall(o, b, t, m);
}

void pp_bench_emit(struct pp_out *o, const struct pp_bench *b, const struct pp_transfer *t,
		   const struct pp_margins *m)
{
	pp_out_document(o, "peerpath.bench/1");
	if (!pp_out_is_json(o)) {
		pp_bench_text(o, b, t, m);
		return;
	}
	pp_out_verdict(o, "verdict", NULL, t->verdict);
	pp_bench_write(pp_out_json(o), b);
	pp_transfer_write(pp_out_json(o), "transfer", t, m);
}
