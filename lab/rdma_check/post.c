/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One work request, posted by a request's structure (ibv_post_send()) or call by call
 * (ibv_wr_*()), as the end's option says: the same request goes both ways.
 */
#include "case.h"

#include <errno.h>

#include "base/banned.h"

enum { PP_PIECES = 2 };

static void pp_post_data(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr)
{
	struct ibv_data_buf pieces[PP_PIECES];

	if (!(wr->send_flags & IBV_SEND_INLINE)) {
		ibv_wr_set_sge_list(qp, (size_t)wr->num_sge, wr->sg_list);
		return;
	}
	for (int i = 0; i < wr->num_sge; i++) {
		pieces[i].addr = (void *)(uintptr_t)wr->sg_list[i].addr;
		pieces[i].length = wr->sg_list[i].length;
	}
	ibv_wr_set_inline_data_list(qp, (size_t)wr->num_sge, pieces);
}

static int pp_post_opcode(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		return 0;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, wr->imm_data);
		return 0;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		return 0;
	case IBV_WR_SEND:
		ibv_wr_send(qp);
		return 0;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(qp, wr->imm_data);
		return 0;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(qp, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
					wr->wr.atomic.compare_add);
		return 0;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(qp, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
				      wr->wr.atomic.compare_add, wr->wr.atomic.swap);
		return 0;
	case IBV_WR_SEND_WITH_INV:
		ibv_wr_send_inv(qp, wr->invalidate_rkey);
		return 0;
	case IBV_WR_BIND_MW:
		ibv_wr_bind_mw(qp, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
		return 0;
	default:
		return -EINVAL;
	}
}

static int pp_post_calls(struct ibv_qp *base, const struct ibv_send_wr *wr)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(base);

	if (!qp || wr->num_sge > PP_PIECES)
		return -EINVAL;
	ibv_wr_start(qp);
	qp->wr_id = wr->wr_id;
	qp->wr_flags = wr->send_flags & ~(unsigned int)IBV_SEND_INLINE;
	if (pp_post_opcode(qp, wr)) {
		ibv_wr_abort(qp);
		return -EINVAL;
	}
	if (base->qp_type == IBV_QPT_UD)
		ibv_wr_set_ud_addr(qp, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
	if (wr->opcode != IBV_WR_BIND_MW)
		pp_post_data(qp, wr);
	return -ibv_wr_complete(qp);
}

int pp_post(const struct pp_end *end, unsigned int qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	return end->calls ? pp_post_calls(end->qp[qp], wr) : -ibv_post_send(end->qp[qp], wr, &bad);
}

struct ibv_qp *pp_post_qp(const struct pp_end *end, const struct ibv_qp_init_attr *init)
{
	struct ibv_qp_init_attr old = *init;
	struct ibv_qp_init_attr_ex ex = {
		.send_cq = init->send_cq,
		.recv_cq = init->recv_cq,
		.cap = init->cap,
		.qp_type = init->qp_type,
		.sq_sig_all = init->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = end->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
	};

	if (!end->calls)
		return ibv_create_qp(end->pd, &old);
	if (init->qp_type != IBV_QPT_UD)
		ex.send_ops_flags |= IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
	if (init->qp_type == IBV_QPT_RC)
		ex.send_ops_flags |= IBV_QP_EX_WITH_RDMA_READ |
				     IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
				     IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
				     IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_BIND_MW;
	return ibv_create_qp_ex(end->context, &ex);
}
