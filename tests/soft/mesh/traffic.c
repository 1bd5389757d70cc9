/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of a lane, out and in. Numbers of work requests: a receive's has the top bit; then the
 * lane, then the low bits of the count.
 */
#include "mesh.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#define RECEIVE (UINT64_C(1) << 63)
#define NUMBER	UINT64_C(0xffffffff)

static uint64_t wr_id(const struct mesh_member *m, const struct mesh_lane *l, uint64_t number)
{
	return (uint64_t)(l - m->lanes) << 32 | (number & NUMBER);
}

static uint8_t *slot(const struct mesh_member *m, uint8_t *slots, uint64_t number)
{
	return slots + mesh_slot_bytes(&m->board->plan) * (number % MESH_WINDOW);
}

void mesh_receive_post(struct mesh_member *m, struct mesh_lane *l, uint64_t number)
{
	uint8_t *at = slot(m, l->received, number) + MESH_GUARD;
	/* A part that no message fills, and the rest. */
	struct ibv_sge sge[2] = {{(uintptr_t)at, 40, l->lkey},
				 {(uintptr_t)at + 40, m->board->plan.size_max, l->lkey}};
	struct ibv_recv_wr wr = {.wr_id = RECEIVE | wr_id(m, l, number),
				 .sg_list = sge,
				 .num_sge = 2},
			   *bad;
	int rc;

	sge[1].length = m->board->plan.size_max > 40 ? m->board->plan.size_max - 40 : 1;
	rc = ibv_post_recv(l->qp, &wr, &bad);
	if (rc)
		mesh_fault(m, "ibv_post_recv: %s", strerror(rc));
}

/* An atomic's effect is known when it is posted: nobody else counts there. */
static void atomic_fill(struct mesh_lane *l, const struct mesh_message *msg, struct ibv_send_wr *wr)
{
	wr->wr.atomic.remote_addr = l->far->target;
	wr->wr.atomic.rkey = l->far->rkey;
	l->expected[l->posted % MESH_WINDOW] = l->word;
	if (msg->kind == MESH_FETCH_ADD) {
		wr->opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr->wr.atomic.compare_add = msg->word;
		l->word += msg->word;
		return;
	}
	wr->opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	wr->wr.atomic.compare_add = msg->hits ? l->word : ~l->word;
	wr->wr.atomic.swap = msg->word;
	if (msg->hits)
		l->word = msg->word;
}

static void rdma_fill(const struct mesh_member *m, struct mesh_lane *l,
		      const struct mesh_message *msg, struct ibv_send_wr *wr)
{
	static const enum ibv_wr_opcode opcodes[] = {
		[MESH_WRITE] = IBV_WR_RDMA_WRITE,
		[MESH_SEND] = IBV_WR_SEND,
		[MESH_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
		[MESH_SEND_IMM] = IBV_WR_SEND_WITH_IMM,
		[MESH_READ] = IBV_WR_RDMA_READ,
	};
	uint64_t in = l->asked % MESH_WINDOW * mesh_slot_bytes(&m->board->plan);

	wr->opcode = opcodes[msg->kind];
	wr->imm_data = htonl(msg->imm);
	wr->wr.rdma.rkey = l->far->rkey;
	wr->wr.rdma.remote_addr = msg->kind == MESH_READ
					  ? l->far->fixed + msg->shift
					  : l->far->in + in + MESH_GUARD + msg->shift;
}

static unsigned int pieces(const struct mesh_lane *l, const struct mesh_message *msg, uint8_t *at,
			   struct ibv_sge sge[2])
{
	uint32_t first = msg->pieces && msg->kind < MESH_FETCH_ADD ? msg->size / 3 : msg->size;

	sge[0] = (struct ibv_sge){(uintptr_t)at, first, l->lkey};
	sge[1] = (struct ibv_sge){(uintptr_t)at + first, msg->size - first, l->lkey};
	/* A length of 0 can mean 2 GiB. */
	return !msg->size ? 0 : first && first < msg->size ? 2 : 1;
}

static void post(struct mesh_member *m, struct mesh_lane *l, const struct mesh_message *msg)
{
	bool inwards = !mesh_receives(msg);
	uint8_t *mine = slot(m, inwards ? l->back : l->out, l->posted) + MESH_GUARD + msg->shift;
	struct ibv_sge sge[2];
	struct ibv_send_wr *bad, second = {.wr_id = wr_id(m, l, l->posted),
					   .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
					   .send_flags = IBV_SEND_SIGNALED,
					   .imm_data = htonl(msg->imm)};
	struct ibv_send_wr wr = {
		.wr_id = wr_id(m, l, l->posted), .sg_list = sge, .send_flags = IBV_SEND_SIGNALED};
	int rc;

	if (!inwards)
		mesh_fill(mine, msg->size, msg->word);
	if (msg->kind < MESH_FETCH_ADD)
		rdma_fill(m, l, msg, &wr);
	else
		atomic_fill(l, msg, &wr);
	wr.num_sge = (int)pieces(l, msg, mine, sge);
	if (sge[0].length == 0 && wr.num_sge == 1)
		sge[0] = sge[1];
	if (msg->in_line)
		wr.send_flags |= IBV_SEND_INLINE;
	if (msg->kind == MESH_WRITE) {
		wr.send_flags &= ~(unsigned int)IBV_SEND_SIGNALED;
		wr.next = &second;
	}
	rc = ibv_post_send(l->qp, &wr, &bad);
	if (rc)
		mesh_fault(m, "ibv_post_send: %s", strerror(rc));
	l->posted++;
	l->asked += !inwards;
}

/* When the peer is gone and all is through, nothing would notice: a READ does. */
static bool probe(struct mesh_member *m, struct mesh_lane *l)
{
	struct ibv_sge sge = {(uintptr_t)l->back, 1, l->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = wr_id(m, l, l->posted),
				       .opcode = IBV_WR_RDMA_READ,
				       .send_flags = IBV_SEND_SIGNALED,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .wr.rdma = {l->far->fixed, l->far->rkey}};

	if (l->posted != l->done)
		return false;
	if (ibv_post_send(l->qp, &wr, &bad))
		mesh_fault(m, "the probe is refused");
	l->posted++;
	return true;
}

bool mesh_lane_send(struct mesh_member *m, struct mesh_lane *l)
{
	const struct mesh_plan *plan = &m->board->plan;
	bool any = false;

	if (!l->live || l->broken || atomic_load(&l->mine->total) != UINT64_MAX)
		return false;
	if (atomic_load(&m->board->dead) >> l->peer & 1)
		return probe(m, l);
	while (l->posted - l->done < MESH_WINDOW) {
		struct mesh_message msg = mesh_message(plan, m->me, l->peer, l->lane, l->posted);

		if (plan->count ? l->posted == plan->count : atomic_load(&m->board->stop)) {
			l->mine->word = l->word;
			atomic_store(&l->mine->total, l->posted);
			break;
		}
		if (mesh_receives(&msg) && l->asked - atomic_load(&l->far->verified) >= MESH_WINDOW)
			break;
		post(m, l, &msg);
		any = true;
	}
	return any;
}

static void failed(struct mesh_member *m, struct mesh_lane *l, const struct ibv_wc *wc)
{
	bool dead = atomic_load(&m->board->dead) >> l->peer & 1;

	if (!dead)
		mesh_fault(m, "member %u lane %u: work request %#llx: %s, after %llu messages",
			   l->peer, l->lane, (unsigned long long)wc->wr_id,
			   ibv_wc_status_str(wc->status), (unsigned long long)l->done);
	if (!l->broken)
		l->mine->status = (int)wc->status;
	else if (wc->status != IBV_WC_WR_FLUSH_ERR)
		l->mine->later = (int)wc->status;
	l->broken = true;
	atomic_store(&l->mine->broken, true);
}

static void sent(struct mesh_member *m, struct mesh_lane *l, const struct ibv_wc *wc)
{
	static const enum ibv_wc_opcode opcodes[] = {
		[MESH_WRITE] = IBV_WC_RDMA_WRITE, [MESH_WRITE_IMM] = IBV_WC_RDMA_WRITE,
		[MESH_SEND] = IBV_WC_SEND,	  [MESH_SEND_IMM] = IBV_WC_SEND,
		[MESH_READ] = IBV_WC_RDMA_READ,	  [MESH_FETCH_ADD] = IBV_WC_FETCH_ADD,
		[MESH_SWAP] = IBV_WC_COMP_SWAP,
	};
	const struct mesh_plan *plan = &m->board->plan;
	struct mesh_message msg = mesh_message(plan, m->me, l->peer, l->lane, l->done);
	uint8_t *back = slot(m, l->back, l->done);
	const char *wrong = NULL;
	uint64_t found;

	if ((wc->wr_id & NUMBER) != (l->done & NUMBER))
		mesh_fault(m, "member %u lane %u: completion of message %llu, not %llu", l->peer,
			   l->lane, (unsigned long long)(wc->wr_id & NUMBER),
			   (unsigned long long)l->done);
	if (wc->opcode != opcodes[msg.kind])
		wrong = "the completion's opcode is wrong";
	if (msg.kind == MESH_READ)
		wrong = mesh_verify(back, mesh_slot_bytes(plan), MESH_GUARD + msg.shift, msg.size,
				    mesh_mix(plan->seed, l->peer << 20 | m->me << 12 | l->lane),
				    msg.shift);
	if (msg.kind >= MESH_FETCH_ADD) {
		memcpy(&found, back + MESH_GUARD, sizeof(found));
		if (found != l->expected[l->done % MESH_WINDOW])
			wrong = "an atomic found another value: lost, or executed twice";
	}
	if (wrong)
		mesh_fault(m, "member %u lane %u message %llu of kind %d: %s", l->peer, l->lane,
			   (unsigned long long)l->done, (int)msg.kind, wrong);
	if (!mesh_receives(&msg))
		mesh_clear(back, mesh_slot_bytes(plan));
	l->done++;
	atomic_store(&l->mine->done, l->done);
}

static const char *judge(struct mesh_member *m, struct mesh_lane *l, const struct ibv_wc *wc,
			 const struct mesh_message *msg)
{
	bool imm = msg->kind != MESH_SEND,
	     send = msg->kind == MESH_SEND || msg->kind == MESH_SEND_IMM;
	uint32_t len = msg->kind == MESH_WRITE ? 0 : msg->size;
	uint8_t *in = slot(m, send ? l->received : l->in, l->taken);

	if ((wc->wr_id & NUMBER) != (l->taken & NUMBER))
		return "another receive was taken";
	if (wc->opcode != (send ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM))
		return "the completion's opcode is wrong";
	if (!(wc->wc_flags & IBV_WC_WITH_IMM) != !imm || (imm && ntohl(wc->imm_data) != msg->imm))
		return "the immediate is wrong";
	if (wc->byte_len != len)
		return "the length is wrong";
	return mesh_verify(in, mesh_slot_bytes(&m->board->plan),
			   MESH_GUARD + (send ? 0 : msg->shift), msg->size, msg->word, 0);
}

static void received(struct mesh_member *m, struct mesh_lane *l, const struct ibv_wc *wc)
{
	const struct mesh_plan *plan = &m->board->plan;
	struct mesh_message msg = mesh_message(plan, l->peer, m->me, l->lane, l->far_number);
	const char *wrong;

	while (!mesh_receives(&msg))
		msg = mesh_message(plan, l->peer, m->me, l->lane, ++l->far_number);
	wrong = judge(m, l, wc, &msg);
	if (wrong)
		mesh_fault(m, "from member %u lane %u message %llu of kind %d: %s", l->peer,
			   l->lane, (unsigned long long)l->far_number, (int)msg.kind, wrong);
	mesh_clear(slot(m, l->received, l->taken), mesh_slot_bytes(plan));
	mesh_clear(slot(m, l->in, l->taken), mesh_slot_bytes(plan));
	mesh_receive_post(m, l, l->taken + plan->receives);
	l->far_number++;
	l->taken++;
	atomic_store(&l->mine->verified, l->taken);
}

void mesh_completion(struct mesh_member *m, const struct ibv_wc *wc)
{
	uint64_t index = (wc->wr_id & ~RECEIVE) >> 32;

	if (index >= m->num_lanes || wc->qp_num != m->lanes[index].qp->qp_num)
		mesh_fault(m, "a completion of nobody: %#llx", (unsigned long long)wc->wr_id);
	if (wc->status != IBV_WC_SUCCESS)
		failed(m, &m->lanes[index], wc);
	else if (wc->wr_id & RECEIVE)
		received(m, &m->lanes[index], wc);
	else
		sent(m, &m->lanes[index], wc);
}

bool mesh_lane_over(struct mesh_member *m, struct mesh_lane *l)
{
	const struct mesh_plan *plan = &m->board->plan;
	uint64_t total = atomic_load(&l->far->total);

	if (l->broken)
		return true;
	if (atomic_load(&l->mine->total) == UINT64_MAX || l->done != l->posted ||
	    total == UINT64_MAX || atomic_load(&m->board->dead) >> l->peer & 1)
		return false;
	while (l->far_number < total) {
		struct mesh_message msg =
			mesh_message(plan, l->peer, m->me, l->lane, l->far_number);

		if (mesh_receives(&msg))
			return false;
		l->far_number++;
	}
	return l->far_number == total && atomic_load(&l->far->done) == total;
}
