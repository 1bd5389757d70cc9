/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes: a queue pair each, with memory of its own at both ends.
 *
 *   | in 0..7 | received 0..7 | out 0..7 | back 0..7 | fixed | ... of all lanes | targets |
 *
 * The peer writes to `in`, reads `fixed`, counts on a target; `received` is where SENDs go, `out`
 * and `back` are for own messages.
 */
#include "mesh.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	SLOTS = 4 * MESH_WINDOW + 1,
	ACCESS_RC = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		    IBV_ACCESS_REMOTE_ATOMIC
};

size_t mesh_slot_bytes(const struct mesh_plan *plan)
{
	return (plan->size_max + 2 * MESH_GUARD + 32 + 63) / 64 * 64;
}

static void memory_make(struct mesh_member *m, unsigned int peer)
{
	const struct mesh_plan *plan = &m->board->plan;
	size_t slots = mesh_slot_bytes(plan) * SLOTS * plan->lanes;
	size_t bytes = slots + plan->lanes * sizeof(uint64_t);

	m->peers[peer].memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
	if (!m->peers[peer].memory)
		mesh_fault(m, "no memory");
	mesh_clear(m->peers[peer].memory, slots);
	m->peers[peer].mr = ibv_reg_mr(m->pd, m->peers[peer].memory, bytes, ACCESS_RC);
	if (!m->peers[peer].mr)
		mesh_fault(m, "ibv_reg_mr: %s", strerror(errno));
}

static void places(struct mesh_member *m, struct mesh_lane *l)
{
	const struct mesh_plan *plan = &m->board->plan;
	size_t slot = mesh_slot_bytes(plan);
	uint8_t *memory = m->peers[l->peer].memory;

	l->in = memory + slot * SLOTS * l->lane;
	l->received = l->in + slot * MESH_WINDOW;
	l->out = l->received + slot * MESH_WINDOW;
	l->back = l->out + slot * MESH_WINDOW;
	l->fixed = l->back + slot * MESH_WINDOW;
	l->target = (uint64_t *)(void *)(memory + slot * SLOTS * plan->lanes) + l->lane;
	l->lkey = m->peers[l->peer].mr->lkey;
	for (unsigned int i = 0; i < 4 * MESH_WINDOW; i++)
		mesh_clear(l->in + slot * i, slot);
	mesh_fill(l->fixed, slot, mesh_mix(plan->seed, m->me << 20 | l->peer << 12 | l->lane));
	*l->target = mesh_mix(plan->seed, ~(uint64_t)(l->peer << 20 | m->me << 12 | l->lane));
	l->word = mesh_mix(plan->seed, ~(uint64_t)(m->me << 20 | l->peer << 12 | l->lane));
}

static struct ibv_qp *qp_make(struct mesh_member *m)
{
	struct ibv_qp_init_attr init = {
		.send_cq = m->cq,
		.recv_cq = m->cq,
		.cap = {2 * MESH_WINDOW + 2, MESH_RECEIVES, 2, 2, MESH_INLINE},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ACCESS_RC};
	struct ibv_qp *qp = ibv_create_qp(m->pd, &init);
	int rc;

	if (!qp)
		mesh_fault(m, "ibv_create_qp: %s", strerror(errno));
	rc = ibv_modify_qp(qp, &attr,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (rc)
		mesh_fault(m, "INIT: %s", strerror(rc));
	return qp;
}

static void lane_open(struct mesh_member *m, unsigned int peer, unsigned int lane)
{
	struct mesh_lane *l = &m->lanes[m->num_lanes++];

	*l = (struct mesh_lane){.peer = peer,
				.lane = lane,
				.mine = &m->board->end[m->me][peer][lane],
				.far = &m->board->end[peer][m->me][lane]};
	l->qp = qp_make(m);
	places(m, l);
	for (unsigned int i = 0; i < m->board->plan.receives; i++)
		mesh_receive_post(m, l, i);
	l->mine->qpn = l->qp->qp_num;
	l->mine->psn =
		(uint32_t)mesh_mix(l->qp->qp_num, (uint64_t)m->board->card[m->me].pid) & 0xffffff;
	l->mine->rkey = m->peers[peer].mr->rkey;
	l->mine->in = (uintptr_t)l->in;
	l->mine->fixed = (uintptr_t)l->fixed;
	l->mine->target = (uintptr_t)l->target;
	atomic_store(&l->mine->total, UINT64_MAX);
	atomic_store(&l->mine->published, true);
}

void mesh_lanes_open(struct mesh_member *m)
{
	struct mesh_board *b = m->board;

	for (unsigned int peer = 0; peer < MESH_MEMBERS_MAX; peer++) {
		if (peer == m->me || m->peers[peer].memory ||
		    atomic_load(&b->card[peer].state) == MESH_ABSENT ||
		    atomic_load(&b->dead) >> peer & 1)
			continue;
		memory_make(m, peer);
		for (unsigned int i = 0; i < b->plan.lanes; i++)
			lane_open(m, peer, i);
	}
}

static void connect_lane(struct mesh_member *m, struct mesh_lane *l)
{
	const struct mesh_plan *plan = &m->board->plan;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = m->mtu,
		.dest_qp_num = l->far->qpn,
		.rq_psn = l->far->psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}}};
	int rc;

	attr.ah_attr.grh.dgid = m->board->card[l->peer].gid;
	rc = ibv_modify_qp(l->qp, &attr,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				   IBV_QP_MIN_RNR_TIMER);
	if (rc)
		mesh_fault(m, "RTR: %s", strerror(rc));
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .sq_psn = l->mine->psn,
				    .timeout = plan->timeout,
				    .retry_cnt = plan->retry_cnt,
				    .rnr_retry = 7,
				    .max_rd_atomic = 4};
	rc = ibv_modify_qp(l->qp, &attr,
			   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				   IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	if (rc)
		mesh_fault(m, "RTS: %s", strerror(rc));
	l->connected = true;
	atomic_store(&l->mine->connected, true);
}

void mesh_lanes_connect(struct mesh_member *m)
{
	for (unsigned int i = 0; i < m->num_lanes; i++) {
		struct mesh_lane *l = &m->lanes[i];

		if (l->live)
			continue;
		if (!l->connected && atomic_load(&l->far->published))
			connect_lane(m, l);
		l->live = l->connected && atomic_load(&l->far->connected);
	}
}
