/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_perf_gpu: a rank's GPU: which one, its buffers, and bytes into and out of them by way
 * of page-locked memory. CUDA's driver only: no kernel is run but NCCL's. In an agent.
 */
#ifndef PP_NCCL_PERF_GPU_H
#define PP_NCCL_PERF_GPU_H

#include "mem/cuda.h"
#include "mem/memory.h"
#include "nccl/payload.h"

enum { PP_PERF_CHUNK = 8 << 20 };

struct pp_perf_gpu {
	char bdf[PP_BDF_TEXT], name[64];
	int ordinal; /* as CUDA counts in this process */
	int count;   /* of those it sees */
	int mps;     /* CUDA's contexts share by MPS: 1, 0; -1 unknown */
	struct pp_cuda *cuda;
	void *stream, *event;
	struct pp_memory *send, *receive;
	uint8_t *chunk; /* PP_PERF_CHUNK bytes */
	bool locked;
};

/*
 * @bdf NULL: the @ordinal-th that CUDA sees. -ENODEV: none, in one line. It has no context yet.
 */
int pp_perf_gpu_find(const char *bdf, int ordinal, struct pp_perf_gpu *ret, struct pp_error *err);
/* Its context, of one that was found. */
int pp_perf_gpu_open(struct pp_perf_gpu *g, struct pp_error *err);
/* -ENOMEM: the GPU has not so much. */
int pp_perf_gpu_buffers(struct pp_perf_gpu *g, enum pp_memory_kind kind, uint64_t send,
			uint64_t receive, struct pp_error *err);
void pp_perf_gpu_close(struct pp_perf_gpu *g);

/* @count elements of @p from its @first on, to @at; NULL @p: poison. It is there on return. */
int pp_perf_gpu_put(struct pp_perf_gpu *g, const struct pp_payload *p, uint64_t first, uint64_t at,
		    uint64_t count, unsigned int size, struct pp_error *err);
struct pp_perf_found {
	uint64_t checked, wrong;
	uint64_t first; /* wrong one, of all that were checked with this */
};
/* Adds to @found. */
int pp_perf_gpu_compare(struct pp_perf_gpu *g, const struct pp_payload *p, uint64_t first,
			uint64_t at, uint64_t count, struct pp_perf_found *found,
			struct pp_error *err);

#endif
