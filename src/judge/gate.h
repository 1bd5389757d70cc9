/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_gates: the gates in order, each with what may be claimed after it.
 *
 * Pure on facts and findings. A gate passes only on facts that are known; what is unknown gives
 * `unknown` with what would raise it. `fail` stops the chain unless the caller keeps going; gates
 * behind a stop, and gates that were not asked for, are not run and judge nothing.
 */
#ifndef PP_JUDGE_GATE_H
#define PP_JUDGE_GATE_H

#include "judge/finding.h"

enum pp_gate {
	PP_GATE_IDENTITY,
	PP_GATE_PREREQUISITES,
	PP_GATE_MEMORY,
	PP_GATE_LIBRARY,
	PP_GATE_APPLICATION,
	PP_GATES
};

struct pp_gate_row {
	enum pp_gate gate;
	enum pp_verdict verdict;
	bool run;	      /* false: not asked for, or behind a failed gate */
	const char *claim;    /* what may be said, one sentence; never NULL */
	const char *evidence; /* the strongest; never NULL */
	const char *raise;    /* what would raise the verdict; NULL for pass */
	const char *next;     /* one command; NULL for pass */
	unsigned int missing; /* facts that are needed and unknown */
};

struct pp_gates {
	struct pp_gate_row row[PP_GATES];
	enum pp_gate through;
	bool keep_going;	 /* was asked for */
	bool stopped;		 /* a failed gate ended the chain before @through */
	enum pp_verdict verdict; /* worst of the gates asked for; those not reached are unknown */
	struct pp_arena arena;	 /* holds the rows' texts */
};

struct pp_transfer;
struct pp_gate_library;
struct pp_gate_application;

/* What was run for gates 2 to 4; NULL: nothing was. */
struct pp_gate_runs {
	const struct pp_transfer *transfer;	       /* with this node */
	const struct pp_gate_library *library;	       /* a job over this node */
	const struct pp_gate_application *application; /* a workload from this node */
	/* What was run was a simulation: it is none of these, and is told elsewhere. */
	bool simulated;
};

/*
 * -ENOMEM. pp_gates_done() frees. @findings come from the same facts. All are borrowed for the
 * call.
 */
int pp_gates_judge(const struct pp_facts *facts, const struct pp_findings *findings,
		   const struct pp_gate_runs *runs, enum pp_gate through, bool keep_going,
		   struct pp_gates *ret);
void pp_gates_done(struct pp_gates *g);

const char *pp_gate_name(enum pp_gate g); /* "identity", "prerequisites", ... */
/* A name or a number, 0 to 4. -EINVAL. */
int pp_gate_parse(const char *text, enum pp_gate *ret);

/* "proven", "unproven", "refuted": state of the claim that a gate examines. */
const char *pp_verdict_claim(enum pp_verdict v);

#endif
