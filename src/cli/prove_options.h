/* SPDX-License-Identifier: Apache-2.0 */
/* Options of prove that do not go together: each of them would say nothing beside the other. */
#ifndef PP_CLI_PROVE_OPTIONS_H
#define PP_CLI_PROVE_OPTIONS_H

#include "cli/verb.h"
#include "judge/gate.h"

/* @moves: gate 2 has somebody to move memory to. 0, or PP_EXIT_USAGE after one line on stderr. */
int pp_prove_options_check(const struct pp_args *args, enum pp_gate through, bool moves);

#endif
