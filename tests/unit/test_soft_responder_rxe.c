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

/* The ones' complement of @sum with @word more. */
static uint32_t sum_more(uint32_t sum, uint32_t word)
{
	sum += word;
	return (sum & 0xffff) + (sum >> 16);
}

/*
 * UD SENDs of rxe: payload, and the IP header as it was on the wire but for what a socket does not
 * show: the identification counts as 0, in the checksum too (RFC 1624).
 */
static void receives_datagrams_of_rxe(void **state)
{
	struct stage *s = stage_open(SOFT_UD);
	struct soft_pcap_packet in;
	struct soft_pcap pcap;
	unsigned int received = 0;

	(void)state;
	assert_true(soft_pcap_open(capture, &pcap));
	while (soft_pcap_next(&pcap, &in)) {
		struct soft_gid src = {{[10] = 0xff, 0xff}}, dst = src;
		struct soft_path from = {.hop_limit = in.ip[8]};
		const uint8_t *header = s->local.bytes + 20;
		struct soft_packet p;
		struct soft_cqe cqe;
		uint32_t sum;

		assert_int_equal(soft_packet_decode(in.payload, in.payload_bytes, &p), 0);
		if ((p.opcode & 0xe0) != SOFT_UD)
			continue;
		memcpy(src.raw + 12, in.ip + 12, 4);
		memcpy(dst.raw + 12, in.ip + 16, 4);
		soft_icrc_flow_init(&from.flow, &src, &dst, 0xc000);
		assert_int_equal(stage_receive(s, received, 0, 4096, KEY_LOCAL), 0);
		soft_qp_receive(&s->qp, &p, &from, in.ip[1], 1);
		assert_int_equal(soft_cq_pop(&s->recv_cq, &cqe, 1), 1);
		assert_int_equal(cqe.byte_len, 40 + p.payload_bytes);
		assert_int_equal(cqe.src_qp, p.src_qp);
		assert_memory_equal(s->local.bytes + 40, p.payload, p.payload_bytes);
		assert_memory_equal(header, in.ip, 4);
		assert_int_equal(header[4] | header[5], 0);
		assert_memory_equal(header + 6, in.ip + 6, 4);
		assert_memory_equal(header + 12, in.ip + 12, 8);
		sum = sum_more(in.ip[10] * 256U + in.ip[11], in.ip[4] * 256U + in.ip[5]);
		assert_int_equal(header[10] * 256U + header[11], sum);
		received++;
	}
	free(pcap.bytes);
	assert_int_equal(received, 20);
	stage_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_what_rxe_answered),
		cmocka_unit_test(receives_datagrams_of_rxe),
	};
	int missing = soft_pcap_missing(capture);

	return missing ? missing : cmocka_run_group_tests(tests, NULL, NULL);
}
