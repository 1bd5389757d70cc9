/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line of Docker's json-file log: {"log":"TEXT\n","stream":"stdout","time":"..."}.
 */
#ifndef PP_NCCL_RECORD_H
#define PP_NCCL_RECORD_H

#include <stdbool.h>

bool pp_nccl_record_is(const char *at, const char *end);

/*
 * Unescapes the text in place, since it only becomes shorter. Returns its end and gives where it
 * begins. *@ret_partial becomes true when no newline ends it: Docker cuts what is longer than 16
 * KiB.
 */
char *pp_nccl_record_open(char *at, char *end, char **ret_text, bool *ret_partial);

#endif
