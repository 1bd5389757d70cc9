/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streaming SVG writer: one self-contained document, no external font, style sheet or script.
 *
 * Appends to a pp_buf, whose sticky error is the writer's error. Text is escaped and made valid
 * UTF-8, so that the output is well-formed XML whatever the machine's names hold. Coordinates are
 * whole pixels.
 */
#ifndef PP_BUNDLE_SVG_H
#define PP_BUNDLE_SVG_H

#include "base/buf.h"

struct pp_svg {
	struct pp_buf *out; /* borrowed */
};

/* @style is CSS, trusted. @title and @description are read out by screen readers. */
void pp_svg_begin(struct pp_svg *s, int width, int height, const char *style, const char *title,
		  const char *description);
/* A picture of a page, which has its style sheet: class "paper" is its ground. */
void pp_svg_begin_inline(struct pp_svg *s, const char *class_name, int width, int height,
			 const char *title, const char *description);
void pp_svg_end(struct pp_svg *s);

/* @class_name: classes of the style sheet, trusted. */
void pp_svg_rect(struct pp_svg *s, const char *class_name, int x, int y, int w, int h, int radius);
void pp_svg_line(struct pp_svg *s, const char *class_name, int x1, int y1, int x2, int y2);
/* Horizontal, then vertical at @bend, then horizontal. */
void pp_svg_elbow(struct pp_svg *s, const char *class_name, int x1, int y1, int bend, int x2,
		  int y2);
void pp_svg_text(struct pp_svg *s, const char *class_name, int x, int y, const char *fmt, ...)
	PP_PRINTF(5, 6);

/* Text as content or a quoted attribute of XML or HTML. */
void pp_svg_escape(struct pp_buf *out, const char *text);

/* A group with a tool tip: what a pointer resting on its shapes shows. */
void pp_svg_group(struct pp_svg *s, const char *tip);
void pp_svg_group_end(struct pp_svg *s);

#endif
