/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work requests from the client's form into the engine's.
 */
#ifndef SOFT_ABI_POST_H
#define SOFT_ABI_POST_H

#include "soft/abi/object.h"

/* Fills the pieces of @wr from @sges; -EINVAL: more than the queue has room for. */
int soft_post_pieces(const struct soft_send_queue *q, struct soft_send_wr *wr,
		     const struct ibv_sge *sges, size_t n);
/* The same for inline bytes, which are copied now. */
int soft_post_inline(const struct soft_send_queue *q, struct soft_send_wr *wr,
		     const struct ibv_data_buf *bufs, size_t n);
/* Where a datagram goes; takes the engine's lock as held. */
int soft_post_address(const struct soft_qp_object *o, struct soft_send_wr *wr, struct ibv_ah *ah,
		      uint32_t remote_qpn, uint32_t remote_qkey);
/* ibv_post_send() for a bind of a window of type 1, which that refuses. */
int soft_post_bind(struct ibv_qp *qp, struct ibv_send_wr *wr);
/* Does a queue pair in this state take work requests to send? */
bool soft_post_allowed(const struct soft_qp *qp);

#endif
