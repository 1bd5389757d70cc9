/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Linux's rdma_rxe (kernel 6.1, perftest between two guests) was asked, asked again: the same
 * answers, packet for packet. The capture is not the project's: without it the test is skipped.
 */
#include "unit.h"

#include "soft_pcap.h"
#include "soft_script.h"

#include "base/banned.h"

static const char capture[] = "data/wire/rxe-6.1-perftest.pcap";
enum { RESPONDER_HOST = 2 }; /* last byte of the address of the side that answered */

struct talk {
	uint32_t qp;
	bool answers; /* else what is asked */
};

/* The next packet of the conversation about @qp in that direction. */
static bool next_of(struct soft_pcap *pcap, const struct talk *talk, struct soft_packet *ret)
{
	struct soft_pcap_packet in;

	while (soft_pcap_next(pcap, &in)) {
		assert_int_equal(soft_packet_decode(in.payload, in.payload_bytes, ret), 0);
		if (ret->dest_qp == talk->qp && (in.ip[15] == RESPONDER_HOST) == talk->answers)
			return true;
	}
	return false;
}

/* What lay at the address of an atomic, as its recorded answer tells; each has its own address. */
static void remember(struct stage *s, uint32_t qp, const struct soft_packet *p)
{
	struct soft_packet theirs;
	struct soft_pcap pcap;

	assert_true(soft_pcap_open(capture, &pcap));
	while (next_of(&pcap, &(struct talk){qp, true}, &theirs))
		if (theirs.psn == p->psn)
			memcpy(s->remote.bytes + (p->va - STAGE_VA), &theirs.original, 8);
	free(pcap.bytes);
}

static void answer_like_rxe(struct stage *s, uint32_t qp, unsigned int *ret_answers)
{
	struct soft_pcap asked, answered;
	struct soft_packet p, theirs;
	struct soft_path from = {0};
	uint64_t base = 0;
	bool first = true;

	assert_true(soft_pcap_open(capture, &asked) && soft_pcap_open(capture, &answered));
	while (next_of(&asked, &(struct talk){qp, false}, &p)) {
		uint16_t flags = soft_opcode_find(p.opcode)->flags;

		if (first) {
			s->qp.attr.rq_psn = p.psn;
			restart(s, false);
			for (uint64_t id = 0; id < 64; id++)
				assert_int_equal(stage_receive(s, id, 0, 8000, KEY_LOCAL), 0);
			base = p.va;
			first = false;
		}
		if (flags & (SOFT_HAS_RETH | SOFT_HAS_ATOMIC)) {
			/* Their address and key become ours; memory as they had it. */
			p.va = p.va - base + STAGE_VA;
			p.rkey = stage_key(s, KEY_ALL);
		}
		if (flags & SOFT_HAS_ATOMIC)
			remember(s, qp, &p);
		soft_qp_receive(&s->qp, &p, &from, 0, 1);
		(void)soft_qp_pump(&s->qp, 1 << 20, 1);
		for (; s->seen_sent < s->num_sent; s->seen_sent++, (*ret_answers)++) {
			const struct soft_packet *ours = &s->sent[s->seen_sent].p;

			MUST(next_of(&answered, &(struct talk){qp, true}, &theirs));
			MUST(ours->opcode == theirs.opcode);
			MUST(ours->psn == theirs.psn);
			MUST(ours->syndrome == theirs.syndrome ||
			     !(soft_opcode_find(ours->opcode)->flags & SOFT_HAS_AETH));
			MUST(ours->msn == theirs.msn ||
			     !(soft_opcode_find(ours->opcode)->flags & SOFT_HAS_AETH));
			MUST(ours->payload_bytes == theirs.payload_bytes);
			MUST(ours->opcode != (SOFT_RC | SOFT_ATOMIC_ACKNOWLEDGE) ||
			     ours->original == theirs.original);
		}
	}
	MUST(!next_of(&answered, &(struct talk){qp, true}, &theirs));
	free(asked.bytes);
	free(answered.bytes);
}

/* perftest of kernel 6.1: 20 each of WRITE, READ and SEND of 5000 bytes, and of FETCH_ADD. */
static void answers_what_rxe_answered(void **state)
{
	static const struct {
		const char *name;
		uint32_t qp;
		unsigned int answers;
	} talks[] = {{"rxe WRITE", 0x11, 20},
		     {"rxe READ", 0x12, 100},
		     {"rxe SEND", 0x13, 20},
		     {"rxe FETCH_ADD", 0x14, 20}};

	(void)state;
	for (size_t i = 0; i < sizeof(talks) / sizeof(talks[0]); i++) {
		struct stage *s = stage_open(SOFT_RC);
		unsigned int answers = 0;

		rule = talks[i].name;
		s->qp.attr.mtu = 1024;
		answer_like_rxe(s, talks[i].qp, &answers);
		assert_int_equal(answers, talks[i].answers);
		assert_int_equal(s->qp.state, SOFT_QP_RTS);
		stage_close(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_what_rxe_answered),
	};
	struct soft_pcap pcap;

	if (!soft_pcap_open(capture, &pcap)) {
		(void)printf("no %s in the shared folder\n", capture);
		return 77;
	}
	free(pcap.bytes);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
