/* SPDX-License-Identifier: Apache-2.0 */
/* Private to bench/staged*.c. */
#ifndef PP_BENCH_STAGED_STATE_H
#define PP_BENCH_STAGED_STATE_H

#include "bench/staged.h"

enum {
	PP_STAGED_RECEIVES = 2 * PP_STAGED_RING,
	/* wr_id: what a completion is of; the low byte is the receive's buffer */
	PP_STAGED_IN = 0x100,
	PP_STAGED_DATA = 0x200,
	PP_STAGED_CREDIT = 0x400,
	PP_STAGED_READ = 0x800,
};

struct pp_staged {
	struct pp_endpoint *endpoint; /* borrowed */
	struct pp_memory *memory;     /* borrowed */
	struct pp_bounce out, in;
	struct ibv_mr *mr_out, *mr_in;
	struct pp_copy *ticket_out[PP_STAGED_RING], *ticket_in[PP_STAGED_RECEIVES];
	uint64_t peer; /* its @in */
	uint32_t peer_key;
	unsigned int receives; /* posted, and not yet used up */
};

int pp_staged_receive(struct pp_staged *s, unsigned int buffer, struct pp_error *err);

#endif
