/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pair on the page: verdicts, ends, plots, all numbers, then what else was seen.
 */
#include <inttypes.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/order.h"
#include "bundle/page_parts.h"
#include "base/banned.h"

static const char *or_unknown(const char *text)
{
	return text ? text : "unknown";
}

static void verdicts(struct pp_page *p, unsigned int pair)
{
	static const char *const heads[] = {"Rung",  "Verdict", "What", "Hop",
					    "Cause", "Next",	NULL};

	pp_sheet_table(p->out, heads);
	for (unsigned int i = 0; i < p->t->n_rows; i++) {
		const struct pp_transfer_row *row = &p->t->rows[i];

		if (row->pair != pair)
			continue;
		pp_sheet_row(p->out);
		pp_sheet_text(p->out, "td", "%s",
			      row->rung < PP_RUNGS ? pp_rung_name(row->rung) : "pair");
		pp_sheet_text(p->out, "td", "%s", pp_transfer_row_word(p->t, row));
		pp_sheet_text(p->out, "td", "%s", row->sentence);
		pp_sheet_text(p->out, "td", "%s", row->hop ? row->hop : "");
		pp_sheet_text(p->out, "td", "%s", row->cause ? row->cause : "");
		pp_buf_str(p->out, "<td>");
		if (row->next)
			pp_sheet_text(p->out, "code", "%s", row->next);
		pp_buf_str(p->out, "</td>");
		pp_sheet_row_end(p->out);
	}
	pp_sheet_table_end(p->out);
}

static void ends(struct pp_page *p, const struct pp_bench_pair *pair)
{
	static const char *const heads[] = {
		"Node", "Hca", "Port", "GID", "GPU", "Route", "CPUs", "Class, priority", NULL};

	pp_sheet_table(p->out, heads);
	for (unsigned int i = 0; i < 2; i++) {
		const struct pp_bench_end *e = &pair->end[i];

		pp_sheet_row(p->out);
		pp_sheet_text(p->out, "td", "%s%s", pp_page_node(p, e),
			      e->simulated ? ", simulated" : "");
		pp_sheet_text(p->out, "td", "%s (%s)", or_unknown(e->device), or_unknown(e->hca));
		pp_sheet_text(p->out, "td", "%u, %s, MTU %u", e->port, or_unknown(e->netdev),
			      e->mtu);
		pp_sheet_text(p->out, "td", "%s %s", or_unknown(e->gid_type), e->gid ? e->gid : "");
		pp_sheet_text(p->out, "td", "%s %s", e->gpu ? e->gpu : "none",
			      e->gpu_name ? e->gpu_name : "");
		pp_sheet_text(p->out, "td", "%s, %s", or_unknown(e->distance),
			      or_unknown(e->route));
		pp_sheet_text(p->out, "td", "%s", e->cpus ? e->cpus : "not pinned");
		if (e->traffic_class < 0)
			pp_sheet_text(p->out, "td", "unknown");
		else if (e->priority < 0)
			pp_sheet_text(p->out, "td", "%d, unknown", e->traffic_class);
		else
			pp_sheet_text(p->out, "td", "%d, %d", e->traffic_class, e->priority);
		pp_sheet_row_end(p->out);
	}
	pp_sheet_table_end(p->out);
}

static void interval(struct pp_page *p, const struct pp_interval *x, int digits)
{
	if (isnan(x->low))
		pp_sheet_text(p->out, "td class=\"n\"", "-");
	else
		pp_sheet_text(p->out, "td class=\"n\"", "%.*f to %.*f", digits, x->low, digits,
			      x->high);
}

static void numbers_row(struct pp_page *p, const struct pp_bench_cell *c)
{
	const struct pp_figure *f = pp_transfer_figure(p->t, c);
	bool latency = c->measure == PP_LATENCY;

	pp_sheet_row(p->out);
	pp_sheet_text(p->out, "td", "%s %s%s", pp_measure_name(c->measure),
		      pp_operation_name(c->op), c->together ? ", together" : "");
	pp_sheet_text(p->out, "td", "%s", pp_rung_name(c->rung));
	pp_sheet_text(p->out, "td class=\"n\"", "%" PRIu64, c->size);
	if (f) {
		pp_sheet_text(p->out, "td class=\"n\"", "%.*f %s", latency ? 2 : 0, f->median,
			      latency ? "us" : "MB/s");
		interval(p, &f->interval, latency ? 2 : 0);
		pp_sheet_number(p->out, 2, f->host);
		pp_sheet_number(p->out, 2, f->staged);
	} else {
		pp_sheet_text(p->out, "td class=\"n\"", "%s", pp_bench_state_name(c->state));
		pp_sheet_text(p->out, "td", "%s", c->why ? c->why : "");
		pp_sheet_number(p->out, 2, NAN);
		pp_sheet_number(p->out, 2, NAN);
	}
	pp_sheet_number(p->out, 2, c->p50 > 0 ? c->p50 : NAN);
	pp_sheet_number(p->out, 2, c->p99 > 0 ? c->p99 : NAN);
	pp_sheet_number(p->out, 2, c->p999 > 0 ? c->p999 : NAN);
	pp_sheet_number(p->out, 3, c->cpu_seconds_per_gb[0]);
	pp_sheet_number(p->out, 3, c->cpu_seconds_per_gb[1]);
	pp_sheet_text(p->out, "td class=\"n\"", "%" PRIu64 " of %" PRIu64, c->wrong, c->checked);
	pp_sheet_row_end(p->out);
}

static void numbers(struct pp_page *p, const struct pp_bench_pair *pair)
{
	static const char *const heads[] = {
		"What",	   "Rung",    "#Bytes",	   "#Median",	"#95 %",    "#/host", "#/staged",
		"#p50 us", "#p99 us", "#p99.9 us", "#CPU s/GB", "#at peer", "#Wrong", NULL};
	const struct pp_bench_cell **cell = NULL;

	if (pp_bench_order(pair, &cell)) {
		p->out->failed = p->out->failed ? p->out->failed : -ENOMEM;
		return;
	}
	pp_buf_str(p->out, "<h3>Numbers</h3>\n");
	pp_sheet_table(p->out, heads);
	for (unsigned int i = 0; i < pair->n_cells; i++)
		numbers_row(p, cell[i]);
	pp_sheet_table_end(p->out);
	free(cell);
}

static void counters(struct pp_page *p, const struct pp_bench_pair *pair)
{
	static const char *const heads[] = {"Port at", "Rung",	    "#Bytes",
					    "Counter", "#Moved by", NULL};
	bool open = false;

	for (unsigned int i = 0; i < pair->n_cells; i++) {
		const struct pp_bench_cell *c = &pair->cells[i];

		for (unsigned int k = 0; k < c->n_counters; k++) {
			const struct pp_bench_counter *x = &c->counters[k];

			if (!x->delta)
				continue;
			if (!open) {
				pp_buf_str(p->out, "<h3>Counters that moved</h3>\n");
				pp_sheet_table(p->out, heads);
			}
			open = true;
			pp_sheet_row(p->out);
			pp_sheet_text(p->out, "td", "%s", pp_page_node(p, &pair->end[x->end & 1]));
			pp_sheet_text(p->out, "td", "%s", pp_rung_name(c->rung));
			pp_sheet_text(p->out, "td class=\"n\"", "%" PRIu64, c->size);
			pp_sheet_text(p->out, "td", "%s", or_unknown(x->name));
			pp_sheet_text(p->out, "td class=\"n\"", "%" PRIi64, x->delta);
			pp_sheet_row_end(p->out);
		}
	}
	if (open)
		pp_sheet_table_end(p->out);
}

static void attempts(struct pp_page *p, const struct pp_bench_pair *pair)
{
	static const char *const heads[] = {"Node",	 "Rung",   "Way", "Call",
					    "Arguments", "Answer", "#us", NULL};
	char text[128];
	bool open = false;

	for (unsigned int i = 0; i < PP_RUNGS; i++) {
		const struct pp_bench_rung *r = &pair->rung[i];

		for (unsigned int k = 0; k < r->n_attempts; k++) {
			const struct pp_bench_attempt *a = &r->attempts[k];

			if (!open) {
				pp_buf_str(p->out, "<h3>Registrations</h3>\n");
				pp_sheet_table(p->out, heads);
			}
			open = true;
			if (!a->error)
				(void)snprintf(text, sizeof(text), "good");
			else if (a->cuda)
				(void)snprintf(text, sizeof(text), "CUDA error %d", a->error);
			else
				(void)pp_errno_text(a->error, text, sizeof(text));
			pp_sheet_row(p->out);
			pp_sheet_text(p->out, "td", "%s", pp_page_node(p, &pair->end[a->end & 1]));
			pp_sheet_text(p->out, "td", "%s", pp_rung_name((enum pp_rung)i));
			pp_sheet_text(p->out, "td", "%s", or_unknown(a->how));
			pp_sheet_text(p->out, "td", "%s", or_unknown(a->call));
			pp_sheet_text(p->out, "td", "%s", a->arguments ? a->arguments : "");
			pp_sheet_text(p->out, "td", "%s", text);
			pp_sheet_number(p->out, 1, (double)a->took / 1000);
			pp_sheet_row_end(p->out);
		}
	}
	if (open)
		pp_sheet_table_end(p->out);
}

static void negatives(struct pp_page *p, const struct pp_bench_pair *pair)
{
	static const char *const heads[] = {"Rung", "What must be refused", "Answer", NULL};
	bool open = false;

	for (unsigned int i = 0; i < PP_RUNGS; i++)
		for (unsigned int k = 0; k < pair->rung[i].n_negatives; k++) {
			const struct pp_bench_negative *n = &pair->rung[i].negatives[k];

			if (!open) {
				pp_buf_str(p->out, "<h3>Keys</h3>\n");
				pp_sheet_table(p->out, heads);
			}
			open = true;
			pp_sheet_row(p->out);
			pp_sheet_text(p->out, "td", "%s", pp_rung_name((enum pp_rung)i));
			pp_sheet_text(p->out, "td", "%s", or_unknown(n->kind));
			pp_sheet_text(p->out, "td", "%s%s%s",
				      !n->run	   ? "not run"
				      : n->refused ? "refused"
						   : "NOT refused",
				      n->status ? ": " : "", n->status ? n->status : "");
			pp_sheet_row_end(p->out);
		}
	if (open)
		pp_sheet_table_end(p->out);
}

void pp_page_pair(struct pp_page *p, unsigned int pair)
{
	const struct pp_bench_pair *one = &p->b->pairs[pair];

	pp_sheet_text(p->out, p->is_part ? "h3" : "h2", "%s", one->name ? one->name : "a pair");
	verdicts(p, pair);
	ends(p, one);
	pp_page_plots(p, one);
	numbers(p, one);
	counters(p, one);
	negatives(p, one);
	attempts(p, one);
}
