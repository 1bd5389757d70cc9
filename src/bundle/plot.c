/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/plot.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/compiler.h"
#include "bundle/svg.h"
#include "base/banned.h"

enum {
	WIDTH = 640,
	HEIGHT = 320,
	LEFT = 64,
	RIGHT = 12,
	TOP = 28,
	BOTTOM = 44,
	TICKS = 5,
	STYLES = 6,
	LEGEND = 20
};

struct scale {
	double first, last; /* log2 of sizes */
	double top;	    /* value */
	int height;	    /* of the picture, legend and all */
};

static double across(const struct scale *s, double size)
{
	double at = s->last > s->first ? (log2(size) - s->first) / (s->last - s->first) : 0.5;

	return LEFT + at * (WIDTH - LEFT - RIGHT);
}

static double up(const struct scale *s, double value)
{
	return HEIGHT - BOTTOM - value / s->top * (HEIGHT - TOP - BOTTOM);
}

/* 1, 2 or 5 times a power of ten, such that TICKS of them reach @top. */
static double step_for(double top)
{
	double power = pow(10, floor(log10(top / TICKS)));
	double times = top / TICKS / power;

	return power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

static bool span(const struct pp_plot *p, struct scale *s)
{
	double most = 0;
	bool any = false;

	*s = (struct scale){INFINITY, -INFINITY, 0, HEIGHT};
	for (unsigned int i = 0; i < p->n; i++)
		for (unsigned int k = 0; k < p->series[i].n; k++) {
			const struct pp_plot_point *at = &p->series[i].point[k];

			if (isnan(at->value) || !at->size)
				continue;
			any = true;
			s->first = fmin(s->first, log2((double)at->size));
			s->last = fmax(s->last, log2((double)at->size));
			most = fmax(most, isnan(at->high) ? at->value : at->high);
		}
	if (!(most > 0))
		most = 1;
	if (p->line <= 2 * most)
		most = fmax(most, p->line);
	s->top = step_for(most) * ceil(most / step_for(most));
	s->height = HEIGHT + LEGEND * (int)((p->n + 2) / 3);
	return any && isfinite(s->top);
}

static void size_label(char *text, size_t len, uint64_t size)
{
	static const char units[] = " KMGT";
	unsigned int i = 0;

	while (i < 4 && size >= 1024 && size % 1024 == 0) {
		size /= 1024;
		i++;
	}
	(void)snprintf(text, len, "%" PRIu64 "%c", size, units[i]);
}

static void axes(struct pp_svg *svg, const struct pp_plot *p, const struct scale *s)
{
	double step = step_for(s->top);
	int each = (int)ceil((s->last - s->first + 1) / 10);
	char label[32];

	for (unsigned int i = 0; i <= 2 * TICKS && step * i <= s->top * 1.001; i++) {
		int y = (int)lround(up(s, step * i));

		pp_svg_line(svg, "grid", LEFT, y, WIDTH - RIGHT, y);
		pp_svg_text(svg, "tick right", LEFT - 6, y + 4, "%.6g", step * i);
	}
	for (double at = floor(s->first); at <= s->last && each > 0; at += each) {
		if (at < s->first || at > 62)
			continue;
		size_label(label, sizeof(label), (uint64_t)1 << (unsigned int)at);
		pp_svg_text(svg, "tick middle", (int)lround(across(s, exp2(at))),
			    HEIGHT - BOTTOM + 16, "%s", label);
	}
	pp_svg_line(svg, "axis", LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM);
	pp_svg_text(svg, "tick middle", (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10,
		    "message size, bytes");
	pp_svg_text(svg, "tick", 4, 14, "%s", p->unit);
}

static void line_of(struct pp_buf *out, const struct pp_plot_series *series, const struct scale *s)
{
	bool begun = false;

	pp_buf_printf(out, "<path class=\"line s%u\" d=\"", series->style % STYLES);
	for (unsigned int i = 0; i < series->n; i++) {
		const struct pp_plot_point *at = &series->point[i];

		if (isnan(at->value) || !at->size)
			continue;
		pp_buf_printf(out, "%c%.1f %.1f", begun ? 'L' : 'M', across(s, (double)at->size),
			      up(s, at->value));
		begun = true;
	}
	pp_buf_str(out, begun ? "\"/>\n" : "M0 0\"/>\n");
}

/* A value with its interval; a pointer resting on it reads both. */
static void mark_of(struct pp_svg *svg, const struct pp_plot *p,
		    const struct pp_plot_series *series, const struct pp_plot_point *at,
		    const struct scale *s)
{
	double x = across(s, (double)at->size), y = up(s, at->value);
	bool interval = !isnan(at->low) && !isnan(at->high);
	char tip[160];

	(void)snprintf(tip, sizeof(tip), "%s, %" PRIu64 " bytes: %.6g %s", series->name, at->size,
		       at->value, p->unit);
	pp_svg_group(svg, tip);
	if (interval)
		pp_buf_printf(svg->out,
			      "<path class=\"bar s%u\" d=\"M%.1f %.1fV%.1fM%.1f %.1fh8M%.1f "
			      "%.1fh8\"/>\n",
			      series->style % STYLES, x, up(s, at->low), up(s, at->high), x - 4,
			      up(s, at->low), x - 4, up(s, at->high));
	if (series->style % 2)
		pp_buf_printf(svg->out,
			      "<rect class=\"mark s%u\" x=\"%.1f\" y=\"%.1f\" width=\"7\" "
			      "height=\"7\"/>\n",
			      series->style % STYLES, x - 3.5, y - 3.5);
	else
		pp_buf_printf(svg->out,
			      "<circle class=\"mark s%u\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"/>\n",
			      series->style % STYLES, x, y);
	pp_svg_group_end(svg);
}

static void legend(struct pp_svg *svg, const struct pp_plot *p)
{
	for (unsigned int i = 0; i < p->n; i++) {
		int x = LEFT + (int)(i % 3) * 190, y = HEIGHT + LEGEND * (int)(i / 3) + 8;

		pp_buf_printf(svg->out, "<path class=\"line s%u\" d=\"M%d %dh28\"/>\n",
			      p->series[i].style % STYLES, x, y - 4);
		pp_svg_text(svg, "tick", x + 34, y, "%s", p->series[i].name);
	}
}

bool pp_plot_has(const struct pp_plot *p)
{
	struct scale s;

	return span(p, &s);
}

void pp_plot_write(struct pp_buf *out, const struct pp_plot *p)
{
	struct pp_svg svg = {out};
	struct scale s;

	if (!span(p, &s))
		return;
	pp_buf_printf(
		out,
		"<div class=\"wide\"><svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" "
		"role=\"img\" "
		"viewBox=\"0 0 %d %d\" aria-label=\"",
		WIDTH, s.height);
	pp_svg_escape(out, p->title);
	pp_buf_str(out, "\">\n");
	axes(&svg, p, &s);
	if (p->line > 0 && p->line <= s.top) {
		int y = (int)lround(up(&s, p->line));

		pp_svg_line(&svg, "limit", LEFT, y, WIDTH - RIGHT, y);
		pp_svg_text(&svg, "tick right", WIDTH - RIGHT, y - 4, "%s", p->line_name);
	}
	for (unsigned int i = 0; i < p->n; i++) {
		line_of(out, &p->series[i], &s);
		for (unsigned int k = 0; k < p->series[i].n; k++)
			if (!isnan(p->series[i].point[k].value) && p->series[i].point[k].size)
				mark_of(&svg, p, &p->series[i], &p->series[i].point[k], &s);
	}
	legend(&svg, p);
	pp_svg_end(&svg);
	pp_buf_str(out, "</div>\n");
}
