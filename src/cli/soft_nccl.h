/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NCCL needs to know on the software device, said and set before a program is run: variables
 * that depend on the version of the NCCL that it would load, which is found without loading it.
 */
#ifndef PP_CLI_SOFT_NCCL_H
#define PP_CLI_SOFT_NCCL_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/session.h"
#include "soft/config/config.h"

/*
 * Sets what the user has not set, one line on standard error for each variable; where neither a
 * libnccl is found nor a variable of NCCL is set, nothing is done or said. -ENOMEM.
 */
int pp_soft_nccl(const struct pp_args *args, const struct soft_config *devices);

/* soft_nccl_library.c */
struct pp_soft_nccl_library {
	char path[4096];
	unsigned int major, minor, patch; /* major 0: it does not say */
};

/* The libnccl.so.2 that @program would load, as far as that can be seen from outside. One that is
 * merely installed counts if the program names it, or NCCL is @meant otherwise. */
bool pp_soft_nccl_find(const char *program, bool meant, struct pp_soft_nccl_library *ret);

#endif
