/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bug that only an ill wire shows: data goes by one queue pair, the flag that says it is there by
 * another, and the reader trusts the flag. Order is promised within a queue pair only.
 *
 *   cc -o two-qps soft-two-qps.c -libverbs
 *   peerpath soft -- ./two-qps                                                 # right
 *   peerpath soft -c 'name=a,address=127.0.0.1,fault=loss=1% seed=7' -- ./two-qps     # wrong
 *   peerpath soft -c 'name=a,address=127.0.0.1,fault=loss=1% seed=7' -- ./two-qps -f  # repaired
 *
 * usage: two-qps [-f]     -f: data and flag go by the same queue pair.
 * Exit: 0 all rounds right, 1 a flag came before its data, 2 no device.
 */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 2000, DATA = 256, PATIENCE_S = 30 };

/* What is written from, and the memory "of the peer" that is written to. */
static struct memory {
	unsigned char from[DATA], data[DATA];
	uint64_t number, flag;
} memory;

static struct ibv_qp *connected_to_itself(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .cap = {16, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
				   .path_mtu = IBV_MTU_1024,
				   .max_dest_rd_atomic = 1,
				   .min_rnr_timer = 12,
				   .timeout = 14,
				   .retry_cnt = 7,
				   .rnr_retry = 7,
				   .max_rd_atomic = 1,
				   .ah_attr = {.is_global = 1, .port_num = 1}};

	if (!qp || ibv_query_gid(pd->context, 1, 0, &attr.ah_attr.grh.dgid))
		return NULL;
	attr.dest_qp_num = qp->qp_num;
	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		return NULL;
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		return NULL;
	attr.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		return NULL;
	return qp;
}

static int write_to(struct ibv_qp *qp, const struct ibv_mr *mr, const void *from, void *to,
		    uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)from, len, mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_RDMA_WRITE,
				       .send_flags = IBV_SEND_SIGNALED,
				       .wr.rdma = {(uintptr_t)to, mr->rkey}};

	return ibv_post_send(qp, &wr, &bad);
}

/* The next completion, or 0: none within patience. */
static int complete(struct ibv_cq *cq)
{
	time_t end = time(NULL) + PATIENCE_S;
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0 && time(NULL) <= end)
		continue;
	return n == 1 && wc.status == IBV_WC_SUCCESS;
}

/* The reader: waits for the flag of @round, and looks at the data. -1: it does not come. */
static int read_round(struct ibv_cq *cq, uint64_t round, int *completions)
{
	const volatile uint64_t *flag = &memory.flag;
	time_t end = time(NULL) + PATIENCE_S;
	struct ibv_wc wc;

	while (*flag != round) {
		*completions += ibv_poll_cq(cq, 1, &wc) > 0;
		if (time(NULL) > end)
			return -1;
	}
	for (int i = 0; i < DATA; i++)
		if (memory.data[i] != (unsigned char)round)
			return 1;
	return 0;
}

static int run(struct ibv_qp *data_qp, struct ibv_qp *flag_qp, const struct ibv_mr *mr,
	       struct ibv_cq *cq)
{
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		int completions = 0, r;

		memset(memory.from, (int)(unsigned char)round, DATA);
		memory.number = round;
		if (write_to(data_qp, mr, memory.from, memory.data, DATA) ||
		    write_to(flag_qp, mr, &memory.number, &memory.flag, sizeof(memory.flag)))
			return -1;
		r = read_round(cq, round, &completions);
		if (r > 0)
			printf("round %u: the flag is there, its data is not\n", (unsigned)round);
		if (r)
			return r;
		/* Only then their memory is used again. */
		for (; completions < 2; completions++)
			if (!complete(cq))
				return -1;
	}
	printf("%d rounds right\n", ROUNDS);
	return 0;
}

int main(int argc, char **argv)
{
	int repaired = argc > 1 && !strcmp(argv[1], "-f"), r;
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
	struct ibv_cq *cq = pd ? ibv_create_cq(context, 64, NULL, NULL, 0) : NULL;
	struct ibv_mr *mr = cq ? ibv_reg_mr(pd, &memory, sizeof(memory),
					    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
			       : NULL;
	struct ibv_qp *first = mr ? connected_to_itself(pd, cq) : NULL;
	struct ibv_qp *second = first ? connected_to_itself(pd, cq) : NULL;

	if (list)
		ibv_free_device_list(list);
	if (!second) {
		perror("no device");
		return 2;
	}
	r = run(first, repaired ? first : second, mr, cq);
	if (r < 0)
		printf("nothing comes any more\n");
	(void)ibv_destroy_qp(second);
	(void)ibv_destroy_qp(first);
	(void)ibv_dereg_mr(mr);
	(void)ibv_destroy_cq(cq);
	(void)ibv_dealloc_pd(pd);
	(void)ibv_close_device(context);
	return r ? 1 : 0;
}
