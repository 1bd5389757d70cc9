/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one size of a collective is: elements, bytes, and bandwidth, as nccl-tests has them
 * (2.19.6). Pure.
 */
#ifndef PP_NCCL_COLLECTIVE_H
#define PP_NCCL_COLLECTIVE_H

#include <stdbool.h>
#include <stdint.h>

enum pp_collective {
	PP_NCCL_ALL_REDUCE,
	PP_NCCL_REDUCE_SCATTER,
	PP_NCCL_ALL_GATHER,
	PP_NCCL_ALL_TO_ALL,
	PP_NCCL_SEND_RECV, /* each rank to the next one of the ring */
	PP_COLLECTIVES
};

enum pp_element { PP_INT8, PP_INT32, PP_HALF, PP_FLOAT, PP_DOUBLE, PP_BFLOAT16, PP_ELEMENTS };

enum pp_reduction { PP_SUM, PP_PROD, PP_MAX, PP_MIN, PP_AVG, PP_REDUCTIONS };

/* "all_reduce"; "float"; "sum": nccl-tests' words. */
const char *pp_collective_name(enum pp_collective c);
const char *pp_element_name(enum pp_element e);
const char *pp_reduction_name(enum pp_reduction r);
/* -EINVAL */
int pp_collective_parse(const char *text, enum pp_collective *ret);
int pp_element_parse(const char *text, enum pp_element *ret);
int pp_reduction_parse(const char *text, enum pp_reduction *ret);

unsigned int pp_element_size(enum pp_element e);
int pp_element_code(enum pp_element e); /* ncclDataType_t; ncclRedOp_t is pp_reduction itself */
bool pp_collective_reduces(enum pp_collective c);
/* Is the result foretold where the target is the source? nccl-tests checks no other. */
bool pp_collective_in_place(enum pp_collective c);

struct pp_collective_shape {
	uint64_t bytes;		/* the column "size" */
	uint64_t count;		/* the column "count", and what the call is given */
	uint64_t send, receive; /* elements of a rank's buffers */
	/* In place both lie in the receive buffer: rank r's so many elements times r from its
	 * start. */
	uint64_t send_step, receive_step;
};

/* @bytes asked for on @ranks ranks. Parts of ranks are multiples of 16 bytes. */
struct pp_collective_shape pp_collective_shape(enum pp_collective c, enum pp_element e,
					       uint64_t bytes, unsigned int ranks);
/* busbw / algbw */
double pp_collective_factor(enum pp_collective c, unsigned int ranks);

#endif
