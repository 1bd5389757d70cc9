/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/view.h"

#include <inttypes.h>
#include <string.h>

#include "base/banned.h"

static const struct pp_fact *note(struct pp_view *v, const struct pp_object *o, enum pp_fact_id id)
{
	const struct pp_fact *fact = pp_fact_get(o, id);

	if (fact && !fact->known && v->n_open < PP_ARRAY_LEN(v->open)) {
		v->open[v->n_open] = fact;
		v->open_of[v->n_open++] = o;
	}
	return fact;
}

static const char *short_key(enum pp_fact_id id)
{
	const char *dot = strchr(pp_fact_table[id].key, '.');

	return dot ? dot + 1 : pp_fact_table[id].key;
}

void pp_view_field(struct pp_view *v, const struct pp_object *o, enum pp_fact_id id,
		   const char *label)
{
	const struct pp_fact *fact = note(v, o, id);
	char text[1024];

	if (fact && fact->known)
		pp_out_str(v->out, pp_fact_table[id].key, label,
			   pp_fact_text(fact, text, sizeof(text)));
	else if (pp_out_is_json(v->out))
		pp_out_str(v->out, pp_fact_table[id].key, NULL, NULL);
	else
		pp_out_str(v->out, NULL, label, "unknown");
}

void pp_view_cell(struct pp_view *v, const struct pp_object *o, enum pp_fact_id id)
{
	const struct pp_fact *fact = note(v, o, id);
	char text[1024];

	if (!fact || !fact->known)
		pp_out_cell(v->out, pp_out_is_json(v->out) ? NULL : "unknown");
	else if (pp_out_is_json(v->out) && pp_fact_table[id].type == PP_INT)
		pp_out_cell_i64(v->out, fact->i64);
	else if (pp_out_is_json(v->out) && pp_fact_table[id].type == PP_BOOL)
		pp_out_cell_bool(v->out, fact->i64 != 0);
	else
		pp_out_cell(v->out, pp_fact_text(fact, text, sizeof(text)));
}

void pp_view_cell_bytes(struct pp_view *v, const struct pp_object *o, enum pp_fact_id id)
{
	const struct pp_fact *fact = note(v, o, id);

	if (!fact || !fact->known)
		pp_out_cell(v->out, pp_out_is_json(v->out) ? NULL : "unknown");
	else if (pp_out_is_json(v->out))
		pp_out_cell_i64(v->out, fact->i64);
	else if (fact->i64 % ((int64_t)1 << 30) == 0)
		pp_out_cellf(v->out, "%" PRId64 " GiB", fact->i64 >> 30);
	else
		pp_out_cellf(v->out, "%" PRId64 " MiB", fact->i64 >> 20);
}

static void unknown_json(struct pp_view *v)
{
	static const struct pp_out_column columns[] = {{"fact", NULL, false},
						       {"of", NULL, false},
						       {"why", NULL, false},
						       {"how", NULL, false}};

	pp_out_table(v->out, "unknown", columns, PP_ARRAY_LEN(columns));
	for (unsigned int i = 0; i < v->n_open; i++) {
		pp_out_cell(v->out, pp_fact_table[v->open[i]->id].key);
		pp_out_cell(v->out, v->open_of[i]->id);
		pp_out_cell(v->out, v->open[i]->why);
		pp_out_cell(v->out, pp_fact_table[v->open[i]->id].how);
	}
	pp_out_table_end(v->out);
}

void pp_view_unknown(struct pp_view *v)
{
	bool said[PP_ARRAY_LEN(v->open)] = {false}, listed[PP_FACTS];
	struct pp_buf PP_AUTO_BUF names = PP_BUF((size_t)64 << 10);

	if (pp_out_is_json(v->out)) {
		unknown_json(v);
		return;
	}
	if (v->n_open)
		pp_out_heading(v->out, "Unknown, and why");
	for (unsigned int i = 0; i < v->n_open; i++) {
		if (said[i])
			continue;
		pp_buf_reset(&names);
		memset(listed, 0, sizeof(listed));
		for (unsigned int k = i; k < v->n_open; k++) {
			if (strcmp(v->open[i]->why, v->open[k]->why) != 0)
				continue;
			said[k] = true;
			if (listed[v->open[k]->id])
				continue;
			listed[v->open[k]->id] = true;
			pp_buf_printf(&names, "%s%s", names.len ? ", " : "",
				      short_key(v->open[k]->id));
		}
		pp_out_para(v->out, 4, "  %s: %s; %s", pp_buf_text(&names), v->open[i]->why,
			    pp_fact_table[v->open[i]->id].how);
	}
}
