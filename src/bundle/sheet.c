/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/sheet.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bundle/svg.h"
#include "base/banned.h"

enum { TEXT_MAX = 4096, LINE_MAX_SHOWN = 2000 };

static const char style[] =
	/* Colours by name, so that a dark screen gets its own and paper the light ones. */
	":root{color-scheme:light dark;--ink:#1b1b1b;--paper:#fff;--soft:#f4f4f4;--rule:#ccc;"
	"--thin:#ddd;--quiet:#555;--pass:#00734a;--degraded:#b36b00;--fail:#b00020;"
	"--unknown:#4a6a8a;--axis:#444;--grid:#e2e2e2;--s0:#777;--s2:#0072b2;--s3:#d55e00;"
	"--s4:#009e73;--s5:#cc79a7}"
	"@media screen and (prefers-color-scheme:dark){:root{--ink:#e6e6e6;--paper:#16181b;"
	"--soft:#22262b;--rule:#4a4f55;--thin:#33373c;--quiet:#a6a6a6;--pass:#3ecf8e;"
	"--degraded:#f0a030;--fail:#ff7080;--unknown:#8fb3d9;--axis:#b0b0b0;--grid:#33373c;"
	"--s0:#a0a0a0;--s2:#56b4e9;--s3:#f08a4b;--s4:#3ecf8e;--s5:#e0a0c4}}"
	"body{font:16px/1.45 system-ui,sans-serif;max-width:64rem;margin:0 auto;padding:1rem;"
	"color:var(--ink);background:var(--paper)}"
	"h1{font-size:1.5rem;margin:.2em 0}h2{font-size:1.2rem;margin:1.6em 0 .4em;"
	"border-bottom:1px solid var(--rule)}h3{font-size:1rem;margin:1.2em 0 .3em}"
	"h1,h2,h3,p,li,summary{overflow-wrap:anywhere}.quiet{color:var(--quiet);border-color:var(--"
	"rule)}"
	".verdict{padding:.6rem .9rem;border-left:.5rem solid var(--unknown);"
	"background:var(--soft)}"
	".pass{border-color:var(--pass)}.degraded{border-color:var(--degraded)}"
	".fail{border-color:var(--fail)}.unknown{border-color:var(--unknown)}"
	".verdict p{margin:.4em 0}td.word{border-left-width:.4rem;border-left-style:solid;"
	"border-bottom-color:var(--thin)}"
	".mark-sim{font-weight:700;border:2px dashed var(--degraded);padding:.4rem .7rem}"
	".tag-sim{font-size:.8rem;font-weight:700;border:2px dashed var(--degraded);"
	"padding:0 .4rem;white-space:nowrap}"
	".wide{overflow-x:auto}table{border-collapse:collapse;font-size:.86rem;width:100%}"
	"th,td{padding:.25rem .5rem;border-bottom:1px solid var(--thin);text-align:left;"
	"vertical-align:top;overflow-wrap:anywhere;min-width:5rem}"
	"td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
	"code,pre{font-family:ui-monospace,monospace;overflow-wrap:anywhere}"
	"pre{font-size:.8rem;white-space:pre-wrap;background:var(--soft);padding:.5rem;"
	"margin:.3rem 0;max-height:32rem;overflow-y:auto;unicode-bidi:isolate}"
	"details{margin:.4rem 0}details details{margin-left:.8rem}summary{cursor:pointer;"
	"padding:.15rem 0}"
	".plot{width:100%;min-width:34rem;max-width:42rem;height:auto;display:block}"
	/* a phone scrolls what is wide, and its columns stay fit to read */
	".strip{min-width:0}"
	/* a broad picture takes the breadth of the screen */
	"@media screen and (min-width:70rem){.broad{margin:0 calc(50% - 50vw + 1.2rem);"
	"text-align:center}td.word,td.gate{white-space:nowrap}}"
	"@media screen and (max-width:40rem){.strip .tick{font-size:18px}.wide:not(.fit) "
	"table{width:max-content;min-width:100%}"
	".wide:not(.fit) td{max-width:11rem}.fit td,.fit th{min-width:0;overflow-wrap:normal}"
	".fit td:last-child{overflow-wrap:anywhere}}"
	".grid{stroke:var(--grid)}.axis{stroke:var(--axis)}"
	".limit{stroke:#888;stroke-dasharray:2 4}"
	".tick{font:12px system-ui,sans-serif;fill:var(--axis)}.right{text-anchor:end}"
	".middle{text-anchor:middle}.line{fill:none;stroke-width:2}.bar{fill:none}"
	/* told apart by people who see no red or no green (Okabe and Ito), and by dashes */
	".s0{stroke:var(--s0);stroke-dasharray:2 3}.s1{stroke:var(--ink)}.s2{stroke:var(--s2)}"
	".s3{stroke:var(--s3);stroke-dasharray:8 3}"
	".s4{stroke:var(--s4);stroke-dasharray:10 3 2 3}"
	".s5{stroke:var(--s5);stroke-dasharray:4 3}"
	".mark{fill:var(--paper);stroke-width:2;stroke-dasharray:none}"
	".bar{stroke-dasharray:none}"
	"@media print{body{font-size:11px;max-width:none;padding:0}.wide{overflow:visible}"
	"pre{max-height:none}h2,h3,summary{break-after:avoid}.plot,.map,tr{break-inside:avoid}"
	".map{width:100%;height:auto}}";

void pp_sheet_text(struct pp_buf *out, const char *tag, const char *fmt, ...)
{
	char text[TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	pp_buf_printf(out, "<%s>", tag);
	pp_svg_escape(out, text);
	pp_buf_printf(out, "</%.*s>", (int)strcspn(tag, " "), tag);
}

void pp_sheet_table(struct pp_buf *out, const char *const *heads)
{
	pp_buf_str(out, "<div class=\"wide\"><table><thead><tr>");
	for (; *heads; heads++)
		pp_sheet_text(out, **heads == '#' ? "th class=\"n\"" : "th", "%s",
			      *heads + (**heads == '#'));
	pp_buf_str(out, "</tr></thead><tbody>\n");
}

void pp_sheet_table_end(struct pp_buf *out)
{
	pp_buf_str(out, "</tbody></table></div>\n");
}

void pp_sheet_row(struct pp_buf *out)
{
	pp_buf_str(out, "<tr>");
}

void pp_sheet_row_end(struct pp_buf *out)
{
	pp_buf_str(out, "</tr>\n");
}

void pp_sheet_number(struct pp_buf *out, int digits, double value)
{
	if (isnan(value))
		pp_sheet_text(out, "td class=\"n\"", "-");
	else
		pp_sheet_text(out, "td class=\"n\"", "%.*f", digits, value);
}

void pp_sheet_item(struct pp_buf *out, const char *name, const char *text)
{
	pp_sheet_row(out);
	pp_sheet_text(out, "th", "%s", name);
	pp_sheet_text(out, "td", "%s", text ? text : "unknown");
	pp_sheet_row_end(out);
}

void pp_sheet_items(struct pp_buf *out)
{
	pp_buf_str(out, "<div class=\"wide fit\"><table><tbody>\n");
}

void pp_sheet_detail(struct pp_buf *out, const char *fmt, ...)
{
	char text[TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	pp_buf_str(out, "<details><summary>");
	pp_svg_escape(out, text);
	pp_buf_str(out, "</summary>\n");
}

void pp_sheet_detail_end(struct pp_buf *out)
{
	pp_buf_str(out, "</details>\n");
}

/* NUL ends no text of a stranger: it is shown as what cannot be shown. */
static void raw_line(struct pp_buf *out, const char *line, size_t len)
{
	char text[LINE_MAX_SHOWN + 1];
	size_t n = len < LINE_MAX_SHOWN ? len : LINE_MAX_SHOWN;

	for (size_t i = 0; i < n; i++)
		text[i] = line[i] == '\t' || line[i] == '\r' ? ' ' : line[i] ? line[i] : '\x01';
	text[n] = '\0';
	pp_svg_escape(out, text);
	if (n < len)
		pp_buf_printf(out, " [%zu bytes more]", len - n);
	pp_buf_char(out, '\n');
}

void pp_sheet_raw(struct pp_buf *out, const char *text, size_t len, size_t most)
{
	size_t shown = len < most ? len : most;
	const char *end = text + shown;

	pp_buf_str(out, "<pre>");
	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));

		raw_line(out, text, (size_t)((stop ? stop : end) - text));
		text = stop ? stop + 1 : end;
	}
	if (shown < len)
		pp_buf_printf(out, "[%zu of %zu bytes are not shown]\n", len - shown, len);
	pp_buf_str(out, "</pre>\n");
}

void pp_sheet_begin(struct pp_buf *out, const char *title, const char *more_style)
{
	pp_buf_str(out, "<!DOCTYPE html>\n"
			"<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\"><head>"
			"<meta charset=\"utf-8\"/>"
			"<meta name=\"viewport\" content=\"width=device-width, "
			"initial-scale=1\"/>"
			/* What is in the page is shown; nothing runs and nothing is fetched. */
			"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
			"'none'; style-src 'unsafe-inline'\"/>\n");
	pp_sheet_text(out, "title", "%s", title);
	pp_buf_printf(out, "\n<style>%s", style);
	pp_buf_str(out, more_style ? more_style : "");
	pp_buf_str(out, "</style></head><body>\n");
}

int pp_sheet_end(struct pp_buf *out, char **ret)
{
	int r;

	pp_buf_str(out, "</body></html>\n");
	r = out->failed;
	if (r)
		pp_buf_done(out);
	else
		*ret = out->data;
	return r;
}
