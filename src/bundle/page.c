/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/page.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bundle/page_parts.h"
#include "bundle/svg.h"
#include "base/banned.h"

enum { PAGE_MAX = 128 << 20, TEXT_MAX = 4096 };

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
	"vertical-align:top;overflow-wrap:anywhere}"
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

void pp_page_text(struct pp_page *p, const char *tag, const char *fmt, ...)
{
	char text[TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	pp_buf_printf(&p->out, "<%s>", tag);
	pp_svg_escape(&p->out, text);
	pp_buf_printf(&p->out, "</%.*s>", (int)strcspn(tag, " "), tag);
}

void pp_page_table(struct pp_page *p, const char *const *heads)
{
	pp_buf_str(&p->out, "<div class=\"wide\"><table><thead><tr>");
	for (; *heads; heads++)
		pp_page_text(p, **heads == '#' ? "th class=\"n\"" : "th", "%s",
			     *heads + (**heads == '#'));
	pp_buf_str(&p->out, "</tr></thead><tbody>\n");
}

void pp_page_table_end(struct pp_page *p)
{
	pp_buf_str(&p->out, "</tbody></table></div>\n");
}

void pp_page_row(struct pp_page *p)
{
	pp_buf_str(&p->out, "<tr>");
}

void pp_page_row_end(struct pp_page *p)
{
	pp_buf_str(&p->out, "</tr>\n");
}

void pp_page_number(struct pp_page *p, int digits, double value)
{
	if (isnan(value))
		pp_page_text(p, "td class=\"n\"", "-");
	else
		pp_page_text(p, "td class=\"n\"", "%.*f", digits, value);
}

const char *pp_page_node(const struct pp_page *p, const struct pp_bench_end *e)
{
	const struct pp_bench_node *n = e->node < p->b->n_nodes ? &p->b->nodes[e->node] : NULL;

	return !n ? "?" : n->id ? n->id : n->host ? n->host : "?";
}

static void head(struct pp_page *p)
{
	pp_buf_str(&p->out, "<!DOCTYPE html>\n"
			    "<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\"><head>"
			    "<meta charset=\"utf-8\"/>"
			    "<meta name=\"viewport\" content=\"width=device-width, "
			    "initial-scale=1\"/>\n");
	pp_page_text(p, "title", "peerpath bench: %s", pp_transfer_word(p->t));
	pp_buf_printf(&p->out, "\n<style>%s</style></head><body>\n", style);
}

static void verdict(struct pp_page *p)
{
	const struct pp_transfer *t = p->t;

	if (t->simulated)
		pp_page_text(p, "p class=\"mark-sim\"",
			     "Simulation: no hardware was measured; no speed here is a network's.");
	else if (t->software)
		pp_page_text(
			p, "p class=\"mark-sim\"",
			"%s is software in the kernel: no hardware was measured; no speed here "
			"is a NIC's.",
			t->software);
	pp_buf_printf(&p->out, "<div class=\"verdict %s\">", pp_verdict_name(t->verdict));
	pp_page_text(p, "h1", "Memory over RDMA: %s", pp_transfer_word(t));
	pp_page_text(p, "p", "%s", t->sentence);
	if (t->next) {
		pp_buf_str(&p->out, "<p>Next: ");
		pp_page_text(p, "code", "%s", t->next);
		pp_buf_str(&p->out, "</p>");
	}
	pp_buf_str(&p->out, "</div>\n");
}

static void item(struct pp_page *p, const char *name, const char *text)
{
	pp_page_row(p);
	pp_page_text(p, "th", "%s", name);
	pp_page_text(p, "td", "%s", text);
	pp_page_row_end(p);
}

static void run(struct pp_page *p)
{
	const struct pp_bench *b = p->b;
	const struct pp_margins *m = p->margins;
	char text[256], when[32];

	pp_buf_str(&p->out, "<h2>Run</h2>\n<div class=\"wide\"><table><tbody>\n");
	if (b->started)
		item(p, "Started", pp_clock_format(b->started, when, sizeof(when)));
	(void)snprintf(text, sizeof(text), "%.1f s", (double)b->took / PP_SECOND);
	item(p, "Took", text);
	item(p, "peerpath", b->version ? b->version : "unknown");
	(void)snprintf(text, sizeof(text), "%s, %u repeats%s%.150s", pp_pattern_name(b->pattern),
		       b->repeats, b->whole ? "" : "; not whole: ",
		       b->whole	  ? ""
		       : b->ended ? b->ended
				  : "no reason given");
	item(p, "Pattern", text);
	(void)snprintf(text, sizeof(text),
		       "repeats within %.1f %%; GPU/host at least %.2f and at least %.2f of the "
		       "narrowest hop, from %" PRIu64 " bytes up",
		       100 * m->spread, m->gpu_host, m->hop, m->from);
	item(p, "Margins", text);
	if (p->t->direct_wins_from && !p->t->simulated && !p->t->software) {
		(void)snprintf(text, sizeof(text),
			       "faster than staging from %" PRIu64
			       " bytes up; whether the application gains is gate 4",
			       p->t->direct_wins_from);
		item(p, "Direct", text);
	}
	if (b->second)
		item(p, "Second witness", b->second);
	pp_buf_str(&p->out, "</tbody></table></div>\n");
}

static void nodes(struct pp_page *p)
{
	static const char *const heads[] = {
		"Node",	    "Host",	      "Address",	  "peerpath",
		"Software", "Topology class", "#Ready after, us", "",
		NULL};

	pp_buf_str(&p->out, "<h2>Nodes</h2>\n");
	pp_page_table(p, heads);
	for (unsigned int i = 0; i < p->b->n_nodes; i++) {
		const struct pp_bench_node *n = &p->b->nodes[i];
		const char *const texts[] = {n->id,	 n->host,	 n->address,
					     n->version, n->fingerprint, n->topology};

		pp_page_row(p);
		for (unsigned int k = 0; k < PP_ARRAY_LEN(texts); k++)
			pp_page_text(p, "td", "%s", texts[k] ? texts[k] : "unknown");
		pp_page_number(p, 1, n->arrival_skew);
		pp_page_text(p, "td", "%s", n->simulated ? "simulated" : "");
		pp_page_row_end(p);
	}
	pp_page_table_end(p);
}

int pp_page_bench(const struct pp_bench *b, const struct pp_transfer *t,
		  const struct pp_margins *margins, char **ret)
{
	struct pp_page p = {PP_BUF(PAGE_MAX), b, t, margins};

	head(&p);
	verdict(&p);
	run(&p);
	nodes(&p);
	for (unsigned int i = 0; i < b->n_pairs; i++)
		pp_page_pair(&p, i);
	pp_buf_str(&p.out, "</body></html>\n");
	if (p.out.failed) {
		int r = p.out.failed;

		pp_buf_done(&p.out);
		return r;
	}
	*ret = p.out.data;
	return 0;
}
