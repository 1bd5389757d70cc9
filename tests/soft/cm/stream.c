/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections of RDMA_PS_TCP by the calls of <rdma/rdma_cma.h>: what each end is told, and what its
 * queue pair is made of. Expected values are those of the manual pages and of rdma-core's users.
 */
#include "cm.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void check_private(const struct rdma_conn_param *p, const char *text, uint8_t room)
{
	const char *bytes = p->private_data;

	cm_true(p->private_data_len == room);
	cm_true(!memcmp(bytes, text, strlen(text)));
	for (size_t i = strlen(text); i < room; i++)
		cm_true(!bytes[i]);
}

/* What was said at one end is what the other has: resources cross, private data is padded. */
static void negotiate(void)
{
	struct rdma_conn_param ask = {.private_data = "question",
				      .private_data_len = 8,
				      .responder_resources = 3,
				      .initiator_depth = 5,
				      .flow_control = 1,
				      .retry_count = 6,
				      .rnr_retry_count = 4};
	struct rdma_conn_param answer = {.private_data = "yes",
					 .private_data_len = 3,
					 .responder_resources = 2,
					 .initiator_depth = 1,
					 .rnr_retry_count = 3};
	struct cm_end listener, client, server;
	struct ibv_qp_init_attr init;
	struct rdma_cm_event *e;
	struct ibv_qp_attr a, b;
	uint16_t port = cm_listen(&listener, RDMA_PS_TCP);

	cm_resolve(&client, RDMA_PS_TCP, port, true);
	cm_true(cm_state(&client) == IBV_QPS_INIT);
	cm_true(!cm_readable(listener.channel->fd, 0));
	cm_true(!rdma_connect(client.id, &ask));
	e = cm_expect(listener.channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	cm_true(!cm_readable(listener.channel->fd, 0));
	check_private(&e->param.conn, "question", 56);
	cm_true(e->param.conn.responder_resources == 5 && e->param.conn.initiator_depth == 3);
	cm_true(e->param.conn.retry_count == 6 && e->param.conn.rnr_retry_count == 4);
	cm_true(e->param.conn.flow_control == 1 && e->param.conn.qp_num == client.id->qp->qp_num);
	cm_true(rdma_get_dst_port(e->id) == rdma_get_src_port(client.id));
	cm_true(rdma_get_src_port(e->id) == htons(port));
	server = (struct cm_end){.channel = rdma_create_event_channel(), .id = e->id};
	cm_true(!rdma_ack_cm_event(e));
	cm_true(!rdma_migrate_id(server.id, server.channel));
	cm_queue_pair(&server);
	cm_true(!rdma_accept(server.id, &answer));
	cm_true(cm_state(&server) == IBV_QPS_RTS);
	e = cm_expect(client.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	check_private(&e->param.conn, "yes", 196);
	cm_true(e->param.conn.responder_resources == 1 && e->param.conn.initiator_depth == 2);
	cm_true(e->param.conn.qp_num == server.id->qp->qp_num);
	cm_true(!rdma_ack_cm_event(e));
	cm_pass(server.channel, RDMA_CM_EVENT_ESTABLISHED, 0);

	cm_true(!ibv_query_qp(client.id->qp, &a, 0, &init) &&
		!ibv_query_qp(server.id->qp, &b, 0, &init));
	cm_true(a.qp_state == IBV_QPS_RTS && b.qp_state == IBV_QPS_RTS);
	cm_true(a.max_rd_atomic == 2 && a.max_dest_rd_atomic == 1);
	cm_true(b.max_rd_atomic == 1 && b.max_dest_rd_atomic == 2);
	cm_true(a.retry_cnt == 6 && b.retry_cnt == 6 && a.rnr_retry == 3 && b.rnr_retry == 4);
	cm_true(a.sq_psn == b.rq_psn && b.sq_psn == a.rq_psn && a.path_mtu == b.path_mtu);
	cm_true(a.dest_qp_num == server.id->qp->qp_num && b.dest_qp_num == client.id->qp->qp_num);
	cm_true(a.qp_access_flags & IBV_ACCESS_REMOTE_READ);

	cm_receive(&server);
	memcpy(client.memory, "bytes", 5);
	cm_send(&client, 5);
	cm_true(cm_completion(&server) == IBV_WC_SUCCESS &&
		cm_completion(&client) == IBV_WC_SUCCESS);
	cm_true(!memcmp(server.memory, "bytes", 5));

	cm_receive(&server);
	cm_true(!rdma_disconnect(client.id));
	cm_true(cm_state(&client) == IBV_QPS_ERR);
	cm_pass(client.channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm_pass(server.channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm_true(cm_state(&server) == IBV_QPS_RTS);
	cm_true(!rdma_disconnect(server.id));
	cm_true(cm_state(&server) == IBV_QPS_ERR && cm_completion(&server) == IBV_WC_WR_FLUSH_ERR);
	cm_pass(client.channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	cm_pass(server.channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	cm_done(&client);
	cm_done(&server);
	cm_done(&listener);
}

/* Without a queue pair of the library's: the program moves its own by rdma_init_qp_attr(). */
static void by_hand(void)
{
	struct rdma_conn_param param = {.qp_num = 0x123456, .retry_count = 7, .rnr_retry_count = 7};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	struct cm_end listener, client, server;
	struct rdma_cm_event *e;
	int mask;
	uint16_t port = cm_listen(&listener, RDMA_PS_TCP);

	cm_resolve(&client, RDMA_PS_TCP, port, false);
	cm_fails(rdma_init_qp_attr(client.id, &attr, &mask), EINVAL);
	cm_fails(rdma_connect(client.id, NULL), EINVAL);
	cm_true(!rdma_connect(client.id, &param));
	cm_take(&listener, &server, false);
	param.qp_num = 0x654321;
	cm_true(!rdma_accept(server.id, &param));
	e = cm_expect(client.channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	cm_true(e->param.conn.qp_num == 0x654321);
	cm_true(!rdma_ack_cm_event(e));
	attr.qp_state = IBV_QPS_RTR;
	cm_true(!rdma_init_qp_attr(client.id, &attr, &mask));
	cm_true(attr.dest_qp_num == 0x654321 && attr.ah_attr.is_global &&
		attr.ah_attr.port_num == 1);
	cm_true(mask == (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			 IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	attr.qp_state = IBV_QPS_RTS;
	cm_true(!rdma_init_qp_attr(server.id, &attr, &mask));
	cm_true(mask == (IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			 IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
	cm_true(!cm_readable(server.channel->fd, 0));
	cm_true(!rdma_establish(client.id));
	cm_pass(server.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	cm_fails(rdma_establish(client.id), EINVAL);
	/* To destroy a connected id is to disconnect. */
	cm_done(&client);
	cm_pass(server.channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm_done(&server);
	cm_done(&listener);
}

static void reject(void)
{
	char text[148];
	struct rdma_conn_param param = {.qp_num = 1};
	struct cm_end listener, client, server;
	struct rdma_cm_event *e;
	uint16_t port = cm_listen(&listener, RDMA_PS_TCP);

	memset(text, 'n', sizeof(text));
	cm_resolve(&client, RDMA_PS_TCP, port, true);
	cm_true(!rdma_connect(client.id, &param));
	cm_take(&listener, &server, false);
	cm_fails(rdma_reject(server.id, text, 149), EINVAL);
	cm_true(!rdma_reject(server.id, text, sizeof(text)));
	cm_fails(rdma_reject(server.id, NULL, 0), EINVAL);
	e = cm_expect(client.channel, RDMA_CM_EVENT_REJECTED, 28);
	cm_true(e->param.conn.private_data_len == 148);
	cm_true(!memcmp(e->param.conn.private_data, text, sizeof(text)));
	cm_true(!rdma_ack_cm_event(e));
	cm_true(cm_state(&client) == IBV_QPS_ERR);
	cm_done(&server);
	cm_done(&client);

	/* An id that is destroyed with its question open says no; so does a listener. */
	cm_resolve(&client, RDMA_PS_TCP, port, true);
	cm_true(!rdma_connect(client.id, &param));
	cm_take(&listener, &server, false);
	cm_done(&server);
	cm_pass(client.channel, RDMA_CM_EVENT_REJECTED, 28);
	cm_done(&client);
	cm_resolve(&client, RDMA_PS_TCP, port, true);
	cm_true(!rdma_connect(client.id, &param));
	cm_true(cm_readable(listener.channel->fd, CM_WAIT_S * 1000));
	cm_done(&listener);
	cm_pass(client.channel, RDMA_CM_EVENT_REJECTED, 28);
	cm_done(&client);
}

/* The channel's descriptor is the program's: its flag is heeded, and it is readable or not. */
static void channel(void)
{
	struct cm_end a, b;
	struct rdma_cm_event *e;
	struct sockaddr_in to = cm_address(7);

	(void)cm_listen(&a, RDMA_PS_TCP);
	cm_true(!fcntl(a.channel->fd, F_SETFL, O_NONBLOCK));
	cm_fails(rdma_get_cm_event(a.channel, &e), EAGAIN);
	cm_fails(rdma_get_cm_event(a.channel, NULL), EINVAL);
	/* Events that nobody fetched go with their id, and with another channel. */
	memset(&b, 0, sizeof(b));
	cm_true(!rdma_create_id(a.channel, &b.id, NULL, RDMA_PS_TCP));
	cm_true(!rdma_resolve_addr(b.id, NULL, (struct sockaddr *)&to, 1000));
	cm_true(cm_readable(a.channel->fd, 0));
	b.channel = rdma_create_event_channel();
	cm_true(!rdma_migrate_id(b.id, b.channel));
	cm_true(!cm_readable(a.channel->fd, 0) && cm_readable(b.channel->fd, 0));
	cm_true(!rdma_destroy_id(b.id));
	cm_true(!cm_readable(b.channel->fd, 0));
	b.id = NULL;
	cm_done(&b);
	cm_done(&a);
}

/* Who has received the last message may leave at once: its sender has success all the same. */
static void last_word(void)
{
	struct cm_end listener, client, server;
	uint16_t port = cm_listen(&listener, RDMA_PS_TCP);

	for (int round = 0; round < 20; round++) {
		cm_connect(&listener, port, &client, &server);
		cm_receive(&server);
		cm_receive(&client);
		for (int i = 0; i < 8; i++) {
			cm_send(&client, 8);
			cm_true(cm_completion(&server) == IBV_WC_SUCCESS);
			cm_receive(&server);
			cm_send(&server, 8);
			/* its send, and the answer */
			cm_true(cm_completion(&client) == IBV_WC_SUCCESS);
			cm_true(cm_completion(&client) == IBV_WC_SUCCESS);
			cm_receive(&client);
			cm_true(cm_completion(&server) == IBV_WC_SUCCESS);
		}
		cm_send(&client, 8);
		cm_true(cm_completion(&server) == IBV_WC_SUCCESS);
		cm_done(&server);
		cm_true(cm_completion(&client) == IBV_WC_SUCCESS);
		cm_done(&client);
	}
	cm_done(&listener);
}

int main(void)
{
	(void)alarm(8 * CM_WAIT_S);
	negotiate();
	by_hand();
	reject();
	channel();
	last_word();
	(void)puts("connections, rejects, channels, last words: as they should be");
	return 0;
}
