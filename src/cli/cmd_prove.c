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
#include "cli/bench_options.h"
#include "cli/gates_text.h"
#include "cli/interrupt.h"
#include "cli/nfd.h"
#include "cli/prove_application.h"
#include "cli/prove_library.h"
#include "cli/prove_nodes.h"
#include "cli/prove_options.h"
#include "cli/prove_ranks.h"
#include "cli/prove_replay.h"
#include "node/brief.h"
#include "rdma/launch.h"
#include "base/banned.h"

/* All of one run of prove. */
struct prove {
	struct pp_session s;
	struct pp_proof p;
	struct pp_prove_memory memory;
	struct pp_prove_library library;
	struct pp_prove_application application;
	struct pp_launch launch;
	struct pp_bundle *replayed; /* NULL: none */
	enum pp_gate through;
	bool keep; /* a bundle */
	bool simulate;
	bool moves;    /* gate 2 is asked for, and has somebody to move memory to */
	bool measured; /* gate 2 was reached */
	bool given;    /* how far to go, by the user */
};

static const struct pp_transfer *transfer_of(const struct prove *v)
{
	return v->memory.child.bench ? &v->memory.transfer : NULL;
}

/*
 * What no longer holds that held before counts as much as what never did; what was to be compared
 * and was not is unknown.
 */
static enum pp_verdict overall(const struct prove *v)
{
	const struct pp_prove_memory *m = &v->memory;
	enum pp_verdict repeat = m->child.bench ? m->repeat.verdict : PP_UNKNOWN;

	return m->before ? pp_verdict_worst(v->p.gates.verdict, repeat) : v->p.gates.verdict;
}

/* A workload is no reason to ask NCCL of a node that has nothing that it runs on. */
static bool skips_library(const struct prove *v)
{
	return !v->given && v->application.asked && !pp_prove_library_can(v->s.node);
}

static const char *simulation_word(const struct prove *v)
{
	const struct pp_transfer *t = transfer_of(v);
	const struct pp_gate_application *a = v->application.gate;
	bool library = v->through >= PP_GATE_LIBRARY && !skips_library(v);

	if (!t || (library && !v->library.gate) || (v->application.asked && !a))
		return "not run";
	return t->passed && (!library || pp_prove_library_passed(&v->library)) && (!a || a->passed)
		       ? "passed"
		       : "failed";
}

static void emit(const struct prove *v, struct pp_out *o)
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
	if (v->measured)
		pp_prove_memory_emit(o, pp_policy_margins(p->policy), &v->memory);
	if (v->through >= PP_GATE_LIBRARY)
		pp_prove_library_emit(o, &v->library);
	if (v->through >= PP_GATE_APPLICATION)
		pp_prove_application_emit(o, &v->application);
}

/* result.json: the JSON document whatever the terminal got. malloc'ed. */
static int result_document(const struct prove *v, char **ret)
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

static struct pp_capture_options capture_options(const struct pp_args *args)
{
	return (struct pp_capture_options){.path = pp_args_get(args, "output"),
					   .force = pp_args_has(args, "force"),
					   .scrub = pp_args_has(args, "scrub"),
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

static int write_bundle(struct prove *v, struct pp_captured *ret)
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
	options.lost = m->n_lost;
	pp_capture_names(s->src);
	r = pp_capture_write(s->node, s->record, &options, ret, &err);
	return r ? pp_complain(s->args, r == -EINTR ? PP_EXIT_INTERRUPTED : PP_EXIT_INTERNAL, "%s",
			       err.text)
		 : 0;
}

static int exit_of(const struct prove *v)
{
	const char *word = simulation_word(v);

	if (!v->simulate)
		return pp_exit_of(v->s.args, overall(v));
	return !strcmp(word, "not run")	 ? PP_EXIT_UNKNOWN
	       : !strcmp(word, "passed") ? PP_EXIT_PASS
					 : PP_EXIT_BAD;
}

/* The bundle's line stands below the verdict, whatever became of the bundle. */
static int finish(struct prove *v)
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

static int read_options(const struct pp_args *args, struct prove *v)
{
	const char *gate = pp_args_get(args, "through");
	struct pp_error err = {0};
	bool shown = pp_args_has(args, "root") || pp_args_has(args, "replay");
	bool quick = pp_args_has(args, "quick");

	if (!quick && pp_launch_read(pp_bench_variable, &v->launch, &err))
		return pp_complain(args, PP_EXIT_USAGE, "%s", err.text);
	v->keep = quick ? pp_args_has(args, "output") : !pp_args_has(args, "no-bundle");
	v->simulate = pp_args_has(args, "simulate");
	/* A health check in a job's allocation is about this node alone. */
	v->moves = v->simulate || pp_args_has(args, "peer") ||
		   (!shown && !quick && v->launch.by && v->launch.size > 1);
	v->given = gate != NULL;
	v->through = pp_args_has(args, "canary") ? PP_GATE_APPLICATION
		     : pp_args_has(args, "nccl") ? PP_GATE_LIBRARY
		     : v->simulate		 ? PP_GATE_MEMORY
		     : v->moves			 ? PP_GATE_LIBRARY
						 : PP_GATE_PREREQUISITES;
	if (gate && pp_gate_parse(gate, &v->through))
		return pp_complain(args, PP_EXIT_USAGE,
				   "--through does not take '%s': identity, prerequisites, memory, "
				   "library, application, or 0 to 4",
				   gate);
	/* Ranks of a job that does not go so far are nodes by themselves. */
	v->moves = v->moves && v->through >= PP_GATE_MEMORY;
	return pp_prove_options_check(args, v->through, v->moves);
}

/* Any rank but the first is the other end of gate 2, and has nothing to print. */
static bool is_served(const struct prove *v)
{
	return v->moves && v->launch.by && v->launch.rank > 0;
}

/* Does gate 3 run a job over the nodes of gate 2, as far as the command line says? */
static bool has_ranks(const struct prove *v)
{
	return v->moves && !v->simulate && v->through >= PP_GATE_LIBRARY && !v->library.gate;
}

static int serve(const struct pp_args *args, struct prove *v)
{
	int code = pp_bench_child_run(args, false, &v->memory.child);

	code = code ? code : v->memory.child.status;
	return code || !has_ranks(v) ? code : pp_prove_ranks_serve(args, &v->launch);
}

static int collect(const struct pp_args *args, struct prove *v)
{
	int code = pp_session_open(args, v->keep, &v->s);

	if (!code && pp_node_simulated(v->s.node))
		code = pp_complain(args, PP_EXIT_UNKNOWN,
				   "%s is peerpath's software device: nothing is proven with it. "
				   "Without 'soft --sysfs' the node itself is seen",
				   pp_node_simulated(v->s.node)->name);
	return code;
}

static const char NO_GPU[] = "this node has no GPU that is known, and NCCL runs on nothing else: "
			     "run prove on nodes with "
			     "GPUs";

/* NCCL where it can run; without a GPU that is said, and is no simulation that failed. */
static int run_library(struct prove *v)
{
	struct pp_prove_library *l = &v->library;
	bool can = pp_prove_library_can(v->s.node);
	int code;

	if (v->through < PP_GATE_LIBRARY || l->gate)
		return 0;
	if (!can)
		(void)snprintf(l->why, sizeof(l->why), "%s", NO_GPU);
	if (!can && has_ranks(v))
		pp_prove_ranks_dismiss(v->s.args, &v->launch);
	if (!can)
		return 0;
	code = v->keep ? pp_prove_library_keep(v->s.args, l) : 0;
	if (code)
		return code;
	return v->simulate ? pp_prove_library_simulate(v->s.args, v->s.node, l)
			   : pp_prove_ranks_run(v->s.args, &v->launch, l);
}

/* The workload, behind gates that did not fail; what is simulated says nothing of them. */
static int run_application(struct prove *v)
{
	struct pp_prove_application *a = &v->application;

	if (!a->asked || v->through < PP_GATE_APPLICATION)
		return 0;
	if (!v->simulate && v->p.gates.stopped)
		return 0;
	return pp_prove_application_run(&v->s, &v->library, a);
}

static int judge_again(struct prove *v)
{
	pp_proof_done(&v->p);
	v->p = (struct pp_proof){.runs = {transfer_of(v), v->library.gate, v->application.gate}};
	return pp_proof_judge(&v->s, v->through, &v->p);
}

/* Gate 3 behind gate 2, and what came of it to the verdict; who waits for it in vain is let go. */
static int go_to_library(struct prove *v)
{
	int code;

	if (!v->simulate && !has_ranks(v))
		return 0;
	if (!v->simulate && v->p.gates.stopped) {
		pp_prove_ranks_dismiss(v->s.args, &v->launch);
		return 0;
	}
	code = run_library(v);
	return code || v->simulate || !v->library.gate ? code : judge_again(v);
}

static int judge_replayed(struct prove *v)
{
	int code = pp_prove_memory_judge(&v->s, pp_policy_margins(v->p.policy), &v->memory);

	v->measured = true;
	return code ? code : judge_again(v);
}

/*
 * Gates 0 and 1 first: what fails there would fail gate 2 for another reason, and so on. A
 * simulation does not touch what they found.
 */
static int judge(struct prove *v)
{
	int code = pp_prove_library_check(&v->s, &v->library);

	/* A simulation goes as far as this node lets it. */
	if (!code && v->simulate && !v->given && v->through < PP_GATE_LIBRARY &&
	    pp_prove_library_can(v->s.node))
		v->through = PP_GATE_LIBRARY;
	if (!v->simulate)
		v->p.runs = (struct pp_gate_runs){NULL, v->library.gate, v->application.gate};
	code = code ? code : pp_proof_judge(&v->s, v->through, &v->p);
	if (!code && v->memory.child.bench)
		return judge_replayed(v);
	v->measured = v->moves && (v->simulate || !v->p.gates.stopped);
	if (!code && v->measured) {
		code = pp_prove_memory_run(&v->s, pp_policy_margins(v->p.policy), v->keep,
					   &v->memory);
		if (!code && !v->simulate)
			code = judge_again(v);
		code = code ? code : go_to_library(v);
	}
	code = code ? code : run_application(v);
	return code || v->simulate || !v->application.asked || !v->application.gate
		       ? code
		       : judge_again(v);
}

static void show(struct prove *v)
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

/* What gates 2 to 4 are judged by that is there before anything runs. */
static int open_runs(const struct pp_args *args, struct prove *v)
{
	int code;

	v->replayed = pp_prove_replay_open(args);
	if (!v->given && !pp_args_has(args, "nccl"))
		(void)pp_prove_replay_through(v->replayed, &v->through);
	code = pp_prove_library_open(args, v->replayed, &v->library);
	if (!code && v->replayed && v->through >= PP_GATE_MEMORY)
		code = pp_prove_memory_take(args, v->replayed, &v->memory);
	if (!code && !is_served(v))
		code = pp_prove_application_open(args, v->replayed, &v->application);
	return code;
}

int pp_cmd_prove(const struct pp_args *args)
{
	struct prove *v = calloc(1, sizeof(*v));
	int code = v ? read_options(args, v) : pp_complain(args, PP_EXIT_INTERNAL, "no memory");
	int labelled;

	if (!v)
		return code;
	code = code ? code : pp_prove_memory_open(args, &v->memory);
	code = code ? code : open_runs(args, v);
	if (!code && is_served(v)) {
		code = serve(args, v);
	} else {
		code = code || !v->keep ? code : check_target(args);
		code = code ? code : collect(args, v);
		code = code ? code : judge(v);
		if (!code) {
			show(v);
			code = finish(v);
			labelled = pp_nfd_write(args, &v->s, &v->p);
			code = labelled ? labelled : code;
		}
		code = pp_session_close(&v->s, code);
	}
	pp_proof_done(&v->p);
	pp_prove_memory_done(&v->memory);
	pp_prove_library_done(&v->library);
	pp_prove_application_done(&v->application);
	pp_bundle_free(v->replayed);
	free(v);
	return code;
}
