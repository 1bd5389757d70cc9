/* SPDX-License-Identifier: Apache-2.0 */
/* The gates of one node: a table for people, member "gates" in JSON. */
#ifndef PP_CLI_GATES_TEXT_H
#define PP_CLI_GATES_TEXT_H

#include "base/out.h"
#include "judge/gate.h"

void pp_gates_emit(struct pp_out *o, const struct pp_gates *g);

#endif
