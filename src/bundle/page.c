/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/page.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bundle/page_parts.h"
#include "base/banned.h"

const char *pp_page_node(const struct pp_page *p, const struct pp_bench_end *e)
{
	const struct pp_bench_node *n = e->node < p->b->n_nodes ? &p->b->nodes[e->node] : NULL;

	return !n ? "?" : n->id ? n->id : n->host ? n->host : "?";
}

static void verdict(struct pp_page *p)
{
	const struct pp_transfer *t = p->t;

	if (t->simulated)
		pp_sheet_text(
			p->out, "p class=\"mark-sim\"",
			"Simulation: no hardware was measured; no speed here is a network's.");
	else if (t->software)
		pp_sheet_text(
			p->out, "p class=\"mark-sim\"",
			"%s is software in the kernel: no hardware was measured; no speed here "
			"is a NIC's.",
			t->software);
	pp_buf_printf(p->out, "<div class=\"verdict %s\">", pp_verdict_name(t->verdict));
	pp_sheet_text(p->out, p->is_part ? "h3" : "h1", "Memory over RDMA: %s",
		      pp_transfer_word(t));
	pp_sheet_text(p->out, "p", "%s", t->sentence);
	if (t->next) {
		pp_buf_str(p->out, "<p>Next: ");
		pp_sheet_text(p->out, "code", "%s", t->next);
		pp_buf_str(p->out, "</p>");
	}
	pp_buf_str(p->out, "</div>\n");
}

static void item(struct pp_page *p, const char *name, const char *text)
{
	pp_sheet_item(p->out, name, text);
}

static void run(struct pp_page *p)
{
	const struct pp_bench *b = p->b;
	const struct pp_margins *m = p->margins;
	char text[256], when[32];

	pp_sheet_text(p->out, p->is_part ? "h3" : "h2", "Run");
	pp_sheet_items(p->out);
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
	pp_sheet_table_end(p->out);
}

static void nodes(struct pp_page *p)
{
	static const char *const heads[] = {
		"Node",	    "Host",	      "Address",	  "peerpath",
		"Software", "Topology class", "#Ready after, us", "",
		NULL};

	pp_sheet_text(p->out, p->is_part ? "h3" : "h2", "Nodes");
	pp_sheet_table(p->out, heads);
	for (unsigned int i = 0; i < p->b->n_nodes; i++) {
		const struct pp_bench_node *n = &p->b->nodes[i];
		const char *const texts[] = {n->id,	 n->host,	 n->address,
					     n->version, n->fingerprint, n->topology};

		pp_sheet_row(p->out);
		for (unsigned int k = 0; k < PP_ARRAY_LEN(texts); k++)
			pp_sheet_text(p->out, "td", "%s", texts[k] ? texts[k] : "unknown");
		pp_sheet_number(p->out, 1, n->arrival_skew);
		pp_sheet_text(p->out, "td", "%s", n->simulated ? "simulated" : "");
		pp_sheet_row_end(p->out);
	}
	pp_sheet_table_end(p->out);
}

static void write_all(struct pp_page *p)
{
	verdict(p);
	run(p);
	nodes(p);
	for (unsigned int i = 0; i < p->b->n_pairs; i++)
		pp_page_pair(p, i);
}

void pp_page_bench_parts(struct pp_buf *out, const struct pp_bench *b, const struct pp_transfer *t,
			 const struct pp_margins *margins)
{
	struct pp_page p = {out, b, t, margins, .is_part = true};

	write_all(&p);
}

int pp_page_bench(const struct pp_bench *b, const struct pp_transfer *t,
		  const struct pp_margins *margins, char **ret)
{
	struct pp_buf out = PP_BUF(PP_SHEET_MAX);
	struct pp_page p = {&out, b, t, margins, .is_part = false};
	char title[96];

	(void)snprintf(title, sizeof(title), "peerpath bench: %s", pp_transfer_word(t));
	pp_sheet_begin(&out, title, /* more_style= */ NULL);
	write_all(&p);
	return pp_sheet_end(&out, ret);
}
