/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

FILE *client_report;

void client_fault(const char *format, ...)
{
	FILE *to = client_report ? client_report : stderr;
	va_list args;

	va_start(args, format);
	(void)vfprintf(to, format, args);
	va_end(args);
	(void)fprintf(to, "\n");
	(void)fflush(to);
	_exit(1);
}

static void modify(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask)
{
	int rc = ibv_modify_qp(qp, &attr, mask);

	if (rc)
		client_fault("ibv_modify_qp: %s", strerror(rc));
}

struct ibv_qp *client_qp(struct client *c, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = cq,
					.cap = {CLIENT_DEPTH, CLIENT_DEPTH, 1, 1, 0},
					.qp_type = IBV_QPT_RC};
	struct ibv_qp *qp = ibv_create_qp(c->pd, &init);

	if (!qp && errno == EADDRINUSE) {
		FILE *to = client_report ? client_report : stderr;

		(void)fprintf(to, "skipped: UDP 4791 belongs to another user\n");
		(void)fflush(to);
		_exit(77);
	}
	if (!qp)
		client_fault("ibv_create_qp: %s", strerror(errno));
	modify(qp,
	       (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE},
	       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	return qp;
}

static void open_nth(struct client *c, size_t bytes, bool last)
{
	int n;
	struct ibv_device **list = ibv_get_device_list(&n);

	memset(c, 0, sizeof(*c));
	c->context = list && n ? ibv_open_device(list[last ? n - 1 : 0]) : NULL;
	if (list)
		ibv_free_device_list(list);
	c->pd = c->context ? ibv_alloc_pd(c->context) : NULL;
	c->channel = c->pd ? ibv_create_comp_channel(c->context) : NULL;
	c->cq = c->channel ? ibv_create_cq(c->context, 16 * CLIENT_DEPTH, NULL, c->channel, 0)
			   : NULL;
	c->memory = calloc(1, bytes);
	c->mr = c->cq && c->memory ? ibv_reg_mr(c->pd, c->memory, bytes,
						IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
				   : NULL;
	if (!c->mr || ibv_query_gid(c->context, 1, 0, &c->gid))
		client_fault("no device: %s", strerror(errno));
	c->qp = client_qp(c, c->cq);
}

void client_open(struct client *c, size_t bytes)
{
	open_nth(c, bytes, /* last= */ false);
}

void client_open_last(struct client *c, size_t bytes)
{
	open_nth(c, bytes, /* last= */ true);
}

struct client_peer client_self(const struct client *c)
{
	return (struct client_peer){c->gid, c->qp->qp_num, c->mr->rkey, (uintptr_t)c->memory};
}

void client_connect(struct ibv_qp *qp, const struct client_peer *peer, uint8_t timeout,
		    uint8_t retry_cnt)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}}};

	attr.ah_attr.grh.dgid = peer->gid;
	modify(qp, attr,
	       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .timeout = timeout,
				    .retry_cnt = retry_cnt,
				    .rnr_retry = 7,
				    .max_rd_atomic = 1};
	modify(qp, attr,
	       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		       IBV_QP_MAX_QP_RD_ATOMIC);
}

void client_close(struct client *c)
{
	if (ibv_destroy_qp(c->qp) || ibv_dereg_mr(c->mr) || ibv_destroy_cq(c->cq) ||
	    ibv_destroy_comp_channel(c->channel) || ibv_dealloc_pd(c->pd) ||
	    ibv_close_device(c->context))
		client_fault("something is in use at the end");
	free(c->memory);
}

int client_write(struct client *c, struct ibv_qp *qp, uint64_t id, size_t from, size_t len,
		 const struct client_peer *to, size_t at)
{
	struct ibv_sge sge = {(uintptr_t)c->memory + from, (uint32_t)len, c->mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = id,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_RDMA_WRITE,
				       .send_flags = IBV_SEND_SIGNALED,
				       .wr.rdma = {to->memory + at, to->rkey}};

	return ibv_post_send(qp, &wr, &bad);
}

int64_t client_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

struct client_patience client_patience(void)
{
	return (struct client_patience){client_now_ns(), CLIENT_WAIT_S * INT64_C(1000000000)};
}

bool client_patience_ends(struct client_patience *p)
{
	const int64_t most = 100000000;
	int64_t now = client_now_ns(), passed = now - p->last;

	p->last = now;
	p->left -= passed < most ? passed : most;
	return p->left < 0;
}

struct ibv_wc client_wait(struct ibv_cq *cq)
{
	struct client_patience patience = client_patience();
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0 && !client_patience_ends(&patience))
		continue;
	if (n != 1)
		client_fault("%d completions in %d s", n, CLIENT_WAIT_S);
	return wc;
}
