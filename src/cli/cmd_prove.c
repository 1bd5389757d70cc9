/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main job: gates in order, one table, one bundle (prove_result.h).
 */
#include <stdio.h>
#include <stdlib.h>

#include "cli/bench_options.h"
#include "cli/nfd.h"
#include "cli/prove_options.h"
#include "cli/prove_ranks.h"
#include "cli/prove_replay.h"
#include "cli/prove_result.h"
#include "base/banned.h"

static int read_options(const struct pp_args *args, struct pp_prove *v)
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
	v->given = v->asks_library = gate != NULL;
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
static bool is_served(const struct pp_prove *v)
{
	return v->moves && v->launch.by && v->launch.rank > 0;
}

/* Does gate 3 run a job over the nodes of gate 2, as far as the command line says? */
static bool has_ranks(const struct pp_prove *v)
{
	return v->moves && !v->simulate && v->through >= PP_GATE_LIBRARY && !v->library.gate;
}

static int serve(const struct pp_args *args, struct pp_prove *v)
{
	int code = pp_bench_child_run(args, false, &v->memory.child);

	code = code ? code : v->memory.child.status;
	return code || !has_ranks(v) ? code : pp_prove_ranks_serve(args, &v->launch);
}

static int collect(const struct pp_args *args, struct pp_prove *v)
{
	pp_ns begun = pp_clock_monotonic();
	int code = pp_session_open(args, v->keep, &v->s);

	if (!code && pp_source_mode(v->s.src) != PP_SOURCE_REPLAY)
		v->took[PP_GATE_IDENTITY] = v->took[PP_GATE_PREREQUISITES] =
			pp_clock_monotonic() - begun;
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
static int run_library(struct pp_prove *v)
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
static int run_application(struct pp_prove *v)
{
	struct pp_prove_application *a = &v->application;
	pp_ns begun;
	int code;

	if (!a->asked || v->through < PP_GATE_APPLICATION)
		return 0;
	if (!v->simulate && v->p.gates.stopped)
		return 0;
	begun = pp_clock_monotonic();
	code = pp_prove_application_run(&v->s, &v->library, a);
	v->took[PP_GATE_APPLICATION] = pp_clock_monotonic() - begun;
	return code;
}

/* What was simulated says nothing of this machine's gates. @t: NULL: not judged yet. */
static int judge_gates(struct pp_prove *v, const struct pp_transfer *t)
{
	v->p = (struct pp_proof){.keep_going = v->told.keep_going};
	if (v->simulate)
		v->p.runs.simulated = true;
	else
		v->p.runs = (struct pp_gate_runs){
			.transfer = t,
			.library = v->library.gate,
			.application = v->application.gate,
		};
	return pp_proof_judge(&v->s, v->through, &v->p);
}

static int judge_again(struct pp_prove *v)
{
	pp_proof_done(&v->p);
	return judge_gates(v, pp_prove_transfer(v));
}

/* Gate 3 behind gate 2, and what came of it to the verdict; who waits for it in vain is let go. */
static int go_to_library(struct pp_prove *v)
{
	pp_ns begun;
	int code;

	if (!v->simulate && !has_ranks(v))
		return 0;
	if (!v->simulate && v->p.gates.stopped) {
		pp_prove_ranks_dismiss(v->s.args, &v->launch);
		return 0;
	}
	begun = pp_clock_monotonic();
	code = run_library(v);
	if (v->library.gate)
		v->took[PP_GATE_LIBRARY] = pp_clock_monotonic() - begun;
	return code || v->simulate || !v->library.gate ? code : judge_again(v);
}

/* Nothing runs: what the bundle holds, as far as the run that wrote it came. */
static int judge_replayed(struct pp_prove *v)
{
	bool ran = v->memory.child.bench != NULL;
	int code =
		ran ? pp_prove_memory_judge(&v->s, pp_policy_margins(v->p.policy), &v->memory) : 0;

	v->measured = ran || v->memory.child.why[0];
	return code || !ran || v->simulate ? code : judge_again(v);
}

/*
 * Gates 0 and 1 first: what fails there would fail gate 2 for another reason, and so on. A
 * simulation does not touch what they found.
 */
static int judge(struct pp_prove *v)
{
	int code = pp_prove_library_check(&v->s, &v->library);
	pp_ns begun;

	/* A simulation goes as far as this node lets it. */
	if (!code && v->simulate && v->moves && !v->given && v->through < PP_GATE_LIBRARY &&
	    pp_prove_library_can(v->s.node))
		v->through = PP_GATE_LIBRARY;
	code = code ? code : judge_gates(v, /* t= */ NULL);
	if (v->replayed)
		return code ? code : judge_replayed(v);
	v->measured = v->moves && (v->simulate || !v->p.gates.stopped);
	if (!code && v->measured) {
		begun = pp_clock_monotonic();
		code = pp_prove_memory_run(&v->s, pp_policy_margins(v->p.policy), v->keep,
					   &v->memory);
		v->took[PP_GATE_MEMORY] = pp_clock_monotonic() - begun;
		if (!code && !v->simulate)
			code = judge_again(v);
		code = code ? code : go_to_library(v);
	}
	code = code ? code : run_application(v);
	return code || v->simulate || !v->application.asked || !v->application.gate
		       ? code
		       : judge_again(v);
}

/*
 * The run that is replayed, as far as it is asked for. No bench is simulated but by a run that was
 * told to: of one that does not say so its own word counts.
 */
static int open_replayed(const struct pp_args *args, struct pp_prove *v)
{
	const struct pp_prove_told *told = &v->told;
	int code;

	if (v->through < PP_GATE_MEMORY)
		return 0;
	code = pp_prove_memory_take(args, v->replayed, &v->memory);
	if (code)
		return code;
	v->simulate =
		told->simulated || (v->memory.child.bench && v->memory.child.bench->simulated);
	v->asks_library = v->given || told->not_run;
	if (!v->memory.child.bench)
		(void)snprintf(v->memory.child.why, sizeof(v->memory.child.why), "%s",
			       told->no_memory);
	if (!v->library.gate)
		(void)snprintf(v->library.why, sizeof(v->library.why), "%s", told->no_library);
	return 0;
}

/* What gates 2 to 4 are judged by that is there before anything runs. */
static int open_runs(const struct pp_args *args, struct pp_prove *v)
{
	const struct pp_bundle *b = v->replayed = pp_prove_replay_open(args);
	int code;

	pp_prove_replay_read(b, &v->told);
	if (!v->given && v->told.has_through && !pp_args_has(args, "nccl") &&
	    !pp_args_has(args, "quick"))
		v->through = v->told.through;
	code = pp_prove_library_open(args, v->through < PP_GATE_LIBRARY ? NULL : b, &v->library);
	if (!code && b)
		code = open_replayed(args, v);
	if (!code && !is_served(v))
		code = pp_prove_application_open(args, v->through < PP_GATE_APPLICATION ? NULL : b,
						 &v->application);
	return code;
}

int pp_cmd_prove(const struct pp_args *args)
{
	struct pp_prove *v = calloc(1, sizeof(*v));
	int code = v ? read_options(args, v) : pp_complain(args, PP_EXIT_INTERNAL, "no memory");
	int labelled;

	if (!v)
		return code;
	code = code ? code : pp_prove_memory_open(args, &v->memory);
	code = code ? code : open_runs(args, v);
	if (!code && is_served(v)) {
		code = serve(args, v);
	} else {
		code = code || !v->keep ? code : pp_prove_result_check(args);
		code = code ? code : collect(args, v);
		code = code ? code : judge(v);
		if (!code) {
			pp_prove_result_show(v);
			code = pp_prove_result_finish(v);
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
