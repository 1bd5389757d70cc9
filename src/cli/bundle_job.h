/* SPDX-License-Identifier: Apache-2.0 */
/* The job of gate 3 that a bundle has kept, judged again. */
#ifndef PP_CLI_BUNDLE_JOB_H
#define PP_CLI_BUNDLE_JOB_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct pp_gate_library;

/* malloc'ed. Negative errno with one line in @err. */
int pp_bundle_job_read(const char *text, size_t len, struct pp_gate_library **ret,
		       struct pp_error *err);
bool pp_bundle_job_simulated(const struct pp_gate_library *g);

#endif
