/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the monitor: what is open, what ended, what was looked at.
 */
#include <stdio.h>

#include "base/clock.h"
#include "cli/monitor.h"
#include "daemon/earlier.h"
#include "base/banned.h"

enum { ENDED_SHOWN = 20, EARLIER = 1024 };

static const char *when(int64_t wall, char text[32])
{
	return wall ? pp_clock_format(wall, text, 32) : NULL;
}

static void signal_json(struct pp_json *j, const struct pp_signal *s)
{
	char time[32];

	pp_json_object(j, NULL);
	pp_json_str(j, "level", pp_level_name(s->level));
	pp_json_str(j, "kind", pp_signal_key(s->kind));
	pp_json_str(j, "object", s->object);
	pp_json_str(j, "since", when(s->since_ns, time));
	pp_json_str(j, "last", when(s->last_ns, time));
	pp_json_str(j, "ended", when(s->ended_ns, time));
	pp_json_u64(j, "count", s->count);
	pp_json_str(j, "text", s->text);
	pp_json_str(j, "before", s->before);
	pp_json_str(j, "after", s->after);
	pp_json_str(j, "raw", s->raw);
	pp_json_str(j, "next", s->next);
	pp_earlier_write(j, s->level, s->earlier, s->n_earlier);
	pp_json_end_object(j);
}

static void signals_json(struct pp_out *o, const struct pp_state *s)
{
	struct pp_json *j = pp_out_json(o);

	pp_json_array(j, "signals");
	for (size_t i = 0; i < s->n_signals; i++)
		signal_json(j, &s->signals[i]);
	pp_json_end_array(j);
}

static void signals_text(struct pp_out *o, const struct pp_state *s, bool ended)
{
	static const struct pp_out_column columns[] = {{NULL, "LEVEL", false},
						       {NULL, "SINCE", false},
						       {NULL, "TIMES", false},
						       {NULL, "WHAT, AND WHAT NEXT", true}};
	char since[32], earlier[EARLIER];
	size_t n = 0;

	for (size_t i = 0; i < s->n_signals; i++)
		n += !s->signals[i].ended_ns == !ended;
	pp_out_heading(o, ended ? "Ended" : "Open");
	if (!n) {
		pp_out_para(o, 2, "  none");
		return;
	}
	pp_out_table(o, NULL, columns, PP_ARRAY_LEN(columns));
	n = 0;
	for (size_t i = 0; i < s->n_signals && n < (ended ? ENDED_SHOWN : SIZE_MAX); i++) {
		const struct pp_signal *one = &s->signals[i];

		if (!one->ended_ns != !ended)
			continue;
		n++;
		pp_out_cell(o, pp_level_name(one->level));
		pp_out_cell(o, when(one->since_ns, since));
		pp_out_cell_i64(o, (int64_t)one->count);
		pp_out_cellf(
			o, "%s.%s%s%s Next: %s", one->text ? one->text : one->object,
			one->n_earlier ? " In the hour before: " : "",
			pp_earlier_text(one->earlier, one->n_earlier, earlier, sizeof(earlier)),
			one->n_earlier ? "." : "", one->next);
	}
	pp_out_table_end(o);
}

static void looks(struct pp_out *o, const struct pp_state *s)
{
	static const struct pp_out_column columns[] = {
		{"kind", "KIND", false}, {"object", "OBJECT", true}, {"value", "VALUE", true},
		{"number", NULL, false}, {"unit", NULL, false},	     {"unknown", NULL, false}};

	char text[48];

	pp_out_heading(o, "Looks");
	pp_out_table(o, "looks", columns, PP_ARRAY_LEN(columns));
	for (size_t i = 0; i < s->n_looks; i++) {
		const struct pp_look *l = &s->looks[i];
		/* Of an event's kind a look says where it is looked for. */
		bool number = !l->unknown && (pp_signal_shape(l->kind) == PP_SHAPE_COUNTER ||
					      pp_signal_shape(l->kind) == PP_SHAPE_GAUGE);

		pp_out_cell(o, pp_signal_key(l->kind));
		pp_out_cell(o, l->object);
		if (pp_out_is_json(o))
			pp_out_cell(o, l->value);
		else if (l->unknown)
			pp_out_cellf(o, "unknown: %s", l->unknown);
		else if (number)
			pp_out_cell(o, pp_signal_number(l->kind, l->number, text));
		else
			pp_out_cell(o, l->value);
		if (number)
			pp_out_cell_double(o, l->number);
		else
			pp_out_cell(o, NULL);
		pp_out_cell(o, pp_signal_unit(l->kind));
		pp_out_cell(o, l->unknown);
	}
	pp_out_table_end(o);
}

static void checks(struct pp_out *o, const struct pp_state *s)
{
	static const struct pp_out_column columns[] = {{"name", "CHECK", false},
						       {"verdict", "VERDICT", false},
						       {"simulated", "SIMULATED", false},
						       {"run", "RUN", false},
						       {"took_s", "SECONDS", false}};
	char run[32];

	if (!s->n_checks && !pp_out_is_json(o))
		return;
	pp_out_heading(o, "Checks of the baseline");
	pp_out_table(o, "checks", columns, PP_ARRAY_LEN(columns));
	for (size_t i = 0; i < s->n_checks; i++) {
		pp_out_cell(o, s->checks[i].name);
		pp_out_cell_verdict(o, s->checks[i].verdict);
		pp_out_cell_bool(o, s->checks[i].simulated);
		pp_out_cell(o, when(s->checks[i].run_ns, run));
		if (s->checks[i].duration_ns)
			pp_out_cell_double(o, (double)s->checks[i].duration_ns / PP_SECOND);
		else
			pp_out_cell(o, NULL);
	}
	pp_out_table_end(o);
}

void pp_monitor_show(struct pp_out *o, const struct pp_state *s, bool at_work)
{
	char started[32], saved[32], baseline[32];

	pp_out_document(o, "peerpath.monitor/1");
	pp_out_str(o, "version", NULL, s->version);
	pp_out_str(o, "node", "node", s->node);
	pp_out_bool(o, "at_work", "monitor at work", at_work);
	pp_out_str(o, "started", "started", when(s->started_ns, started));
	/* A node at rest writes nothing: what is read here is as of then. */
	pp_out_str(o, "as_of", "as of", when(s->now_ns, saved));
	pp_out_u64(o, "rounds", "rounds", s->rounds);
	pp_out_str(o, "baseline", NULL, s->baseline);
	pp_out_str(o, NULL, "baseline", s->baseline ? s->baseline : "the first look");
	pp_out_str(o, "baseline_taken", "taken", when(s->baseline_ns, baseline));
	checks(o, s);
	if (pp_out_is_json(o)) {
		signals_json(o, s);
	} else {
		signals_text(o, s, false);
		signals_text(o, s, true);
	}
	looks(o, s);
}
