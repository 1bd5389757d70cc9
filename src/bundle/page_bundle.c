/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/page_bundle.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bundle/draw.h"
#include "bundle/page.h"
#include "bundle/page_comparison.h"
#include "bundle/sheet.h"
#include "judge/gate.h"
#include "judge/transfer.h"
#include "base/banned.h"

enum { MEMBERS_SHOWN = 4000, STYLE_MAX = 64 << 10 };

static const char *text_of(const json_t *from, const char *key)
{
	return json_string_value(json_object_get(from, key));
}

/* A word of ours for a class, whatever the document says. */
static const char *verdict_of(const json_t *from)
{
	const char *text = text_of(from, "verdict");
	enum pp_verdict v;

	return text && !pp_verdict_parse(text, &v) ? pp_verdict_name(v) : "unknown";
}

static bool is_simulated(const struct pp_page_sight *s)
{
	return json_is_true(json_object_get(s->result, "simulated")) ||
	       (s->transfer && s->transfer->simulated) || s->library_simulated ||
	       (s->trial && s->trial->simulated) || (s->comparison && s->comparison->simulated);
}

static const char *kind_of(const struct pp_page_sight *s)
{
	return s->result  ? "prove: verdict and evidence"
	       : s->trial ? "canary: a workload as it was measured"
			  : "capture: a recording, no verdict";
}

static void head(struct pp_buf *out, const struct pp_page_sight *s)
{
	const struct pp_manifest *m = s->manifest;
	const char *simulation = text_of(s->result, "simulation"),
		   *through = text_of(s->result, "through");

	if (is_simulated(s))
		pp_sheet_text(
			out, "p class=\"mark-sim\"",
			"Simulation: what is marked so was carried by the software device. It "
			"proves nothing about hardware%s%.32s.",
			simulation ? "; simulation: " : "", simulation ? simulation : "");
	pp_buf_printf(out, "<div class=\"verdict %s\">",
		      s->result ? verdict_of(s->result) : "unknown");
	pp_sheet_text(out, "h1", "%s: %s", m->host, s->result ? verdict_of(s->result) : "recorded");
	if (through)
		pp_sheet_text(out, "p",
			      "The worst of the gates up to %.32s, as it was judged then.",
			      through);
	pp_buf_str(out, "</div>\n");
	pp_sheet_items(out);
	pp_sheet_item(out, "What it is", kind_of(s));
	pp_sheet_item(out, "Seen", m->created);
	pp_sheet_item(out, "Written by peerpath", m->version);
	pp_sheet_item(out, "Id", m->id);
	pp_sheet_item(out, "Scrubbed", m->scrubbed ? "yes" : "no");
	pp_sheet_item(out, "Complete",
		      m->complete ? "yes" : "no: what is left out is unknown here, too");
	if (s->result) {
		pp_sheet_item(out, "Topology class", text_of(s->result, "topology_class"));
		pp_sheet_item(out, "Software", text_of(s->result, "software_fingerprint"));
	}
	pp_sheet_table_end(out);
}

static void paragraph(struct pp_buf *out, const char *name, const char *text)
{
	if (text)
		pp_sheet_text(out, "p", "%s: %s", name, text);
}

static void gate(struct pp_buf *out, const json_t *row)
{
	const char *next = text_of(row, "next"), *claim = text_of(row, "claim"),
		   *state = text_of(row, "claim_state");
	bool asked = !json_is_false(json_object_get(row, "asked"));

	pp_buf_printf(out, "<div class=\"verdict %s\">", asked ? verdict_of(row) : "quiet");
	pp_sheet_text(out, "p", "%s%s%s%s", claim ? claim : "nothing is claimed",
		      asked && state ? " (" : "", asked && state ? state : "",
		      asked && state ? ")" : "");
	if (asked)
		paragraph(out, "Evidence", text_of(row, "evidence"));
	paragraph(out, "To raise it", text_of(row, "raise"));
	if (next) {
		pp_buf_str(out, "<p>Next: ");
		pp_sheet_text(out, "code", "%s", next);
		pp_buf_str(out, "</p>");
	}
	pp_buf_str(out, "</div>\n");
}

static const char *word_of(const json_t *row)
{
	return json_is_false(json_object_get(row, "asked")) ? "not asked for" : verdict_of(row);
}

static void gates(struct pp_buf *out, const json_t *list)
{
	if (!json_array_size(list))
		return;
	pp_sheet_text(out, "h2", "Gates");
	pp_sheet_items(out);
	for (size_t i = 0; i < json_array_size(list) && i < PP_GATES; i++) {
		const json_t *row = json_array_get(list, i);
		const char *claim = text_of(row, "claim");

		pp_sheet_row(out);
		pp_sheet_text(out, "td class=\"gate\"", "%zu %s", i, pp_gate_name((enum pp_gate)i));
		pp_buf_printf(out, "<td class=\"word %s\">",
			      json_is_false(json_object_get(row, "asked")) ? "quiet"
									   : verdict_of(row));
		pp_sheet_text(out, "span", "%s", word_of(row));
		pp_buf_str(out, "</td>");
		pp_sheet_text(out, "td", "%s", claim ? claim : "");
		pp_sheet_row_end(out);
	}
	pp_sheet_table_end(out);
}

static void machines(struct pp_buf *out, const struct pp_page_sight *s)
{
	for (size_t i = 0; i < s->n_machines; i++) {
		const struct pp_page_machine *m = &s->machine[i];
		const char *why = m->why;
		struct pp_error err = {0};
		size_t before = out->len;

		if (*m->id)
			pp_sheet_text(out, "h2", "The machine %s", m->id);
		else
			pp_sheet_text(out, "h2", "The machine");
		if (m->node && pp_node_simulated(m->node))
			pp_sheet_text(out, "p class=\"mark-sim\"",
				      "Simulated: its RDMA device is software.");
		pp_buf_str(out, "<div class=\"wide broad\">");
		before = out->len;
		if (m->node && pp_draw_node_in_page(m->node, out, &err)) {
			why = err.text;
			if (!out->failed)
				out->len = before;
		}
		pp_buf_str(out, "</div>\n");
		if (why)
			pp_sheet_text(out, "p", "No picture: %s", why);
	}
	if (s->more_machines)
		pp_sheet_text(out, "p", "%zu more machines are in the bundle.", s->more_machines);
}

static void memory(struct pp_buf *out, const struct pp_page_sight *s)
{
	if (s->bench)
		pp_page_bench_parts(out, s->bench, s->transfer, s->margins);
	pp_page_records(out, s);
}

static void application(struct pp_buf *out, const struct pp_page_sight *s)
{
	if (s->comparison)
		pp_page_comparison_parts(out, s->comparison, s->before, s->n_before, &s->trial, 1);
	pp_page_trial(out, s);
}

/* What each gate was judged by, below what it says: its claim never stands alone. */
static void behind(struct pp_buf *out, const struct pp_page_sight *s)
{
	static void (*const parts[PP_GATES])(struct pp_buf *, const struct pp_page_sight *) = {
		[PP_GATE_IDENTITY] = pp_page_facts,  [PP_GATE_PREREQUISITES] = pp_page_findings,
		[PP_GATE_MEMORY] = memory,	     [PP_GATE_LIBRARY] = pp_page_library,
		[PP_GATE_APPLICATION] = application,
	};
	const json_t *list = json_object_get(s->result, "gates");

	for (unsigned int i = 0; i < PP_GATES; i++) {
		const json_t *row = json_array_get(list, i);

		pp_sheet_text(out, "h2", "Gate %u, %s%s%s", i, pp_gate_name((enum pp_gate)i),
			      row ? ": " : "", row ? word_of(row) : "");
		if (row)
			gate(out, row);
		parts[i](out, s);
	}
}

static void members(struct pp_buf *out, const struct pp_page_sight *s)
{
	static const char *const heads[] = {"File", "#Bytes", "SHA-256", NULL};
	const struct pp_manifest *m = s->manifest;
	char text[2 * PP_SHA256_BYTES + 1];
	size_t shown = 0, files = 0;

	for (size_t i = 0; i < m->n; i++)
		files += m->items[i].kind == PP_MEMBER_FILE;
	pp_sheet_text(out, "h2", "The bundle");
	pp_sheet_detail(out, "Its %zu files, with what each was when this page was made", files);
	pp_sheet_table(out, heads);
	for (size_t i = 0; i < m->n && shown < MEMBERS_SHOWN; i++) {
		const struct pp_manifest_item *item = &m->items[i];

		if (item->kind != PP_MEMBER_FILE)
			continue;
		shown++;
		pp_sheet_row(out);
		pp_sheet_text(out, "td", "%s", item->path);
		pp_sheet_text(out, "td class=\"n\"", "%" PRIu64, item->bytes);
		pp_sheet_text(out, "td", "%s", pp_hex(item->sha256, PP_SHA256_BYTES, text));
		pp_sheet_row_end(out);
	}
	pp_sheet_table_end(out);
	if (shown < files)
		pp_sheet_text(out, "p", "%zu more are not shown.", files - shown);
	pp_sheet_detail_end(out);
}

int pp_page_bundle(const struct pp_page_sight *s, char **ret)
{
	struct pp_buf out = PP_BUF(PP_SHEET_MAX);
	PP_AUTO_BUF struct pp_buf more = PP_BUF(STYLE_MAX);
	char title[160];

	pp_draw_style(&more);
	(void)snprintf(title, sizeof(title), "peerpath: %.100s: %s", s->manifest->host,
		       s->result ? verdict_of(s->result) : "recorded");
	pp_sheet_begin(&out, title, pp_buf_text(&more));
	head(&out, s);
	gates(&out, json_object_get(s->result, "gates"));
	machines(&out, s);
	behind(&out, s);
	members(&out, s);
	return pp_sheet_end(&out, ret);
}
