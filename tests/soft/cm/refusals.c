/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cannot be: no listener, no route, no device, a port that is taken, strangers at either end,
 * a peer that is killed, a child of fork(). Each is told by the event or errno that rdma_cm has for
 * it.
 */
#include "cm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REJECTED_NO_LISTENER = 8, REJECTED_VERSION = 31 };

/* A TCP socket at a free port of 127.0.0.1; *ret_port: which. */
static int plain_socket(uint16_t *ret_port)
{
	struct sockaddr_in at = cm_address(0);
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cm_true(fd >= 0 && !bind(fd, (struct sockaddr *)&at, sizeof(at)));
	cm_true(!getsockname(fd, (struct sockaddr *)&at, &len));
	*ret_port = ntohs(at.sin_port);
	return fd;
}

static int plain_connect(uint16_t port)
{
	struct sockaddr_in to = cm_address(port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cm_true(fd >= 0 && !connect(fd, (struct sockaddr *)&to, sizeof(to)));
	return fd;
}

static void no_listener(void)
{
	struct rdma_conn_param param = {.qp_num = 1};
	struct cm_end client;
	uint16_t port;
	int fd = plain_socket(&port);

	cm_resolve(&client, RDMA_PS_TCP, port, true);
	cm_true(!rdma_connect(client.id, &param));
	cm_pass(client.channel, RDMA_CM_EVENT_REJECTED, REJECTED_NO_LISTENER);
	cm_true(cm_state(&client) == IBV_QPS_ERR);
	cm_fails(rdma_connect(client.id, &param), EINVAL);
	cm_done(&client);
	(void)close(fd);
}

static void addresses(void)
{
	struct sockaddr_in at = cm_address(0), from = cm_address(0), to = cm_address(7);
	struct sockaddr unknown = {.sa_family = AF_UNIX};
	struct cm_end a, b;
	struct rdma_cm_id *id;
	uint16_t port = cm_listen(&a, RDMA_PS_TCP);

	cm_fails(rdma_bind_addr(a.id, (struct sockaddr *)&at), EINVAL);
	cm_true(!rdma_create_id(a.channel, &id, NULL, RDMA_PS_TCP));
	cm_fails(rdma_bind_addr(id, &unknown), EAFNOSUPPORT);
	at.sin_port = htons(port);
	cm_fails(rdma_bind_addr(id, (struct sockaddr *)&at), EADDRINUSE);
	at.sin_port = 0;
	at.sin_addr.s_addr = inet_addr("192.0.2.1");
	cm_fails(rdma_bind_addr(id, (struct sockaddr *)&at), EADDRNOTAVAIL);
	/* Of the machine, and of no device. */
	from.sin_addr.s_addr = inet_addr("127.0.0.2");
	cm_true(!rdma_resolve_addr(id, (struct sockaddr *)&from, (struct sockaddr *)&to, 1000));
	cm_pass(a.channel, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
	cm_fails(rdma_resolve_route(id, 1000), EINVAL);
	cm_true(!rdma_destroy_id(id));
	/* Synchronous: the same by errno. */
	cm_true(!rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
	cm_fails(rdma_resolve_addr(id, (struct sockaddr *)&from, (struct sockaddr *)&to, 1000),
		 ENODEV);
	cm_true(!rdma_destroy_id(id));
	cm_fails(rdma_create_id(a.channel, &id, NULL, RDMA_PS_IB), EPROTONOSUPPORT);
	/* The two port spaces do not meet. */
	memset(&b, 0, sizeof(b));
	at = cm_address(port);
	cm_true(!rdma_create_id(a.channel, &b.id, NULL, RDMA_PS_UDP));
	cm_true(!rdma_bind_addr(b.id, (struct sockaddr *)&at));
	cm_done(&b);
	cm_done(&a);
}

/* A port is free again as soon as its listener is gone, whatever of its connections is left. */
static void port_again(void)
{
	struct cm_end listener, client, server;
	struct sockaddr_in at;
	uint16_t port = cm_listen(&listener, RDMA_PS_TCP);

	for (int round = 0; round < 3; round++) {
		cm_connect(&listener, port, &client, &server);
		cm_done(&listener);
		if (round == 1)
			cm_done(&server); /* what closes first is in TIME_WAIT */
		memset(&listener, 0, sizeof(listener));
		at = cm_address(port);
		cm_true((listener.channel = rdma_create_event_channel()));
		cm_true(!rdma_create_id(listener.channel, &listener.id, NULL, RDMA_PS_TCP));
		cm_true(!rdma_bind_addr(listener.id, (struct sockaddr *)&at));
		cm_true(!rdma_listen(listener.id, 1));
		cm_done(&client);
		cm_done(&server);
	}
	cm_done(&listener);
}

/* What answers a request, and is no connection manager, or a newer one. */
static void strange_server(const char *answer, size_t len, enum rdma_cm_event_type event,
			   int status)
{
	struct rdma_conn_param param = {.qp_num = 1};
	struct cm_end client;
	uint16_t port;
	int fd = plain_socket(&port), peer;

	cm_true(!listen(fd, 1));
	cm_resolve(&client, RDMA_PS_TCP, port, true);
	cm_true(!rdma_connect(client.id, &param));
	peer = accept(fd, NULL, NULL);
	cm_true(peer >= 0 && write(peer, answer, len) == (ssize_t)len);
	if (!len)
		(void)close(peer);
	cm_pass(client.channel, event, status);
	cm_done(&client);
	if (len)
		(void)close(peer);
	(void)close(fd);
}

/* Whoever connects and talks nonsense, or nothing, gets no further, and disturbs nobody. */
static void strange_clients(void)
{
	static const char request_of_2[12] = {'P', 'P', 'C', 'M', 2, 1, 0, 80};
	struct cm_end listener, client, server;
	uint16_t port = cm_listen(&listener, RDMA_PS_TCP);
	int silent = plain_connect(port), loud = plain_connect(port), newer = plain_connect(port);
	char bytes[128];

	cm_true(write(loud, "GET / HTTP/1.1\r\n\r\n", 18) == 18);
	cm_true(read(loud, bytes, sizeof(bytes)) <= 0);
	/* One of another version is told so, in words that every version has. */
	cm_true(write(newer, request_of_2, sizeof(request_of_2)) == sizeof(request_of_2));
	cm_true(read(newer, bytes, sizeof(bytes)) >= 80);
	cm_true(!memcmp(bytes, "PPCM\1\4", 6) && bytes[77] == REJECTED_VERSION);
	cm_true(write(silent, "PPC", 3) == 3);
	cm_true(!cm_readable(listener.channel->fd, 50));
	cm_connect(&listener, port, &client, &server);
	cm_done(&client);
	cm_done(&server);
	cm_done(&listener);
	(void)close(silent);
	(void)close(loud);
	(void)close(newer);
}

static pid_t child(void)
{
	pid_t pid = fork();

	cm_true(pid >= 0);
	if (!pid) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)alarm(2 * CM_WAIT_S);
	}
	return pid;
}

/* Before anything of the library is used: forks share nothing then. */
static void killed(void)
{
	struct cm_end listener, client, server;
	int pipes[2];
	uint16_t port;
	pid_t pid;

	cm_true(!pipe(pipes));
	pid = child();
	if (!pid) {
		struct rdma_conn_param param = {.retry_count = 7};

		cm_true(read(pipes[0], &port, sizeof(port)) == sizeof(port));
		cm_resolve(&client, RDMA_PS_TCP, port, true);
		cm_true(!rdma_connect(client.id, &param));
		cm_pass(client.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		for (;;)
			(void)pause();
	}
	port = cm_listen(&listener, RDMA_PS_TCP);
	cm_true(write(pipes[1], &port, sizeof(port)) == sizeof(port));
	cm_take(&listener, &server, true);
	cm_true(!rdma_accept(server.id, NULL));
	cm_pass(server.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	cm_true(!cm_readable(server.channel->fd, 50));
	cm_true(!kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid);
	cm_pass(server.channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm_true(cm_state(&server) == IBV_QPS_RTS);
	cm_done(&server);
	cm_done(&listener);
	(void)close(pipes[0]);
	(void)close(pipes[1]);
}

/*
 * A child has no part in its parent's connections, nor keeps them open; what it makes is its own.
 */
static __attribute__((unused)) void forked(void)
{
	struct cm_end listener, client, server, other;
	struct rdma_conn_param param = {.qp_num = 1};
	struct rdma_cm_event *e;
	uint16_t port = cm_listen(&listener, RDMA_PS_TCP);
	int status;
	pid_t pid;

	cm_connect(&listener, port, &client, &server);
	pid = child();
	if (!pid) {
		cm_fails(rdma_get_cm_event(client.channel, &e), EIO);
		cm_fails(rdma_connect(client.id, &param), EIO);
		cm_fails(rdma_disconnect(client.id), EIO);
		(void)rdma_destroy_id(server.id);
		rdma_destroy_event_channel(server.channel);
		cm_resolve(&other, RDMA_PS_TCP, port, false);
		cm_true(!rdma_connect(other.id, &param));
		cm_pass(other.channel, RDMA_CM_EVENT_REJECTED, 28);
		cm_done(&other);
		_exit(0);
	}
	cm_take(&listener, &other, false);
	cm_true(!rdma_reject(other.id, NULL, 0));
	cm_done(&other);
	cm_true(waitpid(pid, &status, 0) == pid && !status);
	cm_true(!cm_readable(client.channel->fd, 0) && !cm_readable(server.channel->fd, 0));
	cm_true(!rdma_disconnect(client.id));
	cm_pass(client.channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm_pass(server.channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm_done(&client);
	cm_done(&server);
	cm_done(&listener);
}

static void limits(void)
{
	struct rdma_conn_param param = {
		.private_data = &param, .private_data_len = 57, .qp_num = 1};
	struct cm_end client;
	uint8_t byte = 32;
	int one = 1;

	cm_resolve(&client, RDMA_PS_TCP, 7, false);
	cm_fails(rdma_connect(client.id, &param), EINVAL);
	param = (struct rdma_conn_param){.responder_resources = 254, .qp_num = 1};
	cm_fails(rdma_connect(client.id, &param), EINVAL);
	cm_fails(rdma_set_option(client.id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &one, 4), EINVAL);
	cm_fails(rdma_set_option(client.id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, 1),
		 EINVAL);
	cm_fails(rdma_set_option(client.id, RDMA_OPTION_ID, 99, &byte, 1), ENOSYS);
	byte = 14;
	cm_true(!rdma_set_option(client.id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, 1));
	cm_fails(rdma_listen(client.id, 1), EINVAL);
	cm_fails(rdma_accept(client.id, &param), EINVAL);
	cm_fails(rdma_disconnect(client.id), EINVAL);
	cm_fails(rdma_notify(client.id, IBV_EVENT_COMM_EST), EINVAL);
	cm_done(&client);
}

int main(void)
{
	(void)alarm(8 * CM_WAIT_S);
	killed();
	no_listener();
	addresses();
	port_again();
	strange_server("SSH-2.0-OpenSSH_9.2\r\n", 21, RDMA_CM_EVENT_UNREACHABLE, -EPROTO);
	strange_server("PPCM\2\2\0\120", 8, RDMA_CM_EVENT_UNREACHABLE, -EPROTONOSUPPORT);
	strange_server("", 0, RDMA_CM_EVENT_REJECTED, 28);
	strange_clients();
	limits();
#ifndef __SANITIZE_THREAD__ /* which has no threads in the child of a fork with threads */
	forked();
#endif
	(void)puts("refusals, strangers, a killed peer, a fork: each told as it should be");
	return 0;
}
