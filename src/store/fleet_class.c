/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classes of equal nodes: of one wiring and one software; and wirings with mixed modules.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/fleet_parts.h"
#include "store/fleet_tally.h"
#include "base/banned.h"

static void out_class(struct pp_out *o, const struct pp_fleet_states *s, size_t from, size_t to)
{
	PP_AUTO_BUF struct pp_buf flavours = PP_BUF(4096), verdicts = PP_BUF(4096);
	const struct pp_fleet_state *first = &s->list[from];
	struct pp_fleet_tally *t = calloc(2, sizeof(*t));
	char own[9];
	bool mixed;

	if (!t) {
		for (int i = 0; i < 8; i++)
			pp_out_cell(o, "out of memory");
		return;
	}
	for (size_t i = from; i < to; i++) {
		pp_fleet_tally_add(&t[0], s->list[i].flavour ? s->list[i].flavour : "unknown");
		pp_fleet_tally_add(&t[1], s->list[i].verdict ? s->list[i].verdict : "none");
	}
	mixed = t[0].n > 1;
	pp_fleet_tally_text(&t[0], &flavours);
	pp_fleet_tally_text(&t[1], &verdicts);
	free(t);
	pp_out_cell(o, pp_out_is_json(o) ? first->topology : pp_fleet_short(first->topology, own));
	pp_out_cell(o, pp_out_is_json(o) ? first->software : pp_fleet_short(first->software, own));
	pp_out_cell_i64(o, (int64_t)(to - from));
	pp_out_cell(o, first->gpus);
	pp_out_cell(o, pp_buf_text(&flavours));
	pp_out_cell_bool(o, mixed);
	pp_out_cell(o, pp_buf_text(&verdicts));
	pp_out_cell(o, first->host ? first->host : first->node);
}

int pp_fleet_classes(struct pp_sql *sql, bool simulated, struct pp_out *o, struct pp_error *err)
{
	static const struct pp_out_column columns[] = {
		{"topology", "WIRING", false},	{"software", "SOFTWARE", false},
		{"nodes", "NODES", false},	{"gpus", "GPUS", true},
		{"flavours", "MODULES", true},	{"flavours_mixed", NULL, false},
		{"verdicts", "VERDICTS", true}, {"one_of_them", "ONE OF THEM", false}};
	static const struct pp_out_column wirings[] = {{"topology", "WIRING", false},
						       {"nodes", "NODES", false},
						       {"flavours", "MODULES, MIXED", true}};
	struct pp_fleet_states s = {0};
	struct pp_fleet_tally *t = calloc(1, sizeof(*t));
	int r = t ? pp_fleet_states(sql, simulated, &s, err)
		  : pp_error_set(err, -ENOMEM, "out of memory");
	char own[9];

	if (r)
		goto out;
	pp_out_u64(o, "total", NULL, s.n);
	pp_out_table(o, "classes", columns, PP_ARRAY_LEN(columns));
	for (size_t i = 0, end; i < s.n; i = end) {
		end = pp_fleet_end_of(&s, i, true);
		out_class(o, &s, i, end);
	}
	pp_out_table_end(o);
	/* One wiring with two flavours is what a migration leaves half done. */
	pp_out_heading(o, "Module flavours mixed in one wiring");
	pp_out_table(o, "mixed", wirings, PP_ARRAY_LEN(wirings));
	for (size_t i = 0, end; i < s.n; i = end) {
		PP_AUTO_BUF struct pp_buf text = PP_BUF(4096);

		end = pp_fleet_end_of(&s, i, false);
		*t = (struct pp_fleet_tally){0};
		for (size_t k = i; k < end; k++)
			pp_fleet_tally_add(t, s.list[k].flavour);
		if (t->n < 2)
			continue;
		pp_fleet_tally_text(t, &text);
		pp_out_cell(o, pp_out_is_json(o) ? s.list[i].topology
						 : pp_fleet_short(s.list[i].topology, own));
		pp_out_cell_i64(o, (int64_t)(end - i));
		pp_out_cell(o, pp_buf_text(&text));
	}
	pp_out_table_end(o);
out:
	free(t);
	pp_fleet_states_done(&s);
	return r;
}
