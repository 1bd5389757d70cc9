/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each metric has a strip: every run that counts as a dot, before above after, on one axis, so that
 * spread, outliers and the shift are seen as they are; the median as a bar.
 */
#include "bundle/page_comparison.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bundle/sheet.h"
#include "bundle/svg.h"
#include "base/banned.h"

enum {
	WIDTH = 640,
	HEIGHT = 92,
	LEFT = 70,
	RIGHT = 20,
	TOP = 22,
	LINE = 26,
	DOT = 3,
	SHOWN = 2000
};

struct page {
	struct pp_buf *out;
	const struct pp_comparison *c;
	const struct pp_trial *const *trial[2];
	size_t n[2];
	bool is_part; /* of another page */
};

static const char *const when[] = {"before", "after"};

static void item(struct page *p, const char *name, const char *text)
{
	pp_sheet_item(p->out, name, text);
}

static void verdict(struct page *p)
{
	const struct pp_comparison *c = p->c;

	if (c->simulated)
		pp_sheet_text(p->out, "p class=\"mark-sim\"",
			      "Simulation: no hardware moved these bytes.");
	pp_buf_printf(p->out, "<div class=\"verdict %s\">", pp_verdict_name(c->verdict));
	pp_sheet_text(p->out, p->is_part ? "h3" : "h1", "%s: %s", c->workload,
		      pp_verdict_name(c->verdict));
	pp_sheet_text(p->out, "p", "%c%s.", toupper((unsigned char)c->sentence[0]),
		      c->sentence + 1);
	pp_sheet_text(p->out, "p", "Next: %s.", c->next);
	pp_buf_str(p->out, "</div>\n");
}

static void list(struct page *p, const char *title, const char *const *text, size_t n, size_t more)
{
	if (!n)
		return;
	pp_sheet_text(p->out, p->is_part ? "h3" : "h2", "%s", title);
	pp_buf_str(p->out, "<ul>\n");
	for (size_t i = 0; i < n; i++)
		pp_sheet_text(p->out, "li", "%s", text[i]);
	if (more)
		pp_sheet_text(p->out, "li", "and %zu more", more);
	pp_buf_str(p->out, "</ul>\n");
}

static void runs(struct page *p)
{
	const struct pp_comparison *c = p->c;
	const struct pp_canary *declared = &p->trial[1][0]->canary;
	char text[160];

	pp_sheet_text(p->out, p->is_part ? "h3" : "h2", "Runs");
	pp_buf_str(p->out, "<div class=\"wide\"><table><tbody>\n");
	for (int side = 0; side < 2; side++) {
		(void)snprintf(text, sizeof(text), "%zu that count, %zu void, of %zu trial%s",
			       c->valid[side], c->voided[side], p->n[side],
			       p->n[side] == 1 ? "" : "s");
		item(p, side ? "After" : "Before", text);
		item(p, side ? "Path after" : "Path before", c->path[side]);
	}
	for (size_t i = 0; i < declared->n_keys; i++)
		item(p, declared->key[i].name, declared->key[i].value);
	pp_buf_str(p->out, "</tbody></table></div>\n");
}

/* What a number needs to be placed: the axis goes from the smallest to the largest of all. */
struct axis {
	double low, high;
};

typedef void each_fn(struct page *p, int side, double value, const struct pp_trial *t, void *arg);

static void each(struct page *p, const struct pp_metric *m, each_fn *fn, void *arg)
{
	size_t shown[2] = {0, 0};

	for (int side = 0; side < 2; side++)
		for (size_t t = 0; t < p->n[side]; t++) {
			const struct pp_trial *trial = p->trial[side][t];
			size_t at = 0;

			while (at < trial->canary.n_metrics &&
			       strcmp(trial->canary.metric[at].name, m->name) != 0)
				at++;
			for (size_t i = 0; at < trial->canary.n_metrics && i < trial->n_runs; i++)
				if (!trial->run[i].void_why && isfinite(trial->run[i].value[at]) &&
				    shown[side]++ < SHOWN)
					fn(p, side, trial->run[i].value[at], trial, arg);
		}
}

static void widen(struct page *p, int side, double value, const struct pp_trial *t, void *arg)
{
	struct axis *a = arg;

	(void)p;
	(void)side;
	(void)t;
	a->low = fmin(a->low, value);
	a->high = fmax(a->high, value);
}

static double place(const struct axis *a, double value)
{
	double span = a->high - a->low;

	return LEFT + (span > 0 ? (value - a->low) / span : 0.5) * (WIDTH - LEFT - RIGHT);
}

static void dot(struct page *p, int side, double value, const struct pp_trial *t, void *arg)
{
	pp_buf_printf(p->out, "<circle class=\"mark %s\" cx=\"%.1f\" cy=\"%d\" r=\"%d\"><title>",
		      side ? "s2" : "s1", place(arg, value), TOP + side * LINE, DOT);
	pp_buf_printf(p->out, "%.6g", value);
	for (size_t i = 0; i < t->n_nodes && i < 4; i++) {
		pp_buf_str(p->out, " ");
		pp_svg_escape(p->out, t->node[i].id);
	}
	pp_buf_str(p->out, "</title></circle>\n");
}

static void strip(struct page *p, const struct pp_comparison_row *row)
{
	struct axis a = {INFINITY, -INFINITY};

	each(p, row->metric, widen, &a);
	if (!(a.low <= a.high))
		return;
	pp_buf_printf(p->out,
		      "<div class=\"wide\"><svg class=\"plot strip\" viewBox=\"0 0 %d %d\" "
		      "role=\"img\"><title>",
		      WIDTH, HEIGHT);
	pp_svg_escape(p->out, row->metric->name);
	pp_buf_str(p->out, ", each run</title>\n");
	for (int side = 0; side < 2; side++) {
		int y = TOP + side * LINE;

		if (!p->n[side])
			continue;
		pp_buf_printf(p->out,
			      "<text class=\"tick right\" x=\"%d\" y=\"%d\">%s</text>"
			      "<line class=\"grid\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n",
			      LEFT - 10, y + 4, p->n[0] ? when[side] : "runs", LEFT, y,
			      WIDTH - RIGHT, y);
		if (!isnan(row->median[side]))
			pp_buf_printf(p->out,
				      "<line class=\"axis\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" "
				      "y2=\"%d\"/>\n",
				      place(&a, row->median[side]), y - 9,
				      place(&a, row->median[side]), y + 9);
	}
	each(p, row->metric, dot, &a);
	pp_buf_printf(p->out,
		      "<text class=\"tick\" x=\"%d\" y=\"%d\">%.4g</text>"
		      "<text class=\"tick right\" x=\"%d\" y=\"%d\">%.4g</text></svg></div>\n",
		      LEFT, HEIGHT - 8, a.low, WIDTH - RIGHT, HEIGHT - 8, a.high);
}

static void shift(struct page *p, const struct pp_comparison_row *r)
{
	bool ratio = r->metric->is_ratio;
	double by = ratio ? 100 : 1, none = ratio ? 1 : 0;
	const char *unit = ratio ? " %" : "";

	if (isnan(r->shift))
		pp_sheet_text(p->out, "td class=\"n\"", "-");
	else if (isnan(r->low))
		pp_sheet_text(p->out, "td class=\"n\"", "%+.3g%s", by * (r->shift - none), unit);
	else
		pp_sheet_text(p->out, "td class=\"n\"", "%+.3g%s (%+.3g to %+.3g)",
			      by * (r->shift - none), unit, by * (r->low - none),
			      by * (r->high - none));
	pp_sheet_text(p->out, "td class=\"n\"", "%.3g%s", by * r->metric->margin, unit);
}

/* What decides comes first: a phone shows the first columns. */
static void row(struct page *p, const struct pp_comparison_row *r)
{
	const struct pp_metric *m = r->metric;

	pp_sheet_row(p->out);
	pp_sheet_text(p->out, "td", "%s%s%s%s", m->name, m->unit ? ", " : "",
		      m->unit ? m->unit : "", m->is_host ? " (host)" : "");
	if (r->change == PP_CHANGE_MORE && !r->near_margin)
		pp_sheet_text(p->out, "td", "need %zu more", r->more);
	else
		pp_sheet_text(p->out, "td", "%s%s%s", pp_change_name(r->change), r->why ? ": " : "",
			      r->why ? r->why : "");
	shift(p, r);
	for (int side = 0; side < 2; side++)
		if (isnan(r->median[side]))
			pp_sheet_text(p->out, "td class=\"n\"", "-");
		else
			pp_sheet_text(p->out, "td class=\"n\"", "%.4g", r->median[side]);
	pp_sheet_text(p->out, "td", "%s", m->higher_is_better ? "higher" : "lower");
	pp_sheet_row_end(p->out);
}

static void table(struct page *p)
{
	static const char *const heads[] = {"Metric",  "Change", "#Shift",    "#Margin",
					    "#Before", "#After", "Better is", NULL};

	pp_sheet_table(p->out, heads);
	for (size_t i = 0; i < p->c->n_rows; i++)
		row(p, &p->c->row[i]);
	pp_sheet_table_end(p->out);
}

static void metrics(struct page *p)
{
	if (!p->c->n_rows)
		return;
	pp_sheet_text(p->out, p->is_part ? "h3" : "h2", "What moved");
	table(p);
	for (size_t i = 0; i < p->c->n_rows; i++) {
		pp_sheet_text(p->out, "h3", "%s", p->c->row[i].metric->name);
		strip(p, &p->c->row[i]);
	}
}

static void voids(struct page *p)
{
	static const char *const heads[] = {"Void", "Why", NULL};
	size_t n = p->c->voided[0] + p->c->voided[1];

	if (!n)
		return;
	pp_sheet_text(p->out, p->is_part ? "h3" : "h2", "Runs that do not count");
	pp_sheet_table(p->out, heads);
	for (int side = 0; side < 2; side++)
		for (size_t t = 0; t < p->n[side]; t++)
			for (size_t i = 0; i < p->trial[side][t]->n_runs; i++) {
				const struct pp_trial_run *run = &p->trial[side][t]->run[i];

				if (run->void_why)
					item(p, when[side], run->void_why);
			}
	pp_sheet_table_end(p->out);
}

static void write_all(struct page *p)
{
	const struct pp_comparison *c = p->c;

	verdict(p);
	list(p, "Not declared", c->difference, c->n_differences, c->more_differences);
	list(p, "Declared to differ", c->declared, c->n_declared, 0);
	metrics(p);
	runs(p);
	voids(p);
}

void pp_page_comparison_parts(struct pp_buf *out, const struct pp_comparison *c,
			      const struct pp_trial *const *before, size_t n_before,
			      const struct pp_trial *const *after, size_t n_after)
{
	struct page p = {out, c, {before, after}, {n_before, n_after}, .is_part = true};

	write_all(&p);
}

int pp_page_comparison(const struct pp_comparison *c, const struct pp_trial *const *before,
		       size_t n_before, const struct pp_trial *const *after, size_t n_after,
		       char **ret)
{
	struct pp_buf out = PP_BUF(PP_SHEET_MAX);
	struct page p = {&out, c, {before, after}, {n_before, n_after}, .is_part = false};

	pp_sheet_begin(&out, "peerpath compare", /* more_style= */ NULL);
	write_all(&p);
	return pp_sheet_end(&out, ret);
}

void pp_page_strip(struct pp_buf *out, const struct pp_metric *m, double median,
		   const struct pp_trial *t)
{
	const struct pp_comparison_row row = {.metric = m, .median = {NAN, median}};
	struct page p = {out, NULL, {NULL, &t}, {0, 1}, .is_part = true};

	strip(&p, &row);
}
