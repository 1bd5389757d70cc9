/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_registered: memory registered with one protection domain, and every attempt on the
 * way there.
 *
 * `auto` tries in this order and stops at the first that works for all segments:
 *   host, sim:  host: ibv_reg_mr; sim: dmabuf, then host
 *   cuda*:      data-direct (where the device has it and libmlx5 the call), dmabuf, peermem
 *
 * dmabuf exports the whole page-aligned allocation range of each segment, registers the part with
 * `offset` from the range's base and `iova` the memory's own address, and closes the descriptor
 * (0 is a legal one). On the software device the exported range is told to it first
 * (peerpath_soft_dmabuf_range(), docs/soft.md), since it cannot see what a descriptor exports.
 *
 * Memory whose range does not fit what is left of the GPU's BAR1 is refused before any call
 * (-ENOSPC), unless BAR1 covers all of the GPU's memory.
 */
#ifndef PP_MEM_REGISTRATION_H
#define PP_MEM_REGISTRATION_H

#include "base/json.h"
#include "mem/memory.h"
#include "node/verbs.h"

enum { PP_ATTEMPTS = 64 };

struct pp_attempt {
	enum pp_registration how;
	char call[40];	     /* "cuMemGetHandleForAddressRange", "ibv_reg_dmabuf_mr" */
	char arguments[200]; /* "offset 0, length 2097152, iova 0x7f..., fd 12, access 0xf" */
	int error;	     /* errno, positive, or CUresult of a CUDA call; 0 good */
	bool cuda;	     /* error is a CUresult */
	char name[48];	     /* "EFAULT", "ENOTSUPP", "CUDA_ERROR_NOT_SUPPORTED"; "" when good */
	pp_ns took;
	int64_t bar1_before, bar1_after; /* bytes used; -1 unknown */
};

/* A part of the memory under one key. */
struct pp_key {
	uint64_t start, length; /* from the memory's beginning */
	uint64_t address;	/* of start, in work requests */
	uint32_t lkey, rkey;
};

struct pp_registered {
	enum pp_registration how;
	bool simulated; /* the device is software, or the memory is */
	struct pp_key key[PP_MEMORY_SEGMENTS];
	struct ibv_mr *mr[PP_MEMORY_SEGMENTS];
	unsigned int n;
	struct pp_attempt attempt[PP_ATTEMPTS];
	unsigned int n_attempts, attempts_lost; /* over the limit */
	char flush[64];				/* as pp_memory_flush() says */
	bool sync_memops;	      /* CUDA set it on the memory: copies end when they say so */
	const struct pp_verbs *verbs; /* borrowed */
};

struct pp_registration_options {
	bool automatic; /* tries as said above; else @how alone */
	enum pp_registration how;
	int access;			   /* IBV_ACCESS_* */
	bool relaxed;			   /* IBV_ACCESS_RELAXED_ORDERING too */
	bool data_direct_only_where_shown; /* probe the sysfs path first */
};

/*
 * 0; or -errno of the deciding call with one line in @err; @ret holds the attempts either way.
 * With several ways tried the line tells of all that were refused, and the errno is of the first.
 */
int pp_register(const struct pp_verbs *v, struct ibv_pd *pd, struct pp_memory *m,
		const struct pp_registration_options *options, struct pp_registered *ret,
		struct pp_error *err);
/* Deregisters; an error is the first of ibv_dereg_mr(). The attempts stay. */
int pp_unregister(struct pp_registered *r, struct pp_error *err);

/* Key of [start, start + len), which must lie in one part; NULL otherwise. */
const struct pp_key *pp_registered_key(const struct pp_registered *r, uint64_t start, uint64_t len);

/* Is what @v lists peerpath's software device? Then nothing that comes of it is hardware's. */
bool pp_verbs_are_software(const struct pp_verbs *v);

void pp_attempts_write(struct pp_json *j, const char *key, const struct pp_registered *r);

#endif
