/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/sheet.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bundle/svg.h"
#include "base/banned.h"

enum { TEXT_MAX = 4096 };

static const char style[] =
	"body{font:16px/1.45 system-ui,sans-serif;max-width:64rem;margin:0 auto;padding:1rem;"
	"color:#1b1b1b;background:#fff}"
	"h1{font-size:1.5rem;margin:.2em 0}h2{font-size:1.2rem;margin:1.6em 0 .4em;"
	"border-bottom:1px solid #ccc}h3{font-size:1rem;margin:1.2em 0 .3em}"
	".verdict{padding:.6rem .9rem;border-left:.5rem solid #777;background:#f4f4f4}"
	".pass{border-color:#00734a}.degraded{border-color:#b36b00}.fail{border-color:#b00020}"
	".unknown{border-color:#4a6a8a}"
	".mark-sim{font-weight:700;border:2px dashed #b36b00;padding:.4rem .7rem}"
	".wide{overflow-x:auto}table{border-collapse:collapse;font-size:.86rem;width:100%}"
	"th,td{padding:.25rem .5rem;border-bottom:1px solid #ddd;text-align:left;"
	"vertical-align:top;overflow-wrap:anywhere;min-width:5rem}"
	"td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
	"code{font-family:ui-monospace,monospace;overflow-wrap:anywhere}"
	".plot{width:100%;max-width:42rem;height:auto;display:block}"
	".grid{stroke:#e2e2e2}.axis{stroke:#444}.limit{stroke:#888;stroke-dasharray:2 4}"
	".tick{font:12px system-ui,sans-serif;fill:#333}.right{text-anchor:end}"
	".middle{text-anchor:middle}.line{fill:none;stroke-width:2}.bar{fill:none}"
	/* told apart by people who see no red or no green (Okabe and Ito), and by dashes */
	".s0{stroke:#777;stroke-dasharray:2 3}.s1{stroke:#000}.s2{stroke:#0072b2}"
	".s3{stroke:#d55e00;stroke-dasharray:8 3}.s4{stroke:#009e73;stroke-dasharray:10 3 2 3}"
	".s5{stroke:#cc79a7;stroke-dasharray:4 3}"
	".mark{fill:#fff;stroke-width:2;stroke-dasharray:none}.bar{stroke-dasharray:none}"
	"@media print{body{font-size:11px;max-width:none;padding:0}.wide{overflow:visible}"
	"h2{break-after:avoid}.plot,tr{break-inside:avoid}}";

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

void pp_sheet_begin(struct pp_buf *out, const char *title)
{
	pp_buf_str(out, "<!DOCTYPE html>\n"
			"<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\"><head>"
			"<meta charset=\"utf-8\"/>"
			"<meta name=\"viewport\" content=\"width=device-width, "
			"initial-scale=1\"/>\n");
	pp_sheet_text(out, "title", "%s", title);
	pp_buf_printf(out, "\n<style>%s</style></head><body>\n", style);
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
