/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/view.h"

#include <inttypes.h>
#include <string.h>

#include "base/banned.h"

static const struct pp_fact *note(struct pp_view *v, const struct pp_object *o, enum pp_fact_id id)
{
	const struct pp_fact *fact = pp_fact_get(o, id);

	for (unsigned int i = 0; i < v->n_open; i++)
		if (v->open[i] == fact)
			return fact;
	if (fact && !fact->known && v->n_open < PP_ARRAY_LEN(v->open)) {
		v->open[v->n_open] = fact;
		v->open_of[v->n_open++] = o;
	}
	return fact;
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

static void part(struct pp_view *v, const struct pp_view_table *t, unsigned int shown,
		 const void *arg)
{
	struct pp_out_column columns[PP_OUT_COLUMNS];

	for (unsigned int i = 0; i < t->n && i < PP_ARRAY_LEN(columns); i++) {
		columns[i] = t->columns[i];
		if (!(shown & 1u << i))
			columns[i].title = NULL;
	}
	pp_out_table(v->out, t->key, columns, t->n);
	t->rows(v, arg);
	pp_out_table_end(v->out);
}

void pp_view_table(struct pp_view *v, const struct pp_view_table *t, const void *arg)
{
	if (pp_out_is_json(v->out) || pp_out_width(v->out) >= PP_VIEW_NARROW) {
		part(v, t, ~0u, arg);
		return;
	}
	part(v, t, ~t->second, arg);
	pp_out_raw(v->out, "\n");
	part(v, t, t->names | t->second, arg);
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

/* "gpu.uuid of 0000:18:00.0 and 7 more": the i-th, and those that share its key and reason. */
static void name_open(const struct pp_view *v, unsigned int i, struct pp_buf *names)
{
	unsigned int more = 0;

	pp_buf_printf(names, "%s%s", names->len ? ", " : "", pp_fact_table[v->open[i]->id].key);
	for (unsigned int k = i + 1; k < v->n_open; k++)
		more += v->open[k]->id == v->open[i]->id &&
			!strcmp(v->open[k]->why, v->open[i]->why);
	if (v->open_of[i] != v->node->self)
		pp_buf_printf(names, " of %s", v->open_of[i]->id);
	if (more)
		pp_buf_printf(names, " and %u more", more);
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
			name_open(v, k, &names);
		}
		pp_out_para(v->out, 4, "  %s: %s; %s", pp_buf_text(&names), v->open[i]->why,
			    pp_fact_table[v->open[i]->id].how);
	}
}
