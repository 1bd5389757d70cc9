/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of a program before it is run on the software device: where execvp() takes it
 * from, and what keeps the device from it.
 */
#ifndef PP_CLI_SOFT_PROGRAM_H
#define PP_CLI_SOFT_PROGRAM_H

#include <stddef.h>

#include "soft/config/config.h"

/* Opens @program where execvp() would take it from, or -1. */
int pp_soft_program_open(const char *program);

/* Does the loader take nothing from the environment, because the program gains privileges? */
bool pp_soft_program_privileged(const char *program);

/* Why execvp() failed with @error, in words that name the cause; writes into @text, returns it. */
const char *pp_soft_program_why(const char *program, int error, char *text, size_t size);

/*
 * The address of @devices whose UDP port 4791 another user or the kernel has, as text; NULL: none
 * is seen. Reads /proc/net: no socket of ours comes near the port that others share.
 */
const char *pp_soft_port_taken(const struct soft_config *devices, char *text, size_t size);

#endif
