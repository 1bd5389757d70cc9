/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory windows as verbs objects.
 */
#ifndef SOFT_ABI_MW_H
#define SOFT_ABI_MW_H

#include "soft/abi/object.h"

struct soft_mw_object {
	struct ibv_mw ibv;
	struct soft_object object;
	struct soft_mw mw; /* under the engine's lock */
	struct soft_pd_object *pd;
};

struct ibv_mw *soft_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int soft_dealloc_mw(struct ibv_mw *mw);
/* Of type 1 only: the client's inlined call sees to that. */
int soft_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
void soft_mw_drop(struct soft_context *c, struct soft_object *object);

/* A bind in the engine's form; mw->rkey becomes what it is after the bind. Only the low eight bits
 * of @rkey count. */
void soft_mw_fill_bind(struct soft_send_wr *wr, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info);

#endif
