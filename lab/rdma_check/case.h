/* SPDX-License-Identifier: Apache-2.0 */
/* One case: an op, a size, and the number that decides its bytes and places. Both ends agree on it.
 */
#ifndef PP_LAB_CASE_H
#define PP_LAB_CASE_H

#include "check.h"

enum pp_trait {
	PP_UD = 1,
	PP_IMM = 2,
	PP_BAD_KEY = 4,
	PP_BAD_RANGE = 8,
	PP_READ_ONLY = 16,
	PP_MISS = 32, /* a compare that fails */
	PP_UC = 64,
	PP_WINDOW = 128,     /* by the key of a memory window of type 2 */
	PP_INVALIDATE = 256, /* which is of no use afterwards */
};

struct pp_op {
	const char *name;
	enum ibv_wr_opcode opcode;
	enum ibv_wc_opcode done;
	unsigned int traits;
};

struct pp_case {
	const struct pp_op *op;
	size_t size;
	uint64_t number, seed;
};

static inline bool pp_op_atomic(const struct pp_op *op)
{
	return op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || op->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
}

/* The responder must refuse it, and the QP is of no use afterwards. */
static inline bool pp_op_refused(const struct pp_op *op)
{
	return op->traits & (PP_BAD_KEY | PP_BAD_RANGE | PP_READ_ONLY);
}

/* Negative return: the ends lost each other. An empty verdict is a case that passed. */
int pp_case_run(struct pp_end *end, int fd, const struct pp_case *now, bool requester,
		struct pp_verdict *ret_verdict, bool *ret_usable);

#endif
