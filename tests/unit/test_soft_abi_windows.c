/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory windows as a client sees them. Returned numbers are the kernel's and providers' (EBUSY for
 * a region with windows bound, EINVAL for a window of type 1 given to ibv_post_send()).
 */
#include "soft_abi_client.h"

enum {
	MR = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND,
	MW = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
	BYTES = 4096,
};

static struct ibv_wc got(struct client *c, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc = client_wait(c->cq);

	assert_int_equal(wc.wr_id, id);
	assert_int_equal(wc.status, status);
	return wc;
}

static int post_read(struct ibv_qp *qp, struct ibv_mr *mr, void *from, uint32_t rkey)
{
	struct ibv_sge sge = {(uintptr_t)mr->addr, 8, mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 77,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_READ,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {(uintptr_t)from, rkey}};
	struct ibv_send_wr *bad;

	return ibv_post_send(qp, &wr, &bad);
}

static void test_type_1(void **state)
{
	struct client c;
	struct ibv_qp *qp, *peer;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_mw_bind bind = {.wr_id = 5, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW}, *bad;
	uint64_t *memory = aligned_alloc(4096, BYTES);
	uint32_t before;

	(void)state;
	assert_non_null(memory);
	memset(memory, 0, BYTES);
	client_open(&c);
	qp = client_qp(&c, IBV_QPT_RC, NULL);
	client_to_init(qp);
	peer = client_qp(&c, IBV_QPT_RC, NULL);
	client_to_init(peer);
	client_connect(&c, qp, peer->qp_num);
	client_connect(&c, peer, qp->qp_num);
	mr = ibv_reg_mr(c.pd, memory, BYTES, MR);
	mw = ibv_alloc_mw(c.pd, IBV_MW_TYPE_1);
	assert_non_null(mw);
	assert_ptr_equal(mw->pd, c.pd);
	before = mw->rkey;
	bind.bind_info = (struct ibv_mw_bind_info){mr, (uintptr_t)&memory[8], 64, MW};
	assert_int_equal(ibv_bind_mw(qp, mw, &bind), 0);
	assert_int_equal(mw->rkey, ibv_inc_rkey(before));
	assert_int_equal(got(&c, 5, IBV_WC_SUCCESS).opcode, IBV_WC_BIND_MW);
	assert_int_equal(ibv_dereg_mr(mr), EBUSY);
	assert_int_equal(ibv_dealloc_pd(c.pd), EBUSY);
	memory[8] = 0x1122334455667788;
	assert_int_equal(post_read(peer, mr, &memory[8], mw->rkey), 0);
	got(&c, 77, IBV_WC_SUCCESS);
	assert_int_equal(memory[0], 0x1122334455667788);
	/* of type 1 only by ibv_bind_mw() */
	wr.bind_mw.mw = mw;
	wr.bind_mw.bind_info = bind.bind_info;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
	/* its window ends where it says */
	assert_int_equal(post_read(peer, mr, (uint8_t *)&memory[16] - 4, mw->rkey), 0);
	got(&c, 77, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_destroy_qp(peer), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	errno = 0;
	assert_null(ibv_alloc_mw(c.pd, (enum ibv_mw_type)3));
	assert_int_equal(errno, EINVAL);
	client_close(&c);
	free(memory);
}

static struct ibv_qp_ex *extended_qp(struct client *c)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = c->cq,
		.recv_cq = c->cq,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = c->pd,
		.send_ops_flags = IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV |
				  IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_SEND};
	struct ibv_qp *qp = ibv_create_qp_ex(c->context, &attr);

	assert_non_null(qp);
	client_to_init(qp);
	client_connect(c, qp, qp->qp_num);
	return ibv_qp_to_qp_ex(qp);
}

static void test_type_2(void **state)
{
	uint8_t *memory = aligned_alloc(4096, BYTES);
	struct ibv_recv_wr recv = {.wr_id = 9}, *bad;
	struct ibv_mw_bind_info info;
	struct ibv_qp_ex *ex;
	struct client c;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_wc wc;
	uint32_t key;

	(void)state;
	assert_non_null(memory);
	client_open(&c);
	ex = extended_qp(&c);
	qp = &ex->qp_base;
	mr = ibv_reg_mr(c.pd, memory, BYTES, MR);
	mw = ibv_alloc_mw(c.pd, IBV_MW_TYPE_2);
	assert_non_null(mw);
	key = ibv_inc_rkey(mw->rkey);
	info = (struct ibv_mw_bind_info){mr, (uintptr_t)memory, BYTES, MW};
	assert_int_equal(ibv_post_recv(qp, &recv, &bad), 0);
	/* bound, used by the peer, taken back by it: one batch */
	ibv_wr_start(ex);
	ex->wr_id = 1;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_bind_mw(ex, mw, key, &info);
	ex->wr_id = 2;
	ibv_wr_send_inv(ex, key);
	assert_int_equal(ibv_wr_complete(ex), 0);
	assert_int_equal(mw->rkey, key);
	for (int left = 3; left; left--) {
		wc = client_wait(c.cq);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		if (wc.wr_id == 9) {
			assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
			assert_int_equal(wc.invalidated_rkey, key);
		} else {
			assert_int_equal(wc.opcode, wc.wr_id == 1 ? IBV_WC_BIND_MW : IBV_WC_SEND);
		}
	}
	ibv_wr_start(ex);
	ex->wr_id = 3;
	ibv_wr_bind_mw(ex, mw, ibv_inc_rkey(key), &info);
	ex->wr_id = 4;
	ibv_wr_local_inv(ex, mw->rkey);
	assert_int_equal(ibv_wr_complete(ex), 0);
	got(&c, 3, IBV_WC_SUCCESS);
	assert_int_equal(got(&c, 4, IBV_WC_SUCCESS).opcode, IBV_WC_LOCAL_INV);
	/* not bound any more: the second time it fails, and the queue pair with it */
	ibv_wr_start(ex);
	ibv_wr_local_inv(ex, mw->rkey);
	assert_int_equal(ibv_wr_complete(ex), 0);
	got(&c, 4, IBV_WC_MW_BIND_ERR);
	/* what its queue pair takes along when it goes */
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	client_close(&c);
	free(memory);
}

/* A handle that nobody was given: what the kernel says to it, and nothing is freed. */
static void test_strange_handles(void **state)
{
	struct client c;
	struct ibv_mw *mw;

	(void)state;
	client_open(&c);
	mw = ibv_alloc_mw(c.pd, IBV_MW_TYPE_2);
	assert_non_null(mw);
	mw->handle ^= 0x80000000;
	assert_int_equal(ibv_dealloc_mw(mw), ENOENT);
	mw->handle ^= 0x80000000;
	c.pd->handle ^= 0x80000000;
	assert_null(ibv_alloc_mw(c.pd, IBV_MW_TYPE_2));
	assert_int_equal(errno, ENOENT);
	assert_int_equal(ibv_dealloc_pd(c.pd), ENOENT);
	c.pd->handle ^= 0x80000000;
	c.cq->handle ^= 0x80000000;
	assert_int_equal(ibv_destroy_cq(c.cq), ENOENT);
	c.cq->handle ^= 0x80000000;
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	client_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_type_1),
		cmocka_unit_test(test_type_2),
		cmocka_unit_test(test_strange_handles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
