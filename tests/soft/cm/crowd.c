/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many connections at once, by many threads, over one listener: each is told its own end, and the
 * bytes of each arrive at its own peer.
 */
#include "cm.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CLIENTS = 8, ROUNDS = 12 };

static uint16_t port;

static void *be_client(void *number)
{
	unsigned char mark = (unsigned char)(uintptr_t)number;

	for (int round = 0; round < ROUNDS; round++) {
		struct rdma_conn_param param = {.private_data = &mark, .private_data_len = 1};
		struct cm_end end;

		cm_resolve(&end, RDMA_PS_TCP, port, true);
		cm_receive(&end);
		cm_true(!rdma_connect(end.id, &param));
		/* Every third gives up at once. */
		if (round % 3 != 2) {
			cm_pass(end.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
			cm_true(cm_completion(&end) == IBV_WC_SUCCESS && end.memory[7] == mark);
			if (round % 3)
				cm_true(!rdma_disconnect(end.id));
		}
		cm_done(&end);
	}
	return NULL;
}

/* Accepts and sends the mark back. A client that has gone is an end too. */
static void serve(struct rdma_cm_id *id, unsigned char mark)
{
	struct rdma_cm_event *e;
	struct cm_end end;

	memset(&end, 0, sizeof(end));
	end.id = id;
	cm_true((end.channel = rdma_create_event_channel()));
	cm_true(!rdma_migrate_id(id, end.channel));
	cm_queue_pair(&end);
	if (rdma_accept(id, NULL)) {
		cm_true(errno == EINVAL || errno == ENOTCONN);
		cm_done(&end);
		return;
	}
	cm_true(cm_readable(end.channel->fd, CM_WAIT_S * 1000));
	cm_true(!rdma_get_cm_event(end.channel, &e));
	if (e->event == RDMA_CM_EVENT_ESTABLISHED) {
		cm_true(!rdma_ack_cm_event(e));
		memset(end.memory, mark, 8);
		cm_send(&end, 8);
		cm_pass(end.channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	} else {
		cm_true(e->event == RDMA_CM_EVENT_REJECTED);
		cm_true(!rdma_ack_cm_event(e));
	}
	cm_done(&end);
}

static void *be_server(void *listener)
{
	struct cm_end *end = listener;

	for (;;) {
		struct rdma_cm_event *e;
		struct rdma_cm_id *id;
		unsigned char mark;

		cm_true(!rdma_get_cm_event(end->channel, &e));
		if (e->event == RDMA_CM_EVENT_REJECTED) {
			/* Of a client that had gone before its id moved to another channel. */
			cm_true(!rdma_ack_cm_event(e));
			continue;
		}
		cm_true(e->event == RDMA_CM_EVENT_CONNECT_REQUEST);
		id = e->id;
		mark = *(const unsigned char *)e->param.conn.private_data;
		cm_true(!rdma_ack_cm_event(e));
		if (mark == 255) {
			cm_true(!rdma_reject(id, NULL, 0) && !rdma_destroy_id(id));
			return NULL;
		}
		serve(id, mark);
	}
}

int main(void)
{
	pthread_t clients[CLIENTS], servers[CLIENTS];
	struct cm_end listener, last;
	unsigned char end = 255;
	struct rdma_conn_param param = {.private_data = &end, .private_data_len = 1, .qp_num = 1};

	(void)alarm(8 * CM_WAIT_S);
	port = cm_listen(&listener, RDMA_PS_TCP);
	for (uintptr_t i = 0; i < CLIENTS; i++) {
		cm_true(!pthread_create(&servers[i], NULL, be_server, &listener));
		cm_true(!pthread_create(&clients[i], NULL, be_client, (void *)(i + 1)));
	}
	for (int i = 0; i < CLIENTS; i++)
		cm_true(!pthread_join(clients[i], NULL));
	for (int i = 0; i < CLIENTS; i++) {
		cm_resolve(&last, RDMA_PS_TCP, port, false);
		cm_true(!rdma_connect(last.id, &param));
		cm_pass(last.channel, RDMA_CM_EVENT_REJECTED, 28);
		cm_done(&last);
	}
	for (int i = 0; i < CLIENTS; i++)
		cm_true(!pthread_join(servers[i], NULL));
	cm_done(&listener);
	(void)printf("%d connections of %d threads\n", CLIENTS * ROUNDS, CLIENTS);
	return 0;
}
