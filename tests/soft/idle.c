/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an idle process costs on a verbs library: opens the first device, makes queue pairs as
 * a common application does, sleeps, and prints its resident memory and CPU time. Exit 1 when
 * memory is beyond 24 MiB and 64 KiB a queue pair.
 *
 * usage: idle QUEUE-PAIRS SECONDS
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH = 128, CQ_DEPTH = 256, PROCESS_KIB = 24 * 1024, QUEUE_PAIR_KIB = 64 };

static long resident_kib(void)
{
	long pages = 0, total = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || fscanf(f, "%ld %ld", &total, &pages) != 2)
		exit(2);
	fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void to_rts(struct ibv_qp *qp, const union ibv_gid *gid)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	if (ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		exit(2);
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = qp->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = *gid, .hop_limit = 64}}};
	if (ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		exit(2);
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				 .timeout = 14,
				 .retry_cnt = 7,
				 .rnr_retry = 7,
				 .max_rd_atomic = 1};
	if (ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		exit(2);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1, seconds = argc > 2 ? atoi(argv[2]) : 2;
	struct ibv_device **list;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	union ibv_gid gid;
	struct timespec cpu;
	long before = 0;

	if (getenv("PEERPATH_SANITIZED") && *getenv("PEERPATH_SANITIZED")) {
		puts("memory of an instrumented library says nothing");
		return 77;
	}
	list = ibv_get_device_list(NULL);
	context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	pd = context ? ibv_alloc_pd(context) : NULL;
	cq = pd ? ibv_create_cq(context, CQ_DEPTH, NULL, NULL, 0) : NULL;
	if (!cq || ibv_query_gid(context, 1, 0, &gid))
		return 2;
	for (int i = 0; i < n + 1; i++) {
		struct ibv_qp_init_attr init = {.send_cq = cq,
						.recv_cq = cq,
						.qp_type = IBV_QPT_RC,
						.cap = {.max_send_wr = DEPTH,
							.max_recv_wr = DEPTH,
							.max_send_sge = 1,
							.max_recv_sge = 1}};
		struct ibv_qp *qp = ibv_create_qp(pd, &init);

		if (!qp)
			return 2;
		to_rts(qp, &gid);
		if (i == 0)
			before = resident_kib();
	}
	sleep((unsigned int)seconds);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	double start = (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9;
	sleep((unsigned int)seconds);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	printf("resident_kib %ld\nkib_per_queue_pair %.1f\ncpu_ms_per_s %.3f\n", resident_kib(),
	       (double)(resident_kib() - before) / n,
	       ((double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9 - start) * 1000 / seconds);
	return resident_kib() > PROCESS_KIB + (long)n * QUEUE_PAIR_KIB ||
	       resident_kib() - before > (long)n * QUEUE_PAIR_KIB;
}
