/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "cli/input.h"
#include "cli/output.h"
#include "cli/topo.h"
#include "node/layout.h"
#include "base/banned.h"

static const size_t LAYOUT_LIMIT = (size_t)1 << 20;
static const size_t ROWS_LIMIT = (size_t)16 << 20;

static void print_rows(struct pp_out *o, const struct pp_layout_rows *rows, enum pp_verdict verdict)
{
	static const struct pp_out_column columns[] = {
		{"what", "EXPECTATION", true}, {"verdict", "VERDICT", false},
		{"planned", "PLANNED", false}, {"found", "FOUND", true},
		{"note", "NOTE", true},
	};
	unsigned int equal = 0;

	for (unsigned int i = 0; i < rows->n; i++)
		equal += rows->row[i].verdict == PP_PASS;
	pp_out_heading(o, "Planned layout");
	if (equal < rows->n || pp_out_is_json(o)) {
		pp_out_table(o, "expectations", columns, PP_ARRAY_LEN(columns));
		for (unsigned int i = 0; i < rows->n; i++) {
			const struct pp_layout_row *r = &rows->row[i];

			if (r->verdict == PP_PASS && !pp_out_is_json(o))
				continue;
			pp_out_cell(o, r->what);
			pp_out_cell_verdict(o, r->verdict);
			pp_out_cell(o, r->planned);
			pp_out_cell(o, r->found);
			pp_out_cell(o, r->note);
		}
		pp_out_table_end(o);
	}
	pp_out_para(o, 0, "%u of %u expectations met", equal, rows->n);
	pp_out_u64(o, "met", NULL, equal);
	pp_out_verdict(o, "verdict", "verdict", verdict);
}

/* A difference is certain, whatever else could not be seen: unknown only where none was found. */
static enum pp_verdict verdict_of(const struct pp_layout_rows *rows)
{
	enum pp_verdict verdict = PP_PASS;

	for (unsigned int i = 0; i < rows->n; i++) {
		if (rows->row[i].verdict == PP_DEGRADED)
			return PP_DEGRADED;
		verdict = pp_verdict_worst(verdict, rows->row[i].verdict);
	}
	return verdict;
}

static int compare(const struct pp_session *s, const struct pp_layout *l)
{
	struct pp_arena rows_arena = PP_ARENA(ROWS_LIMIT);
	struct pp_layout_rows rows;
	enum pp_verdict verdict;

	if (pp_layout_compare(l, s->node, &rows_arena, &rows)) {
		pp_arena_done(&rows_arena);
		return pp_complain(s->args, PP_EXIT_INTERNAL, "out of memory");
	}
	verdict = verdict_of(&rows);
	pp_out_document(s->out, "peerpath.layout/1");
	print_rows(s->out, &rows, verdict);
	pp_arena_done(&rows_arena);
	return pp_exit_of(s->args, verdict);
}

int pp_topo_expect(const struct pp_session *s, const char *file)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(LAYOUT_LIMIT);
	struct pp_error err = {0};
	struct pp_layout *l;
	int r = pp_input_read(file, &text, &err);

	if (!r)
		r = pp_layout_parse(pp_input_name(file), pp_buf_text(&text), text.len, &l, &err);
	if (r)
		return pp_complain(s->args, r == -ENOMEM ? PP_EXIT_INTERNAL : PP_EXIT_INPUT, "%s",
				   err.text);
	r = compare(s, l);
	pp_layout_free(l);
	return r;
}

int pp_topo_expect_write(const struct pp_session *s, const char *file)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(LAYOUT_LIMIT);
	struct pp_error err = {0};
	int r;

	pp_layout_write(s->node, &text);
	if (text.failed)
		return pp_complain(s->args, PP_EXIT_INTERNAL, "the layout is too long");
	r = pp_output_write(file, &text, pp_args_has(s->args, "force"), &err);
	if (r)
		return pp_complain(s->args, pp_exit_of_writing(r), "%s", err.text);
	return PP_EXIT_PASS;
}
