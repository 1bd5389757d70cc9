/* SPDX-License-Identifier: Apache-2.0 */
#include "cm.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void cm_fault(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	(void)vfprintf(stderr, format, ap);
	va_end(ap);
	(void)fputc('\n', stderr);
	_exit(1);
}

struct rdma_cm_event *cm_expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type,
				int status)
{
	struct rdma_cm_event *e;

	if (!cm_readable(channel->fd, CM_WAIT_S * 1000))
		cm_fault("%s does not come", rdma_event_str(type));
	if (rdma_get_cm_event(channel, &e))
		cm_fault("rdma_get_cm_event: %s", strerror(errno));
	if (e->event != type || e->status != status)
		cm_fault("%s, status %d; not %s, status %d", rdma_event_str(e->event), e->status,
			 rdma_event_str(type), status);
	return e;
}

void cm_pass(struct rdma_event_channel *channel, enum rdma_cm_event_type type, int status)
{
	cm_true(!rdma_ack_cm_event(cm_expect(channel, type, status)));
}

bool cm_readable(int fd, int wait_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, wait_ms) == 1 && p.revents & POLLIN;
}

struct sockaddr_in cm_address(uint16_t port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons(port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

uint16_t cm_listen(struct cm_end *end, enum rdma_port_space ps)
{
	struct sockaddr_in at = cm_address(0);

	memset(end, 0, sizeof(*end));
	cm_true((end->channel = rdma_create_event_channel()));
	cm_true(!rdma_create_id(end->channel, &end->id, NULL, ps));
	cm_true(!rdma_bind_addr(end->id, (struct sockaddr *)&at));
	cm_true(!rdma_listen(end->id, 0));
	cm_true(rdma_get_src_port(end->id));
	return ntohs(rdma_get_src_port(end->id));
}

void cm_queue_pair(struct cm_end *end)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = CM_DEPTH,
			.max_recv_wr = CM_DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = end->id->qp_type,
		.sq_sig_all = 1,
	};

	cm_true((end->cq = ibv_create_cq(end->id->verbs, 2 * CM_DEPTH, NULL, NULL, 0)));
	attr.send_cq = attr.recv_cq = end->cq;
	cm_true(!rdma_create_qp(end->id, NULL, &attr));
	cm_true((end->mr = ibv_reg_mr(end->id->pd, end->memory, CM_BYTES, IBV_ACCESS_LOCAL_WRITE)));
}

void cm_resolve(struct cm_end *end, enum rdma_port_space ps, uint16_t port, bool with_qp)
{
	struct sockaddr_in to = cm_address(port);

	memset(end, 0, sizeof(*end));
	cm_true((end->channel = rdma_create_event_channel()));
	cm_true(!rdma_create_id(end->channel, &end->id, NULL, ps));
	cm_true(!rdma_resolve_addr(end->id, NULL, (struct sockaddr *)&to, 1000));
	cm_pass(end->channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	cm_true(end->id->verbs && end->id->port_num == 1);
	cm_true(!rdma_resolve_route(end->id, 1000));
	cm_pass(end->channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	cm_true(end->id->route.num_paths == 1);
	if (with_qp)
		cm_queue_pair(end);
}

void cm_done(struct cm_end *end)
{
	if (end->id && end->id->qp)
		rdma_destroy_qp(end->id);
	if (end->cq)
		cm_true(!ibv_destroy_cq(end->cq));
	if (end->mr)
		cm_true(!ibv_dereg_mr(end->mr));
	if (end->id)
		cm_true(!rdma_destroy_id(end->id));
	if (end->channel)
		rdma_destroy_event_channel(end->channel);
	memset(end, 0, sizeof(*end));
}

void cm_take(struct cm_end *listener, struct cm_end *ret, bool with_qp)
{
	struct rdma_cm_event *e = cm_expect(listener->channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);

	memset(ret, 0, sizeof(*ret));
	ret->id = e->id;
	cm_true(e->listen_id == listener->id && e->id->verbs);
	cm_true(!rdma_ack_cm_event(e));
	cm_true((ret->channel = rdma_create_event_channel()));
	cm_true(!rdma_migrate_id(ret->id, ret->channel));
	if (with_qp)
		cm_queue_pair(ret);
}

void cm_connect(struct cm_end *listener, uint16_t port, struct cm_end *client,
		struct cm_end *server)
{
	struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};

	cm_resolve(client, RDMA_PS_TCP, port, true);
	cm_true(!rdma_connect(client->id, &param));
	cm_take(listener, server, true);
	cm_true(!rdma_accept(server->id, &param));
	cm_pass(client->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	cm_pass(server->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
}

void cm_send(struct cm_end *end, size_t len)
{
	struct ibv_sge sge = {(uintptr_t)end->memory, (uint32_t)len, end->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	cm_true(!ibv_post_send(end->id->qp, &wr, &bad));
}

void cm_receive(struct cm_end *end)
{
	struct ibv_sge sge = {(uintptr_t)end->memory, CM_BYTES, end->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	cm_true(!ibv_post_recv(end->id->qp, &wr, &bad));
}

enum ibv_wc_status cm_completion(struct cm_end *end)
{
	time_t start = time(NULL);
	struct ibv_wc wc;
	int n;

	do {
		n = ibv_poll_cq(end->cq, 1, &wc);
		if (n < 0 || time(NULL) - start > CM_WAIT_S)
			cm_fault("no completion");
	} while (!n);
	return wc.status;
}

enum ibv_qp_state cm_state(const struct cm_end *end)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	cm_true(!ibv_query_qp(end->id->qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}
