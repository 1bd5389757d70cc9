/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/draw.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bundle/drawing.h"
#include "bundle/drawing_shape.h"
#include "bundle/svg.h"
#include "base/banned.h"

enum { MAX_SHOWN = 14, COLOURS = 8 };

/* Rail colours stay apart for colour-blind eyes and keep away from red, which means wrong. */
static const char style[] =
	"text{font:12px 'DejaVu Sans',Verdana,Helvetica,Arial,sans-serif;fill:#1a1a1a}"
	".title{font-size:20px;font-weight:bold}.sub{fill:#555}.bold{font-weight:bold}"
	".mid{text-anchor:middle}.end{text-anchor:end}.head{font-weight:bold;fill:#fff}"
	".small{font-size:11px;fill:#555}.link{font-size:11px;fill:#333;text-anchor:middle}"
	".bad{fill:#b00020;font-weight:bold}.badlink{font-size:11px;fill:#b00020;font-weight:bold;"
	"text-anchor:middle}.grey{fill:#767676;font-style:italic}"
	".block{fill:#f7f7f7;stroke:#c4c4c4}.bar{fill:#47525e}"
	".host{fill:#fff;stroke:#47525e}.switch{fill:#e3e8ee;stroke:#47525e}"
	".gpu{fill:#eef6e6;stroke:#4b7a1f}.hca{fill:#e6f1fa;stroke:#23649e}"
	".group{fill:#fff;stroke:#767676;stroke-dasharray:4 3}"
	".fault{fill:#fff0f0;stroke:#b00020;stroke-width:2.5}"
	".line{fill:none;stroke:#8a8a8a;stroke-width:1.5}"
	".badline{fill:none;stroke:#b00020;stroke-width:3}"
	".far{fill:none;stroke:#b00020;stroke-width:5;stroke-opacity:.45;stroke-dasharray:9 6}"
	".r0,.r1,.r2,.r3,.r4,.r5,.r6,.r7{fill:none;stroke-width:7;stroke-opacity:.55}"
	".r0{stroke:#0072b2}.r1{stroke:#009e73}.r2{stroke:#e69f00}.r3{stroke:#cc79a7}"
	".r4{stroke:#56b4e9}.r5{stroke:#6a3d9a}.r6{stroke:#8c6d31}.r7{stroke:#444}"
	".t0{fill:#0072b2}.t1{fill:#009e73}.t2{fill:#e69f00}.t3{fill:#cc79a7}.t4{fill:#56b4e9}"
	".t5{fill:#6a3d9a}.t6{fill:#8c6d31}.t7{fill:#444}";

/* On a dark screen, in a page. */
static const char dark_style[] =
	"text{fill:#e6e6e6}.paper{fill:#1d2023}.sub,.small{fill:#b0b0b0}.head{fill:#fff}"
	".link{fill:#d0d0d0}.bad,.badlink{fill:#ff8a96}.grey{fill:#a6a6a6}"
	".block{fill:#24282c;stroke:#50565d}.bar{fill:#56626e}.host{fill:#1d2023;stroke:#9aa5b1}"
	".switch{fill:#343b43;stroke:#9aa5b1}.gpu{fill:#24331a;stroke:#8fc35a}"
	".hca{fill:#1a2c3d;stroke:#6fb1e8}.group{fill:#1d2023;stroke:#a0a0a0}"
	".fault{fill:#3b1d20;stroke:#ff6b7a}.line{stroke:#9a9a9a}.badline,.far{stroke:#ff6b7a}";

struct painter {
	struct pp_drawing *d;
	struct pp_svg svg;
	bool in_page;
};

static int middle(const struct pp_item *i)
{
	return i->y + i->h / 2;
}

static int trunk_x(const struct painter *p, const struct pp_item *i)
{
	return p->d->blocks[i->block].x + PP_SHAPE_TRUNK_W / 2;
}

/* The line from an item to what is above it: its parent, or the block's trunk. */
static void line_up(struct painter *p, const struct pp_item *i, const char *class_name)
{
	const struct pp_item *up = i->parent < 0 ? NULL : &p->d->items[i->parent];

	if (up)
		pp_svg_elbow(&p->svg, class_name, up->x + up->w, middle(up), up->x + up->w + 12,
			     i->x, middle(i));
	else
		pp_svg_line(&p->svg, class_name, trunk_x(p, i), middle(i), i->x, middle(i));
}

static void trunk(struct painter *p, const struct pp_item *host, const char *class_name)
{
	const struct pp_block *b = &p->d->blocks[host->block];

	pp_svg_line(&p->svg, class_name, trunk_x(p, host), b->y + PP_SHAPE_HEAD_H, trunk_x(p, host),
		    middle(host));
}

static int root_of(const struct pp_drawing *d, int item)
{
	while (d->items[item].parent >= 0)
		item = d->items[item].parent;
	return item;
}

static int common(const struct pp_drawing *d, int a, int b)
{
	while (a != b) {
		if (a < 0 || b < 0)
			return -1;
		if (d->items[a].level >= d->items[b].level)
			a = d->items[a].parent;
		else
			b = d->items[b].parent;
	}
	return a;
}

/* The rail's way through the tree, as a broad coloured line under everything else. */
static void paint_rail(struct painter *p, unsigned int n)
{
	const struct pp_rail_line *r = &p->d->rails[n];
	int top = common(p->d, r->gpu, r->hca), ends[2] = {r->gpu, r->hca};
	char class_name[8] = "far";

	if (r->near)
		(void)snprintf(class_name, sizeof(class_name), "r%u", n % COLOURS);
	for (int e = 0; e < 2; e++) {
		for (int i = ends[e]; i >= 0 && i != top; i = p->d->items[i].parent)
			line_up(p, &p->d->items[i], class_name);
		if (top < 0)
			trunk(p, &p->d->items[root_of(p->d, ends[e])], class_name);
	}
}

static void paint_lines(struct painter *p)
{
	struct pp_drawing *d = p->d;

	for (unsigned int n = 0; n < d->n_rails; n++)
		paint_rail(p, n);
	for (unsigned int k = 0; k < d->n; k++) {
		const struct pp_item *i = &d->items[k];

		if (i->parent < 0)
			trunk(p, i, "line");
		line_up(p, i, i->link_fault || i->acs ? "badline" : "line");
	}
}

static void paint_label(struct painter *p, const struct pp_item *i)
{
	int from, x;

	if (i->parent < 0)
		return;
	from = p->d->items[i->parent].x + p->d->items[i->parent].w + 12;
	x = from + (PP_SHAPE_LINE_W - 12) / 2;
	if (i->kind != PP_ITEM_SWITCH) /* devices stand at the right edge: label beside them */
		x = i->x - (PP_SHAPE_LINE_W - 12) / 2;
	if (i->link_fault)
		pp_svg_text(&p->svg, "badlink", x, middle(i) - 5, "%s", i->link_fault);
	else if (i->link)
		pp_svg_text(&p->svg, "link", x, middle(i) - 5, "%s", i->link);
	if (i->acs)
		pp_svg_text(&p->svg, "badlink", x, middle(i) + 14, "%s", i->acs);
}

/* As much of @text as fits @columns, in whole characters. */
static void clip(const char *text, unsigned int columns, char *buf, size_t size)
{
	size_t n = 0, end = strlen(text);
	unsigned int used = 0;

	while (n < end && n + 8 < size) {
		if (((unsigned char)text[n] & 0xc0) != 0x80 && used++ == columns)
			break;
		n++;
	}
	memcpy(buf, text, n);
	(void)snprintf(buf + n, size - n, "%s", n < end ? "\xe2\x80\xa6" : "");
}

static void paint_item(struct painter *p, const struct pp_item *i)
{
	static const char *const classes[] = {"host", "switch", "gpu", "hca", "group"};
	bool leaf = i->kind != PP_ITEM_HOST && i->kind != PP_ITEM_SWITCH;
	int x = i->x + (leaf ? 16 : 8), y = i->y + 16;
	const char *class_name = i->n_notes ? "fault" : classes[i->kind];
	char text[256], tab[8];

	pp_svg_group(&p->svg, i->title);
	pp_svg_rect(&p->svg, class_name, i->x, i->y, i->w, i->h, 4);
	if (i->rail >= 0) {
		(void)snprintf(tab, sizeof(tab), "t%u", (unsigned int)i->rail % COLOURS);
		pp_svg_rect(&p->svg, tab, i->x, i->y, 8, i->h, 2);
		pp_svg_text(&p->svg, "small end", i->x + i->w - 8, i->y + 31, "rail %d", i->rail);
	}
	clip(i->title, leaf ? 33 : 13, text, sizeof(text));
	pp_svg_text(&p->svg, "bold", x, y, "%s", text);
	clip(i->subtitle, leaf ? 32 : 14, text, sizeof(text));
	pp_svg_text(&p->svg, "small", x, y + 15, "%s", text);
	for (unsigned int n = 0; n < i->n_notes; n++)
		pp_svg_text(&p->svg, "bad", x, y + 32 + (int)n * PP_SHAPE_NOTE_H, "%s",
			    i->notes[n]);
	pp_svg_group_end(&p->svg);
}

static void paint_block(struct painter *p, const struct pp_block *b)
{
	char cpus[80] = "", package[32] = "", text[64];

	pp_svg_rect(&p->svg, "block", b->x, b->y, b->w, b->h, 6);
	pp_svg_rect(&p->svg, "bar", b->x, b->y, b->w, PP_SHAPE_HEAD_H, 6);
	if (b->cpus) {
		clip(b->cpus, 40, text, sizeof(text));
		(void)snprintf(cpus, sizeof(cpus), " \xc2\xb7 CPUs %s", text);
	}
	if (b->package >= 0)
		(void)snprintf(package, sizeof(package), " \xc2\xb7 socket %d", b->package);
	if (b->numa >= 0)
		pp_svg_text(&p->svg, "head", b->x + 12, b->y + 20, "NUMA node %d%s%s", b->numa,
			    package, cpus);
	else
		pp_svg_text(&p->svg, "head", b->x + 12, b->y + 20, "%s%s",
			    b->numa == -1 ? "no NUMA node" : "NUMA node unknown", cpus);
}

/* Neighbouring blocks are joined: what crosses here crosses sockets. */
static void paint_joints(struct painter *p)
{
	struct pp_drawing *d = p->d;
	bool far = false;

	for (unsigned int n = 0; n < d->n_rails; n++)
		far |= d->items[d->rails[n].gpu].block != d->items[d->rails[n].hca].block;
	for (unsigned int b = 1; b < d->n_blocks; b++) {
		const struct pp_block *left = &d->blocks[b - 1], *right = &d->blocks[b];
		int y = left->y + PP_SHAPE_HEAD_H / 2;

		if (b % 2 == 0)
			continue;
		pp_svg_line(&p->svg, "line", left->x + left->w, y, right->x, y);
		if (far)
			pp_svg_line(&p->svg, "far", left->x + left->w, y, right->x, y);
	}
}

static int paint_sentences(struct painter *p, int y)
{
	struct pp_drawing *d = p->d;
	unsigned int shown = d->n_faults < MAX_SHOWN ? d->n_faults : MAX_SHOWN;

	for (unsigned int n = 0; n < shown; n++, y += PP_SHAPE_ROW_H)
		pp_svg_text(&p->svg, "bad", PP_SHAPE_PAD, y, "\xe2\x9c\x97 %s", d->faults[n]);
	if (d->n_faults > shown) {
		pp_svg_text(&p->svg, "bad", PP_SHAPE_PAD, y, "\xe2\x9c\x97 and %u more",
			    d->n_faults - shown + d->n_more_faults);
		y += PP_SHAPE_ROW_H;
	}
	shown = d->n_unknowns < MAX_SHOWN ? d->n_unknowns : MAX_SHOWN;
	for (unsigned int n = 0; n < shown; n++, y += PP_SHAPE_ROW_H)
		pp_svg_text(&p->svg, "grey", PP_SHAPE_PAD, y, "? unknown: %s", d->unknowns[n]);
	if (d->n_unknowns > shown) {
		pp_svg_text(&p->svg, "grey", PP_SHAPE_PAD, y, "? and %u more unknown",
			    d->n_unknowns - shown);
		y += PP_SHAPE_ROW_H;
	}
	return y;
}

static int sentences_height(const struct pp_drawing *d)
{
	unsigned int faults = d->n_faults > MAX_SHOWN ? MAX_SHOWN + 1 : d->n_faults;
	unsigned int unknowns = d->n_unknowns > MAX_SHOWN ? MAX_SHOWN + 1 : d->n_unknowns;

	return (int)(faults + unknowns) * PP_SHAPE_ROW_H;
}

static void nvlink_words(const struct pp_drawing *d, char *text, size_t size)
{
	const struct pp_node *node = d->node;
	int low = INT16_MAX, high = -1;

	*text = '\0';
	for (unsigned int i = 0; node->nvlinks && i < node->n_gpus; i++)
		for (unsigned int k = 0; k < node->n_gpus; k++) {
			int n = node->nvlinks[(size_t)i * node->n_gpus + k];

			if (i == k)
				continue;
			low = n < low ? n : low;
			high = n > high ? n : high;
		}
	if (high > 0 && low == high)
		(void)snprintf(text, size, " \xc2\xb7 NV%d between all GPUs", high);
	else if (high > 0)
		(void)snprintf(text, size, " \xc2\xb7 NVLinks: 0 or unknown to NV%d", high);
}

static void paint_title(struct painter *p)
{
	struct pp_drawing *d = p->d;
	const unsigned int *count = d->node->facts.count;
	unsigned int faults = d->n_faults + d->n_more_faults;
	char nvlink[80];

	nvlink_words(d, nvlink, sizeof(nvlink));
	pp_svg_text(&p->svg, "title", PP_SHAPE_PAD, 30, "GPUs, hcas and the way between them");
	pp_svg_text(&p->svg, "sub", PP_SHAPE_PAD, 50,
		    "%u GPU%s \xc2\xb7 %u hca%s \xc2\xb7 %u rail%s%s \xc2\xb7 a coloured line is a "
		    "rail's way",
		    count[PP_GPU], count[PP_GPU] == 1 ? "" : "s", count[PP_HCA],
		    count[PP_HCA] == 1 ? "" : "s", d->n_rails, d->n_rails == 1 ? "" : "s", nvlink);
	if (faults)
		pp_svg_text(&p->svg, "title bad end", d->width - PP_SHAPE_PAD, 30, "%u fault%s",
			    faults, faults == 1 ? "" : "s");
	else
		pp_svg_text(&p->svg, "sub end", d->width - PP_SHAPE_PAD, 30, "%s",
			    d->n_unknowns ? "no fault among what could be read" : "no fault seen");
}

static void describe(const struct pp_drawing *d, char *text, size_t size)
{
	size_t n =
		(size_t)snprintf(text, size, "%u GPUs, %u hcas, %u rails, %u faults, %u unknown.",
				 d->node->facts.count[PP_GPU], d->node->facts.count[PP_HCA],
				 d->n_rails, d->n_faults + d->n_more_faults, d->n_unknowns);

	for (unsigned int i = 0; i < d->n_faults && n < size; i++)
		n += (size_t)snprintf(text + n, size - n, " %s.", d->faults[i]);
}

static void paint(struct painter *p)
{
	struct pp_drawing *d = p->d;
	int bottom = d->height + sentences_height(d) + PP_SHAPE_PAD;
	char description[2048];

	describe(d, description, sizeof(description));
	if (p->in_page)
		pp_svg_begin_inline(&p->svg, "map", d->width, bottom, "topology of one node",
				    description);
	else
		pp_svg_begin(&p->svg, d->width, bottom, style, "peerpath: topology of one node",
			     description);
	paint_title(p);
	for (unsigned int b = 0; b < d->n_blocks; b++)
		paint_block(p, &d->blocks[b]);
	paint_joints(p);
	paint_lines(p);
	for (unsigned int k = 0; k < d->n; k++) {
		paint_label(p, &d->items[k]);
		paint_item(p, &d->items[k]);
	}
	(void)paint_sentences(p, d->height);
	pp_svg_end(&p->svg);
}

static int draw(const struct pp_node *node, bool in_page, struct pp_buf *out, struct pp_error *err)
{
	struct pp_drawing d;
	struct painter p = {.d = &d, .svg = {.out = out}, .in_page = in_page};
	int r = pp_drawing_make(node, &d);

	if (!r) {
		pp_drawing_place(&d);
		r = d.arena.failed ? -EFBIG : 0;
	}
	if (!r) {
		paint(&p);
		r = out->failed;
	}
	pp_drawing_done(&d);
	return r ? pp_error_set(err, r, "this machine is too large to draw") : 0;
}

int pp_draw_node(const struct pp_node *node, struct pp_buf *out, struct pp_error *err)
{
	return draw(node, /* in_page= */ false, out, err);
}

int pp_draw_node_in_page(const struct pp_node *node, struct pp_buf *out, struct pp_error *err)
{
	return draw(node, /* in_page= */ true, out, err);
}

/* Each selector of a sheet below the class of the picture, so that it styles nothing else. */
static void scope(struct pp_buf *out, const char *sheet)
{
	bool selector = true, inside = false;

	for (; *sheet; sheet++) {
		if (selector && !inside)
			pp_buf_str(out, ".map ");
		selector = *sheet == '}' || *sheet == ',';
		inside = *sheet == '{' || (inside && *sheet != '}');
		pp_buf_char(out, *sheet);
	}
}

void pp_draw_style(struct pp_buf *out)
{
	scope(out, style);
	pp_buf_str(out, ".map .paper{fill:#fff}@media screen and (prefers-color-scheme:dark){");
	scope(out, dark_style);
	pp_buf_char(out, '}');
}
