/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue pairs: making and taking away, and what they say by themselves.
 */
#include "soft/abi/export.h"

#include <errno.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "soft/abi/object.h"
#include "soft/engine/direct.h"
#include "base/banned.h"

/* ── what the engine tells; its lock is held ── */

static void on_event(struct soft_qp *qp, enum soft_qp_event event)
{
	static const enum ibv_event_type types[] = {
		[SOFT_QP_EVENT_FATAL] = IBV_EVENT_QP_FATAL,
		[SOFT_QP_EVENT_REQUEST] = IBV_EVENT_QP_REQ_ERR,
		[SOFT_QP_EVENT_ACCESS] = IBV_EVENT_QP_ACCESS_ERR,
		[SOFT_QP_EVENT_ESTABLISHED] = IBV_EVENT_COMM_EST,
		[SOFT_QP_EVENT_SQ_DRAINED] = IBV_EVENT_SQ_DRAINED,
		[SOFT_QP_EVENT_LAST_WQE] = IBV_EVENT_QP_LAST_WQE_REACHED,
	};
	struct soft_qp_object *o = qp->owner;

	soft_events_raise(soft_context_of(o->ex.qp_base.context)->async, &o->async, types[event]);
}

static const struct soft_qp_ops ops = {
	.send = soft_engine_send,
	.event = on_event,
	.ready = soft_engine_qp_ready,
	.withdraw = soft_engine_qp_withdraw,
	.await_read = soft_engine_await_read,
	.shows = soft_direct_shows,
};

/* ── making ── */

static int check_caps(const struct soft_limits *l, const struct ibv_qp_cap *cap, bool own_rq)
{
	if (cap->max_send_wr > l->max_qp_wr || cap->max_send_sge > l->max_sge ||
	    cap->max_inline_data > l->max_inline)
		return -EINVAL;
	if (own_rq && (cap->max_recv_wr > l->max_qp_wr || cap->max_recv_sge > l->max_sge))
		return -EINVAL;
	return 0;
}

static int check_attr(const struct soft_context *c, struct ibv_pd *pd,
		      const struct ibv_qp_init_attr_ex *attr)
{
	const struct ibv_context *context = &c->verbs.context;

	if (!pd || !attr->send_cq || !attr->recv_cq || pd->context != context ||
	    attr->send_cq->context != context || attr->recv_cq->context != context ||
	    (attr->srq && attr->srq->context != context))
		return -EINVAL;
	if (!soft_object_is(&soft_pd_of(pd)->object, pd->context, pd->handle) ||
	    !soft_object_is(&soft_cq_of(attr->send_cq)->object, attr->send_cq->context,
			    attr->send_cq->handle) ||
	    !soft_object_is(&soft_cq_of(attr->recv_cq)->object, attr->recv_cq->context,
			    attr->recv_cq->handle) ||
	    (attr->srq && !soft_object_is(&soft_srq_of(attr->srq)->object, attr->srq->context,
					  attr->srq->handle)))
		return -ENOENT;
	if (attr->qp_type != IBV_QPT_RC && attr->qp_type != IBV_QPT_UC &&
	    attr->qp_type != IBV_QPT_UD)
		return -EOPNOTSUPP;
	return check_caps(&c->device->config.limits, &attr->cap, !attr->srq);
}

static const enum soft_transport transports[] = {
	[IBV_QPT_RC] = SOFT_RC,
	[IBV_QPT_UC] = SOFT_UC,
	[IBV_QPT_UD] = SOFT_UD,
};

static void fill(struct soft_qp_object *o, struct ibv_pd *pd,
		 const struct ibv_qp_init_attr_ex *attr)
{
	struct soft_context *c = soft_context_of(pd->context);

	o->ex.qp_base = (struct ibv_qp){
		.context = pd->context,
		.qp_context = attr->qp_context,
		.pd = pd,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.state = IBV_QPS_RESET,
		.qp_type = attr->qp_type,
	};
	pthread_mutex_init(&o->ex.qp_base.mutex, NULL);
	pthread_cond_init(&o->ex.qp_base.cond, NULL);
	pthread_mutex_init(&o->posting, NULL);
	o->async.element = &o->ex.qp_base;
	o->pd = soft_pd_of(pd);
	o->signal_all = attr->sq_sig_all;
	o->qp.transport = transports[attr->qp_type];
	o->qp.pd = soft_pd_meant(pd);
	o->qp.regions = soft_engine_regions(c->engine);
	o->qp.send_cq = &soft_cq_of(attr->send_cq)->queue;
	o->qp.recv_cq = &soft_cq_of(attr->recv_cq)->queue;
	o->qp.ops = &ops;
	o->qp.owner = o;
}

static void use_all(struct soft_qp_object *o, void (*use)(struct soft_object *))
{
	struct ibv_qp *qp = &o->ex.qp_base;

	use(&o->pd->object);
	use(&soft_cq_of(qp->send_cq)->object);
	use(&soft_cq_of(qp->recv_cq)->object);
	if (qp->srq)
		use(&soft_srq_of(qp->srq)->object);
}

static int start(struct soft_context *c, struct soft_qp_object *o, const struct ibv_qp_cap *cap)
{
	struct soft_recv_queue *shared =
		o->ex.qp_base.srq ? &soft_srq_of(o->ex.qp_base.srq)->queue : NULL;
	struct soft_qp_caps caps = {cap->max_send_wr, cap->max_recv_wr, cap->max_send_sge,
				    cap->max_recv_sge, cap->max_inline_data};
	struct pp_error err = {0};
	int r = soft_object_enter(c, &o->object, SOFT_KIND_QP, c->device->config.limits.max_qp);

	if (r)
		return r;
	r = soft_qp_init(&o->qp, &caps, shared, o->signal_all);
	if (!r) {
		soft_engine_lock(c->engine);
		r = soft_engine_add_qp(c->engine, c->attach->wire, &o->qp, &err);
		soft_engine_unlock(c->engine);
		if (r)
			soft_qp_done(&o->qp);
	}
	if (r)
		(void)soft_object_leave(c, &o->object);
	return r;
}

/* What was granted is never less than what was asked for. */
static void grant(struct soft_qp_object *o, struct ibv_qp_cap *cap)
{
	const struct soft_send_queue *sq = &o->qp.req.sq;
	const struct soft_recv_queue *rq = &o->qp.resp.own_rq;
	bool own = o->qp.resp.rq == rq;

	*cap = (struct ibv_qp_cap){
		.max_send_wr = sq->depth,
		.max_recv_wr = own ? rq->depth : 0,
		.max_send_sge = sq->max_sge,
		.max_recv_sge = own ? rq->max_sge : 0,
		.max_inline_data = sq->max_inline,
	};
	o->attr.cap = *cap;
}

static void qp_free(struct soft_qp_object *o)
{
	pthread_cond_destroy(&o->ex.qp_base.cond);
	pthread_mutex_destroy(&o->ex.qp_base.mutex);
	pthread_mutex_destroy(&o->posting);
	free(o);
}

static struct soft_qp_object *qp_new(struct ibv_pd *pd, struct ibv_qp_init_attr_ex *attr)
{
	struct soft_context *c = soft_context_of(pd->context);
	struct soft_qp_object *o;
	int r = soft_device_fault(c->device, SOFT_FAULT_CREATE_QP);

	if (r)
		return soft_fail(r);
	r = check_attr(c, pd, attr);
	if (r)
		return soft_fail(-r);
	o = calloc(1, sizeof(*o));
	if (!o)
		return soft_fail(ENOMEM);
	fill(o, pd, attr);
	r = start(c, o, &attr->cap);
	if (r) {
		qp_free(o);
		return soft_fail(-r);
	}
	o->ex.qp_base.qp_num = o->qp.num;
	o->ex.qp_base.handle = o->object.handle;
	grant(o, &attr->cap);
	use_all(o, soft_object_use);
	return o;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex all = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
	};
	struct soft_qp_object *o = qp_new(pd, &all);

	if (!o)
		return NULL;
	attr->cap = all.cap;
	return &o->ex.qp_base;
}

enum {
	RC_OPS = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
		 IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
		 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
		 IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV,
	UC_OPS = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
		 IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_LOCAL_INV |
		 IBV_QP_EX_WITH_BIND_MW,
	UD_OPS = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
	CREATE_MASK = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
		      IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
};

struct ibv_qp *soft_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	bool ex = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	uint64_t known = attr->qp_type == IBV_QPT_UD   ? UD_OPS
			 : attr->qp_type == IBV_QPT_UC ? UC_OPS
						       : RC_OPS;
	struct soft_qp_object *o;

	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd || attr->pd->context != context)
		return soft_fail(EINVAL);
	if (attr->comp_mask & ~(uint32_t)CREATE_MASK ||
	    (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && attr->create_flags) ||
	    (ex && attr->send_ops_flags & ~known))
		return soft_fail(EOPNOTSUPP);
	o = qp_new(attr->pd, attr);
	if (!o)
		return NULL;
	if (ex) {
		o->send_ops = attr->send_ops_flags;
		o->has_ex = true;
		soft_qp_ex_fill(o);
	}
	return &o->ex.qp_base;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct soft_qp_object *o = soft_qp_of(qp);

	return o->has_ex ? &o->ex : NULL;
}

/* ── taking away ── */

/* After this nothing of it is under way and no completion of it is seen. */
static void qp_stop(struct soft_context *c, struct soft_qp_object *o)
{
	soft_engine_lock(c->engine);
	soft_engine_settle(c->engine);
	soft_qp_reset(&o->qp);
	soft_cq_forget(o->qp.send_cq, o->qp.num);
	if (o->qp.recv_cq != o->qp.send_cq)
		soft_cq_forget(o->qp.recv_cq, o->qp.num);
	soft_engine_remove_qp(c->engine, &o->qp);
	soft_engine_unlock(c->engine);
	use_all(o, soft_object_unuse);
}

void soft_qp_drop(struct soft_context *c, struct soft_object *object)
{
	struct soft_qp_object *o = SOFT_OBJECT(struct soft_qp_object, object, object);

	if (soft_object_leave(c, object))
		return;
	qp_stop(c, o);
	soft_events_forget(c->async, &o->async);
	soft_qp_done(&o->qp);
	qp_free(o);
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct soft_qp_object *o = soft_qp_of(qp);
	struct soft_context *c = soft_context_of(qp->context);
	uint32_t delivered;

	if (soft_context_inherited(c))
		return 0;
	if (!soft_object_is(&o->object, qp->context, qp->handle))
		return soft_gone();
	if (soft_context_gone(c))
		return EIO;
	if (soft_object_leave(c, &o->object))
		return soft_busy();
	qp_stop(c, o);
	delivered = soft_events_forget(c->async, &o->async);
	pthread_mutex_lock(&qp->mutex);
	while (qp->events_completed != delivered)
		pthread_cond_wait(&qp->cond, &qp->mutex);
	pthread_mutex_unlock(&qp->mutex);
	soft_qp_done(&o->qp);
	qp_free(o);
	return 0;
}

int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	/*
	 * Bytes of a message are placed in ascending order, the last ones last. A reader sees that
	 * where the processor's stores are seen in order (elsewhere only the last bytes wait for
	 * the rest, see copy/place.c); packets that were lost and came again do not change it.
	 */
	int caps =
		IBV_QUERY_QP_DATA_IN_ORDER_WHOLE_MSG | IBV_QUERY_QP_DATA_IN_ORDER_ALIGNED_128_BYTES;
	bool known = flags == 0 || flags == IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS;

	if (!PP_STORES_IN_ORDER || !known || qp->qp_type != IBV_QPT_RC ||
	    (op != IBV_WR_RDMA_WRITE && op != IBV_WR_RDMA_WRITE_WITH_IMM && op != IBV_WR_SEND &&
	     op != IBV_WR_SEND_WITH_IMM))
		return 0;
	return flags ? caps : 1;
}
