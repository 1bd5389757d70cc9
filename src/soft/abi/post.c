/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ibv_post_send(), ibv_post_recv(), ibv_post_srq_recv(). What is wrong with memory keys is found
 * when a request is carried out, as on hardware; here only what makes it no request at all.
 */
#include "soft/abi/post.h"

#include <errno.h>
#include <string.h>

#include "soft/abi/ah.h"
#include "soft/abi/mw.h"
#include "soft/qp/status.h"
#include "base/banned.h"

_Static_assert(sizeof(struct ibv_sge) == sizeof(struct soft_sge) &&
		       offsetof(struct ibv_sge, length) == offsetof(struct soft_sge, length) &&
		       offsetof(struct ibv_sge, lkey) == offsetof(struct soft_sge, lkey),
	       "one layout");

bool soft_post_allowed(const struct soft_qp *qp)
{
	return qp->state >= SOFT_QP_RTS;
}

int soft_post_pieces(const struct soft_send_queue *q, struct soft_send_wr *wr,
		     const struct ibv_sge *sges, size_t n)
{
	uint32_t length = 0;

	if (n > q->max_sge)
		return -EINVAL;
	/* Longer than any message: found too long when it is carried out. */
	for (size_t i = 0; i < n; i++)
		if (__builtin_add_overflow(length, sges[i].length, &length))
			length = UINT32_MAX;
	if (n)
		memcpy(soft_send_wr_sges(wr), sges, n * sizeof(*sges));
	wr->num_sge = (uint16_t)n;
	wr->length = length;
	return 0;
}

int soft_post_inline(const struct soft_send_queue *q, struct soft_send_wr *wr,
		     const struct ibv_data_buf *bufs, size_t n)
{
	size_t length = 0;

	for (size_t i = 0; i < n; i++) {
		if (bufs[i].length > q->max_inline - length)
			return -EINVAL;
		if (bufs[i].length)
			memcpy(soft_send_wr_inline(wr) + length, bufs[i].addr, bufs[i].length);
		length += bufs[i].length;
	}
	wr->flags |= SOFT_WR_INLINE;
	wr->num_sge = 0;
	wr->length = (uint32_t)length;
	return 0;
}

int soft_post_address(const struct soft_qp_object *o, struct soft_send_wr *wr, struct ibv_ah *ah,
		      uint32_t remote_qpn, uint32_t remote_qkey)
{
	if (!ah || ah->context != o->ex.qp_base.context)
		return -EINVAL;
	wr->ud.remote_qpn = remote_qpn & 0xffffff;
	wr->ud.qkey = remote_qkey;
	/* Found when it is carried out, like a key of another protection domain. */
	if (soft_pd_meant(ah->pd) != o->qp.pd)
		wr->error = SOFT_WC_LOC_QP_OP_ERR;
	return soft_ah_path_locked(soft_ah_of(ah), &wr->ud.path);
}

/* Operations by transport, and which fields each has; IMM: or the key to invalidate. */
enum { IMM = 1, REMOTE = 2, ATOMIC = 4, RC = 8, UC = 16, UD = 32, INLINE = 64, BIND = 128 };

static const uint8_t operations[] = {
	[IBV_WR_RDMA_WRITE] = RC | UC | REMOTE | INLINE,
	[IBV_WR_RDMA_WRITE_WITH_IMM] = RC | UC | REMOTE | IMM | INLINE,
	[IBV_WR_SEND] = RC | UC | UD | INLINE,
	[IBV_WR_SEND_WITH_IMM] = RC | UC | UD | IMM | INLINE,
	[IBV_WR_RDMA_READ] = RC | REMOTE,
	[IBV_WR_ATOMIC_CMP_AND_SWP] = RC | ATOMIC,
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = RC | ATOMIC,
	[IBV_WR_LOCAL_INV] = RC | UC | IMM,
	[IBV_WR_BIND_MW] = RC | UC | BIND,
	[IBV_WR_SEND_WITH_INV] = RC | IMM | INLINE, /* the wire has none for UC */
};

static int fill_inline(const struct soft_send_queue *q, struct soft_send_wr *to,
		       const struct ibv_send_wr *from)
{
	struct ibv_data_buf bufs[SOFT_PIECES_MAX];

	if (from->num_sge > SOFT_PIECES_MAX)
		return -EINVAL;
	for (int i = 0; i < from->num_sge; i++)
		bufs[i] = (struct ibv_data_buf){(void *)(uintptr_t)from->sg_list[i].addr,
						from->sg_list[i].length};
	return soft_post_inline(q, to, bufs, (size_t)from->num_sge);
}

static uint8_t transport_bit(const struct soft_qp *qp)
{
	return qp->transport == SOFT_UD ? UD : qp->transport == SOFT_UC ? UC : RC;
}

static int fill_send(struct soft_qp_object *o, struct soft_send_wr *to,
		     const struct ibv_send_wr *from, enum ibv_mw_type windows)
{
	const struct soft_send_queue *q = &o->qp.req.sq;
	unsigned int op = (unsigned int)from->opcode;
	uint8_t what = op < sizeof(operations) ? operations[op] : 0;

	if (!(what & transport_bit(&o->qp)) || from->num_sge < 0)
		return -EINVAL;
	to->id = from->wr_id;
	to->opcode = (uint8_t)op;
	to->flags = from->send_flags & (SOFT_WR_FENCE | SOFT_WR_SIGNALED | SOFT_WR_SOLICITED);
	to->imm_be = what & IMM ? from->imm_data : 0;
	to->error = 0;
	if (what & BIND) {
		if (!from->bind_mw.mw || from->bind_mw.mw->type != (int)windows)
			return -EINVAL;
		soft_mw_fill_bind(to, from->bind_mw.mw, from->bind_mw.rkey,
				  &from->bind_mw.bind_info);
		return 0;
	}
	if (what & REMOTE) {
		to->rc.remote_addr = from->wr.rdma.remote_addr;
		to->rc.rkey = from->wr.rdma.rkey;
	} else if (what & ATOMIC) {
		to->rc.remote_addr = from->wr.atomic.remote_addr;
		to->rc.compare_add = from->wr.atomic.compare_add;
		to->rc.swap = from->wr.atomic.swap;
		to->rc.rkey = from->wr.atomic.rkey;
	} else if (o->qp.transport == SOFT_UD) {
		int r = soft_post_address(o, to, from->wr.ud.ah, from->wr.ud.remote_qpn,
					  from->wr.ud.remote_qkey);

		if (r)
			return r;
	}
	if (!(from->send_flags & IBV_SEND_INLINE))
		return soft_post_pieces(q, to, from->sg_list, (size_t)from->num_sge);
	return what & INLINE ? fill_inline(q, to, from) : -EINVAL;
}

static int post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr,
		enum ibv_mw_type windows)
{
	struct soft_qp_object *o = soft_qp_of(qp);
	struct soft_context *c = soft_context_of(qp->context);
	struct soft_send_queue *q = &o->qp.req.sq;
	int r = 0;

	if (soft_engine_inherited(c->engine)) {
		*bad_wr = wr;
		return EIO;
	}
	r = soft_device_fault(c->device, SOFT_FAULT_POST_SEND);
	if (r) {
		*bad_wr = wr;
		return r;
	}
	pthread_mutex_lock(&o->posting);
	soft_engine_lock(c->engine);
	if (!soft_post_allowed(&o->qp))
		r = -EINVAL;
	for (; wr && !r; wr = r ? wr : wr->next) {
		struct soft_send_wr *slot = soft_send_queue_next(q);

		r = slot ? fill_send(o, slot, wr, windows) : -ENOMEM;
		if (!r)
			q->posted++;
	}
	/* What came before the bad one is posted. */
	if (q->posted != q->started || o->qp.state == SOFT_QP_ERR)
		soft_engine_kick(c->engine, &o->qp);
	soft_engine_unlock(c->engine);
	pthread_mutex_unlock(&o->posting);
	if (r)
		*bad_wr = wr;
	return -r;
}

int soft_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	return post(qp, wr, bad_wr, IBV_MW_TYPE_2);
}

int soft_post_bind(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	return post(qp, wr, &bad, IBV_MW_TYPE_1);
}

static int post_recv(struct soft_recv_queue *q, const struct ibv_recv_wr *wr)
{
	if (wr->num_sge < 0)
		return -EINVAL;
	return soft_recv_queue_post(q, wr->wr_id, (const struct soft_sge *)wr->sg_list,
				    (uint32_t)wr->num_sge);
}

int soft_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct soft_qp_object *o = soft_qp_of(qp);
	struct soft_context *c = soft_context_of(qp->context);
	int r = soft_engine_inherited(c->engine) ? -EIO : 0;

	if (!r)
		r = -soft_device_fault(c->device, SOFT_FAULT_POST_RECV);
	if (r || qp->srq) {
		*bad_wr = wr;
		return r ? -r : EINVAL;
	}
	soft_engine_lock(c->engine);
	if (o->qp.state == SOFT_QP_RESET)
		r = -EINVAL;
	while (wr && !r) {
		r = post_recv(&o->qp.resp.own_rq, wr);
		if (!r)
			wr = wr->next;
	}
	if (o->qp.state == SOFT_QP_ERR)
		soft_engine_kick(c->engine, &o->qp); /* completes them as flushed */
	soft_engine_unlock(c->engine);
	if (r)
		*bad_wr = wr;
	return -r;
}

int soft_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct soft_srq_object *o = soft_srq_of(srq);
	struct soft_context *c = soft_context_of(srq->context);
	int r = soft_engine_inherited(c->engine) ? -EIO : 0;

	if (!r)
		r = -soft_device_fault(c->device, SOFT_FAULT_POST_RECV);
	soft_engine_lock(c->engine);
	while (wr && !r) {
		r = post_recv(&o->queue, wr);
		if (!r)
			wr = wr->next;
	}
	soft_engine_unlock(c->engine);
	if (r)
		*bad_wr = wr;
	return -r;
}
