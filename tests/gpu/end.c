/* SPDX-License-Identifier: Apache-2.0 */
#include "end.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const double PATIENCE_S = 30;

void end_fault(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "%d: ", getpid());
	vfprintf(stderr, format, args);
	fprintf(stderr, "\n");
	va_end(args);
	if (getenv("PP_GPU_STAY"))
		sleep(1000);
	exit(1);
}

double end_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void end_say(struct end *e, const void *what, size_t len)
{
	if (write(e->talk, what, len) != (ssize_t)len)
		end_fault("the other end is gone");
}

void end_hear(struct end *e, void *what, size_t len)
{
	for (size_t got = 0; got < len;) {
		ssize_t n = read(e->talk, (char *)what + got, len - got);

		if (n <= 0)
			end_fault("the other end is gone");
		got += (size_t)n;
	}
}

void end_meet(struct end *e)
{
	char c = 0;

	end_say(e, &c, 1);
	end_hear(e, &c, 1);
}

static void make_qp(struct end *e)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = {.max_send_wr = END_DEPTH,
			.max_recv_wr = END_DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = e->type,
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = END_ACCESS};

	e->qp = ibv_create_qp(e->pd, &init);
	if (!e->qp)
		end_fault("ibv_create_qp: %m");
	if (ibv_modify_qp(e->qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		end_fault("INIT");
}

void end_open(struct end *e, int talk, enum ibv_qp_type type)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list || !list[0]) {
		printf("no RDMA device\n");
		exit(77);
	}
	memset(e, 0, sizeof(*e));
	e->talk = talk;
	e->type = type;
	e->context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	e->pd = e->context ? ibv_alloc_pd(e->context) : NULL;
	e->cq = e->pd ? ibv_create_cq(e->context, 4 * END_DEPTH, NULL, NULL, 0) : NULL;
	if (!e->cq)
		end_fault("no device: %m");
	make_qp(e);
}

struct ibv_mr *end_register(struct end *e, const struct gpu_memory *m)
{
	uint64_t first = m->at / END_PAGE * END_PAGE;
	size_t len = (m->at + m->len - first + END_PAGE - 1) / END_PAGE * END_PAGE;
	int (*tell)(int, uint64_t, uint64_t);
	struct ibv_mr *mr;
	int fd;

	if (m->kind == GPU_HOST)
		return ibv_reg_mr(e->pd, (void *)(uintptr_t)first, len, END_ACCESS);
	fd = gpu_export(m->base, m->whole);
	tell = (int (*)(int, uint64_t, uint64_t))dlvsym(RTLD_DEFAULT, "peerpath_soft_dmabuf_range",
							"PEERPATH_SOFT_1");
	if (tell && !getenv("PP_GPU_UNTOLD") && tell(fd, m->base, m->whole))
		end_fault("the range is refused");
	/* A client that is wrong by a page: what a NIC would make of it. */
	mr = ibv_reg_dmabuf_mr(e->pd, first - m->base + (getenv("PP_GPU_WRONG") ? END_PAGE : 0),
			       len, first, fd, END_ACCESS);
	close(fd);
	return mr;
}

static void to_ready(struct end *e)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = e->peer.qpn,
		.rq_psn = 0xfffff0,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 5,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = e->peer.gid, .hop_limit = 64}},
	};
	bool rc = e->type == IBV_QPT_RC;
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	int r = ibv_modify_qp(e->qp, &attr,
			      mask | (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));

	if (r) {
		printf("RTR: %s\n", strerror(r));
		exit(3);
	}
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .sq_psn = 0xfffff0,
				    .timeout = 18,
				    .retry_cnt = 7,
				    .rnr_retry = 7,
				    .max_rd_atomic = 16};
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (rc)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	if (ibv_modify_qp(e->qp, &attr, mask))
		end_fault("RTS");
}

void end_connect(struct end *e, enum gpu_kind kind, size_t len, size_t inside)
{
	struct gpu_memory page = gpu_take(GPU_HOST, END_PAGE, 0);
	struct end_peer self = {.qpn = e->qp->qp_num};

	e->memory = gpu_take(kind, len, inside);
	e->mr = end_register(e, &e->memory);
	e->flag = (volatile uint64_t *)(uintptr_t)page.at;
	e->flag_mr = end_register(e, &page);
	if (getenv("PP_GPU_ALSO")) {
		e->also = gpu_take(GPU_VMM, END_PAGE, 0);
		e->also_mr = end_register(e, &e->also);
	}
	if (!e->mr || !e->flag_mr)
		end_fault("no registration: %m");
	if (ibv_query_gid(e->context, 1, 0, &self.gid))
		end_fault("no GID");
	self.rkey = e->mr->rkey;
	self.at = e->memory.at;
	self.flag_rkey = e->flag_mr->rkey;
	self.flag_at = page.at;
	end_say(e, &self, sizeof(self));
	end_hear(e, &e->peer, sizeof(e->peer));
	if (e->self)
		e->peer = self;
	to_ready(e);
	end_meet(e);
}

void end_close(struct end *e)
{
	if (ibv_destroy_qp(e->qp) || (e->also_mr && ibv_dereg_mr(e->also_mr)) ||
	    ibv_dereg_mr(e->mr) || ibv_dereg_mr(e->flag_mr) || ibv_destroy_cq(e->cq) ||
	    ibv_dealloc_pd(e->pd))
		end_fault("something stays");
	gpu_give(&e->memory);
	if (e->also_mr)
		gpu_give(&e->also);
	if (ibv_close_device(e->context))
		end_fault("the device stays open");
}

void end_post(struct end *e, enum ibv_wr_opcode op, uint64_t id, size_t from, size_t len, size_t to)
{
	struct ibv_sge sge = {e->memory.at + from, (uint32_t)len, e->mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = id,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = op,
					 .send_flags = IBV_SEND_SIGNALED,
					 .imm_data = htonl((uint32_t)id),
					 .wr.rdma = {e->peer.at + to, e->peer.rkey},
				 };

	if (ibv_post_send(e->qp, &wr, &bad))
		end_fault("ibv_post_send");
}

void end_receive(struct end *e, uint64_t id, size_t at, size_t len)
{
	struct ibv_sge sge = {e->memory.at + at, (uint32_t)len, e->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = id, .sg_list = &sge, .num_sge = len > 0};

	if (ibv_post_recv(e->qp, &wr, &bad))
		end_fault("ibv_post_recv");
}

struct ibv_wc end_wait_any(struct end *e)
{
	double until = end_seconds() + PATIENCE_S;
	struct ibv_wc wc;

	while (ibv_poll_cq(e->cq, 1, &wc) == 0)
		if (end_seconds() > until)
			end_fault("no completion in %.0f s", PATIENCE_S);
	return wc;
}

struct ibv_wc end_wait(struct end *e)
{
	struct ibv_wc wc = end_wait_any(e);

	if (wc.status)
		end_fault("completion %llu: %s", (unsigned long long)wc.wr_id,
			  ibv_wc_status_str(wc.status));
	return wc;
}
