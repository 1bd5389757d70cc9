/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory windows by the InfiniBand Architecture Specification (volume 1, 10.6.7 and 10.6.5; 9.9.3
 * class J): what may be bound to what, through whom a key reaches memory, who may invalidate it;
 * and binds among other work requests, between a requester and a responder.
 */
#include "unit.h"

#include "soft_sim.h"

#include "soft/copy/mw.h"
#include "soft/wire/psn.h"

enum {
	L = SOFT_ACCESS_LOCAL_WRITE,
	R = SOFT_ACCESS_REMOTE_READ,
	W = SOFT_ACCESS_REMOTE_WRITE,
	A = SOFT_ACCESS_REMOTE_ATOMIC,
	B = SOFT_ACCESS_MW_BIND,
	Z = SOFT_ACCESS_ZERO_BASED,
	BASE = 0x10000,
	BYTES = 4096,
};

static const int pd_a, pd_b;

struct scene {
	struct soft_regions *table;
	struct soft_region region;
	struct soft_mw mw;
	struct soft_mw_owner qp, other;
	uint8_t memory[BYTES];
};

static void scene_open(struct scene *s, uint32_t access, bool type2)
{
	memset(s, 0, sizeof(*s));
	assert_int_equal(soft_regions_new(&s->table), 0);
	s->region = (struct soft_region){.access = access,
					 .pd = &pd_a,
					 .iova = BASE,
					 .length = BYTES,
					 .base = s->memory,
					 .ops = &soft_region_host};
	assert_int_equal(soft_regions_add(s->table, &s->region), 0);
	assert_int_equal(soft_mw_add(s->table, &s->mw, &pd_a, type2), 0);
}

static void scene_close(struct scene *s)
{
	soft_mw_remove(s->table, &s->mw);
	assert_int_equal(s->region.windows, 0);
	assert_null(s->qp.first);
	soft_regions_remove(s->table, &s->region);
	soft_regions_free(s->table);
}

static bool bind(struct scene *s, uint32_t access, uint64_t start, uint64_t length, uint8_t key)
{
	struct soft_mw_bind how = {s->region.key, access, start, length, key};

	return soft_mw_bind(s->table, &s->mw, &s->qp, &pd_a, &how);
}

static bool reach(struct scene *s, const struct soft_mw_owner *through, uint64_t va, uint64_t len,
		  uint32_t access, uint64_t at)
{
	struct soft_region *region =
		soft_regions_remote(s->table, &pd_a, through, s->mw.entry.key, &va, len, access);

	if (region) {
		assert_ptr_equal(region, &s->region);
		assert_int_equal(va, at);
	}
	return region != NULL;
}

/* The accesses of region and window: the rows are google/rdma-unit-test's MwBindAccessTest, and the
 * ranges. */
static void test_what_may_be_bound(void **state)
{
	static const struct {
		uint32_t region, window;
		uint64_t start, length;
		bool type1, type2;
	} rows[] = {
		{L | B | A | R | W, A | R | W, BASE, BYTES, true, true},
		{B, 0, BASE, BYTES, true, true},
		{L | A | R | W, 0, BASE, BYTES, false, false},
		{B, R, BASE, BYTES, true, true},
		{L | B, W, BASE, BYTES, true, true},
		{B, W, BASE, BYTES, false, false},
		{L | B, A, BASE, BYTES, true, true},
		{B, A, BASE, BYTES, false, false},
		{L | B, W, BASE + 5, 1, true, true},
		{L | B, W, BASE + BYTES - 1, 1, true, true},
		{L | B, W, BASE - 1, 1, false, false},
		{L | B, W, BASE, BYTES + 1, false, false},
		{L | B, W, BASE + BYTES, 1, false, false},
		{L | B, W, BASE + 1, UINT64_MAX, false, false},
		{L | B, W, BASE, 0, true, false}, /* nothing: unbinds */
		{L | B, W | Z, BASE, BYTES, false, true},
		{L | B | Z, W, BASE, BYTES, false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int type2 = 0; type2 < 2; type2++) {
			uint32_t before;
			struct scene s;
			bool ok = type2 ? rows[i].type2 : rows[i].type1;

			scene_open(&s, rows[i].region, type2);
			before = s.mw.entry.key;
			assert_int_equal(bind(&s, rows[i].window, rows[i].start, rows[i].length, 7),
					 ok);
			assert_int_equal(s.mw.entry.key, ok ? (before & ~0xffu) | 7 : before);
			assert_int_equal(s.region.windows, ok && rows[i].length);
			scene_close(&s);
		}
}

static void test_who_reaches_what(void **state)
{
	struct scene s;

	(void)state;
	/* type 1: every queue pair of the domain */
	scene_open(&s, L | B, false);
	assert_false(reach(&s, &s.qp, BASE, 1, 0, 0)); /* not bound yet */
	assert_true(bind(&s, R, BASE + 100, 10, 1));
	assert_true(reach(&s, &s.qp, BASE + 100, 10, R, BASE + 100));
	assert_true(reach(&s, &s.other, BASE + 109, 1, R, BASE + 109));
	assert_false(
		reach(&s, &s.qp, BASE + 100, 10, W, 0)); /* though the region allows less still */
	assert_false(reach(&s, &s.qp, BASE + 99, 1, R, 0));
	assert_false(reach(&s, &s.qp, BASE + 100, 11, R, 0));
	assert_false(reach(&s, &s.qp, 0, 1, R, 0));
	assert_false(reach(&s, &s.qp, BASE + 101, UINT64_MAX, R, 0));
	/* no local key */
	assert_null(soft_regions_check(s.table, &pd_a, s.mw.entry.key, BASE + 100, 1, 0));
	/* bound anew: the old key opens nothing */
	{
		uint64_t va = BASE + 100;
		uint32_t old = s.mw.entry.key;

		assert_true(bind(&s, R, BASE, 10, 2));
		assert_null(soft_regions_remote(s.table, &pd_a, &s.qp, old, &va, 1, R));
		va = BASE;
		assert_null(soft_regions_remote(s.table, &pd_b, &s.qp, s.mw.entry.key, &va, 1, R));
	}
	assert_false(soft_mw_invalidate(s.table, &s.qp, s.mw.entry.key));
	assert_true(bind(&s, 0, 0, 0, 3));
	assert_false(reach(&s, &s.qp, BASE, 1, R, 0));
	scene_close(&s);

	/* type 2: the one queue pair; counted from zero here */
	scene_open(&s, L | B, true);
	assert_true(bind(&s, W | Z, BASE + 100, 10, 1));
	assert_true(reach(&s, &s.qp, 0, 10, W, BASE + 100));
	assert_true(reach(&s, &s.qp, 9, 1, W, BASE + 109));
	assert_false(reach(&s, &s.qp, 9, 2, W, 0));
	assert_false(reach(&s, &s.qp, BASE + 100, 1, W, 0));
	assert_false(reach(&s, &s.other, 0, 1, W, 0));
	assert_false(bind(&s, W, BASE, 10, 2)); /* bound already */
	assert_false(soft_mw_invalidate(s.table, &s.other, s.mw.entry.key));
	assert_false(soft_mw_invalidate(s.table, &s.qp, s.mw.entry.key + 1));
	assert_false(soft_mw_invalidate(s.table, &s.qp, s.region.key));
	assert_true(soft_mw_invalidate(s.table, &s.qp, s.mw.entry.key));
	assert_false(soft_mw_invalidate(s.table, &s.qp, s.mw.entry.key));
	assert_false(reach(&s, &s.qp, 0, 1, W, 0));
	assert_true(bind(&s, W, BASE, 10, 2));
	soft_mw_release(&s.qp);
	assert_false(reach(&s, &s.qp, BASE, 1, W, 0));
	assert_int_equal(s.region.windows, 0);
	scene_close(&s);
}

/* A window of another domain than the queue pair's, or a region of another: no. */
static void test_domains(void **state)
{
	struct scene s;
	struct soft_mw_bind how;

	(void)state;
	scene_open(&s, L | B, true);
	how = (struct soft_mw_bind){s.region.key, R, BASE, 1, 0};
	assert_false(soft_mw_bind(s.table, &s.mw, &s.qp, &pd_b, &how));
	s.region.pd = &pd_b;
	assert_false(soft_mw_bind(s.table, &s.mw, &s.qp, &pd_a, &how));
	how.lkey = s.mw.entry.key;
	assert_false(soft_mw_bind(s.table, &s.mw, &s.qp, &pd_a, &how));
	scene_close(&s);
}

/* No two share the bits that are not the owner's: not windows, not regions. */
static void test_keys(void **state)
{
	enum { N = 3000 };
	struct soft_mw *mw = calloc(N, sizeof(*mw));
	struct scene s;

	(void)state;
	assert_non_null(mw);
	scene_open(&s, L | B, true);
	for (int i = 0; i < N; i++) {
		assert_int_equal(soft_mw_add(s.table, &mw[i], &pd_a, true), 0);
		assert_ptr_equal(soft_mw_find(s.table, mw[i].entry.key ^ 0x5a), &mw[i]);
	}
	for (int i = 0; i < N; i++)
		soft_mw_remove(s.table, &mw[i]);
	assert_null(soft_mw_find(s.table, s.region.key));
	scene_close(&s);
	free(mw);
}

/* ---- Between two queue pairs ---- */

struct pair {
	struct soft_sim sim;
	struct soft_sim_node node[2];
	struct soft_sim_end end[2];
	struct soft_mw mw; /* of end 1 */
	uint8_t memory[2][BYTES];
	uint32_t key[2];
};

static struct pair *pair_open(bool type2, enum soft_transport transport)
{
	struct soft_sim_attr attr = soft_sim_attr();
	struct pair *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	soft_sim_init(&p->sim, 3);
	attr.max_rd_atomic = 4;
	for (int i = 0; i < 2; i++) {
		soft_sim_node_init(&p->node[i], 1 << 20);
		p->key[i] = soft_sim_register(&p->node[i], p->memory[i], BYTES, L | B, soft_sim_pd);
		soft_sim_end_init(&p->sim, &p->end[i], &p->node[i], &attr);
		p->end[i].qp.transport = transport;
	}
	soft_sim_connect(&p->end[0], &p->end[1]);
	assert_int_equal(soft_mw_add(p->node[1].regions, &p->mw, soft_sim_pd, type2), 0);
	return p;
}

static void pair_close(struct pair *p)
{
	soft_mw_remove(p->node[1].regions, &p->mw);
	for (int i = 0; i < 2; i++) {
		soft_sim_end_done(&p->end[i]);
		soft_sim_node_done(&p->node[i]);
	}
	soft_sim_done(&p->sim);
	free(p);
}

static void run(struct pair *p)
{
	while (soft_sim_step(&p->sim))
		;
}

static void post_bind(struct pair *p, uint64_t id, uint8_t key, uint8_t flags)
{
	struct soft_send_wr wr = {.id = id,
				  .opcode = SOFT_WR_BIND_WINDOW,
				  .flags = flags,
				  .bind = {.start = (uint64_t)(uintptr_t)p->memory[1] + 64,
					   .length = 64,
					   .window = p->mw.entry.key,
					   .lkey = p->key[1],
					   .access = R | W,
					   .key = key}};

	assert_true(soft_sim_post(&p->end[1], &wr, NULL));
}

static void post(struct pair *p, int end, uint64_t id, uint8_t opcode, uint32_t length,
		 uint32_t rkey)
{
	struct soft_sge sge = {(uint64_t)(uintptr_t)p->memory[end], length, p->key[end]};
	struct soft_send_wr wr = {
		.id = id,
		.opcode = opcode,
		.flags = SOFT_WR_SIGNALED,
		.num_sge = length ? 1 : 0,
		.imm_be = rkey,
		.rc = {.remote_addr = (uint64_t)(uintptr_t)p->memory[1] + 64, .rkey = rkey}};

	assert_true(soft_sim_post(&p->end[end], &wr, &sge));
}

static void done(struct pair *p, int end, uint64_t id, unsigned int status, unsigned int opcode)
{
	struct soft_cqe cqe;

	assert_true(soft_sim_poll(&p->end[end].send_cq, &cqe));
	assert_int_equal(cqe.wr_id, id);
	assert_int_equal(cqe.status, status);
	if (!status)
		assert_int_equal(cqe.opcode, opcode);
}

static void receive(struct pair *p, int end, uint64_t id)
{
	struct soft_sge sge = {(uint64_t)(uintptr_t)p->memory[end], 64, p->key[end]};

	assert_int_equal(soft_recv_queue_post(&p->end[end].qp.resp.own_rq, id, &sge, 1), 0);
}

/* Binds complete in their place among requests that wait for the peer, signaled or not. */
static void test_order(void **state)
{
	struct pair *p = pair_open(true, SOFT_RC);

	(void)state;
	receive(p, 0, 1);
	receive(p, 0, 2);
	post_bind(p, 10, 1, 0); /* alone at the head, unsignaled */
	post(p, 1, 11, SOFT_WR_SEND, 8, 0);
	post(p, 1, 12, SOFT_WR_LOCAL_INVALIDATE, 0, (p->mw.entry.key & ~0xffu) | 1);
	post_bind(p, 13, 9, SOFT_WR_SIGNALED);
	post(p, 1, 14, SOFT_WR_SEND, 8, 0);
	run(p);
	done(p, 1, 11, SOFT_WC_SUCCESS, SOFT_WC_SEND);
	done(p, 1, 12, SOFT_WC_SUCCESS, SOFT_WC_LOCAL_INVALIDATE);
	done(p, 1, 13, SOFT_WC_SUCCESS, SOFT_WC_BIND_WINDOW);
	done(p, 1, 14, SOFT_WC_SUCCESS, SOFT_WC_SEND);
	assert_int_equal(p->mw.entry.key & 0xff, 9);
	assert_true(soft_cq_empty(&p->end[1].send_cq));
	pair_close(p);
}

/* The same over a wire that loses: nothing is carried out twice, nothing hangs. */
static void test_order_with_loss(void **state)
{
	struct pair *p = pair_open(true, SOFT_RC);

	(void)state;
	p->sim.plan.loss_ppm = 200000;
	for (uint64_t i = 0; i < 15; i++) {
		receive(p, 0, i);
		post_bind(p, 4 * i, (uint8_t)i, SOFT_WR_SIGNALED);
		post(p, 1, 4 * i + 1, SOFT_WR_SEND, 8, 0);
		post(p, 1, 4 * i + 2, SOFT_WR_LOCAL_INVALIDATE, 0,
		     (p->mw.entry.key & ~0xffu) | (uint32_t)i);
		post(p, 1, 4 * i + 3, SOFT_WR_WRITE, 0, 0);
	}
	run(p);
	for (uint64_t i = 0; i < 15; i++) {
		done(p, 1, 4 * i, SOFT_WC_SUCCESS, SOFT_WC_BIND_WINDOW);
		done(p, 1, 4 * i + 1, SOFT_WC_SUCCESS, SOFT_WC_SEND);
		done(p, 1, 4 * i + 2, SOFT_WC_SUCCESS, SOFT_WC_LOCAL_INVALIDATE);
		done(p, 1, 4 * i + 3, SOFT_WC_SUCCESS, SOFT_WC_WRITE);
	}
	pair_close(p);
}

/* The peer reads and writes through the key, and SEND with invalidate takes it from it. */
static void test_remote_use(void **state)
{
	struct pair *p = pair_open(true, SOFT_RC);
	struct soft_cqe cqe;
	uint32_t rkey;

	(void)state;
	post_bind(p, 1, 0x42, SOFT_WR_SIGNALED);
	run(p);
	done(p, 1, 1, SOFT_WC_SUCCESS, SOFT_WC_BIND_WINDOW);
	rkey = p->mw.entry.key;
	assert_int_equal(rkey & 0xff, 0x42);
	memset(p->memory[0], 0x5c, 64);
	post(p, 0, 2, SOFT_WR_WRITE, 64, rkey);
	memset(p->memory[1], 0x11, 64);
	run(p);
	done(p, 0, 2, SOFT_WC_SUCCESS, SOFT_WC_WRITE);
	assert_int_equal(p->memory[1][63], 0x11);
	assert_int_equal(p->memory[1][64], 0x5c);
	assert_int_equal(p->memory[1][127], 0x5c);
	assert_int_equal(p->memory[1][128], 0);
	post(p, 0, 3, SOFT_WR_READ, 64, rkey);
	run(p);
	done(p, 0, 3, SOFT_WC_SUCCESS, SOFT_WC_READ);
	receive(p, 1, 70);
	post(p, 0, 4, SOFT_WR_SEND_INVALIDATE, 8, rkey);
	run(p);
	done(p, 0, 4, SOFT_WC_SUCCESS, SOFT_WC_SEND);
	assert_true(soft_sim_poll(&p->end[1].recv_cq, &cqe));
	assert_int_equal(cqe.wr_id, 70);
	assert_int_equal(cqe.status, SOFT_WC_SUCCESS);
	assert_int_equal(cqe.flags, SOFT_WC_WITH_INV);
	assert_int_equal(cqe.imm_be, rkey);
	assert_int_equal(cqe.byte_len, 8);
	post(p, 0, 5, SOFT_WR_READ, 64, rkey);
	run(p);
	done(p, 0, 5, SOFT_WC_REM_ACCESS_ERR, 0);
	assert_int_equal(p->end[1].events[SOFT_QP_EVENT_ACCESS], 1);
	pair_close(p);
}

/* 9.9.3 class J: the receive request tells, the peer hears nothing and gives up. */
static void test_wrong_invalidate(void **state)
{
	struct pair *p = pair_open(false, SOFT_RC);
	struct soft_cqe cqe;

	(void)state;
	post_bind(p, 1, 3, SOFT_WR_SIGNALED); /* type 1: no peer's to invalidate */
	run(p);
	done(p, 1, 1, SOFT_WC_SUCCESS, SOFT_WC_BIND_WINDOW);
	receive(p, 1, 70);
	receive(p, 1, 71);
	post(p, 0, 2, SOFT_WR_SEND_INVALIDATE, 8, p->mw.entry.key);
	run(p);
	assert_true(soft_sim_poll(&p->end[1].recv_cq, &cqe));
	assert_int_equal(cqe.wr_id, 70);
	assert_int_equal(cqe.status, SOFT_WC_REM_INV_REQ_ERR);
	assert_true(soft_sim_poll(&p->end[1].recv_cq, &cqe));
	assert_int_equal(cqe.wr_id, 71);
	assert_int_equal(cqe.status, SOFT_WC_WR_FLUSH_ERR);
	assert_int_equal(p->end[1].qp.state, SOFT_QP_ERR);
	done(p, 0, 2, SOFT_WC_RETRY_EXC_ERR, 0);
	pair_close(p);
}

/* What cannot be bound or invalidated fails in its place, signaled or not, and takes the queue
 * along: behind what waits for the peer. */
static void test_failures(void **state)
{
	for (int what = 0; what < 3; what++) {
		struct pair *p = pair_open(true, SOFT_RC);

		(void)state;
		receive(p, 0, 1);
		post(p, 1, 1, SOFT_WR_SEND, 8, 0);
		if (what == 0) {
			post_bind(p, 2, 1, 0);
			post_bind(p, 3, 2, 0); /* bound already */
		} else if (what == 1) {
			post(p, 1, 3, SOFT_WR_LOCAL_INVALIDATE, 0, p->mw.entry.key);
		} else {
			soft_mw_remove(p->node[1].regions, &p->mw);
			post_bind(p, 3, 2, 0); /* gone */
			assert_int_equal(soft_mw_add(p->node[1].regions, &p->mw, soft_sim_pd, true),
					 0);
		}
		post(p, 1, 4, SOFT_WR_WRITE, 0, 0);
		run(p);
		done(p, 1, 1, SOFT_WC_SUCCESS, SOFT_WC_SEND);
		done(p, 1, 3, SOFT_WC_MW_BIND_ERR, 0);
		done(p, 1, 4, SOFT_WC_WR_FLUSH_ERR, 0);
		assert_int_equal(p->end[1].qp.state, SOFT_QP_ERR);
		/* o10-2.2.5: windows of type 2 do not keep their queue pair */
		soft_qp_reset(&p->end[1].qp);
		assert_null(p->mw.region);
		pair_close(p);
	}
}

/* UC binds too, and completes at once. */
static void test_unreliable(void **state)
{
	struct pair *p = pair_open(true, SOFT_UC);

	(void)state;
	post_bind(p, 1, 3, SOFT_WR_SIGNALED);
	post(p, 1, 2, SOFT_WR_LOCAL_INVALIDATE, 0, (p->mw.entry.key & ~0xffu) | 3);
	post(p, 1, 3, SOFT_WR_LOCAL_INVALIDATE, 0, (p->mw.entry.key & ~0xffu) | 3);
	post(p, 1, 4, SOFT_WR_SEND, 8, 0);
	run(p);
	done(p, 1, 1, SOFT_WC_SUCCESS, SOFT_WC_BIND_WINDOW);
	done(p, 1, 2, SOFT_WC_SUCCESS, SOFT_WC_LOCAL_INVALIDATE);
	done(p, 1, 3, SOFT_WC_MW_BIND_ERR, 0);
	done(p, 1, 4, SOFT_WC_WR_FLUSH_ERR, 0);
	assert_int_equal(p->end[1].qp.state, SOFT_QP_SQE);
	pair_close(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_may_be_bound),
		cmocka_unit_test(test_who_reaches_what),
		cmocka_unit_test(test_domains),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_order_with_loss),
		cmocka_unit_test(test_remote_use),
		cmocka_unit_test(test_wrong_invalidate),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_unreliable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
