/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a GPU for a test's client, as an application has it: CUDA's driver library by
 * dlopen, the primary context, synchronous copies. What goes wrong ends the process with a reason;
 * 77 where there is no GPU.
 */
#ifndef PP_TESTS_GPU_GPU_H
#define PP_TESTS_GPU_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gpu_kind { GPU_HOST, GPU_ALLOC, GPU_VMM, GPU_VMM_TWO, GPU_KINDS };
extern const char *const gpu_kind_names[GPU_KINDS];

/* A block inside an allocation. */
struct gpu_memory {
	enum gpu_kind kind;
	uint64_t at;
	size_t len;
	uint64_t base; /* of the allocation, or of what is mapped */
	size_t whole;
};

void gpu_open(int device);
/* The function, or exit with 77. */
void *gpu_call(const char *name);
void gpu_must(int result, const char *what);

/* @len bytes, @inside bytes behind the beginning of an allocation. */
struct gpu_memory gpu_take(enum gpu_kind kind, size_t len, size_t inside);
void gpu_give(struct gpu_memory *m);
/* Another allocation of the same length, in the same place where that can be chosen. */
void gpu_renew(struct gpu_memory *m);
void gpu_put(const struct gpu_memory *m, size_t at, const void *from, size_t len);
void gpu_get(const struct gpu_memory *m, size_t at, void *to, size_t len);
/* A DMA-BUF descriptor of [at, at+len). */
int gpu_export(uint64_t at, size_t len);

#endif
