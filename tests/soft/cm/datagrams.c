/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RDMA_PS_UDP: a queue pair is looked up, datagrams go there and come back; and what there is when
 * nobody listens, or says no.
 */
#include "cm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SIDR_UNSUPPORTED = 1, SIDR_REJECTED = 2, GRH = 40 };

static void post(struct cm_end *from, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct ibv_sge sge = {(uintptr_t)from->memory, 64, from->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = qkey;
	cm_true(!ibv_post_send(from->id->qp, &wr, &bad));
	cm_true(cm_completion(from) == IBV_WC_SUCCESS);
}

static void look_up(void)
{
	struct rdma_conn_param param = {.private_data = "where?", .private_data_len = 6};
	struct cm_end listener, client, server;
	struct rdma_cm_event *e;
	struct ibv_ah *ah;
	uint16_t port = cm_listen(&listener, RDMA_PS_UDP);

	cm_resolve(&client, RDMA_PS_UDP, port, true);
	cm_true(client.id->qp_type == IBV_QPT_UD && cm_state(&client) == IBV_QPS_RTS);
	cm_true(!rdma_connect(client.id, &param));
	e = cm_expect(listener.channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	cm_true(e->param.ud.private_data_len == 180);
	cm_true(!memcmp(e->param.ud.private_data, "where?\0", 7));
	memset(&server, 0, sizeof(server));
	server.id = e->id;
	server.channel = rdma_create_event_channel();
	cm_true(!rdma_ack_cm_event(e));
	cm_true(!rdma_migrate_id(server.id, server.channel));
	cm_queue_pair(&server);
	cm_receive(&server);
	param.private_data = "here";
	param.private_data_len = 4;
	cm_true(!rdma_accept(server.id, &param));
	e = cm_expect(client.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	cm_true(e->param.ud.private_data_len == 136 &&
		!memcmp(e->param.ud.private_data, "here", 5));
	cm_true(e->param.ud.qp_num == server.id->qp->qp_num && e->param.ud.qkey == RDMA_UDP_QKEY);
	cm_true((ah = ibv_create_ah(client.id->pd, &e->param.ud.ah_attr)));
	memset(client.memory, 'd', 64);
	post(&client, ah, e->param.ud.qp_num, e->param.ud.qkey);
	cm_true(cm_completion(&server) == IBV_WC_SUCCESS);
	cm_true(server.memory[GRH] == 'd' && server.memory[GRH + 63] == 'd');
	cm_true(!rdma_ack_cm_event(e) && !ibv_destroy_ah(ah));
	/* A lookup is no connection: its server is told nothing more. */
	cm_true(!cm_readable(server.channel->fd, 50));
	cm_true(!rdma_disconnect(client.id) && cm_state(&client) == IBV_QPS_ERR);
	cm_done(&client);
	cm_true(!cm_readable(server.channel->fd, 50));
	cm_done(&server);
	cm_done(&listener);
}

static void refused(void)
{
	struct rdma_conn_param param = {.qp_num = 1};
	struct cm_end listener, client, server;
	uint16_t port = cm_listen(&listener, RDMA_PS_UDP);

	cm_resolve(&client, RDMA_PS_UDP, port, true);
	cm_true(!rdma_connect(client.id, &param));
	cm_take(&listener, &server, false);
	cm_true(!rdma_reject(server.id, NULL, 0));
	cm_pass(client.channel, RDMA_CM_EVENT_UNREACHABLE, SIDR_REJECTED);
	cm_done(&server);
	cm_done(&client);
	cm_done(&listener);
	/* The port is free again. */
	cm_resolve(&client, RDMA_PS_UDP, port, true);
	cm_true(!rdma_connect(client.id, &param));
	cm_pass(client.channel, RDMA_CM_EVENT_UNREACHABLE, SIDR_UNSUPPORTED);
	cm_done(&client);
}

/* Answers that come late, and questions that nobody answers, end with their ids. */
static void late(void)
{
	struct rdma_conn_param param = {.qp_num = 1};
	struct cm_end listener, client, server;
	uint16_t port = cm_listen(&listener, RDMA_PS_UDP);

	cm_resolve(&client, RDMA_PS_UDP, port, true);
	cm_true(!rdma_connect(client.id, &param));
	cm_take(&listener, &server, false);
	/* It asks again meanwhile; that is one request. */
	cm_true(!cm_readable(listener.channel->fd, 400));
	cm_done(&listener);
	cm_true(!rdma_accept(server.id, &param));
	cm_pass(client.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	cm_done(&client);
	cm_done(&server);
	port = cm_listen(&listener, RDMA_PS_UDP);
	cm_resolve(&client, RDMA_PS_UDP, port, true);
	cm_true(!rdma_connect(client.id, &param));
	cm_true(cm_readable(listener.channel->fd, CM_WAIT_S * 1000));
	cm_done(&client);
	cm_done(&listener);
}

int main(void)
{
	(void)alarm(8 * CM_WAIT_S);
	look_up();
	refused();
	late();
	(void)puts("lookups by datagrams: answered, refused, late");
	return 0;
}
