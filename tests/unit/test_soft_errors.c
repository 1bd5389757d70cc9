/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every way a request between two queue pairs may fail: what both ends are told. Statuses are those
 * of the InfiniBand Architecture Specification, volume 1: 9.9.2.4 and 9.9.3 (which NAK for which
 * fault), 10.10.4 (what a work completion says), as enum ibv_wc_status numbers them.
 */
#include "unit.h"

#include "soft_sim.h"

enum { BYTES = 8192, NO_EVENT = 99, NO_COMPLETION = 99 };

enum fault {
	NOTHING,
	WRONG_KEY,
	WRONG_PD,
	NO_ACCESS,	 /* of the region */
	QP_NO_ACCESS,	 /* of the queue pair */
	ONE_PAST,	 /* the end of the region */
	ONE_BEFORE,	 /* its beginning */
	AROUND,		 /* the end of the address space */
	MISALIGNED,	 /* atomic */
	NO_READS,	 /* the responder takes none */
	SHORT_RECEIVE,	 /* by one byte */
	RECEIVE_KEY,	 /* wrong */
	RECEIVE_ACCESS,	 /* not to be written */
	RECEIVE_MISSING, /* rnr_retry 0 */
};

static const struct {
	const char *name;
	uint8_t opcode;
	uint32_t length;
	enum fault fault;
	unsigned int sender;   /* status */
	unsigned int receiver; /* status, or NO_COMPLETION */
	unsigned int event;    /* at the receiver */
} cases[] = {
	{"write", SOFT_WR_WRITE, BYTES, NOTHING, 0, NO_COMPLETION, NO_EVENT},
	{"write, key", SOFT_WR_WRITE, 8, WRONG_KEY, 10, NO_COMPLETION, SOFT_QP_EVENT_ACCESS},
	{"write, key, nothing", SOFT_WR_WRITE, 0, WRONG_KEY, 0, NO_COMPLETION, NO_EVENT},
	{"write, domain", SOFT_WR_WRITE, 8, WRONG_PD, 10, NO_COMPLETION, SOFT_QP_EVENT_ACCESS},
	{"write, access", SOFT_WR_WRITE, 8, NO_ACCESS, 10, NO_COMPLETION, SOFT_QP_EVENT_ACCESS},
	{"write, QP", SOFT_WR_WRITE, 8, QP_NO_ACCESS, 9, NO_COMPLETION, SOFT_QP_EVENT_REQUEST},
	{"write, past", SOFT_WR_WRITE, BYTES, ONE_PAST, 10, NO_COMPLETION, SOFT_QP_EVENT_ACCESS},
	{"write, before", SOFT_WR_WRITE, 8, ONE_BEFORE, 10, NO_COMPLETION, SOFT_QP_EVENT_ACCESS},
	{"write, around", SOFT_WR_WRITE, 8, AROUND, 10, NO_COMPLETION, SOFT_QP_EVENT_ACCESS},
	{"write_imm", SOFT_WR_WRITE_IMM, 5000, NOTHING, 0, 0, NO_EVENT},
	/* 11.6.2: the receive request tells, "local access error"; only the first packet has a key
	 */
	{"write_imm, key", SOFT_WR_WRITE_IMM, 8, WRONG_KEY, 10, 8, NO_EVENT},
	{"write_imm, key, more packets", SOFT_WR_WRITE_IMM, 5000, WRONG_KEY, 10, NO_COMPLETION,
	 SOFT_QP_EVENT_ACCESS},
	{"write_imm, no receive", SOFT_WR_WRITE_IMM, 8, RECEIVE_MISSING, 13, NO_COMPLETION,
	 NO_EVENT},
	{"read", SOFT_WR_READ, BYTES, NOTHING, 0, NO_COMPLETION, NO_EVENT},
	{"read, key", SOFT_WR_READ, 8, WRONG_KEY, 10, NO_COMPLETION, SOFT_QP_EVENT_ACCESS},
	{"read, key, nothing", SOFT_WR_READ, 0, WRONG_KEY, 0, NO_COMPLETION, NO_EVENT},
	{"read, domain", SOFT_WR_READ, 8, WRONG_PD, 10, NO_COMPLETION, SOFT_QP_EVENT_ACCESS},
	{"read, access", SOFT_WR_READ, 8, NO_ACCESS, 10, NO_COMPLETION, SOFT_QP_EVENT_ACCESS},
	{"read, QP", SOFT_WR_READ, 8, QP_NO_ACCESS, 9, NO_COMPLETION, SOFT_QP_EVENT_REQUEST},
	{"read, past", SOFT_WR_READ, BYTES, ONE_PAST, 10, NO_COMPLETION, SOFT_QP_EVENT_ACCESS},
	{"read, none taken", SOFT_WR_READ, 8, NO_READS, 9, NO_COMPLETION, SOFT_QP_EVENT_REQUEST},
	{"add", SOFT_WR_FETCH_ADD, 8, NOTHING, 0, NO_COMPLETION, NO_EVENT},
	{"add, key", SOFT_WR_FETCH_ADD, 8, WRONG_KEY, 10, NO_COMPLETION, SOFT_QP_EVENT_ACCESS},
	{"add, access", SOFT_WR_FETCH_ADD, 8, NO_ACCESS, 10, NO_COMPLETION, SOFT_QP_EVENT_ACCESS},
	{"add, QP", SOFT_WR_FETCH_ADD, 8, QP_NO_ACCESS, 9, NO_COMPLETION, SOFT_QP_EVENT_REQUEST},
	{"add, alignment", SOFT_WR_FETCH_ADD, 8, MISALIGNED, 9, NO_COMPLETION,
	 SOFT_QP_EVENT_REQUEST},
	{"swap, domain", SOFT_WR_COMPARE_SWAP, 8, WRONG_PD, 10, NO_COMPLETION,
	 SOFT_QP_EVENT_ACCESS},
	{"send", SOFT_WR_SEND, 5000, NOTHING, 0, 0, NO_EVENT},
	{"send, short receive", SOFT_WR_SEND, 5000, SHORT_RECEIVE, 9, 1, NO_EVENT},
	{"send, receive's key", SOFT_WR_SEND, 8, RECEIVE_KEY, 11, 4, NO_EVENT},
	{"send, receive's access", SOFT_WR_SEND_IMM, 8, RECEIVE_ACCESS, 11, 4, NO_EVENT},
	{"send, nothing to receive", SOFT_WR_SEND, 0, RECEIVE_KEY, 0, 0, NO_EVENT},
	{"send, no receive", SOFT_WR_SEND, 8, RECEIVE_MISSING, 13, NO_COMPLETION, NO_EVENT},
};

struct bench {
	struct soft_sim sim;
	struct soft_sim_node nodes[2];
	struct soft_sim_end ends[2];
	uint8_t local[BYTES], guard_before[64], remote[BYTES], guard_after[64], receive[BYTES];
};

static struct bench *bench_new(uint8_t rnr_retry, uint32_t access)
{
	struct bench *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	soft_sim_init(&b->sim, 1);
	for (unsigned int i = 0; i < 2; i++) {
		struct soft_sim_attr attr = soft_sim_attr();

		attr.rnr_retry = rnr_retry;
		attr.access = access;
		soft_sim_node_init(&b->nodes[i], 1 << 20);
		soft_sim_end_init(&b->sim, &b->ends[i], &b->nodes[i], &attr);
	}
	soft_sim_connect(&b->ends[0], &b->ends[1]);
	memset(b->local, 0x11, sizeof(b->local));
	memset(b->guard_before, 0x22, sizeof(b->guard_before) + BYTES + sizeof(b->guard_after));
	return b;
}

static void bench_free(struct bench *b)
{
	for (unsigned int i = 0; i < 2; i++) {
		soft_sim_end_done(&b->ends[i]);
		assert_int_equal(b->nodes[i].window.in_flight, 0);
		soft_sim_node_done(&b->nodes[i]);
	}
	soft_sim_done(&b->sim);
	free(b);
}

static uint64_t address(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static void post_receive(struct bench *b, uint32_t length, enum fault fault)
{
	uint32_t access = fault == RECEIVE_ACCESS ? 0 : SOFT_ACCESS_LOCAL_WRITE;
	struct soft_sge sge = {address(b->receive), length, 0};

	if (fault == RECEIVE_MISSING)
		return;
	sge.lkey = soft_sim_register(&b->nodes[1], b->receive, BYTES, access, soft_sim_pd);
	if (fault == RECEIVE_KEY)
		sge.lkey ^= 0x100;
	if (fault == SHORT_RECEIVE)
		sge.length--;
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(soft_recv_queue_post(b->ends[1].qp.resp.rq, 70 + i, &sge, 1), 0);
}

static void post_request(struct bench *b, size_t n)
{
	static const int other_pd;
	uint32_t access = SOFT_ACCESS_REMOTE_READ | SOFT_ACCESS_REMOTE_WRITE |
			  SOFT_ACCESS_REMOTE_ATOMIC | SOFT_ACCESS_LOCAL_WRITE;
	enum fault fault = cases[n].fault;
	struct soft_send_wr wr = {
		.id = 50, .opcode = cases[n].opcode, .flags = SOFT_WR_SIGNALED, .num_sge = 1};
	struct soft_sge sge = {address(b->local), cases[n].length, 0};

	sge.lkey = soft_sim_register(&b->nodes[0], b->local, BYTES, SOFT_ACCESS_LOCAL_WRITE,
				     soft_sim_pd);
	if (fault == NO_ACCESS)
		access = SOFT_ACCESS_LOCAL_WRITE |
			 (cases[n].opcode == SOFT_WR_WRITE ? SOFT_ACCESS_REMOTE_READ
							   : SOFT_ACCESS_REMOTE_WRITE);
	wr.rc.rkey = soft_sim_register(&b->nodes[1], b->remote, BYTES, access,
				       fault == WRONG_PD ? (const void *)&other_pd : soft_sim_pd);
	wr.rc.remote_addr = address(b->remote);
	if (fault == WRONG_KEY)
		wr.rc.rkey ^= 0x100;
	if (fault == ONE_PAST || fault == MISALIGNED)
		wr.rc.remote_addr += 1;
	if (fault == ONE_BEFORE)
		wr.rc.remote_addr -= 1;
	if (fault == AROUND)
		wr.rc.remote_addr = ~0ull - 3;
	assert_true(soft_sim_post(&b->ends[0], &wr, &sge));
	/* What stands behind tells the state of the QP. */
	wr = (struct soft_send_wr){.id = 51, .opcode = SOFT_WR_WRITE};
	assert_true(soft_sim_post(&b->ends[0], &wr, &sge));
}

static void check_receiver(struct bench *b, size_t n)
{
	unsigned int events = 0;
	struct soft_cqe cqe;

	if (cases[n].receiver == NO_COMPLETION) {
		while (soft_sim_poll(&b->ends[1].recv_cq, &cqe))
			assert_int_equal(cqe.status, 5);
	} else {
		assert_true(soft_sim_poll(&b->ends[1].recv_cq, &cqe));
		assert_int_equal(cqe.wr_id, 70);
		assert_int_equal(cqe.status, cases[n].receiver);
	}
	for (unsigned int i = 0; i <= SOFT_QP_EVENT_LAST_WQE; i++)
		events += b->ends[1].events[i];
	assert_int_equal(events, cases[n].event != NO_EVENT);
	if (cases[n].event != NO_EVENT)
		assert_int_equal(b->ends[1].events[cases[n].event], 1);
}

static void every_fault(void **state)
{
	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		enum fault fault = cases[n].fault;
		struct bench *b = bench_new(fault == RECEIVE_MISSING ? 0 : 7,
					    fault == QP_NO_ACCESS ? 0 : soft_sim_attr().access);
		bool ok = cases[n].sender == 0;
		struct soft_cqe cqe;

		if (fault == NO_READS)
			b->ends[1].qp.attr.max_dest_rd_atomic = 0;
		post_receive(b, cases[n].length, fault);
		post_request(b, n);
		while (soft_sim_step(&b->sim))
			assert_true(b->sim.now < 100 * PP_SECOND);
		if (!soft_sim_poll(&b->ends[0].send_cq, &cqe) || cqe.status != cases[n].sender)
			fail_msg("%s: not %u", cases[n].name, cases[n].sender);
		assert_int_equal(cqe.wr_id, 50);
		assert_int_equal(soft_sim_poll(&b->ends[0].send_cq, &cqe), !ok);
		if (!ok) {
			assert_int_equal(cqe.wr_id, 51);
			assert_int_equal(cqe.status, SOFT_WC_WR_FLUSH_ERR);
		}
		assert_int_equal(b->ends[0].qp.state, ok ? SOFT_QP_RTS : SOFT_QP_ERR);
		assert_int_equal(b->ends[1].qp.state,
				 ok || cases[n].sender == 13 ? SOFT_QP_RTS : SOFT_QP_ERR);
		for (unsigned int i = 0; i < 64; i++)
			assert_true(b->guard_before[i] == 0x22 && b->guard_after[i] == 0x22);
		for (unsigned int i = 0; i < BYTES && !ok; i++)
			assert_true(b->remote[i] == 0x22 && b->local[i] == 0x11);
		check_receiver(b, n);
		bench_free(b);
	}
}

/* 9.7.6.1.3: a peer that answers nothing, from one moment on. */
static void killed_peer(void **state)
{
	(void)state;
	for (unsigned int retry = 0; retry <= 7; retry++) {
		struct bench *b = bench_new(7, soft_sim_attr().access);
		struct soft_sge sge = {address(b->local), BYTES, 0};
		struct soft_send_wr wr = {.opcode = SOFT_WR_WRITE, .num_sge = 1, .flags = 2};
		pp_ns interval = 4096 << 14, last = 0;
		struct soft_cqe cqe = {0};
		uint32_t una;

		b->nodes[0].window.limit = 40000; /* several flights */
		b->ends[0].qp.attr.retry_cnt = (uint8_t)retry;
		b->ends[0].qp.req.retries_left = (uint8_t)retry;
		sge.lkey = soft_sim_register(&b->nodes[0], b->local, BYTES, 0, soft_sim_pd);
		wr.rc.rkey = soft_sim_register(&b->nodes[1], b->remote, BYTES,
					       SOFT_ACCESS_REMOTE_WRITE, soft_sim_pd);
		wr.rc.remote_addr = address(b->remote);
		for (wr.id = 0; wr.id < 20; wr.id++)
			assert_true(soft_sim_post(&b->ends[0], &wr, &sge));
		while (b->ends[0].qp.state != SOFT_QP_ERR) {
			una = b->ends[0].qp.req.una_psn;
			assert_true(soft_sim_step(&b->sim));
			if (b->ends[0].qp.state != SOFT_QP_ERR && b->ends[0].qp.req.una_psn != una)
				last = b->sim.now;
			if (b->ends[0].qp.req.sq.retired >= 3)
				b->ends[1].killed = true;
		}
		assert_true(last > 0);
		assert_true(b->sim.now - last == (pp_ns)(retry + 1) * interval);
		for (unsigned int id = 0; id < 20; id++) {
			unsigned int before = cqe.status;

			assert_true(soft_sim_poll(&b->ends[0].send_cq, &cqe));
			assert_int_equal(cqe.wr_id, id);
			if (before == 0)
				assert_true(cqe.status == 0 || cqe.status == 12);
			else
				assert_int_equal(cqe.status, 5);
		}
		assert_int_equal(cqe.status, 5);
		bench_free(b);
	}
}

/* QPs to one address share a window; one whose peer died gives its share back long before it fails.
 */
static void a_dead_peer_holds_nobody_up(void **state)
{
	struct soft_sim sim;
	struct soft_sim_node nodes[2];
	struct soft_sim_end ends[4];
	struct soft_sim_attr attr = soft_sim_attr();
	struct soft_send_wr wr = {.opcode = SOFT_WR_WRITE, .num_sge = 1, .flags = 2};
	uint8_t *memory = calloc(1, 1 << 20);
	unsigned int completed = 0;
	struct soft_sge sge;
	struct soft_cqe cqe;
	pp_ns began;

	(void)state;
	assert_non_null(memory);
	attr.timeout = 20; /* NCCL's: 4.3 s */
	soft_sim_init(&sim, 1);
	soft_sim_node_init(&nodes[0], 128 * 1024);
	soft_sim_node_init(&nodes[1], 128 * 1024);
	for (unsigned int i = 0; i < 4; i++)
		soft_sim_end_init(&sim, &ends[i], &nodes[i % 2], &attr);
	soft_sim_connect(&ends[0], &ends[1]);
	soft_sim_connect(&ends[2], &ends[3]);
	ends[1].killed = true;
	sge = (struct soft_sge){address(memory), 1 << 20, 0};
	sge.lkey = soft_sim_register(&nodes[0], memory, 1 << 20, 0, soft_sim_pd);
	wr.rc.rkey = soft_sim_register(&nodes[1], memory, 1 << 20, SOFT_ACCESS_REMOTE_WRITE,
				       soft_sim_pd);
	wr.rc.remote_addr = address(memory);
	began = sim.now;
	assert_true(soft_sim_post(&ends[0], &wr, &sge));
	for (unsigned int i = 0; i < 4; i++)
		assert_true(soft_sim_post(&ends[2], &wr, &sge));
	while (completed < 4) {
		assert_true(soft_sim_step(&sim));
		while (soft_sim_poll(&ends[2].send_cq, &cqe)) {
			assert_int_equal(cqe.status, 0);
			completed++;
		}
	}
	assert_true(sim.now - began < PP_SECOND / 10);
	for (unsigned int i = 0; i < 4; i++) {
		assert_int_equal(ends[i].over_window, 0);
		soft_sim_end_done(&ends[i]);
	}
	soft_sim_node_done(&nodes[0]);
	soft_sim_node_done(&nodes[1]);
	soft_sim_done(&sim);
	free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_fault),
		cmocka_unit_test(killed_peer),
		cmocka_unit_test(a_dead_peer_holds_nobody_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
