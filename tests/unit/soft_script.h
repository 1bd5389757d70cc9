/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripts for a responder: packets in, what must come out, what memory must hold. A script that
 * ends must have named everything that was sent, completed or told.
 */
#ifndef PP_TESTS_SOFT_SCRIPT_H
#define PP_TESTS_SOFT_SCRIPT_H

#include "soft/wire/psn.h"
#include "soft_stage.h"

#define P STAGE_PSN

enum what {
	END,
	RECEIVE_,
	IN_,
	TURN_,
	OUT_,
	CQE_,
	EVENT_,
	STATE_,
	HELD_,	 /* remote memory has the payload of packet .psn at .va */
	BUFFER_, /* receive buffers do */
	OLD_,	 /* remote memory is as it was */
	POKE_,
	VALUE_, /* eight bytes of remote memory */
	ERASE_, /* a region goes */
	ALLOW_, /* what the QP lets its peer do */
	RTR_,	/* back to before the first packet */
	ATOMS_, /* .len fetch-and-adds from .psn on, with their answers */
	RESET_,
};

struct step {
	enum what what;
	uint8_t op;
	uint32_t psn, len, rlen, msn, imm;
	uint64_t va, add, compare;
	enum stage_key key;
	bool ack, solicited, again;
	uint8_t syndrome, tc;
	uint32_t id, status, wc_opcode;
};

#define RECEIVE(id_, bytes)                                                 \
	{                                                                   \
		.what = RECEIVE_, .id = id_, .len = bytes, .key = KEY_LOCAL \
	}
#define RECEIVE_BY(k, id_, bytes)                                   \
	{                                                           \
		.what = RECEIVE_, .id = id_, .len = bytes, .key = k \
	}
#define IN(op_, psn_, ...)                                                \
	{                                                                 \
		.what = IN_, .op = SOFT_##op_, .psn = (psn_), __VA_ARGS__ \
	}
#define TURN                  \
	{                     \
		.what = TURN_ \
	}
#define TURN_OF(bytes)                                     \
	{                                                  \
		.what = TURN_, .len = bytes, .again = true \
	}
#define OUT(op_, psn_, msn_, ...)                                                             \
	{                                                                                     \
		.what = OUT_, .op = SOFT_##op_, .psn = (psn_), .msn = msn_, .syndrome = 0x1f, \
		__VA_ARGS__                                                                   \
	}
#define NAK(syndrome_, psn_, msn_)                                                \
	{                                                                         \
		.what = OUT_, .op = SOFT_ACKNOWLEDGE, .psn = (psn_), .msn = msn_, \
		.syndrome = syndrome_                                             \
	}
#define CQE(id_, bytes, ...)                                                                  \
	{                                                                                     \
		.what = CQE_, .id = id_, .len = bytes, .wc_opcode = SOFT_WC_RECV, __VA_ARGS__ \
	}
#define CQE_WRITE(id_, bytes, imm_)                                 \
	{                                                           \
		.what = CQE_, .id = id_, .len = bytes, .imm = imm_, \
		.wc_opcode = SOFT_WC_RECV_WRITE_IMM                 \
	}
#define CQE_BAD(id_, status_)                                        \
	{                                                            \
		.what = CQE_, .id = id_, .status = SOFT_WC_##status_ \
	}
#define EVENT(e)                                        \
	{                                               \
		.what = EVENT_, .id = SOFT_QP_EVENT_##e \
	}
#define STATE(s)                                  \
	{                                         \
		.what = STATE_, .id = SOFT_QP_##s \
	}
#define HELD(va_, bytes, psn_)                                        \
	{                                                             \
		.what = HELD_, .va = va_, .len = bytes, .psn = (psn_) \
	}
#define BUFFER(va_, bytes, psn_)                                        \
	{                                                               \
		.what = BUFFER_, .va = va_, .len = bytes, .psn = (psn_) \
	}
#define OLD(va_, bytes)                               \
	{                                             \
		.what = OLD_, .va = va_, .len = bytes \
	}
#define POKE(va_, value)                               \
	{                                              \
		.what = POKE_, .va = va_, .add = value \
	}
#define VALUE(va_, value)                               \
	{                                               \
		.what = VALUE_, .va = va_, .add = value \
	}
#define ERASE(k)                         \
	{                                \
		.what = ERASE_, .key = k \
	}
#define ALLOW(a)                        \
	{                               \
		.what = ALLOW_, .id = a \
	}

#define LAST_NAK(syndrome_, psn_, msn_) NAK(syndrome_, psn_, msn_), STATE(ERR)

struct row {
	const char *rule;
	struct step steps[40];
};

static const char *rule;
static unsigned int step_number;

#define MUST(condition)                                                             \
	do {                                                                        \
		if (!(condition))                                                   \
			fail_msg("%s, step %u: %s", rule, step_number, #condition); \
	} while (0)

static inline uint64_t value_at(const struct stage *s, uint64_t va)
{
	uint64_t value;

	memcpy(&value, s->remote.bytes + va, sizeof(value));
	return value;
}

static inline void give(struct stage *s, const struct step *t)
{
	uint8_t payload[SOFT_MTU_MAX];
	struct soft_path from = {0};
	struct soft_packet p = {
		.opcode = SOFT_RC | t->op,
		.dest_qp = STAGE_QP,
		.psn = t->psn,
		.pkey = 0xffff,
		.ack_request = t->ack,
		.solicited = t->solicited,
		.va = STAGE_VA + t->va,
		.rkey = stage_key(s, t->key),
		.length = t->rlen,
		.swap_add = t->add,
		.compare = t->compare,
		.imm_be = t->imm,
		.payload = payload,
		.payload_bytes = t->len,
	};

	for (uint32_t i = 0; i < t->len; i++)
		payload[i] = stage_byte(t->psn, i);
	soft_qp_receive(&s->qp, &p, &from, t->tc, 1);
	/* Nothing may be kept of what was borrowed. */
	memset(payload, 0xdd, sizeof(payload));
}

static inline void expect_out(struct stage *s, const struct step *t)
{
	const struct stage_sent *sent = &s->sent[s->seen_sent];
	uint16_t flags = soft_opcode_find(t->op)->flags;

	MUST(s->seen_sent < s->num_sent);
	s->seen_sent++;
	MUST(sent->p.opcode == (SOFT_RC | t->op));
	MUST(sent->p.psn == t->psn);
	/* A notification is told by BECN alone (A17.9.3). */
	MUST(sent->p.becn == (t->op == SOFT_CNP) && !sent->p.fecn && !sent->p.ack_request);
	MUST(sent->p.dest_qp == STAGE_PEER && sent->p.pkey == 0xffff);
	if (flags & SOFT_HAS_AETH) {
		MUST(sent->p.syndrome == t->syndrome);
		MUST(sent->p.msn == t->msn);
	}
	if (flags & SOFT_HAS_ATOMIC_ACK)
		MUST(sent->p.original == t->add);
	MUST(sent->p.payload_bytes == t->len);
	MUST(memcmp(sent->payload, s->remote.bytes + t->va, t->len) == 0);
}

static inline void expect_cqe(struct stage *s, const struct step *t)
{
	struct soft_cqe cqe;

	MUST(soft_cq_pop(&s->recv_cq, &cqe, 1) == 1);
	MUST(cqe.wr_id == t->id);
	MUST(cqe.status == t->status);
	MUST(cqe.qp_num == STAGE_QP);
	if (t->status)
		return;
	MUST(cqe.opcode == t->wc_opcode);
	MUST(cqe.byte_len == t->len);
	MUST(cqe.flags == (t->imm ? SOFT_WC_WITH_IMM : 0U));
	MUST(cqe.imm_be == t->imm);
	MUST(cqe.solicited == t->solicited);
}

static inline void expect_bytes(const struct stage_memory *m, const struct step *t, uint32_t seed,
				uint32_t first)
{
	for (uint32_t i = 0; i < t->len; i++)
		MUST(m->bytes[t->va + i] == stage_byte(seed, first + i));
}

static inline void restart(struct stage *s, bool only_rtr)
{
	soft_qp_reset(&s->qp);
	soft_qp_to_rtr(&s->qp);
	if (!only_rtr)
		soft_qp_to_rts(&s->qp);
}

static inline void many_atomics(struct stage *s, const struct step *t)
{
	for (uint32_t i = 0; i < t->len; i++) {
		struct step in = IN(FETCH_ADD, t->psn + i, .va = t->va, .add = 1);
		struct step out = OUT(ATOMIC_ACKNOWLEDGE, t->psn + i, i + 1, .add = i);

		give(s, &in);
		(void)soft_qp_pump(&s->qp, 1 << 20, 1);
		expect_out(s, &out);
	}
}

static inline void play(struct stage *s, const struct step *t)
{
	switch (t->what) {
	case RECEIVE_:
		MUST(stage_receive(s, t->id, (t->id - 1) * 1024, t->len, t->key) == 0);
		break;
	case IN_:
		give(s, t);
		break;
	case TURN_:
		MUST(soft_qp_pump(&s->qp, t->len ? t->len : 1 << 20, 1) == t->again);
		break;
	case OUT_:
		expect_out(s, t);
		break;
	case CQE_:
		expect_cqe(s, t);
		break;
	case EVENT_:
		MUST(s->seen_events < s->num_events && s->events[s->seen_events] == t->id);
		s->seen_events++;
		break;
	case STATE_:
		MUST(s->qp.state == t->id);
		break;
	case HELD_:
		expect_bytes(&s->remote, t, t->psn, 0);
		break;
	case BUFFER_:
		expect_bytes(&s->local, t, t->psn, 0);
		break;
	case OLD_:
		expect_bytes(&s->remote, t, 1, (uint32_t)t->va);
		break;
	case POKE_:
		memcpy(s->remote.bytes + t->va, &t->add, sizeof(t->add));
		break;
	case VALUE_:
		MUST(value_at(s, t->va) == t->add);
		break;
	case ERASE_:
		soft_regions_remove(s->regions, &s->region[t->key]);
		break;
	case ALLOW_:
		s->qp.attr.access = t->id;
		break;
	case ATOMS_:
		many_atomics(s, t);
		break;
	case RTR_:
	case RESET_:
		restart(s, t->what == RTR_);
		break;
	case END:
		break;
	}
}

/* Nothing was said, completed or told beyond what the script expects. */
static inline void nothing_else(struct stage *s)
{
	MUST(s->seen_sent == s->num_sent);
	MUST(soft_cq_empty(&s->recv_cq) && soft_cq_empty(&s->send_cq));
	MUST(s->seen_events == s->num_events);
	MUST(stage_guards_whole(s));
}

static inline void play_rows(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct stage *s = stage_open(SOFT_RC);

		rule = rows[i].rule;
		for (step_number = 0; step_number < 40; step_number++)
			play(s, &rows[i].steps[step_number]);
		nothing_else(s);
		stage_close(s);
	}
}

#endif
