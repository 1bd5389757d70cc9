/* SPDX-License-Identifier: Apache-2.0 */
#include "soft_abi_client.h"

#include <time.h>

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void client_open(struct client *c)
{
	int n, at = -1;
	struct ibv_device **list = ibv_get_device_list(&n);

	assert_non_null(list);
	for (int i = 0; i < n; i++)
		if (!strcmp(ibv_get_device_name(list[i]), "soft_lo"))
			at = i;
	assert_true(at >= 0);
	memset(c, 0, sizeof(*c));
	c->context = ibv_open_device(list[at]);
	assert_non_null(c->context);
	ibv_free_device_list(list);
	c->pd = ibv_alloc_pd(c->context);
	c->cq = ibv_create_cq(c->context, 256, c, /* channel= */ NULL, 0);
	assert_non_null(c->pd);
	assert_non_null(c->cq);
	assert_int_equal(ibv_query_gid(c->context, 1, 0, &c->gid), 0);
	assert_int_equal(ibv_query_port(c->context, 1, &c->port), 0);
}

void client_close(struct client *c)
{
	assert_int_equal(ibv_destroy_cq(c->cq), 0);
	assert_int_equal(ibv_dealloc_pd(c->pd), 0);
	assert_int_equal(ibv_close_device(c->context), 0);
}

struct ibv_qp *client_qp(struct client *c, enum ibv_qp_type type, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = {
		.qp_context = c,
		.send_cq = c->cq,
		.recv_cq = c->cq,
		.srq = srq,
		.cap = {.max_send_wr = 16,
			.max_recv_wr = 16,
			.max_send_sge = 4,
			.max_recv_sge = 4,
			.max_inline_data = 64},
		.qp_type = type,
	};
	struct ibv_qp *qp = ibv_create_qp(c->pd, &attr);

	assert_non_null(qp);
	assert_int_equal(qp->state, IBV_QPS_RESET);
	assert_true(attr.cap.max_inline_data >= 64);
	return qp;
}

void client_to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags =
					   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC};

	assert_int_equal(
		ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		0);
	assert_int_equal(qp->state, IBV_QPS_INIT);
}

void client_connect(struct client *c, struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer,
		.rq_psn = 0x123456,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = {.grh = {.dgid = c->gid, .hop_limit = 64},
			    .is_global = 1,
			    .port_num = 1},
	};

	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
			 0);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .sq_psn = 0x123456,
				    .timeout = 14,
				    .retry_cnt = 7,
				    .rnr_retry = 7,
				    .max_rd_atomic = 4};
	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
					       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					       IBV_QP_MAX_QP_RD_ATOMIC),
			 0);
	assert_int_equal(qp->state, IBV_QPS_RTS);
}

void client_ud_ready(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 0x1234};

	assert_int_equal(
		ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
		0);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR};
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS};
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

struct ibv_wc client_wait(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	double end = seconds() + 10;
	int n;

	do {
		n = ibv_poll_cq(cq, 1, &wc);
	} while (!n && seconds() < end);
	assert_int_equal(n, 1);
	return wc;
}

void client_quiet(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	double end = seconds() + 0.02;

	do {
		assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
	} while (seconds() < end);
}
