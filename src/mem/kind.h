/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kind of memory does; private to mem/. Each kind is one file with one table.
 */
#ifndef PP_MEM_KIND_H
#define PP_MEM_KIND_H

#include "mem/memory.h"

struct pp_memory_ops {
	/* Makes it: at, allocation, segments. What it made before an error it leaves to unmake. */
	int (*make)(struct pp_memory *m, struct pp_error *err);
	void (*unmake)(struct pp_memory *m);
};

extern const struct pp_memory_ops pp_memory_host_ops, pp_memory_sim_ops, pp_memory_cuda_ops,
	pp_memory_vmm_ops;

enum {
	PP_GPU_PAGE = 65536, /* what a GPU's memory is mapped for others by */
};

/*
 * Notes the allocation [base, base + size) as a segment with the part of the memory in it; none
 * when it holds nothing of it.
 */
int pp_memory_add_segment(struct pp_memory *m, uint64_t base, uint64_t size, struct pp_error *err);
/* An allocation of the GPU failed: says what fits. */
int pp_memory_no_room(const struct pp_memory *m, const char *call, int code, struct pp_error *err);
/* @size up to a multiple of @unit (a power of two); -EINVAL when that is no size. */
int pp_memory_round(uint64_t size, uint64_t unit, uint64_t *ret, struct pp_error *err);

#endif
