/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run of prove found: its table, its document, its bundle, its exit code. The verdict
 * becomes the exit code. Where no bundle can go is said before the work; one that fails later is an
 * error of its own (exit 70) and hides no verdict.
 */
#ifndef PP_CLI_PROVE_RESULT_H
#define PP_CLI_PROVE_RESULT_H

#include "cli/prove_application.h"
#include "cli/prove_library.h"
#include "cli/prove_memory.h"
#include "cli/prove_replay.h"
#include "rdma/launch.h"

/* All of one run of prove. */
struct pp_prove {
	struct pp_session s;
	struct pp_proof p;
	struct pp_prove_memory memory;
	struct pp_prove_library library;
	struct pp_prove_application application;
	struct pp_launch launch;
	struct pp_bundle *replayed; /* NULL: none */
	struct pp_prove_told told;  /* of it */
	enum pp_gate through;
	bool keep;	      /* a bundle */
	bool simulate;	      /* asked for, now or in the run that is replayed */
	bool moves;	      /* gate 2 is asked for, and has somebody to move memory to */
	bool measured;	      /* gate 2 was reached */
	bool given;	      /* how far to go, by the user */
	bool asks_library;    /* by the user, now or in the run that is replayed */
	pp_ns took[PP_GATES]; /* of each gate; 0: not measured */
};

/* What gate 2 measured; NULL: nothing. */
const struct pp_transfer *pp_prove_transfer(const struct pp_prove *v);

/* Before anything is collected: no run of minutes ends at a name that is taken. */
int pp_prove_result_check(const struct pp_args *args);
/* The table of gates and the verdict. */
void pp_prove_result_show(struct pp_prove *v);
/*
 * The bundle, and its line below the verdict, whatever became of it. The exit code of the run.
 */
int pp_prove_result_finish(struct pp_prove *v);

#endif
