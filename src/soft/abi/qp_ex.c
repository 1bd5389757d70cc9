/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ibv_wr_*(): work requests built between wr_start() and wr_complete(). They are built in slots
 * beyond what is posted, which only the poster touches; the queue pair's `posting` lock is held all
 * the while, the engine's only for moments: the client may do the same on other queue pairs
 * meanwhile. The first error is kept, everything is dropped then, and wr_complete() returns it.
 */
#include "soft/abi/mw.h"
#include "soft/abi/post.h"

#include <errno.h>
#include <string.h>

#include "base/banned.h"

static struct soft_qp_object *object_of(struct ibv_qp_ex *ex)
{
	return SOFT_OBJECT(struct soft_qp_object, ex, ex);
}

static struct soft_engine *engine_of(const struct soft_qp_object *o)
{
	return soft_context_of(o->ex.qp_base.context)->engine;
}

static void look_for_room(struct soft_qp_object *o)
{
	const struct soft_send_queue *q = &o->qp.req.sq;

	soft_engine_lock(engine_of(o));
	if (q->posted != o->batch.first && !o->batch.error)
		o->batch.error = EINVAL; /* went through RESET under the batch */
	o->batch.room = q->depth - (q->posted - q->retired);
	soft_engine_unlock(engine_of(o));
}

static void wr_start(struct ibv_qp_ex *ex)
{
	struct soft_qp_object *o = object_of(ex);

	pthread_mutex_lock(&o->posting);
	o->batch.wr = NULL;
	o->batch.staged = 0;
	o->batch.error = soft_engine_inherited(engine_of(o)) ? EIO : 0;
	soft_engine_lock(engine_of(o));
	o->batch.first = o->qp.req.sq.posted;
	o->batch.room = o->qp.req.sq.depth - (o->batch.first - o->qp.req.sq.retired);
	if (!o->batch.error && !soft_post_allowed(&o->qp))
		o->batch.error = EINVAL;
	soft_engine_unlock(engine_of(o));
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct soft_qp_object *o = object_of(ex);
	struct soft_send_queue *q = &o->qp.req.sq;
	int error = soft_device_fault(soft_context_of(o->ex.qp_base.context)->device,
				      SOFT_FAULT_POST_SEND);

	if (error && !o->batch.error)
		o->batch.error = error;
	soft_engine_lock(engine_of(o));
	if (!o->batch.error && (q->posted != o->batch.first || !soft_post_allowed(&o->qp)))
		o->batch.error = EINVAL;
	error = o->batch.error;
	if (!error && o->batch.staged) {
		q->posted += o->batch.staged;
		soft_engine_kick(engine_of(o), &o->qp);
	}
	soft_engine_unlock(engine_of(o));
	pthread_mutex_unlock(&o->posting);
	return error;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	pthread_mutex_unlock(&object_of(ex)->posting);
}

/* The slot of a new work request, or NULL with the error kept. @flag: what it must be asked for as.
 */
static struct soft_send_wr *begin(struct ibv_qp_ex *ex, enum soft_wr_opcode opcode, uint64_t flag)
{
	struct soft_qp_object *o = object_of(ex);
	struct soft_send_wr *wr;

	o->batch.wr = NULL;
	if (!(o->send_ops & flag) && !o->batch.error)
		o->batch.error = EINVAL;
	if (!o->batch.error && o->batch.staged == o->batch.room)
		look_for_room(o);
	if (!o->batch.error && o->batch.staged == o->batch.room)
		o->batch.error = ENOMEM;
	if (o->batch.error)
		return NULL;
	wr = soft_send_queue_at(&o->qp.req.sq, o->batch.first + o->batch.staged++);
	*wr = (struct soft_send_wr){
		.id = ex->wr_id,
		.opcode = (uint8_t)opcode,
		.flags = ex->wr_flags & (SOFT_WR_FENCE | SOFT_WR_SIGNALED | SOFT_WR_SOLICITED),
	};
	o->batch.wr = wr;
	return wr;
}

static void keep_error(struct soft_qp_object *o, int r)
{
	if (r && !o->batch.error)
		o->batch.error = -r;
}

static void begin_remote(struct ibv_qp_ex *ex, enum soft_wr_opcode opcode, uint64_t flag,
			 uint32_t rkey, uint64_t remote_addr, uint32_t imm)
{
	struct soft_send_wr *wr = begin(ex, opcode, flag);

	if (!wr)
		return;
	wr->imm_be = imm;
	wr->rc.rkey = rkey;
	wr->rc.remote_addr = remote_addr;
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	begin_remote(ex, SOFT_WR_WRITE, IBV_QP_EX_WITH_RDMA_WRITE, rkey, remote_addr, 0);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      uint32_t imm)
{
	begin_remote(ex, SOFT_WR_WRITE_IMM, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, rkey, remote_addr,
		     imm);
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	begin_remote(ex, SOFT_WR_READ, IBV_QP_EX_WITH_RDMA_READ, rkey, remote_addr, 0);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      uint64_t compare, uint64_t swap)
{
	struct soft_qp_object *o = object_of(ex);

	begin_remote(ex, SOFT_WR_COMPARE_SWAP, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, rkey, remote_addr,
		     0);
	if (o->batch.wr) {
		o->batch.wr->rc.compare_add = compare;
		o->batch.wr->rc.swap = swap;
	}
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
				uint64_t add)
{
	struct soft_qp_object *o = object_of(ex);

	begin_remote(ex, SOFT_WR_FETCH_ADD, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, rkey, remote_addr,
		     0);
	if (o->batch.wr)
		o->batch.wr->rc.compare_add = add;
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct soft_send_wr *wr = begin(ex, SOFT_WR_BIND_WINDOW, IBV_QP_EX_WITH_BIND_MW);

	if (wr && mw->type != IBV_MW_TYPE_2)
		keep_error(object_of(ex), -EINVAL);
	else if (wr)
		soft_mw_fill_bind(wr, mw, rkey, info);
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct soft_send_wr *wr = begin(ex, SOFT_WR_LOCAL_INVALIDATE, IBV_QP_EX_WITH_LOCAL_INV);

	if (wr)
		wr->imm_be = rkey;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct soft_send_wr *wr = begin(ex, SOFT_WR_SEND_INVALIDATE, IBV_QP_EX_WITH_SEND_WITH_INV);

	if (wr)
		wr->imm_be = rkey;
}

static void wr_send(struct ibv_qp_ex *ex)
{
	begin(ex, SOFT_WR_SEND, IBV_QP_EX_WITH_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, uint32_t imm)
{
	struct soft_send_wr *wr = begin(ex, SOFT_WR_SEND_IMM, IBV_QP_EX_WITH_SEND_WITH_IMM);

	if (wr)
		wr->imm_be = imm;
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn,
			   uint32_t remote_qkey)
{
	struct soft_qp_object *o = object_of(ex);

	if (!o->batch.wr)
		return;
	if (o->qp.transport != SOFT_UD) {
		keep_error(o, -EINVAL);
		return;
	}
	soft_engine_lock(engine_of(o));
	keep_error(o, soft_post_address(o, o->batch.wr, ah, remote_qpn, remote_qkey));
	soft_engine_unlock(engine_of(o));
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_sge *sges)
{
	struct soft_qp_object *o = object_of(ex);

	if (o->batch.wr)
		keep_error(o, soft_post_pieces(&o->qp.req.sq, o->batch.wr, sges, n));
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};

	wr_set_sge_list(ex, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_data_buf *bufs)
{
	struct soft_qp_object *o = object_of(ex);

	if (o->batch.wr)
		keep_error(o, soft_post_inline(&o->qp.req.sq, o->batch.wr, bufs, n));
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf buf = {.addr = addr, .length = length};

	wr_set_inline_data_list(ex, 1, &buf);
}

void soft_qp_ex_fill(struct soft_qp_object *o)
{
	struct ibv_qp_ex *ex = &o->ex;

	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	/* Also what was not asked for: it then fails the batch instead of the process. */
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_send_inv = wr_send_inv;
}
