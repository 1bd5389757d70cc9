/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/svg.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/parse.h"
#include "base/utf8.h"
#include "base/banned.h"

enum { TEXT_BYTES = 1024 };

/* Length of the UTF-8 sequence at @p if XML 1.0 allows its character, else 0. */
static size_t sequence(const unsigned char *p)
{
	size_t n = pp_utf8_length(p, SIZE_MAX);

	if (n == 1)
		return p[0] >= 0x20 && p[0] != 0x7f;
	if (!n)
		return 0;
	/* Marks that turn the direction of writing would make a line read as another one. */
	if (p[0] == 0xe2 && ((p[1] == 0x80 && p[2] >= 0xaa && p[2] <= 0xae) ||
			     (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9)))
		return 0;
	/* U+FFFE and U+FFFF are no characters of XML. */
	return p[0] == 0xef && p[1] == 0xbf && p[2] >= 0xbe ? 0 : n;
}

void pp_svg_escape(struct pp_buf *out, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	while (*p) {
		size_t n = sequence(p);

		switch (*p) {
		case '&':
			pp_buf_str(out, "&amp;");
			break;
		case '<':
			pp_buf_str(out, "&lt;");
			break;
		case '>':
			pp_buf_str(out, "&gt;");
			break;
		case '"':
			pp_buf_str(out, "&quot;");
			break;
		default:
			if (n)
				pp_buf_add(out, p, n);
			else
				pp_buf_str(out, "\xef\xbf\xbd");
		}
		p += n ? n : 1;
	}
}

void pp_svg_begin(struct pp_svg *s, int width, int height, const char *style, const char *title,
		  const char *description)
{
	pp_buf_printf(s->out,
		      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		      "viewBox=\"0 0 %d %d\" role=\"img\" aria-labelledby=\"title desc\">\n"
		      "<title id=\"title\">",
		      width, height, width, height);
	pp_svg_escape(s->out, title);
	pp_buf_str(s->out, "</title>\n<desc id=\"desc\">");
	pp_svg_escape(s->out, description);
	pp_buf_printf(s->out, "</desc>\n<style>%s</style>\n", style);
	pp_buf_printf(s->out, "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", width,
		      height);
}

void pp_svg_begin_inline(struct pp_svg *s, const char *class_name, int width, int height,
			 const char *title, const char *description)
{
	pp_buf_printf(s->out,
		      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"%s\" width=\"%d\" "
		      "height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"",
		      class_name, width, height, width, height);
	pp_svg_escape(s->out, title);
	pp_buf_str(s->out, ": ");
	pp_svg_escape(s->out, description);
	pp_buf_printf(s->out, "\">\n<rect class=\"paper\" width=\"%d\" height=\"%d\"/>\n", width,
		      height);
}

void pp_svg_end(struct pp_svg *s)
{
	pp_buf_str(s->out, "</svg>\n");
}

void pp_svg_rect(struct pp_svg *s, const char *class_name, int x, int y, int w, int h, int radius)
{
	pp_buf_printf(s->out,
		      "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
		      "rx=\"%d\"/>\n",
		      class_name, x, y, w, h, radius);
}

void pp_svg_line(struct pp_svg *s, const char *class_name, int x1, int y1, int x2, int y2)
{
	pp_buf_printf(s->out, "<path class=\"%s\" d=\"M%d %dL%d %d\"/>\n", class_name, x1, y1, x2,
		      y2);
}

void pp_svg_elbow(struct pp_svg *s, const char *class_name, int x1, int y1, int bend, int x2,
		  int y2)
{
	pp_buf_printf(s->out, "<path class=\"%s\" d=\"M%d %dH%dV%dH%d\"/>\n", class_name, x1, y1,
		      bend, y2, x2);
}

void pp_svg_text(struct pp_svg *s, const char *class_name, int x, int y, const char *fmt, ...)
{
	char text[TEXT_BYTES];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	pp_buf_printf(s->out, "<text class=\"%s\" x=\"%d\" y=\"%d\">", class_name, x, y);
	pp_svg_escape(s->out, text);
	pp_buf_str(s->out, "</text>\n");
}

void pp_svg_group(struct pp_svg *s, const char *tip)
{
	pp_buf_str(s->out, "<g><title>");
	pp_svg_escape(s->out, tip);
	pp_buf_str(s->out, "</title>\n");
}

void pp_svg_group_end(struct pp_svg *s)
{
	pp_buf_str(s->out, "</g>\n");
}
