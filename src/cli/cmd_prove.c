/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main job: gates in order, one table, one bundle. The verdict becomes the exit code. Where
 * no bundle can go is said before the work; one that fails later is an error of its own (exit 70)
 * and hides no verdict.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bundle/capture.h"
#include "cli/interrupt.h"
#include "cli/proof.h"
#include "base/banned.h"

static void gates_json(struct pp_out *o, const struct pp_gates *g)
{
	static const struct pp_out_column columns[] = {
		{"gate", NULL, false},	   {"name", NULL, false},	 {"asked", NULL, false},
		{"verdict", NULL, false},  {"claim_state", NULL, false}, {"claim", NULL, false},
		{"evidence", NULL, false}, {"raise", NULL, false},	 {"next", NULL, false}};

	pp_out_table(o, "gates", columns, PP_ARRAY_LEN(columns));
	for (unsigned int i = 0; i < PP_GATES; i++) {
		const struct pp_gate_row *row = &g->row[i];

		pp_out_cell_i64(o, row->gate);
		pp_out_cell(o, pp_gate_name(row->gate));
		pp_out_cell_bool(o, row->gate <= g->through);
		pp_out_cell_verdict(o, row->verdict);
		pp_out_cell(o, pp_verdict_claim(row->verdict));
		pp_out_cell(o, row->claim);
		pp_out_cell(o, row->evidence);
		pp_out_cell(o, row->raise);
		pp_out_cell(o, row->next);
	}
	pp_out_table_end(o);
}

/* One line of a gate's row: what it is, and its text; the gate stands on the first line only. */
static void line(struct pp_out *o, const char *what, const char *text)
{
	if (!text)
		return;
	pp_out_cell(o, " ");
	pp_out_cell(o, what);
	pp_out_cell(o, text);
}

/* Six columns do not fit a terminal: the texts of a gate stand below each other. */
static void gates_text(struct pp_out *o, const struct pp_gates *g)
{
	static const struct pp_out_column columns[] = {{NULL, "GATE", false},
						       {NULL, "VERDICT", false},
						       {NULL, "CLAIM, EVIDENCE, WHAT NEXT", true}};

	pp_out_table(o, NULL, columns, PP_ARRAY_LEN(columns));
	for (unsigned int i = 0; i < PP_GATES; i++) {
		const struct pp_gate_row *row = &g->row[i];

		pp_out_cellf(o, "%d %s", row->gate, pp_gate_name(row->gate));
		pp_out_cell_verdict(o, row->verdict);
		pp_out_cell(o, row->claim);
		line(o, "state", pp_verdict_claim(row->verdict));
		if (row->gate <= g->through)
			line(o, "evidence", row->evidence);
		line(o, "to raise", row->raise);
		line(o, "next", row->next);
	}
	pp_out_table_end(o);
}

static void emit(struct pp_session *s, struct pp_out *o, const struct pp_proof *p)
{
	bool replayed = pp_source_mode(s->src) == PP_SOURCE_REPLAY;
	pp_ns seen = s->node->started;
	char when[32];

	pp_out_document(o, "peerpath.prove/1");
	pp_out_str(o, "version", NULL, PEERPATH_VERSION);
	/* When the node was seen: in a replay not when it was judged. */
	pp_out_str(o, "started", NULL, seen ? pp_clock_format(seen, when, sizeof(when)) : NULL);
	pp_out_str(o, "judged", NULL, pp_clock_format(p->judged, when, sizeof(when)));
	pp_out_bool(o, "replayed", NULL, replayed);
	pp_out_str(o, "source", NULL, pp_source_name(s->src));
	pp_out_str(o, "through", NULL, pp_gate_name(p->gates.through));
	pp_out_bool(o, "keep_going", NULL, p->gates.keep_going);
	pp_out_bool(o, "stopped", NULL, p->gates.stopped);
	pp_out_bool(o, "simulated", NULL, false);
	pp_out_bool(o, "recording_complete", NULL, !pp_source_cut(s->src));
	pp_out_verdict(o, "verdict", NULL, p->gates.verdict);
	pp_out_str(o, "software_fingerprint", NULL,
		   pp_fact_str_or(s->node->self, PP_F_SOFTWARE_FINGERPRINT, NULL));
	pp_out_str(o, "topology_class", NULL,
		   pp_fact_str_or(s->node->self, PP_F_TOPOLOGY_CLASS, NULL));
	if (pp_source_cut(s->src))
		pp_out_para(o, 2, "The recording is incomplete: what it does not hold is unknown.");
	if (pp_out_is_json(o))
		pp_proof_rules(o, p);
	if (pp_out_is_json(o))
		gates_json(o, &p->gates);
	else
		gates_text(o, &p->gates);
}

/* result.json: the JSON document whatever the terminal got. malloc'ed. */
static int result_document(struct pp_session *s, const struct pp_proof *p, char **ret)
{
	char *PP_AUTO_FREE text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	struct pp_out *o = f ? pp_out_new(true, f, 0, false) : NULL;
	int r = o ? 0 : -ENOMEM;

	if (!r) {
		emit(s, o, p);
		r = pp_out_finish(o);
	}
	pp_out_free(o);
	if (f && fclose(f) && !r)
		r = -ENOMEM;
	if (!r)
		*ret = pp_take(text);
	return r;
}

static struct pp_capture_options capture_options(const struct pp_args *args)
{
	return (struct pp_capture_options){.path = pp_args_get(args, "output"),
					   .force = pp_args_has(args, "force"),
					   .stopped = pp_interrupted};
}

/* Before anything is collected: no run of minutes ends at a name that is taken. */
static int check_target(const struct pp_args *args)
{
	const struct pp_capture_options options = capture_options(args);
	struct pp_error err = {0};
	int r = pp_capture_check(&options, &err);

	return r ? pp_complain(args, pp_exit_of_writing(r),
			       "%s; -o names another place, --no-bundle writes none", err.text)
		 : 0;
}

static int write_bundle(struct pp_session *s, const struct pp_proof *p, struct pp_captured *ret)
{
	char *PP_AUTO_FREE result = NULL;
	struct pp_bundle_file file = {.path = "result.json"};
	struct pp_capture_options options = capture_options(s->args);
	struct pp_error err = {0};
	int r = result_document(s, p, &result);

	if (r)
		return pp_complain(s->args, PP_EXIT_INTERNAL, "bundle: %s", strerrordesc_np(-r));
	file.data = result;
	file.len = strlen(result);
	options.files = &file;
	options.n_files = 1;
	pp_capture_names(s->src);
	r = pp_capture_write(s->node, s->record, &options, ret, &err);
	return r ? pp_complain(s->args, r == -EINTR ? PP_EXIT_INTERRUPTED : PP_EXIT_INTERNAL, "%s",
			       err.text)
		 : 0;
}

/* The bundle's line stands below the verdict, whatever became of the bundle. */
static int finish(struct pp_session *s, const struct pp_proof *p, bool keep)
{
	struct pp_captured captured;
	int code = keep ? write_bundle(s, p, &captured) : 0;

	pp_out_str(s->out, "bundle", keep ? "bundle" : NULL, keep && !code ? captured.path : NULL);
	if (keep && !code) {
		pp_out_bool(s->out, "complete", NULL, !captured.left_out);
		pp_out_u64(s->out, "left_out", NULL, captured.left_out);
		if (captured.left_out)
			pp_out_para(s->out, 2,
				    "bundle incomplete: %zu left out; in a replay they are unknown",
				    captured.left_out);
	}
	s->answered = true;
	return code ? code : pp_exit_of(s->args, p->gates.verdict);
}

int pp_cmd_prove(const struct pp_args *args)
{
	bool keep = !pp_args_has(args, "no-bundle");
	const char *gate = pp_args_get(args, "through");
	enum pp_gate through = PP_GATE_PREREQUISITES;
	struct pp_proof p = {0};
	struct pp_session s;
	int code;

	if (gate && pp_gate_parse(gate, &through))
		return pp_complain(args, PP_EXIT_USAGE,
				   "--through does not take '%s': identity, prerequisites, memory, "
				   "library, application, or 0 to 4",
				   gate);
	code = keep ? check_target(args) : 0;
	if (code)
		return code;
	code = pp_session_open(args, keep, &s);
	if (!code && pp_node_simulated(s.node))
		code = pp_complain(args, PP_EXIT_UNKNOWN,
				   "%s is peerpath's software device: nothing is proven with it. "
				   "Without 'soft --sysfs' the node itself is seen",
				   pp_node_simulated(s.node)->name);
	if (!code)
		code = pp_proof_judge(&s, through, &p);
	if (!code) {
		emit(&s, s.out, &p);
		pp_out_heading(s.out, "Verdict");
		pp_out_verdict(s.out, NULL, "overall", p.gates.verdict);
		if (!pp_out_is_json(s.out))
			pp_proof_rules(s.out, &p);
		code = finish(&s, &p, keep);
	}
	code = pp_session_close(&s, code);
	pp_proof_done(&p);
	return code;
}
