/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that the user asks for, or "-" for standard output. Whole or not at all: it is written
 * under a temporary name beside its place, then renamed.
 */
#ifndef PP_CLI_OUTPUT_H
#define PP_CLI_OUTPUT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"

/*
 * An existing regular file is replaced with @force only (-EEXIST); what exists and is none (a
 * device, a directory) is refused.
 */
int pp_output_write(const char *file, const struct pp_buf *content, bool force,
		    struct pp_error *err);
/* Before a long run: could it be written now? As pp_output_write(), and nothing is left. */
int pp_output_check(const char *file, bool force, struct pp_error *err);

#endif
