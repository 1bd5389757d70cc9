/* SPDX-License-Identifier: Apache-2.0 */
/*
 * States of the queue pair of an id: what the connection manager of the kernel would put into each
 * transition, from what both sides said.
 */
#include "soft/cm/cm.h"

#include <errno.h>
#include <string.h>

#include "soft/abi/export.h"

#include "base/banned.h"

enum {
	ACK_TIMEOUT = 17, /* packet life time of RoCE, there and back: 0.5 s */
	HOP_LIMIT = 64,
	INIT_MASK = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT,
	RTR_MASK = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
	RTR_RC_MASK = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	RTS_MASK = IBV_QP_STATE | IBV_QP_SQ_PSN,
	RTS_RC_MASK =
		IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
};

/* Has the handshake begun, and is the peer's half of it known? */
static bool begun(const struct soft_cm_id *id)
{
	return id->state >= SOFT_CM_CALLING && id->state <= SOFT_CM_ESTABLISHED;
}

static bool peer_known(const struct soft_cm_id *id)
{
	return begun(id) &&
	       (id->remote.kind == SOFT_CM_REQUEST || id->remote.kind == SOFT_CM_REPLY);
}

static void to_init(const struct soft_cm_id *id, struct ibv_qp_attr *a, int *mask)
{
	a->pkey_index = 0;
	a->port_num = SOFT_CM_PORT;
	*mask = INIT_MASK;
	if (soft_cm_datagram(id)) {
		a->qkey = RDMA_UDP_QKEY;
		*mask |= IBV_QP_QKEY;
		return;
	}
	a->qp_access_flags = 0;
	if (begun(id)) {
		a->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
		if (id->responder_resources)
			a->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	}
	*mask |= IBV_QP_ACCESS_FLAGS;
}

static uint8_t at_most(uint8_t value, uint8_t most)
{
	return value < most ? value : most;
}

static void to_rtr(const struct soft_cm_id *id, struct ibv_qp_attr *a, int *mask)
{
	a->ah_attr = (struct ibv_ah_attr){
		.grh = {.sgid_index = id->sgid_index,
			.hop_limit = HOP_LIMIT,
			.traffic_class = id->tos},
		.is_global = 1,
		.port_num = SOFT_CM_PORT,
	};
	memcpy(a->ah_attr.grh.dgid.raw, id->local.to.raw, sizeof(id->local.to.raw));
	a->path_mtu = (enum ibv_mtu)id->mtu;
	a->dest_qp_num = id->remote.qpn;
	a->rq_psn = id->remote.psn;
	*mask = RTR_MASK;
	if (id->pub.qp_type == IBV_QPT_RC) {
		/* The peer's figures may be greater than what this device has. */
		a->max_dest_rd_atomic =
			at_most(id->responder_resources, id->device->max_responder_resources);
		a->min_rnr_timer = 0; /* the longest: 655 ms, as the kernel's */
		*mask |= RTR_RC_MASK;
	}
}

static void to_rts(const struct soft_cm_id *id, struct ibv_qp_attr *a, int *mask)
{
	bool passive = id->remote.kind == SOFT_CM_REQUEST;

	a->sq_psn = id->local.psn;
	*mask = RTS_MASK;
	if (id->pub.qp_type == IBV_QPT_RC) {
		a->timeout = id->has_ack_timeout ? id->ack_timeout : ACK_TIMEOUT;
		a->retry_cnt = passive ? id->remote.retry_count : id->local.retry_count;
		a->rnr_retry = id->remote.rnr_retry_count;
		a->max_rd_atomic = at_most(id->initiator_depth, id->device->max_initiator_depth);
		*mask |= RTS_RC_MASK;
	}
}

/* 0 or errno. */
static int attributes(const struct soft_cm_id *id, struct ibv_qp_attr *a, int *mask)
{
	if (!id->device)
		return EINVAL;
	if (soft_cm_datagram(id) || a->qp_state == IBV_QPS_INIT) {
		to_init(id, a, mask);
		return 0;
	}
	if (!peer_known(id))
		return EINVAL;
	if (a->qp_state == IBV_QPS_RTR)
		to_rtr(id, a, mask);
	else if (a->qp_state == IBV_QPS_RTS)
		to_rts(id, a, mask);
	else
		return EINVAL;
	return 0;
}

int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	int r;

	soft_cm_lock();
	r = attributes(soft_cm_of(id), attr, mask);
	soft_cm_unlock();
	return r ? soft_cm_fail(r) : 0;
}

static int move(struct soft_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask, r;

	soft_cm_lock();
	r = attributes(id, &attr, &mask);
	soft_cm_unlock();
	return r ? r : ibv_modify_qp(qp, &attr, mask);
}

int soft_cm_qp_connect(struct soft_cm_id *id)
{
	static const enum ibv_qp_state states[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
	int r = 0;

	/* INIT again: what the peer may do is known now. */
	for (size_t i = 0; id->pub.qp && i < 3 && !r; i++)
		r = move(id, id->pub.qp, states[i]);
	return r;
}

static int to_error(struct soft_cm_id *id)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	return id->pub.qp ? ibv_modify_qp(id->pub.qp, &attr, IBV_QP_STATE) : 0;
}

int soft_cm_qp_error(struct soft_cm_id *id)
{
	int r;

	soft_cm_qp_lock();
	r = to_error(id);
	soft_cm_qp_unlock();
	return r;
}

int soft_cm_qp_leave(struct soft_cm_id *id)
{
	int r;

	soft_cm_qp_lock();
	id->left = true;
	r = to_error(id);
	soft_cm_qp_unlock();
	return r;
}

void soft_cm_qp_left(struct soft_cm_id *id)
{
	soft_cm_qp_lock();
	if (!id->left)
		(void)to_error(id);
	soft_cm_qp_unlock();
}

static int start_datagrams(struct soft_cm_id *id, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	int r = move(id, qp, IBV_QPS_INIT);

	if (!r)
		r = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	return r ? r : ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

int soft_cm_qp_start(struct soft_cm_id *id, struct ibv_qp *qp)
{
	return soft_cm_datagram(id) ? start_datagrams(id, qp) : move(id, qp, IBV_QPS_INIT);
}
