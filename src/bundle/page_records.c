/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What gates 2 and 3 stand on beside figures: what was seen of registered memory, with the lines
 * that showed it; what a job of NCCL was found to do, with its controls.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "bundle/page_bundle.h"
#include "bundle/sheet.h"
#include "judge/control.h"
#include "base/banned.h"

enum { RECORDS_SHOWN = 500, LINES_SHOWN = 200, RAW_MOST = 256 << 10 };

static const char *text_of(const json_t *from, const char *key)
{
	const char *text = json_string_value(json_object_get(from, key));

	return text ? text : "unknown";
}

static void sightings(struct pp_buf *out, const json_t *record)
{
	const json_t *list = json_object_get(record, "sightings");

	for (size_t i = 0; i < json_array_size(list) && i < LINES_SHOWN; i++) {
		const json_t *one = json_array_get(list, i);
		const char *raw = json_string_value(json_object_get(one, "raw"));

		pp_sheet_text(out, "p", "%s shows %s:", text_of(one, "surface"),
			      text_of(one, "registration"));
		if (raw)
			pp_sheet_raw(out, raw, strlen(raw), RAW_MOST);
	}
	list = json_object_get(record, "missing");
	for (size_t i = 0; i < json_array_size(list) && i < LINES_SHOWN; i++) {
		const json_t *one = json_array_get(list, i);

		pp_sheet_text(out, "p", "Not seen: %s: %s (%s)", text_of(one, "surface"),
			      text_of(one, "why"), text_of(one, "how"));
	}
}

static void record(struct pp_buf *out, const json_t *r)
{
	const char *why = json_string_value(json_object_get(r, "why"));

	pp_sheet_detail(out, "%s, %s: registration %s, %s (%s, %s)%s", text_of(r, "pair"),
			text_of(r, "rung"), text_of(r, "registration"), text_of(r, "state"),
			text_of(r, "witness"), text_of(r, "scope"),
			json_is_true(json_object_get(r, "simulated")) ? ", simulated" : "");
	if (why)
		pp_sheet_text(out, "p", "%s", why);
	sightings(out, r);
	pp_sheet_detail_end(out);
}

void pp_page_records(struct pp_buf *out, const struct pp_page_sight *s)
{
	size_t shown = 0, left = 0;

	for (size_t i = 0; i < s->n_records; i++) {
		const json_t *list = json_object_get(s->records[i].document, "evidence");

		if (!json_array_size(list))
			continue;
		pp_sheet_text(out, "h3", "What was seen of the memory of %s", s->records[i].node);
		for (size_t k = 0; k < json_array_size(list); k++)
			if (shown++ < RECORDS_SHOWN)
				record(out, json_array_get(list, k));
			else
				left++;
	}
	if (left)
		pp_sheet_text(out, "p", "%zu more records are in the bundle.", left);
}

static void control(struct pp_buf *out, const struct pp_control *c)
{
	static const char *const heads[] = {"What", "Expected", "Seen", "", NULL};

	if (c->state == PP_CONTROL_NOT_RUN && !c->n_checks)
		return;
	pp_sheet_text(out, "h3", "%s: %s", pp_nccl_arm_title(c->arm),
		      pp_control_state_name(c->state));
	pp_sheet_text(out, "p", "%s", c->says);
	pp_sheet_table(out, heads);
	for (unsigned int i = 0; i < c->n_checks; i++) {
		const struct pp_control_check *k = &c->check[i];

		pp_sheet_row(out);
		pp_sheet_text(out, "td", "%s", k->what);
		pp_sheet_text(out, "td", "%s", k->expected);
		pp_sheet_text(out, "td", "%s", k->seen);
		pp_sheet_text(out, "td", "%s", pp_control_state_name(k->state));
		pp_sheet_row_end(out);
	}
	pp_sheet_table_end(out);
}

/* What each run of the job was found to do: the lines of its log that say so. */
static void run_of_job(struct pp_buf *out, const json_t *run)
{
	const json_t *judgement = json_object_get(run, "judgement"),
		     *why = json_object_get(judgement, "why");

	pp_sheet_detail(out, "Run %s: path %s, %s; mechanism %s, %s%s", text_of(run, "arm"),
			text_of(judgement, "path"), text_of(judgement, "claim_gdr"),
			text_of(judgement, "mechanism"), text_of(judgement, "claim_mechanism"),
			json_is_true(json_object_get(run, "simulated")) ? ", simulated" : "");
	pp_sheet_text(out, "p", "Command: %s", text_of(run, "command"));
	for (size_t i = 0; i < json_array_size(why) && i < LINES_SHOWN; i++) {
		const json_t *line = json_array_get(why, i);

		pp_sheet_text(out, "p", "%s:%" JSON_INTEGER_FORMAT ": %s", text_of(line, "file"),
			      json_integer_value(json_object_get(line, "line")),
			      text_of(line, "text"));
	}
	pp_sheet_detail_end(out);
}

void pp_page_library(struct pp_buf *out, const struct pp_page_sight *s)
{
	const struct pp_gate_library *g = s->library;
	const json_t *runs = json_object_get(s->job, "runs");
	char *raw;

	if (!g)
		return;
	if (g->simulated)
		pp_sheet_text(out, "p class=\"mark-sim\"",
			      "Simulation: no hardware carried this job.");
	pp_sheet_text(out, "p", "%s", g->sentence);
	pp_sheet_text(out, "p", "Evidence: %s", g->evidence);
	for (unsigned int i = PP_NCCL_ARM_A; i < PP_NCCL_ARMS; i++)
		control(out, &g->control[i]);
	for (unsigned int i = 0; i < g->n_findings; i++)
		pp_sheet_text(out, "p", "%s: %s", pp_verdict_name(g->finding[i].verdict),
			      g->finding[i].text);
	for (size_t i = 0; i < json_array_size(runs) && i < LINES_SHOWN; i++)
		run_of_job(out, json_array_get(runs, i));
	raw = json_dumps(s->job, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
	if (raw) {
		pp_sheet_detail(out, "What was watched, as nccl run wrote it");
		pp_sheet_raw(out, raw, strlen(raw), RAW_MOST);
		pp_sheet_detail_end(out);
	}
	free(raw);
}
