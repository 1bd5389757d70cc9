/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completions of both queues.
 */
#include "soft/qp/parts.h"

#include "base/banned.h"

static const uint8_t opcodes[] = {
	[SOFT_WR_WRITE] = SOFT_WC_WRITE,
	[SOFT_WR_WRITE_IMM] = SOFT_WC_WRITE,
	[SOFT_WR_SEND] = SOFT_WC_SEND,
	[SOFT_WR_SEND_IMM] = SOFT_WC_SEND,
	[SOFT_WR_READ] = SOFT_WC_READ,
	[SOFT_WR_COMPARE_SWAP] = SOFT_WC_COMPARE_SWAP,
	[SOFT_WR_FETCH_ADD] = SOFT_WC_FETCH_ADD,
	[SOFT_WR_LOCAL_INVALIDATE] = SOFT_WC_LOCAL_INVALIDATE,
	[SOFT_WR_BIND_WINDOW] = SOFT_WC_BIND_WINDOW,
	[SOFT_WR_SEND_INVALIDATE] = SOFT_WC_SEND,
};

static void push(struct soft_qp *qp, struct soft_cq *cq, struct soft_cqe *cqe)
{
	cqe->qp_num = qp->num;
	cqe->timestamp_ns = (uint64_t)qp->now;
	/* A queue that overran has told so itself. */
	(void)soft_cq_push(cq, cqe);
}

void soft_completion_push(struct soft_qp *qp, struct soft_cq *cq, const struct soft_cqe *cqe)
{
	struct soft_cqe copy = *cqe;

	push(qp, cq, &copy);
}

bool soft_completion_of_send(const struct soft_qp *qp, const struct soft_send_wr *wr,
			     unsigned int status, struct soft_cqe *ret)
{
	*ret = (struct soft_cqe){
		.wr_id = wr->id,
		.status = status,
		.opcode = wr->opcode < sizeof(opcodes) ? opcodes[wr->opcode] : 0,
		.byte_len = wr->length,
	};
	return status != SOFT_WC_SUCCESS || qp->req.sq.signal_all || wr->flags & SOFT_WR_SIGNALED;
}

void soft_complete_send(struct soft_qp *qp, const struct soft_send_wr *wr, unsigned int status)
{
	struct soft_cqe cqe;

	if (!soft_completion_of_send(qp, wr, status, &cqe))
		return;
	if (status != SOFT_WC_SUCCESS && status != SOFT_WC_WR_FLUSH_ERR)
		qp->counters->req_cqe_error++;
	push(qp, qp->send_cq, &cqe);
}

void soft_complete_recv(struct soft_qp *qp, const struct soft_recv_wr *wr, unsigned int status,
			const struct soft_cqe *rest)
{
	struct soft_cqe cqe = {.opcode = SOFT_WC_RECV};

	if (rest)
		cqe = *rest;
	cqe.wr_id = wr->id;
	cqe.status = status;
	push(qp, qp->recv_cq, &cqe);
}
