/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of a program before it is run on the software device: where execvp() takes it
 * from, and what keeps the device from it.
 */
#ifndef PP_CLI_SOFT_PROGRAM_H
#define PP_CLI_SOFT_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#include "soft/config/config.h"

/* Where execvp() would take @program from; false: nowhere. */
bool pp_soft_program_find(const char *program, char *ret, size_t size);
/* Opens @program where execvp() would take it from, or -1. */
int pp_soft_program_open(const char *program);

/* Why @program will not see the device though it runs; NULL: nothing is known against it. */
const char *pp_soft_program_blind(const char *program);
/* soft_elf.c: the same of a file, as far as it says so itself. */
const char *pp_soft_program_elf(const char *file);

/* Why execvp() failed with @error, in words that name the cause; writes into @text, returns it. */
const char *pp_soft_program_why(const char *program, int error, char *text, size_t size);

/*
 * The address of @devices whose UDP port 4791 another user or the kernel has, as text; NULL: none
 * is seen. Reads /proc/net: no socket of ours comes near the port that others share.
 */
const char *pp_soft_port_taken(const struct soft_config *devices, char *text, size_t size);

#endif
