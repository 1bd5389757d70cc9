/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gate 3 of a simulation: `nccl run --controls` around `nccl perf`, on the software device, in a
 * process of its own. What it says is read as a stranger's document is.
 */
#ifndef PP_CLI_LIBRARY_CHILD_H
#define PP_CLI_LIBRARY_CHILD_H

#include "cli/verb.h"

/*
 * @ret_document is malloc'ed; NULL: there was no job, and @why says why. 0, or an exit code after
 * one line on stderr (no process could be made, interrupted).
 */
int pp_library_child_run(const struct pp_args *args, char **ret_document, size_t *ret_len,
			 char *why, size_t size);

#endif
