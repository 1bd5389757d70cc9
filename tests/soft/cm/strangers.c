/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nonsense by the hundred to a listener's port, of TCP and of UDP: requests that are cut, doubled,
 * followed by more or changed at random, whole ones that are given up, connections that say
 * nothing. The listener answers what looks right; afterwards it serves a client as ever.
 */
#include "cm.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 400, KEPT = 16, FIXED = 80, REQUEST_MAX = 276, LOOKUP = 7 };

static uint64_t chance_state = 0x9e3779b97f4a7c15;

static unsigned int chance(unsigned int below)
{
	chance_state ^= chance_state << 13;
	chance_state ^= chance_state >> 7;
	chance_state ^= chance_state << 17;
	return (unsigned int)(chance_state >> 33) % below;
}

/* A request of this version, from 127.0.0.1 to it, with @len bytes of private data. */
static size_t request(unsigned char *m, unsigned char kind, size_t len)
{
	static const unsigned char loopback[6] = {0xff, 0xff, 127, 0, 0, 1};

	memset(m, 0, FIXED + len);
	memcpy(m, "PPCM\1", 5);
	m[5] = kind;
	m[6] = (unsigned char)((FIXED + len) >> 8);
	m[7] = (unsigned char)(FIXED + len);
	for (int i = 8; i < 16; i++)
		m[i] = (unsigned char)chance(256);
	m[19] = 1;
	memcpy(m + 38, loopback, sizeof(loopback));
	memcpy(m + 54, loopback, sizeof(loopback));
	m[74] = 3;
	m[78] = (unsigned char)len;
	return FIXED + len;
}

/* Answers whatever came. */
static void answer(struct cm_end *listener, unsigned int *seen)
{
	while (cm_readable(listener->channel->fd, 0)) {
		struct rdma_conn_param param = {.qp_num = 2};
		struct rdma_cm_event *e;
		struct rdma_cm_id *id;

		cm_true(!rdma_get_cm_event(listener->channel, &e));
		id = e->event == RDMA_CM_EVENT_CONNECT_REQUEST ? e->id : NULL;
		cm_true(!rdma_ack_cm_event(e));
		if (!id)
			continue; /* of one that was refused below, or has gone */
		(*seen)++;
		/* It may have gone meanwhile. */
		if (chance(2))
			(void)rdma_accept(id, &param);
		else
			(void)rdma_reject(id, NULL, 0);
		cm_true(!rdma_destroy_id(id));
	}
}

static void blast(enum rdma_port_space ps)
{
	int type = ps == RDMA_PS_TCP ? SOCK_STREAM : SOCK_DGRAM, kept[KEPT] = {0};
	unsigned char kind = ps == RDMA_PS_TCP ? 1 : LOOKUP;
	unsigned int seen = 0, sent_right = 0;
	struct rdma_conn_param param = {.qp_num = 1};
	struct cm_end listener, client, server;
	uint16_t port = cm_listen(&listener, ps);
	struct sockaddr_in to = cm_address(port);

	for (unsigned int round = 0; round < ROUNDS; round++) {
		unsigned char bytes[2 * REQUEST_MAX];
		size_t len = request(bytes, kind, chance(57));
		unsigned int changes = chance(4), twice = chance(4);
		int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0), *slot = &kept[chance(KEPT)];

		cm_true(fd >= 0 && !connect(fd, (struct sockaddr *)&to, sizeof(to)));
		for (unsigned int i = 0; i < changes; i++)
			bytes[chance((unsigned int)len)] = (unsigned char)chance(256);
		if (!twice) {
			memcpy(bytes + len, bytes, len);
			len *= 2;
		} else if (twice == 1) {
			len = chance((unsigned int)len);
		}
		sent_right += !changes && twice > 1;
		(void)!send(fd, bytes, len, MSG_NOSIGNAL);
		if (*slot)
			(void)close(*slot);
		*slot = fd;
		answer(&listener, &seen);
	}
	for (int i = 0; i < KEPT; i++)
		if (kept[i])
			(void)close(kept[i]);
	cm_true(cm_readable(listener.channel->fd, 200) || seen);
	answer(&listener, &seen);
	cm_true(sent_right > ROUNDS / 16 && seen > 0 && seen < ROUNDS);

	cm_resolve(&client, ps, port, true);
	cm_true(!rdma_connect(client.id, &param));
	do {
		cm_true(cm_readable(listener.channel->fd, CM_WAIT_S * 1000));
		cm_take(&listener, &server, false);
		if (rdma_get_dst_port(server.id) != rdma_get_src_port(client.id))
			cm_done(&server);
	} while (!server.id);
	cm_true(!rdma_accept(server.id, &param));
	cm_pass(client.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	cm_done(&client);
	cm_done(&server);
	cm_done(&listener);
	(void)printf("%s: %u requests of %d were right enough\n", ps == RDMA_PS_TCP ? "TCP" : "UDP",
		     seen, ROUNDS);
}

int main(void)
{
	(void)alarm(8 * CM_WAIT_S);
	blast(RDMA_PS_TCP);
	blast(RDMA_PS_UDP);
	return 0;
}
