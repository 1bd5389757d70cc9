/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several protection domains in one process: whose keys and address handles count where
 * (InfiniBand Architecture Specification, volume 1, 10.2.3: a shared receive queue has a domain of
 * its own, and its pieces belong to that one; an address handle belongs to the queue pair's).
 */
#include "soft_abi_client.h"

struct bench {
	struct client c;
	struct ibv_pd *other;
	uint8_t from[64], to[128];
	struct ibv_mr *from_mr;
};

static void bench_open(struct bench *b)
{
	memset(b, 0, sizeof(*b));
	client_open(&b->c);
	b->other = ibv_alloc_pd(b->c.context);
	assert_non_null(b->other);
	memset(b->from, 0x5a, sizeof(b->from));
	b->from_mr = ibv_reg_mr(b->c.pd, b->from, sizeof(b->from), 0);
	assert_non_null(b->from_mr);
}

static void bench_close(struct bench *b)
{
	assert_int_equal(ibv_dereg_mr(b->from_mr), 0);
	assert_int_equal(ibv_dealloc_pd(b->other), 0);
	client_close(&b->c);
}

/* A SEND of a queue pair to itself, received through a shared queue of the other domain with a key
 * of @pd. */
static enum ibv_wc_status receive_with_key_of(struct bench *b, struct ibv_pd *pd)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_mr *to = ibv_reg_mr(pd, b->to, sizeof(b->to), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_srq *srq = ibv_create_srq(b->other, &init);
	struct ibv_sge out = {(uintptr_t)b->from, sizeof(b->from), b->from_mr->lkey};
	struct ibv_send_wr send = {.sg_list = &out, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad_send;
	struct ibv_recv_wr *bad_recv;
	enum ibv_wc_status status;
	struct ibv_qp *qp;

	assert_non_null(to);
	assert_non_null(srq);
	qp = client_qp(&b->c, IBV_QPT_RC, srq);
	client_to_init(qp);
	client_connect(&b->c, qp, qp->qp_num);
	assert_int_equal(
		ibv_post_srq_recv(
			srq,
			&(struct ibv_recv_wr){.sg_list = &(struct ibv_sge){(uintptr_t)b->to,
									   sizeof(b->to), to->lkey},
					      .num_sge = 1},
			&bad_recv),
		0);
	assert_int_equal(ibv_post_send(qp, &send, &bad_send), 0);
	/* Unsignalled: of a success the receive alone completes, and first of a failure. */
	status = client_wait(b->c.cq).status;
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_dereg_mr(to), 0);
	return status;
}

static void test_shared_queue_has_its_own(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b);
	assert_int_equal(receive_with_key_of(&b, b.other), IBV_WC_SUCCESS);
	assert_memory_equal(b.to, b.from, sizeof(b.from));
	memset(b.to, 0, sizeof(b.to));
	assert_int_equal(receive_with_key_of(&b, b.c.pd), IBV_WC_LOC_PROT_ERR);
	for (size_t i = 0; i < sizeof(b.to); i++)
		assert_int_equal(b.to[i], 0);
	bench_close(&b);
}

static enum ibv_wc_status send_by_handle_of(struct bench *b, struct ibv_pd *pd)
{
	struct ibv_ah_attr to = {
		.grh = {.dgid = b->c.gid, .hop_limit = 64}, .is_global = 1, .port_num = 1};
	struct ibv_qp *qp = client_qp(&b->c, IBV_QPT_UD, NULL);
	struct ibv_ah *ah = ibv_create_ah(pd, &to);
	struct ibv_sge sge = {(uintptr_t)b->from, sizeof(b->from), b->from_mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED,
				       .wr.ud = {.ah = ah, .remote_qpn = 5, .remote_qkey = 1}};
	enum ibv_wc_status status;

	assert_non_null(ah);
	client_ud_ready(qp);
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	status = client_wait(b->c.cq).status;
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	return status;
}

static void test_address_handle(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b);
	assert_int_equal(send_by_handle_of(&b, b.c.pd), IBV_WC_SUCCESS);
	assert_int_equal(send_by_handle_of(&b, b.other), IBV_WC_LOC_QP_OP_ERR);
	bench_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shared_queue_has_its_own),
		cmocka_unit_test(test_address_handle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
