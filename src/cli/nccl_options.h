/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of `nccl`, of which each of its operations heeds some.
 */
#ifndef PP_CLI_NCCL_OPTIONS_H
#define PP_CLI_NCCL_OPTIONS_H

#include "cli/verb.h"

extern const struct pp_option pp_nccl_options_table[];

/* An option that the operation (the first operand) would not heed is refused: an exit code. */
int pp_nccl_options_check(const struct pp_args *args);

/* Does the operation heed the option? */
bool pp_nccl_options_of(const char *option, const char *operation);
/* One of `perf` that `run` heeds in another sense, for itself. */
bool pp_nccl_options_own(const char *option);
/* An option that `run` heeds only for its own command: given; NULL none. */
const char *pp_nccl_options_foreign(const struct pp_args *args);

#endif
