/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations of CUDA between processes: made known (a POSIX descriptor of memory from
 * cuMemCreate(), a CUDA IPC handle of memory from cuMemAlloc()), and mapped.
 */
#ifndef SOFT_COPY_CUDA_PEER_H
#define SOFT_COPY_CUDA_PEER_H

#include "soft/copy/export.h"
#include "soft/copy/import.h"

struct soft_cuda_device;

/*
 * The allocation that [at, at+len) lies in, without what another process needs to map it (its kind
 * is none). NULL, or why it cannot be named.
 */
const char *soft_cuda_allocation_of(uint64_t at, uint64_t len, struct soft_allocation *ret);
/* Fills that in, by the caller's context. NULL, or why the driver does not give it. */
const char *soft_cuda_allocation_share(struct soft_allocation *allocation, bool vmm);

#endif
