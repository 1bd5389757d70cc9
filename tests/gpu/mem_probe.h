/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A GPU's memory on a machine that has one: facts of its driver are printed, what must hold is
 * checked. Two files: what CUDA says of memory, and what registrations and transfers do with it.
 */
#ifndef PP_TESTS_GPU_MEM_PROBE_H
#define PP_TESTS_GPU_MEM_PROBE_H

#include <stdbool.h>

#include "mem/memory.h"

__attribute__((format(printf, 1, 2))) void fact(const char *format, ...);
/* Counts a failure. Returns @good. */
__attribute__((format(printf, 2, 3))) bool check(bool good, const char *format, ...);

struct pp_memory *memory_new(const struct pp_memory_options *options);

/* mem_facts.c */
void facts(const char *gpu);
/* mem_verbs.c: false where no RDMA device is listed. */
bool verbs(const char *gpu);

#endif
