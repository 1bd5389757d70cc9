/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests that Linux's rdma_rxe (kernel 6.1, perftest between two guests) put on the wire,
 * made by this requester from the same work requests: packet by packet the same. The capture is
 * not the project's: without it the test is skipped.
 */
#include "unit.h"

#include "soft/wire/psn.h"
#include "soft_pcap.h"
#include "soft_sim.h"

static const char capture[] = "data/wire/rxe-6.1-perftest.pcap";

enum { STREAMS = 16, REQUESTS = 512, MTU = 1024, MEMORY = 1 << 20 };

/* Requests of one queue pair, in order. */
struct stream {
	uint32_t src_ip, dest_qp;
	struct soft_packet packets[REQUESTS];
	unsigned int num;
};

static struct stream streams[STREAMS];
static unsigned int num_streams;

static struct stream *stream_of(uint32_t src_ip, uint32_t dest_qp)
{
	struct stream *s;

	for (unsigned int i = 0; i < num_streams; i++)
		if (streams[i].src_ip == src_ip && streams[i].dest_qp == dest_qp)
			return &streams[i];
	assert_true(num_streams < STREAMS);
	s = &streams[num_streams++];
	s->src_ip = src_ip;
	s->dest_qp = dest_qp;
	return s;
}

static void read_streams(void)
{
	struct soft_pcap pcap = {0};
	struct soft_pcap_packet in;

	assert_true(soft_pcap_open(capture, &pcap));
	while (soft_pcap_next(&pcap, &in)) {
		struct soft_packet p;
		struct stream *s;

		assert_int_equal(soft_packet_decode(in.payload, in.payload_bytes, &p), 0);
		if ((p.opcode & 0xe0) != SOFT_RC ||
		    soft_opcode_find(p.opcode)->flags & SOFT_IS_RESPONSE)
			continue;
		s = stream_of(soft_pcap_word(in.ip + 12), p.dest_qp);
		assert_true(s->num < REQUESTS);
		s->packets[s->num++] = p;
	}
	free(pcap.bytes);
}

/* The work request whose first packet is @at; bytes of a SEND are counted to its last packet. */
static struct soft_send_wr request_of(const struct stream *s, unsigned int at, uint32_t *ret_bytes)
{
	const struct soft_packet *p = &s->packets[at];
	struct soft_send_wr wr = {.flags = SOFT_WR_SIGNALED};
	unsigned int flags = soft_opcode_find(p->opcode)->flags;

	wr.rc.remote_addr = p->va;
	wr.rc.rkey = p->rkey;
	*ret_bytes = p->length;
	if (flags & SOFT_HAS_ATOMIC) {
		bool add = p->opcode == SOFT_FETCH_ADD;

		wr.opcode = add ? SOFT_WR_FETCH_ADD : SOFT_WR_COMPARE_SWAP;
		wr.rc.compare_add = add ? p->swap_add : p->compare;
		wr.rc.swap = p->swap_add;
		*ret_bytes = 8;
	} else if (flags & SOFT_IS_READ) {
		wr.opcode = SOFT_WR_READ;
	} else if (flags & SOFT_IS_WRITE) {
		wr.opcode = SOFT_WR_WRITE;
	} else {
		wr.opcode = SOFT_WR_SEND;
		*ret_bytes = 0;
		do {
			*ret_bytes += s->packets[at].payload_bytes;
		} while (!(soft_opcode_find(s->packets[at++].opcode)->flags & SOFT_IS_LAST));
	}
	return wr;
}

static void answer(struct soft_sim_end *end, const struct soft_send_wr *wr, uint32_t psn,
		   uint32_t bytes)
{
	static const uint8_t zeros[MTU];
	struct soft_packet p = {.opcode = SOFT_ACKNOWLEDGE, .syndrome = 0x1f, .payload = zeros};
	uint32_t n = bytes ? (bytes + MTU - 1) / MTU : 1;

	p.psn = soft_psn_add(psn, n - 1);
	if (wr->opcode == SOFT_WR_FETCH_ADD || wr->opcode == SOFT_WR_COMPARE_SWAP)
		p.opcode = SOFT_ATOMIC_ACKNOWLEDGE;
	for (uint32_t i = 0; i < n && wr->opcode == SOFT_WR_READ; i++) {
		p.psn = soft_psn_add(psn, i);
		p.payload_bytes = i + 1 < n ? MTU : bytes - i * MTU;
		p.opcode = n == 1      ? SOFT_READ_RESPONSE_ONLY
			   : i == 0    ? SOFT_READ_RESPONSE_FIRST
			   : i + 1 < n ? SOFT_READ_RESPONSE_MIDDLE
				       : SOFT_READ_RESPONSE_LAST;
		if (i + 1 < n)
			soft_qp_receive(&end->qp, &p, &end->qp.path, 0, end->sim->now);
	}
	soft_qp_receive(&end->qp, &p, &end->qp.path, 0, end->sim->now);
	soft_sim_pump(end);
}

static void same(const struct soft_packet *ours, const struct soft_packet *theirs)
{
	assert_int_equal(ours->opcode, theirs->opcode);
	assert_int_equal(ours->psn, theirs->psn);
	assert_int_equal(ours->payload_bytes, theirs->payload_bytes);
	assert_int_equal(ours->pkey, theirs->pkey);
	assert_int_equal(ours->solicited, theirs->solicited);
	/* It may ask more often, never less. */
	if (theirs->ack_request)
		assert_true(ours->ack_request);
	if (soft_opcode_find(ours->opcode)->flags & (SOFT_HAS_RETH | SOFT_HAS_ATOMIC)) {
		assert_true(ours->va == theirs->va);
		assert_int_equal(ours->rkey, theirs->rkey);
	}
	if (soft_opcode_find(ours->opcode)->flags & SOFT_HAS_RETH)
		assert_int_equal(ours->length, theirs->length);
	if (soft_opcode_find(ours->opcode)->flags & SOFT_HAS_ATOMIC) {
		assert_true(ours->swap_add == theirs->swap_add);
		assert_true(ours->compare == theirs->compare);
	}
}

static unsigned int replay(const struct stream *s)
{
	struct soft_sim_attr attr = soft_sim_attr();
	uint8_t *memory = calloc(1, MEMORY);
	struct soft_sim_node node;
	struct soft_sim_end end;
	struct soft_sim sim;
	unsigned int at = 0;
	uint32_t key;

	assert_non_null(memory);
	attr.mtu = MTU;
	attr.sq_psn = s->packets[0].psn;
	soft_sim_init(&sim, 1);
	soft_sim_node_init(&node, 1 << 24);
	key = soft_sim_register(&node, memory, MEMORY, SOFT_ACCESS_LOCAL_WRITE, soft_sim_pd);
	soft_sim_end_init(&sim, &end, &node, &attr);
	soft_sim_alone(&end);
	while (at < s->num) {
		struct soft_sge sge = {(uint64_t)(uintptr_t)memory, 0, key};
		uint32_t psn = s->packets[at].psn, bytes;
		struct soft_send_wr wr = request_of(s, at, &bytes);

		sge.length = bytes;
		wr.num_sge = 1;
		end.num_sent = 0;
		assert_true(bytes <= MEMORY);
		assert_true(soft_sim_post(&end, &wr, &sge));
		soft_sim_pump(&end);
		/* The capture ends within a message. */
		for (unsigned int i = 0; i < end.num_sent && at < s->num; i++)
			same(&end.sent[i].p, &s->packets[at++]);
		answer(&end, &wr, psn, bytes);
	}
	soft_sim_end_done(&end);
	soft_sim_node_done(&node);
	soft_sim_done(&sim);
	free(memory);
	return at;
}

static void requests_are_the_same(void **state)
{
	unsigned int packets = 0;

	(void)state;
	read_streams();
	for (unsigned int i = 0; i < num_streams; i++)
		packets += replay(&streams[i]);
	/* SEND 20 + 60 + 20, WRITE 21 + 99 + 20, READ 20, FETCH_ADD 20 (test_soft_rxe.c). */
	assert_int_equal(packets, 280);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_are_the_same),
	};
	int missing = soft_pcap_missing(capture);

	return missing ? missing : cmocka_run_group_tests(tests, NULL, NULL);
}
