/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_memory: memory under test, of one kind, and the ways to put bytes in and to look at
 * them.
 *
 *   host       anonymous pages, huge ones when asked
 *   cuda       cuMemAlloc
 *   cuda-vmm   cuMemCreate, one or several segments mapped one behind the other
 *   sim        a memfd: a DMA-BUF descriptor that can be mapped; always simulated
 *
 * Only in an agent process: CUDA is called. A context of CUDA is made for the GPU's own (primary)
 * one, released with the last memory. Not thread-safe.
 */
#ifndef PP_MEM_MEMORY_H
#define PP_MEM_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/words.h"

enum { PP_MEMORY_SEGMENTS = 16 };

struct pp_cuda; /* mem/cuda.h: the driver's functions and the GPU's context */

struct pp_memory_options {
	enum pp_memory_kind kind;
	size_t size;
	bool huge;	       /* host: huge pages or an error that says how to reserve them */
	int numa;	       /* host: node to place it on; -1 anywhere */
	const char *gpu;       /* cuda, cuda-vmm: BDF */
	unsigned int segments; /* cuda-vmm; 0: 1. Each a multiple of the GPU's granularity */
	size_t inside; /* cuda*: the memory lies that many bytes inside a larger allocation */
};

/* One allocation, or segment, that the memory lies in: registered on its own. */
struct pp_memory_segment {
	uint64_t base, size;	/* the allocation, page aligned */
	uint64_t start, length; /* the part of the memory in it, from the memory's beginning */
};

struct pp_memory {
	struct pp_memory_options options;
	bool simulated;
	uint64_t at; /* address of the first byte: the processor's, or the GPU's */
	size_t size;
	struct pp_memory_segment segment[PP_MEMORY_SEGMENTS];
	unsigned int n_segments;
	int fd;				     /* sim: the memfd; else -1 */
	struct pp_cuda *cuda;		     /* NULL for host and sim */
	int64_t bar1_total, bar1_free;	     /* bytes, when made; -1 unknown */
	uint64_t handle[PP_MEMORY_SEGMENTS]; /* cuda-vmm: CUmemGenericAllocationHandle */
	uint64_t mapped[PP_MEMORY_SEGMENTS]; /* bytes of each */
	unsigned int n_handles;

	const struct pp_memory_ops *ops; /* mem/kind.h */
	uint64_t allocation;		 /* what @at lies in, and how long that is */
	uint64_t allocated;
	int gdr_capable;	    /* cuda*: CUDA says that it is for GPUDirect RDMA; -1 unknown */
	char note[128];		    /* host: where the pages came to lie, when asked; "" */
	struct pp_staging *staging; /* fills and checks of a GPU's memory go through it */
};

/*
 * -ENODEV (no such GPU, no libcuda), -ENOMEM, -EBUSY (exclusive mode, used by another), -EINVAL:
 * @err says what and what to do. @options is copied, its text borrowed. The memory is there: host
 * pages are populated. A NUMA node that cannot be had is told in @note, unless it does not exist.
 */
int pp_memory_new(const struct pp_memory_options *options, struct pp_memory **ret,
		  struct pp_error *err);
struct pp_memory *pp_memory_free(struct pp_memory *m); /* returns NULL */

/*
 * The pattern of a seed: every 8 bytes depend on the seed and on their offset from the memory's
 * beginning, so that bytes of another place, repeat or seed are seen as wrong.
 */
int pp_memory_fill(struct pp_memory *m, uint64_t offset, uint64_t len, uint64_t seed,
		   struct pp_error *err);

struct pp_memory_checked {
	uint64_t bytes, wrong;
	uint64_t first;		 /* offset of the first wrong byte */
	uint8_t expected, found; /* there */
};
/* Compares [offset, offset+len) with the pattern of @seed whose offsets are @from + (i - offset).
 */
int pp_memory_check(struct pp_memory *m, uint64_t offset, uint64_t len, uint64_t seed,
		    uint64_t from, struct pp_memory_checked *ret, struct pp_error *err);

/*
 * Copies between the memory and page-locked host memory (pp_bounce), at once or behind the
 * scenes: a ticket of an asynchronous copy is done when pp_copy_done() says 1 (0: not yet, < 0:
 * -errno). Tickets are reused after that. For host and sim a copy is done when it returns.
 */
struct pp_bounce {
	uint8_t *at; /* page-locked for the memory's GPU */
	size_t size;
};
int pp_bounce_new(struct pp_memory *m, size_t size, struct pp_bounce *ret, struct pp_error *err);
void pp_bounce_free(struct pp_memory *m, struct pp_bounce *b);

struct pp_copy; /* a ticket */
int pp_copy_new(struct pp_memory *m, struct pp_copy **ret, struct pp_error *err);
struct pp_copy *pp_copy_free(struct pp_memory *m, struct pp_copy *t);
int pp_copy_out(struct pp_memory *m, struct pp_copy *t, uint64_t offset, void *to, size_t len);
int pp_copy_in(struct pp_memory *m, struct pp_copy *t, uint64_t offset, const void *from,
	       size_t len);
int pp_copy_done(struct pp_memory *m, struct pp_copy *t);

/*
 * After a NIC wrote into the memory and before the GPU (or a copy) reads it: what the device's
 * FLUSH_WRITES_OPTIONS and WRITES_ORDERING demand (nothing for host and sim). *ret_did: a static
 * word for the record: "not needed (ordering owner)", "cuFlushGPUDirectRDMAWrites", or
 * "not possible ..." where only a read through the same NIC would do.
 */
int pp_memory_flush(struct pp_memory *m, const char **ret_did, struct pp_error *err);

#endif
