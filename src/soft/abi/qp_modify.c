/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ibv_modify_qp(): everything is checked first, then applied; a refused call changes nothing.
 */
#include "soft/abi/export.h"

#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "soft/abi/ah.h"
#include "soft/abi/qp_rules.h"
#include "soft/engine/gpus.h"
#include "base/banned.h"

enum { DEFAULT_PKEY = 0xffff, PSN_MASK = 0xffffff };

/* Which attribute bit covers which bytes of struct ibv_qp_attr. */
#define FIELD(bit, f)                                                                         \
	{                                                                                     \
		bit, offsetof(struct ibv_qp_attr, f), sizeof(((struct ibv_qp_attr *)NULL)->f) \
	}

static const struct {
	int bit;
	size_t at, size;
} fields[] = {
	FIELD(IBV_QP_ACCESS_FLAGS, qp_access_flags),
	FIELD(IBV_QP_PKEY_INDEX, pkey_index),
	FIELD(IBV_QP_PORT, port_num),
	FIELD(IBV_QP_QKEY, qkey),
	FIELD(IBV_QP_AV, ah_attr),
	FIELD(IBV_QP_PATH_MTU, path_mtu),
	FIELD(IBV_QP_TIMEOUT, timeout),
	FIELD(IBV_QP_RETRY_CNT, retry_cnt),
	FIELD(IBV_QP_RNR_RETRY, rnr_retry),
	FIELD(IBV_QP_RQ_PSN, rq_psn),
	FIELD(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic),
	FIELD(IBV_QP_MIN_RNR_TIMER, min_rnr_timer),
	FIELD(IBV_QP_SQ_PSN, sq_psn),
	FIELD(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic),
	FIELD(IBV_QP_DEST_QPN, dest_qp_num),
	FIELD(IBV_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify),
};

static void merge(struct ibv_qp_attr *to, const struct ibv_qp_attr *from, int mask)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(fields); i++)
		if (mask & fields[i].bit)
			memcpy((char *)to + fields[i].at, (const char *)from + fields[i].at,
			       fields[i].size);
	to->rq_psn &= PSN_MASK;
	to->sq_psn &= PSN_MASK;
}

static uint32_t bytes_of(enum ibv_mtu mtu)
{
	return mtu ? 128u << mtu : 0;
}

static void apply(struct soft_qp_object *o, const struct soft_device *d)
{
	const struct ibv_qp_attr *a = &o->attr;

	o->qp.attr = (struct soft_qp_attr){
		.remote_qpn = a->dest_qp_num,
		.sq_psn = a->sq_psn,
		.rq_psn = a->rq_psn,
		.qkey = a->qkey,
		/* Datagrams have no path MTU of their own: the port's. */
		.mtu = o->qp.transport == SOFT_UD ? d->config.mtu : bytes_of(a->path_mtu),
		.pkey = DEFAULT_PKEY,
		.timeout = a->timeout,
		.retry_cnt = a->retry_cnt,
		.rnr_retry = a->rnr_retry,
		.min_rnr_timer = a->min_rnr_timer,
		.max_rd_atomic = a->max_rd_atomic,
		.max_dest_rd_atomic = a->max_dest_rd_atomic,
		.access = a->qp_access_flags & (SOFT_ACCESS_REMOTE_WRITE | SOFT_ACCESS_REMOTE_READ |
						SOFT_ACCESS_REMOTE_ATOMIC),
	};
}

static int connect_av(struct soft_context *c, struct soft_qp_object *o,
		      const struct ibv_ah_attr *av)
{
	const struct soft_gid *src = soft_device_gid(c->device, av->grh.sgid_index);
	struct soft_gid dst;

	if (!src)
		return -EINVAL;
	memcpy(dst.raw, av->grh.dgid.raw, sizeof(dst.raw));
	return soft_engine_connect(c->engine, &o->qp, src, &dst, av->grh.traffic_class,
				   av->grh.hop_limit ? av->grh.hop_limit : 1,
				   av->grh.flow_label & 0xfffff);
}

static void move(struct soft_qp_object *o, enum ibv_qp_state from, enum ibv_qp_state to)
{
	struct soft_qp *qp = &o->qp;

	switch (to) {
	case IBV_QPS_RESET:
		soft_qp_reset(qp);
		soft_engine_withdraw(soft_context_of(o->ex.qp_base.context)->engine, qp);
		/* As provider libraries do: no completion of the old life is seen in the new. */
		soft_cq_forget(qp->send_cq, qp->num);
		if (qp->recv_cq != qp->send_cq)
			soft_cq_forget(qp->recv_cq, qp->num);
		memset(&o->attr, 0, offsetof(struct ibv_qp_attr, cap));
		break;
	case IBV_QPS_INIT:
		qp->state = SOFT_QP_INIT;
		break;
	case IBV_QPS_RTR:
		soft_qp_to_rtr(qp);
		break;
	case IBV_QPS_RTS:
		if (from != IBV_QPS_RTS)
			soft_qp_to_rts(qp);
		break;
	case IBV_QPS_SQD:
		if (from != IBV_QPS_SQD)
			soft_qp_to_sqd(qp, o->attr.en_sqd_async_notify);
		break;
	default:
		soft_qp_to_error(qp);
	}
}

static int modify_locked(struct soft_context *c, struct soft_qp_object *o,
			 const struct ibv_qp_attr *attr, int mask)
{
	enum ibv_qp_state from = (enum ibv_qp_state)o->qp.state, to;
	int r = 0;

	/* What it believes to be the state must be the state. */
	if (mask & IBV_QP_CUR_STATE && attr->cur_qp_state != from)
		return -EINVAL;
	to = mask & IBV_QP_STATE ? attr->qp_state : from;
	if (!soft_qp_transition_allowed(o->ex.qp_base.qp_type, from, to, mask) ||
	    !soft_qp_values_allowed(&c->device->config, attr, mask))
		return -EINVAL;
	if (mask & IBV_QP_AV) {
		r = soft_ah_check(c->device, &attr->ah_attr);
		if (!r)
			r = connect_av(c, o, &attr->ah_attr);
		if (r)
			return r;
	}
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		soft_engine_settle(c->engine);
	o->attr.en_sqd_async_notify = 0;
	merge(&o->attr, attr, mask);
	apply(o, c->device);
	if (mask & IBV_QP_STATE)
		move(o, from, to);
	if (to != IBV_QPS_RESET)
		soft_engine_kick(c->engine, &o->qp);
	return 0;
}

/* Of any call, and of one to this state: both count it. */
static int planned(struct soft_device *d, const struct ibv_qp_attr *attr, int mask)
{
	int any = soft_device_fault(d, SOFT_FAULT_MODIFY_QP), to = 0;

	if (mask & IBV_QP_STATE && attr->qp_state <= IBV_QPS_ERR)
		to = soft_device_fault(d, (enum soft_fault_noun)((int)SOFT_FAULT_MODIFY_QP_RESET +
								 (int)attr->qp_state));
	return any ? any : to;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct soft_qp_object *o = soft_qp_of(qp);
	struct soft_context *c = soft_context_of(qp->context);
	int r;

	if (soft_engine_inherited(c->engine))
		return EIO;
	if (!soft_object_is(&o->object, qp->context, qp->handle))
		return soft_gone();
	r = planned(c->device, attr, mask);
	if (r)
		return r;
	/* Before the lock, and before anything changes: it may fail, and takes its time. */
	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RTR) {
		r = soft_gpus_ready(c->engine);
		if (r)
			return -r;
	}
	soft_engine_lock(c->engine);
	r = modify_locked(c, o, attr, mask);
	if (!r && mask & IBV_QP_STATE)
		qp->state = attr->qp_state;
	soft_engine_unlock(c->engine);
	return -r;
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	struct soft_qp_object *o = soft_qp_of(qp);
	struct soft_context *c = soft_context_of(qp->context);

	if (!soft_object_is(&o->object, qp->context, qp->handle))
		return soft_gone();
	if (soft_context_gone(c))
		return EIO;
	/* The mask says what is wanted; all may be written. */
	soft_engine_lock(c->engine);
	/* rate_limit came later: old clients have no room for it. */
	memcpy(attr, &o->attr, offsetof(struct ibv_qp_attr, rate_limit));
	attr->qp_state = attr->cur_qp_state = (enum ibv_qp_state)o->qp.state;
	attr->sq_draining =
		o->qp.state == SOFT_QP_SQD && o->qp.req.sq.retired != o->qp.req.sq.started;
	soft_engine_unlock(c->engine);
	/* As rdma-core's: who asks for the state sees it in the object too. */
	if (mask & IBV_QP_STATE)
		qp->state = attr->qp_state;
	attr->path_mig_state = IBV_MIG_MIGRATED;
	*init = (struct ibv_qp_init_attr){
		.qp_context = qp->qp_context,
		.send_cq = qp->send_cq,
		.recv_cq = qp->recv_cq,
		.srq = qp->srq,
		.cap = o->attr.cap,
		.qp_type = qp->qp_type,
		.sq_sig_all = o->signal_all,
	};
	return 0;
}
