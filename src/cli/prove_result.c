/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/prove_result.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bundle/capture.h"
#include "cli/gates_text.h"
#include "cli/interrupt.h"
#include "cli/prove_nodes.h"
#include "node/brief.h"
#include "base/banned.h"

const struct pp_transfer *pp_prove_transfer(const struct pp_prove *v)
{
	return v->memory.child.bench ? &v->memory.transfer : NULL;
}

/*
 * What no longer holds that held before counts as much as what never did; what was to be compared
 * and was not is unknown.
 */
static enum pp_verdict overall(const struct pp_prove *v)
{
	const struct pp_prove_memory *m = &v->memory;
	enum pp_verdict repeat = m->child.bench ? m->repeat.verdict : PP_UNKNOWN;

	return m->before ? pp_verdict_worst(v->p.gates.verdict, repeat) : v->p.gates.verdict;
}

/* A workload is no reason to ask NCCL of a node that has nothing that it runs on. */
static bool skips_library(const struct pp_prove *v)
{
	const struct pp_prove_application *a = &v->application;

	return !v->asks_library && (a->asked || a->gate) && !pp_prove_library_can(v->s.node);
}

static const char *simulation_word(const struct pp_prove *v)
{
	const struct pp_transfer *t = pp_prove_transfer(v);
	const struct pp_gate_application *a = v->application.gate;
	bool library = v->through >= PP_GATE_LIBRARY && !skips_library(v);

	if (!t || (library && !v->library.gate) || (v->application.asked && !a))
		return "not run";
	return t->passed && (!library || pp_prove_library_passed(&v->library)) && (!a || a->passed)
		       ? "passed"
		       : "failed";
}

/*
 * How long that took by which each gate was judged: of the first two it is one collection. Nothing
 * of what was kept.
 */
static void emit_took(const struct pp_prove *v, struct pp_out *o)
{
	pp_out_open(o, "took_s");
	for (unsigned int i = 0; i < PP_GATES; i++)
		if (v->took[i])
			pp_out_double(o, pp_gate_name((enum pp_gate)i), NULL,
				      (double)v->took[i] / PP_SECOND);
	pp_out_close(o);
}

static void emit(const struct pp_prove *v, struct pp_out *o)
{
	const struct pp_session *s = &v->s;
	const struct pp_proof *p = &v->p;
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
	pp_out_bool(o, "simulated", NULL, v->simulate);
	if (v->simulate)
		pp_out_str(o, "simulation", NULL, simulation_word(v));
	pp_out_bool(o, "recording_complete", NULL, !pp_source_cut(s->src));
	pp_out_verdict(o, "verdict", NULL, overall(v));
	if (pp_out_is_json(o))
		pp_proof_stuck(o, s);
	pp_out_str(o, "software_fingerprint", NULL,
		   pp_fact_str_or(s->node->self, PP_F_SOFTWARE_FINGERPRINT, NULL));
	pp_out_str(o, "topology_class", NULL,
		   pp_fact_str_or(s->node->self, PP_F_TOPOLOGY_CLASS, NULL));
	if (pp_source_cut(s->src))
		pp_out_para(o, 2, "The recording is incomplete: what it does not hold is unknown.");
	if (pp_out_is_json(o)) {
		pp_brief_write(pp_out_json(o), s->node);
		pp_proof_rules(o, p);
	}
	pp_gates_emit(o, &p->gates);
	emit_took(v, o);
	if (v->measured)
		pp_prove_memory_emit(o, pp_policy_margins(p->policy), &v->memory);
	if (v->through >= PP_GATE_LIBRARY)
		pp_prove_library_emit(o, &v->library);
	if (v->through >= PP_GATE_APPLICATION)
		pp_prove_application_emit(o, &v->application);
}

/* result.json: the JSON document whatever the terminal got. malloc'ed. */
static int result_document(const struct pp_prove *v, char **ret)
{
	char *PP_AUTO_FREE text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	struct pp_out *o = f ? pp_out_new(true, f, 0, false) : NULL;
	int r = o ? 0 : -ENOMEM;

	if (!r) {
		emit(v, o);
		r = pp_out_finish(o);
	}
	pp_out_free(o);
	if (f && fclose(f) && !r)
		r = -ENOMEM;
	if (!r)
		*ret = pp_take(text);
	return r;
}

void pp_prove_result_show(struct pp_prove *v)
{
	struct pp_out *o = v->s.out;

	emit(v, o);
	pp_out_heading(o, "Verdict");
	pp_out_verdict(o, NULL, "overall", overall(v));
	if (!pp_out_is_json(o))
		pp_proof_stuck(o, &v->s);
	if (v->simulate)
		pp_out_str(o, NULL, "simulation", simulation_word(v));
	if (!pp_out_is_json(o))
		pp_proof_rules(o, &v->p);
}

static struct pp_capture_options capture_options(const struct pp_args *args)
{
	return (struct pp_capture_options){.path = pp_args_get(args, "output"),
					   .force = pp_args_has(args, "force"),
					   .scrub = pp_args_has(args, "scrub"),
					   .stopped = pp_interrupted};
}

int pp_prove_result_check(const struct pp_args *args)
{
	const struct pp_capture_options options = capture_options(args);
	struct pp_error err = {0};
	int r = pp_capture_check(&options, &err);

	return r ? pp_complain(args, pp_exit_of_writing(r),
			       "%s; -o names another place, --no-bundle writes none", err.text)
		 : 0;
}

static int write_bundle(struct pp_prove *v, struct pp_captured *ret)
{
	char *PP_AUTO_FREE result = NULL;
	struct pp_prove_memory *m = &v->memory;
	struct pp_session *s = &v->s;
	struct pp_capture_options options = capture_options(s->args);
	struct pp_error err = {0};
	int r = result_document(v, &result);

	if (r)
		return pp_complain(s->args, PP_EXIT_INTERNAL, "bundle: %s", strerrordesc_np(-r));
	/* The first place was kept for it. */
	m->file[0] = (struct pp_bundle_file){"result.json", result, strlen(result)};
	pp_prove_library_files(&v->library, m->file, &m->n_files);
	if (pp_prove_application_files(&v->application, m->file, &m->n_files))
		return pp_complain(s->args, PP_EXIT_INTERNAL, "bundle: no memory");
	options.files = m->file;
	options.n_files = m->n_files;
	/* That a recording is incomplete counts as one already. */
	options.lost = m->n_lost - (v->replayed && m->n_lost);
	pp_capture_names(s->src);
	r = pp_capture_write(s->node, s->record, &options, ret, &err);
	return r ? pp_complain(s->args, r == -EINTR ? PP_EXIT_INTERRUPTED : PP_EXIT_INTERNAL, "%s",
			       err.text)
		 : 0;
}

static int exit_of(const struct pp_prove *v)
{
	const char *word = simulation_word(v);

	if (!v->simulate)
		return pp_exit_of(v->s.args, overall(v));
	return !strcmp(word, "not run")	 ? PP_EXIT_UNKNOWN
	       : !strcmp(word, "passed") ? PP_EXIT_PASS
					 : PP_EXIT_BAD;
}

int pp_prove_result_finish(struct pp_prove *v)
{
	struct pp_out *o = v->s.out;
	struct pp_captured captured;
	int code = v->keep ? write_bundle(v, &captured) : 0;
	bool written = v->keep && !code;

	pp_out_str(o, "bundle", v->keep ? "bundle" : NULL, written ? captured.path : NULL);
	if (written) {
		pp_out_bool(o, "complete", NULL, !captured.left_out);
		pp_out_u64(o, "left_out", NULL, captured.left_out);
		if (captured.left_out)
			pp_out_para(o, 2,
				    "bundle incomplete: %zu left out; in a replay they are unknown",
				    captured.left_out);
		pp_prove_nodes_emit(o, &v->memory);
		if (pp_args_has(v->s.args, "scrub"))
			pp_out_u64(o, "replaced", "values replaced", captured.scrubbed.replaced);
	}
	v->s.answered = true;
	return code ? code : exit_of(v);
}
