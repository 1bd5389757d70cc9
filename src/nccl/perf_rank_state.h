/* SPDX-License-Identifier: Apache-2.0 */
/* struct pp_perf_rank from inside. Private to nccl/perf_rank*.c. */
#ifndef PP_NCCL_PERF_RANK_STATE_H
#define PP_NCCL_PERF_RANK_STATE_H

#include <jansson.h>

#include "base/json.h"
#include "nccl/library.h"
#include "nccl/perf_gpu.h"
#include "rdma/channel.h"

struct pp_perf_rank {
	struct pp_channel *channel;
	struct pp_nccl_library library;
	struct pp_perf_gpu gpu;
	enum pp_memory_kind kind;
	uint64_t send, receive; /* bytes of the buffers */
	void *comm;
	int rank, size;
	bool broken; /* the communicator is of no use any more */
	bool remote; /* by what NCCL says of a peer: that one knows more */
	int log;     /* a memory file that NCCL prints into; -1: the user has one, or wants none */
	off_t logged;
};

/* An order on a shape: all numbers are in bounds, and the buffers hold it. */
struct pp_perf_task {
	enum pp_collective collective;
	enum pp_element element;
	enum pp_reduction reduction;
	struct pp_collective_shape shape;
	bool in_place;
	int64_t iterations, aggregate;
	pp_ns limit;
	uint64_t salt;
	uint64_t from, to; /* addresses */
};

/* -EBADMSG: missing, no number, or out of bounds. */
int pp_perf_number(const json_t *order, const char *key, int64_t min, int64_t max, int64_t *ret,
		   struct pp_error *err);
int pp_perf_task(const struct pp_perf_rank *r, const json_t *order, struct pp_perf_task *ret,
		 struct pp_error *err);

/* perf_rank_run.c */
int pp_perf_rank_time(struct pp_perf_rank *r, const struct pp_perf_task *t, struct pp_json *out,
		      struct pp_error *err);
int pp_perf_rank_sample(struct pp_perf_rank *r, const struct pp_perf_task *t, struct pp_json *out,
			struct pp_error *err);
int pp_perf_rank_check(struct pp_perf_rank *r, const struct pp_perf_task *t, struct pp_json *out,
		       struct pp_error *err);

#endif
