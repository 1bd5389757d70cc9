/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue pairs and shared receive queues made by way of an id; completion queues for those who bring
 * none.
 */
#include "soft/cm/cm.h"

#include <errno.h>
#include <string.h>

#include "soft/abi/export.h"

#include "base/banned.h"

static void destroy_cqs(struct rdma_cm_id *id)
{
	if (id->recv_cq)
		(void)ibv_destroy_cq(id->recv_cq);
	if (id->send_cq && id->send_cq != id->recv_cq)
		(void)ibv_destroy_cq(id->send_cq);
	if (id->recv_cq_channel)
		(void)ibv_destroy_comp_channel(id->recv_cq_channel);
	if (id->send_cq_channel && id->send_cq_channel != id->recv_cq_channel)
		(void)ibv_destroy_comp_channel(id->send_cq_channel);
	id->recv_cq = id->send_cq = NULL;
	id->recv_cq_channel = id->send_cq_channel = NULL;
}

/* 0 or errno; what was made before a failure is left for destroy_cqs(). */
static int create_cq(struct rdma_cm_id *id, uint32_t size, struct ibv_cq **ret,
		     struct ibv_comp_channel **ret_channel)
{
	if (!size)
		return 0;
	*ret_channel = ibv_create_comp_channel(id->verbs);
	if (!*ret_channel)
		return errno;
	*ret = ibv_create_cq(id->verbs, size > INT32_MAX ? INT32_MAX : (int)size, id, *ret_channel,
			     0);
	return *ret ? 0 : errno;
}

static int create_cqs(struct rdma_cm_id *id, const struct ibv_qp_init_attr_ex *attr)
{
	int r = 0;

	if (!attr->recv_cq && !id->recv_cq)
		r = create_cq(id, attr->cap.max_recv_wr, &id->recv_cq, &id->recv_cq_channel);
	if (!r && !attr->send_cq && !id->send_cq)
		r = create_cq(id, attr->cap.max_send_wr, &id->send_cq, &id->send_cq_channel);
	return r;
}

/* As the inlined calls of verbs.h go about it. */
static struct ibv_qp *make_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct verbs_context *v =
		(struct verbs_context *)((char *)context - offsetof(struct verbs_context, context));

	if (attr->comp_mask == IBV_QP_INIT_ATTR_PD)
		return ibv_create_qp(attr->pd, (struct ibv_qp_init_attr *)attr);
	if (context->abi_compat != SOFT_ABI_IS_EXTENDED || !v->create_qp_ex) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return v->create_qp_ex(context, attr);
}

static struct ibv_srq *make_srq(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	struct verbs_context *v =
		(struct verbs_context *)((char *)context - offsetof(struct verbs_context, context));

	if (attr->comp_mask == (IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD) &&
	    attr->srq_type == IBV_SRQT_BASIC)
		return ibv_create_srq(attr->pd, (struct ibv_srq_init_attr *)attr);
	if (context->abi_compat != SOFT_ABI_IS_EXTENDED || !v->create_srq_ex) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return v->create_srq_ex(context, attr);
}

/* 0 or errno. */
static int complete_attr(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	if (id->qp || !id->verbs)
		return EINVAL;
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = id->pd;
	} else if (attr->pd->context != id->verbs) {
		return EINVAL;
	}
	if ((id->recv_cq && attr->recv_cq && id->recv_cq != attr->recv_cq) ||
	    (id->send_cq && attr->send_cq && id->send_cq != attr->send_cq))
		return EINVAL;
	return 0;
}

int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp;
	int r = complete_attr(id, attr);

	if (r)
		return soft_cm_fail(r);
	r = create_cqs(id, attr);
	if (r) {
		destroy_cqs(id);
		return soft_cm_fail(r);
	}
	if (!attr->send_cq)
		attr->send_cq = id->send_cq;
	if (!attr->recv_cq)
		attr->recv_cq = id->recv_cq;
	if (!attr->srq)
		attr->srq = id->srq;
	qp = make_qp(id->verbs, attr);
	if (!qp) {
		r = errno;
		destroy_cqs(id);
		return soft_cm_fail(r);
	}
	r = soft_cm_qp_start(soft_cm_of(id), qp);
	if (r) {
		(void)ibv_destroy_qp(qp);
		destroy_cqs(id);
		return soft_cm_fail(r);
	}
	id->pd = qp->pd;
	id->qp = qp;
	return 0;
}

/* The longer structures begin as the shorter ones. */
_Static_assert(offsetof(struct ibv_qp_init_attr_ex, comp_mask) ==
		       offsetof(struct ibv_qp_init_attr, sq_sig_all) + sizeof(int),
	       "ABI");
_Static_assert(offsetof(struct ibv_srq_init_attr_ex, attr) ==
		       offsetof(struct ibv_srq_init_attr, attr),
	       "ABI");

enum { QP_HEAD = offsetof(struct ibv_qp_init_attr_ex, comp_mask) };

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {0};
	int r;

	memcpy(&ex, attr, QP_HEAD);
	ex.comp_mask = IBV_QP_INIT_ATTR_PD;
	ex.pd = pd ? pd : id->pd;
	r = rdma_create_qp_ex(id, &ex);
	memcpy(attr, &ex, QP_HEAD);
	return r;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	struct ibv_qp *qp;

	soft_cm_qp_lock();
	qp = id->qp;
	id->qp = NULL;
	soft_cm_qp_unlock();
	(void)ibv_destroy_qp(qp);
	destroy_cqs(id);
}

int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq *srq;

	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) || !id->verbs)
		return soft_cm_fail(EINVAL);
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
		attr->pd = id->pd;
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
	}
	srq = make_srq(id->verbs, attr);
	if (!srq)
		return -1;
	if (!id->pd)
		id->pd = attr->pd;
	id->srq = srq;
	return 0;
}

int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex ex = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC,
		.pd = pd,
	};
	int r = rdma_create_srq_ex(id, &ex);

	attr->attr = ex.attr;
	return r;
}

void rdma_destroy_srq(struct rdma_cm_id *id)
{
	(void)ibv_destroy_srq(id->srq);
	id->srq = NULL;
	destroy_cqs(id);
}
