/* SPDX-License-Identifier: Apache-2.0 */
/*
 * READ and atomics: accepted and checked when they arrive, an atomic executed at once, answered by
 * the pump in the order of their packet numbers. Results of atomics are kept: a duplicate gets the
 * same answer again and is never executed again.
 *
 * Memory of a READ is looked at when each response goes out. Both limits are small: answers of new
 * requests by what the QP promised (max_dest_rd_atomic), those of duplicates by as many again.
 */
#include "soft/qp/responder.h"

#include <string.h>

#include "base/banned.h"

enum { FAR_JUMBO = 64 << 10 }; /* bytes of a response from staging, through a lane */

static uint32_t promised(const struct soft_qp *qp)
{
	uint32_t n = qp->attr.max_dest_rd_atomic;

	return n < SOFT_RD_ATOMIC_MAX ? n : SOFT_RD_ATOMIC_MAX;
}

static bool room_for_new(const struct soft_qp *qp)
{
	return qp->resp.num_answers - qp->resp.num_replays < promised(qp);
}

static void insert(struct soft_responder *r, uint32_t at, const struct soft_answer *a)
{
	memmove(&r->answers[at + 1], &r->answers[at], (r->num_answers - at) * sizeof(*a));
	r->answers[at] = *a;
	r->num_answers++;
	r->num_replays += a->replay;
}

static void let_go(struct soft_answer *a)
{
	soft_parcel_free(a->parcel);
	a->parcel = NULL;
}

static void drop_first(struct soft_responder *r)
{
	let_go(&r->answers[0]);
	r->num_replays -= r->answers[0].replay;
	r->num_answers--;
	memmove(&r->answers[0], &r->answers[1], r->num_answers * sizeof(r->answers[0]));
}

void soft_answers_clear(struct soft_qp *qp)
{
	struct soft_responder *r = &qp->resp;

	for (uint32_t i = 0; i < r->num_answers; i++)
		let_go(&r->answers[i]);
	r->num_answers = r->num_replays = 0;
	if (qp->mover)
		soft_staging_forget(&qp->mover->out, &r->waiter);
}

/* A request that was accepted: its answer acknowledges all before. */
static void accept(struct soft_qp *qp, struct soft_answer *a)
{
	struct soft_responder *r = &qp->resp;

	r->expected_psn = soft_psn_add(a->psn, a->left_psn);
	r->msn = soft_psn_add(r->msn, 1);
	a->msn = r->msn;
	a->after = r->landing.added;
	/* What is before it has its effect before it has its answer. */
	soft_landing_cut(&r->landing);
	r->ack_pending = false;
	insert(r, r->num_answers, a);
}

static struct soft_answer read_answer(const struct soft_qp *qp, const struct soft_packet *p)
{
	return (struct soft_answer){
		.psn = p->psn,
		.left_psn = soft_answer_packets(qp, p->length),
		.va = p->va,
		.rkey = p->rkey,
		.left_bytes = p->length,
	};
}

/* A READ of nothing needs no valid key. */
static bool readable(const struct soft_qp *qp, const struct soft_packet *p)
{
	uint64_t va = p->va;

	return p->length == 0 ||
	       soft_responder_reach(qp, p->rkey, &va, p->length, SOFT_ACCESS_REMOTE_READ);
}

struct soft_refusal soft_answer_read(struct soft_qp *qp, const struct soft_packet *p)
{
	struct soft_answer a;

	if (p->length > SOFT_MESSAGE_MAX || !room_for_new(qp))
		return SOFT_REFUSED_INVALID;
	if (!readable(qp, p))
		return SOFT_REFUSED_ACCESS;
	qp->counters->rx_read_requests++;
	a = read_answer(qp, p);
	accept(qp, &a);
	return SOFT_EXECUTED;
}

static uint64_t execute_direct(uint64_t *at, const struct soft_packet *p)
{
	uint64_t original = p->compare;

	if ((p->opcode & 0x1f) == SOFT_FETCH_ADD)
		return __atomic_fetch_add(at, p->swap_add, __ATOMIC_SEQ_CST);
	/* On failure @original becomes what was found, on success it is that already. */
	__atomic_compare_exchange_n(at, &original, p->swap_add, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
	return original;
}

/* Memory that the processor cannot reach: atomic among queue pairs of this process only. */
static int execute_indirect(struct soft_region *region, uint64_t offset,
			    const struct soft_packet *p, uint64_t *ret_original)
{
	uint64_t value, original;
	int rc = region->ops->fetch(region, offset, &original, sizeof(original));

	if (rc < 0)
		return rc;
	value = original;
	if ((p->opcode & 0x1f) == SOFT_FETCH_ADD)
		value += p->swap_add;
	else if (original == p->compare)
		value = p->swap_add;
	if (value != original) {
		rc = region->ops->store(region, offset, &value, sizeof(value));
		if (rc < 0)
			return rc;
	}
	*ret_original = original;
	return 0;
}

struct soft_refusal soft_answer_atomic(struct soft_qp *qp, const struct soft_packet *p)
{
	struct soft_responder *r = &qp->resp;
	struct soft_answer a = {.psn = p->psn, .left_psn = 1, .atomic = true};
	struct soft_region *region;
	uint64_t va = p->va;
	void *at;

	if (!room_for_new(qp) || p->va % 8)
		return SOFT_REFUSED_INVALID;
	region = soft_responder_reach(qp, p->rkey, &va, 8, SOFT_ACCESS_REMOTE_ATOMIC);
	if (!region)
		return SOFT_REFUSED_ACCESS;
	/* As of a device that has none: to nothing else could they be atomic there. */
	if (region->copier)
		return SOFT_REFUSED_INVALID;
	at = soft_region_at(region, va);
	if ((uintptr_t)at % 8) /* an address of its own choosing over memory at another one */
		return SOFT_REFUSED_INVALID;
	if (at)
		a.va = execute_direct(at, p);
	else if (execute_indirect(region, va - region->iova, p, &a.va) < 0)
		return SOFT_REFUSED_OPERATION;
	qp->counters->rx_atomic_requests++;
	r->atomics[r->next_atomic].psn = p->psn;
	r->atomics[r->next_atomic].original = a.va;
	r->atomics[r->next_atomic].used = true;
	r->next_atomic = (r->next_atomic + 1) % SOFT_ATOMICS_KEPT;
	accept(qp, &a);
	return SOFT_EXECUTED;
}

/*
 * The answer to a duplicate takes its place by packet number. One that waits to be sent anyway is
 * not asked for twice; one that is under way starts again where the duplicate says, since the
 * requester lost what was sent.
 */
static void answer_again(struct soft_responder *r, struct soft_answer *a)
{
	uint32_t i;

	for (i = 0; i < r->num_answers; i++) {
		struct soft_answer *there = &r->answers[i];
		int32_t before = soft_psn_diff(there->psn, a->psn);

		if (before > 0 && (uint32_t)before >= a->left_psn)
			break;
		if (before > 0) {
			a->replay = there->replay;
			let_go(there);
			*there = *a;
			return;
		}
		if ((uint32_t)-before < there->left_psn)
			return;
	}
	if (r->num_replays < SOFT_ANSWERS_MAX - SOFT_RD_ATOMIC_MAX)
		insert(r, i, a);
}

void soft_answer_read_again(struct soft_qp *qp, const struct soft_packet *p)
{
	struct soft_responder *r = &qp->resp;
	struct soft_answer a;

	if (p->length > SOFT_MESSAGE_MAX || !readable(qp, p))
		return;
	a = read_answer(qp, p);
	/* It was never asked for all of this. */
	if ((int32_t)a.left_psn > soft_psn_diff(r->expected_psn, a.psn))
		return;
	a.msn = r->msn;
	/* It was answered once: what came before it has had its effect. */
	a.replay = true;
	answer_again(r, &a);
}

void soft_answer_atomic_again(struct soft_qp *qp, const struct soft_packet *p)
{
	struct soft_responder *r = &qp->resp;

	/* The newest first: packet numbers come round. */
	for (uint32_t i = 1; i <= SOFT_ATOMICS_KEPT; i++) {
		uint32_t n = (r->next_atomic + SOFT_ATOMICS_KEPT - i) % SOFT_ATOMICS_KEPT;
		struct soft_answer a = {
			.psn = p->psn, .left_psn = 1, .atomic = true, .replay = true};

		if (!r->atomics[n].used || r->atomics[n].psn != p->psn)
			continue;
		a.va = r->atomics[n].original;
		a.msn = r->msn;
		answer_again(r, &a);
		return;
	}
}

static void send_atomic(struct soft_qp *qp, const struct soft_answer *a)
{
	struct soft_packet p = {
		.opcode = SOFT_RC | SOFT_ATOMIC_ACKNOWLEDGE,
		.migrated = true,
		.pkey = qp->attr.pkey,
		.dest_qp = qp->attr.remote_qpn,
		.psn = a->psn,
		.syndrome = SOFT_AETH_ACK,
		.msn = a->msn,
		.original = a->va,
	};

	qp->ops->send(qp, &qp->path, &p, NULL, 0);
}

static uint8_t response_opcode(const struct soft_answer *a, uint32_t count)
{
	if (a->left_psn == count)
		return SOFT_RC | (a->started ? SOFT_READ_RESPONSE_LAST : SOFT_READ_RESPONSE_ONLY);
	return SOFT_RC | (a->started ? SOFT_READ_RESPONSE_MIDDLE : SOFT_READ_RESPONSE_FIRST);
}

/* Bytes that the next response brings: on the wire a packet's. */
static uint32_t response_bytes(struct soft_qp *qp, const struct soft_answer *a)
{
	uint32_t most = qp->attr.mtu;
	struct soft_region *region = NULL;
	uint64_t va = a->va;

	if (qp->jumbo >= 2 * most && !a->atomic && a->left_bytes > most)
		region = soft_responder_reach(qp, a->rkey, &va, a->left_bytes,
					      SOFT_ACCESS_REMOTE_READ);
	/* Of memory that the processor cannot address a packet's bytes are fetched at a time; what
	 * is in staging goes through the lane: nobody says when it was read. */
	if (region && soft_region_at(region, va))
		most = qp->jumbo / most * most;
	else if (region && region->copier && !a->parcel && soft_responder_shows(qp, region))
		most = qp->jumbo / most * most;
	else if (region && region->copier && qp->jumbo / most > 0)
		most = (qp->jumbo < FAR_JUMBO ? qp->jumbo : FAR_JUMBO) / most * most;
	if (a->parcel && a->parcel->offset + a->parcel->len - a->va < most)
		most = (uint32_t)(a->parcel->offset + a->parcel->len - a->va);
	return a->left_bytes < most ? a->left_bytes : most;
}

/* The next response of a READ. */
static struct soft_refusal send_read(struct soft_qp *qp, struct soft_answer *a, uint32_t bytes)
{
	uint32_t count = soft_answer_packets(qp, bytes);
	uint8_t bounce[SOFT_MTU_MAX];
	struct iovec piece = {.iov_len = bytes};
	struct soft_packet p = {
		.opcode = response_opcode(a, count),
		.packets = count,
		.migrated = true,
		.pkey = qp->attr.pkey,
		.dest_qp = qp->attr.remote_qpn,
		.psn = a->psn,
		.syndrome = SOFT_AETH_ACK,
		.msn = a->msn,
		.payload_bytes = bytes,
	};
	struct soft_region *region;
	struct soft_direct direct;
	uint64_t va = a->va;

	if (bytes) {
		region = soft_responder_reach(qp, a->rkey, &va, bytes, SOFT_ACCESS_REMOTE_READ);
		if (!region)
			return SOFT_REFUSED_ACCESS;
		piece.iov_base = soft_region_at(region, va);
		p.stays = piece.iov_base != NULL;
		if (a->parcel && a->parcel->rc)
			return SOFT_REFUSED_OPERATION;
		if (a->parcel)
			piece.iov_base = a->parcel->at + (a->va - a->parcel->offset);
		if (!piece.iov_base && region->copier && soft_responder_shows(qp, region)) {
			direct = soft_region_direct(qp->mover->shelf, region, region->loan, va);
			p.direct = &direct;
			qp->direct_bytes += bytes;
			qp->is_direct = true;
		} else if (!piece.iov_base) {
			if (bytes > sizeof(bounce) ||
			    region->ops->fetch(region, va - region->iova, bounce, bytes) < 0)
				return SOFT_REFUSED_OPERATION;
			piece.iov_base = bounce;
		}
	}
	/* The application may write there meanwhile: what is summed must be what is sent. */
	qp->ops->send(qp, &qp->path, &p, &piece, bytes && !p.direct ? 1 : 0);
	qp->counters->sent_data_bytes += bytes;
	qp->staged_bytes += a->parcel ? bytes : 0;
	a->started = true;
	a->va += bytes;
	a->left_bytes -= bytes;
	if (a->parcel && a->va == a->parcel->offset + a->parcel->len)
		let_go(a);
	return SOFT_EXECUTED;
}

bool soft_answer_pump(struct soft_qp *qp, size_t *budget)
{
	struct soft_responder *r = &qp->resp;

	while (r->num_answers > 0) {
		struct soft_answer *a = &r->answers[0];
		struct soft_refusal why = SOFT_EXECUTED;
		uint32_t bytes, count;
		size_t cost;

		if (soft_qp_may_be_far(qp) && !soft_answer_is_here(qp))
			return false;
		if (*budget == 0)
			return true;
		bytes = response_bytes(qp, a);
		count = soft_answer_packets(qp, bytes);
		cost = bytes + SOFT_HEADER_MAX;
		*budget -= cost < *budget ? cost : *budget;
		if (a->atomic)
			send_atomic(qp, a);
		else
			why = send_read(qp, a, bytes);
		if (why.syndrome && !a->replay) {
			uint32_t psn = a->psn;

			/* What waits behind is lost with the QP. */
			soft_answers_clear(qp);
			soft_responder_refuse(qp, why, psn);
			return false;
		}
		a->psn = soft_psn_add(a->psn, count);
		a->left_psn -= count;
		if (why.syndrome || a->left_psn == 0)
			drop_first(r);
	}
	return false;
}
