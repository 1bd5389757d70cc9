/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unreliable datagrams both ways, by the InfiniBand Architecture Specification (volume 1, 9.8.3,
 * 10.2.5 for queue keys; annex A17.4.5.1 for the first 40 bytes). Recorded ones of rdma_rxe:
 * test_soft_responder_rxe.c.
 */
#include "unit.h"

#include "soft_stage.h"

#include "base/banned.h"

enum { GRH = 40, QKEY = 0x11111111 };

static const struct soft_gid v4_src = {{[10] = 0xff, 0xff, 192, 0, 2, 1}};
static const struct soft_gid v4_dst = {{[10] = 0xff, 0xff, 192, 0, 2, 99}};
static const struct soft_gid v6_src = {{0x20, 1, 0xd, 0xb8, [15] = 1}};
static const struct soft_gid v6_dst = {{0x20, 1, 0xd, 0xb8, [15] = 2}};

static struct soft_path path_of(const struct soft_gid *src, const struct soft_gid *dst)
{
	struct soft_path path = {.hop_limit = 64};

	soft_icrc_flow_init(&path.flow, src, dst, 0xc123);
	return path;
}

/* RFC 1071: a right header sums to ones. */
static uint32_t header_sum(const uint8_t *h)
{
	uint32_t sum = 0;

	for (int i = 0; i < 20; i += 2)
		sum += (uint32_t)(h[i] * 256 + h[i + 1]);
	while (sum > 0xffff)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* ---- In ---- */

struct arrival {
	const char *what;
	uint32_t qkey, buffer, bytes; /* buffer 0: no receive request */
	enum stage_key key;
	bool imm;
	/* Expected: */
	bool completes;
	uint32_t status;
	struct soft_counters counters;
};

static const struct arrival arrivals[] = {
	{"fits",
	 QKEY,
	 GRH + 100,
	 100,
	 KEY_LOCAL,
	 false,
	 true,
	 0,
	 {.rx_sends = 1, .received_data_bytes = 100}},
	{"room to spare, immediate",
	 QKEY,
	 1000,
	 5,
	 KEY_LOCAL,
	 true,
	 true,
	 0,
	 {.rx_sends = 1, .received_data_bytes = 5}},
	{"nothing in it", QKEY, GRH, 0, KEY_LOCAL, false, true, 0, {.rx_sends = 1}},
	{"wrong queue key",
	 QKEY + 1,
	 GRH + 100,
	 100,
	 KEY_LOCAL,
	 false,
	 false,
	 0,
	 {.qkey_violations = 1}},
	{"nowhere to go", QKEY, 0, 100, KEY_LOCAL, false, false, 0, {.out_of_buffer = 1}},
	{"one byte too long",
	 QKEY,
	 GRH + 99,
	 100,
	 KEY_LOCAL,
	 false,
	 false,
	 0,
	 {.datagrams_too_long = 1}},
	{"no room for the first 40",
	 QKEY,
	 GRH - 1,
	 0,
	 KEY_LOCAL,
	 false,
	 false,
	 0,
	 {.datagrams_too_long = 1}},
	{"buffers that may not be written",
	 QKEY,
	 200,
	 100,
	 KEY_SEALED,
	 false,
	 true,
	 SOFT_WC_LOC_PROT_ERR,
	 {0}},
};

static void arrives(const struct arrival *a, const struct soft_path *from)
{
	struct stage *s = stage_open(SOFT_UD);
	uint8_t payload[SOFT_MTU_MAX];
	struct soft_packet p = {
		.opcode = SOFT_UD | (a->imm ? SOFT_SEND_ONLY_IMM : SOFT_SEND_ONLY),
		.qkey = a->qkey,
		.src_qp = 0xabcdef,
		.imm_be = a->imm ? 0x12345678 : 0,
		.payload = payload,
		.payload_bytes = a->bytes,
		.solicited = true,
	};
	struct soft_cqe cqe;

	for (uint32_t i = 0; i < a->bytes; i++)
		payload[i] = stage_byte(9, i);
	if (a->buffer)
		assert_int_equal(stage_receive(s, 5, 0, a->buffer, a->key), 0);
	soft_qp_receive(&s->qp, &p, from, 0x20, 1);
	(void)soft_qp_pump(&s->qp, 1 << 20, 1);
	if (soft_cq_pop(&s->recv_cq, &cqe, 1) != a->completes)
		fail_msg("%s", a->what);
	if (a->completes) {
		assert_int_equal(cqe.wr_id, 5);
		assert_int_equal(cqe.status, a->status);
	}
	if (a->completes && !a->status) {
		assert_int_equal(cqe.opcode, SOFT_WC_RECV);
		assert_int_equal(cqe.byte_len, GRH + a->bytes);
		assert_int_equal(cqe.src_qp, 0xabcdef);
		assert_int_equal(cqe.flags, SOFT_WC_GRH | (a->imm ? SOFT_WC_WITH_IMM : 0));
		assert_int_equal(cqe.imm_be, p.imm_be);
		assert_true(cqe.solicited);
		assert_memory_equal(s->local.bytes + GRH, payload, a->bytes);
		assert_int_equal(s->local.bytes[GRH + a->bytes], stage_byte(2, GRH + a->bytes));
	}
	assert_int_equal(s->qp.state, a->status ? SOFT_QP_ERR : SOFT_QP_RTS);
	/* What was dropped left its receive request for the next. */
	assert_int_equal(soft_recv_queue_head(s->qp.resp.rq) != NULL, !a->completes && a->buffer);
	assert_memory_equal(&s->counters, &a->counters, sizeof(s->counters));
	assert_int_equal(s->num_sent, 0);
	assert_true(stage_guards_whole(s));
	stage_close(s);
}

static void arriving(void **state)
{
	struct soft_path v4 = path_of(&v4_src, &v4_dst), v6 = path_of(&v6_src, &v6_dst);

	(void)state;
	for (size_t i = 0; i < sizeof(arrivals) / sizeof(arrivals[0]); i++) {
		arrives(&arrivals[i], &v4);
		arrives(&arrivals[i], &v6);
	}
}

static void first_forty_bytes(void **state)
{
	static const uint8_t zero[20];
	/* RFC 791 and RFC 8200 by hand: 5 bytes of payload and 3 of pad behind BTH and DETH. */
	static const uint8_t v4[20] = {
		0x45, 0x20, 0, 20 + 8 + 20 + 8 + 4, 0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192,
		0,    2,    99};
	static const uint8_t v6[8] = {0x62, 0, 0, 0, 0, 8 + 20 + 8 + 4, 17, 64};
	struct soft_packet p = {.opcode = SOFT_UD | SOFT_SEND_ONLY,
				.qkey = QKEY,
				.payload = (const uint8_t *)"abcde",
				.payload_bytes = 5};

	(void)state;
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		struct stage *s = stage_open(SOFT_UD);
		struct soft_path from =
			ipv6 ? path_of(&v6_src, &v6_dst) : path_of(&v4_src, &v4_dst);
		uint8_t *grh = s->local.bytes;

		assert_int_equal(stage_receive(s, 1, 0, 100, KEY_LOCAL), 0);
		soft_qp_receive(&s->qp, &p, &from, 0x20, 1);
		if (ipv6) {
			assert_memory_equal(grh, v6, 8);
			assert_memory_equal(grh + 8, v6_src.raw, 16);
			assert_memory_equal(grh + 24, v6_dst.raw, 16);
		} else {
			assert_memory_equal(grh, zero, 20);
			assert_int_equal(header_sum(grh + 20), 0xffff);
			grh[20 + 10] = grh[20 + 11] = 0;
			assert_memory_equal(grh + 20, v4, 20);
		}
		stage_close(s);
	}
}

static void other_packets_are_no_datagrams(void **state)
{
	struct stage *s = stage_open(SOFT_UD);
	struct soft_path from = path_of(&v4_src, &v4_dst);

	(void)state;
	assert_int_equal(stage_receive(s, 1, 0, 200, KEY_LOCAL), 0);
	for (unsigned int opcode = 0; opcode < 256; opcode++) {
		struct soft_packet p = {.opcode = (uint8_t)opcode, .qkey = QKEY};

		if (opcode == 0x64 || opcode == 0x65)
			continue;
		soft_qp_receive(&s->qp, &p, &from, 0, 1);
	}
	(void)soft_qp_pump(&s->qp, 1 << 20, 1);
	assert_true(soft_cq_empty(&s->recv_cq));
	assert_int_equal(s->num_sent, 0);
	assert_int_equal(s->qp.state, SOFT_QP_RTS);
	stage_close(s);
}

/* ---- Out ---- */

static struct soft_send_wr *post(struct stage *s, uint64_t id, uint32_t bytes, enum stage_key key)
{
	struct soft_send_queue *q = &s->qp.req.sq;
	struct soft_send_wr *wr = soft_send_queue_next(q);

	assert_non_null(wr);
	memset(wr, 0, sizeof(*wr));
	wr->id = id;
	wr->opcode = SOFT_WR_SEND;
	wr->length = bytes;
	wr->num_sge = bytes ? 1 : 0;
	wr->ud.path = path_of(&v4_src, &v4_dst);
	wr->ud.remote_qpn = 0x123456;
	wr->ud.qkey = 0x22222222;
	soft_send_wr_sges(wr)[0] = (struct soft_sge){STAGE_BUFFERS + 64, bytes, stage_key(s, key)};
	q->posted++;
	return wr;
}

static unsigned int completed(struct stage *s, uint64_t id, uint32_t status)
{
	struct soft_cqe cqe;

	assert_int_equal(soft_cq_pop(&s->send_cq, &cqe, 1), 1);
	assert_int_equal(cqe.wr_id, id);
	assert_int_equal(cqe.status, status);
	return cqe.opcode;
}

static void sending(void **state)
{
	struct stage *s = stage_open(SOFT_UD);
	const struct stage_sent *sent = s->sent;
	struct soft_send_wr *wr;

	(void)state;
	post(s, 1, 100, KEY_LOCAL);
	wr = post(s, 2, 0, KEY_LOCAL);
	wr->opcode = SOFT_WR_SEND_IMM;
	wr->imm_be = 0x01020304;
	wr->flags = SOFT_WR_SOLICITED;
	wr->ud.qkey = 0x80000005; /* the QP's own is meant */
	assert_false(soft_qp_pump(&s->qp, 1 << 20, 1));
	assert_int_equal(s->num_sent, 2);
	assert_int_equal(sent[0].p.opcode, 0x64);
	assert_int_equal(sent[0].p.dest_qp, 0x123456);
	assert_int_equal(sent[0].p.src_qp, STAGE_QP);
	assert_int_equal(sent[0].p.qkey, 0x22222222);
	assert_int_equal(sent[0].p.pkey, 0xffff);
	assert_int_equal(sent[0].p.payload_bytes, 100);
	assert_memory_equal(sent[0].payload, s->local.bytes + 64, 100);
	assert_memory_equal(&sent[0].path.flow.dst, &v4_dst, sizeof(v4_dst));
	assert_int_equal(sent[1].p.opcode, 0x65);
	assert_int_equal(sent[1].p.qkey, 0x11111111);
	assert_int_equal(sent[1].p.imm_be, 0x01020304);
	assert_int_equal(sent[1].p.psn, sent[0].p.psn + 1);
	assert_true(sent[1].p.solicited && !sent[0].p.solicited);
	assert_int_equal(completed(s, 1, SOFT_WC_SUCCESS), SOFT_WC_SEND);
	assert_int_equal(completed(s, 2, SOFT_WC_SUCCESS), SOFT_WC_SEND);
	assert_int_equal(s->counters.sent_data_bytes, 100);
	stage_close(s);
}

static void budget_and_states(void **state)
{
	struct stage *s = stage_open(SOFT_UD);

	(void)state;
	s->qp.attr.mtu = 1024;
	for (uint64_t i = 0; i < 5; i++)
		post(s, i, 1000, KEY_LOCAL);
	assert_true(soft_qp_pump(&s->qp, 2000, 1));
	assert_int_equal(s->num_sent, 2);
	s->qp.state = SOFT_QP_SQD;
	assert_false(soft_qp_pump(&s->qp, 1 << 20, 1));
	assert_int_equal(s->num_sent, 2);
	soft_qp_to_rts(&s->qp);
	assert_false(soft_qp_pump(&s->qp, 1 << 20, 1));
	assert_int_equal(s->num_sent, 5);
	for (uint64_t i = 0; i < 5; i++)
		completed(s, i, SOFT_WC_SUCCESS);
	assert_int_equal(s->qp.req.sq.retired, 5);
	/* Nothing counts as begun and not done: SQD is drained at once. */
	s->seen_events = s->num_events;
	soft_qp_to_sqd(&s->qp, true);
	assert_int_equal(s->num_events, s->seen_events + 1);
	assert_int_equal(s->events[s->seen_events], SOFT_QP_EVENT_SQ_DRAINED);
	stage_close(s);
}

/* 10.3.1: a send queue that failed stops in SQE, flushes, and still receives. */
static void failing(void **state)
{
	static const struct {
		uint32_t bytes, error;
		enum stage_key key;
		uint32_t status;
	} bad[] = {
		{100, 0, KEY_GONE, SOFT_WC_LOC_PROT_ERR},
		{100, 0, KEY_FOREIGN, SOFT_WC_LOC_PROT_ERR},
		{STAGE_MTU + 1, 0, KEY_LOCAL, SOFT_WC_LOC_LEN_ERR},
		{100, SOFT_WC_LOC_QP_OP_ERR, KEY_LOCAL, SOFT_WC_LOC_QP_OP_ERR},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct stage *s = stage_open(SOFT_UD);
		struct soft_path from = path_of(&v4_src, &v4_dst);
		struct soft_packet p = {.opcode = SOFT_UD | SOFT_SEND_ONLY, .qkey = QKEY};

		post(s, 1, 10, KEY_LOCAL);
		post(s, 2, bad[i].bytes, bad[i].key)->error = bad[i].error;
		post(s, 3, 10, KEY_LOCAL);
		assert_false(soft_qp_pump(&s->qp, 1 << 20, 1));
		completed(s, 1, SOFT_WC_SUCCESS);
		completed(s, 2, bad[i].status);
		completed(s, 3, SOFT_WC_WR_FLUSH_ERR);
		assert_int_equal(s->num_sent, 1);
		assert_int_equal(s->qp.state, SOFT_QP_SQE);
		/* Posted since: flushed as well. */
		post(s, 4, 10, KEY_LOCAL);
		assert_false(soft_qp_pump(&s->qp, 1 << 20, 1));
		completed(s, 4, SOFT_WC_WR_FLUSH_ERR);
		assert_int_equal(stage_receive(s, 1, 0, 100, KEY_LOCAL), 0);
		soft_qp_receive(&s->qp, &p, &from, 0, 1);
		assert_false(soft_cq_empty(&s->recv_cq));
		stage_close(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arriving),
		cmocka_unit_test(first_forty_bytes),
		cmocka_unit_test(other_packets_are_no_datagrams),
		cmocka_unit_test(sending),
		cmocka_unit_test(budget_and_states),
		cmocka_unit_test(failing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
