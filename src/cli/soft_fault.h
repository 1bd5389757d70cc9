/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PP_CLI_SOFT_FAULT_H
#define PP_CLI_SOFT_FAULT_H

#include "cli/verb.h"

/* peerpath soft fault [list | clear | [set] SPEC...]; an exit code. */
int pp_soft_fault(const struct pp_args *args);

#endif
