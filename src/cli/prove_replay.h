/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `prove` takes from a bundle of --replay beside the recording: how far it went, and what was
 * run for gates 2 to 4. A directory that is no bundle has none of it.
 */
#ifndef PP_CLI_PROVE_REPLAY_H
#define PP_CLI_PROVE_REPLAY_H

#include "bundle/bundle.h"
#include "cli/verb.h"
#include "judge/gate.h"

/* NULL: no --replay, or of no bundle; what is wrong with one is said when it is replayed. */
struct pp_bundle *pp_prove_replay_open(const struct pp_args *args);

/* What its result.json says of the run, not of what was found. All zero: it has none. */
struct pp_prove_told {
	bool has_through;
	enum pp_gate through;
	bool keep_going;
	bool simulated; /* --simulate was asked for */
	bool not_run;	/* a simulation, and a part of it could not run */
	/* Reached, and nothing came of it: why; "" else. */
	char no_memory[640], no_library[400];
};

void pp_prove_replay_read(const struct pp_bundle *b, struct pp_prove_told *ret);

#endif
