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
/* As its result.json says; false: it has none that says so. */
bool pp_prove_replay_through(const struct pp_bundle *b, enum pp_gate *ret);

#endif
