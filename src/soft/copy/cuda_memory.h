/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What CUDA says of an address.
 */
#ifndef SOFT_COPY_CUDA_MEMORY_H
#define SOFT_COPY_CUDA_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Memory of a GPU that the processor does not page. Without CUDA in the process: none is. */
bool soft_cuda_is_device(uint64_t at);

struct soft_cuda_range {
	int ordinal; /* of the GPU */
	bool vmm;    /* made by cuMemCreate() and mapped; else allocated */
};

/*
 * Is all of [at, at+len) memory of one GPU, within one allocation (or, of mapped ones, within
 * mappings that follow each other)? -ENODEV: no CUDA, or not even its first byte; -EINVAL: it
 * ends before.
 */
int soft_cuda_range_of(uint64_t at, uint64_t len, struct soft_cuda_range *ret);

#endif
