/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of a job, and what gate 3 says of them: one table of arms, what each control saw, findings,
 * the sentence, and what would raise it. In JSON: members "gate" and "not_judged".
 */
#ifndef PP_CLI_NCCL_RUN_TEXT_H
#define PP_CLI_NCCL_RUN_TEXT_H

#include "base/out.h"
#include "judge/control.h"

/* @gate NULL: not judged, @why says why. The runs themselves are no part of it in JSON. */
void pp_nccl_run_text(struct pp_out *o, const struct pp_nccl_run *const run[PP_NCCL_ARMS],
		      const struct pp_gate_library *gate, const char *why);

#endif
