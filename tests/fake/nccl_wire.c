/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the ranks of the fake NCCL find each other and move bytes: TCP. The root is rank 0; the
 * unique id holds its address and port. PP_FAKE_NCCL_ADDRESS is a rank's own (127.0.0.1).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nccl.h"

static const char *own_address(void)
{
	const char *set = getenv("PP_FAKE_NCCL_ADDRESS");

	return set ? set : "127.0.0.1";
}

const char *wire_interface(void)
{
	static char text[64];

	(void)snprintf(text, sizeof(text), "%s:%s", getenv("PP_FAKE_NCCL_ADDRESS") ? "eth0" : "lo",
		       own_address());
	return text;
}

int wire_listen(int *ret_fd, struct place *ret)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)inet_pton(AF_INET, own_address(), &a.sin_addr);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, RANKS) ||
	    getsockname(fd, (struct sockaddr *)&a, &len))
		return SYSTEM_ERROR;
	*ret_fd = fd;
	*ret = (struct place){a.sin_addr.s_addr, ntohs(a.sin_port)};
	return SUCCESS;
}

static bool all(int fd, void *at, size_t len, bool out)
{
	uint8_t *p = at;
	ssize_t n;

	for (; len; p += n, len -= (size_t)n) {
		n = out ? send(fd, p, len, MSG_NOSIGNAL) : recv(fd, p, len, 0);
		if (n < 0 && errno == EINTR)
			n = 0;
		else if (n <= 0)
			return false;
	}
	return true;
}

/* Whoever listens may not do so yet. */
static int connect_to(struct place at)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons((uint16_t)at.port),
				.sin_addr = {at.address}};
	int fd = -1, on = 1;

	for (int i = 0; i < 500; i++) {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0 || !connect(fd, (struct sockaddr *)&a, sizeof(a)))
			break;
		close(fd);
		fd = -1;
		usleep(10000);
	}
	if (fd >= 0)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

/* The root takes each rank's card and gives all of them to each. */
static int gather(struct comm *c, int root_fd)
{
	int fd[RANKS], rank;

	for (int i = 1; i < c->size; i++) {
		int one = accept(root_fd, NULL, NULL);

		if (one < 0 || !all(one, &rank, sizeof(rank), false) || rank < 1 ||
		    rank >= c->size || !all(one, &c->member[rank], sizeof(c->member[0]), false))
			return SYSTEM_ERROR;
		fd[rank] = one;
	}
	for (int i = 1; i < c->size; i++) {
		if (!all(fd[i], c->member, sizeof(c->member), true))
			return SYSTEM_ERROR;
		close(fd[i]);
	}
	return SUCCESS;
}

static int report(struct comm *c, struct place root)
{
	int fd = connect_to(root), r = SUCCESS;

	if (fd < 0 || !all(fd, &c->rank, sizeof(c->rank), true) ||
	    !all(fd, &c->member[c->rank], sizeof(c->member[0]), true) ||
	    !all(fd, c->member, sizeof(c->member), false))
		r = SYSTEM_ERROR;
	if (fd >= 0)
		close(fd);
	return r;
}

/* To each rank below; those above come. */
static int join(struct comm *c, int own)
{
	int on = 1, rank;

	for (int i = 0; i < c->rank; i++) {
		c->fd[i] = connect_to(c->member[i].at);
		if (c->fd[i] < 0 || !all(c->fd[i], &c->rank, sizeof(c->rank), true))
			return SYSTEM_ERROR;
	}
	for (int i = c->rank + 1; i < c->size; i++) {
		int fd = accept(own, NULL, NULL);

		if (fd < 0 || !all(fd, &rank, sizeof(rank), false) || rank <= c->rank ||
		    rank >= c->size)
			return SYSTEM_ERROR;
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		c->fd[rank] = fd;
	}
	for (int i = 0; i < c->size; i++)
		if (i != c->rank)
			(void)fcntl(c->fd[i], F_SETFL, O_NONBLOCK);
	return SUCCESS;
}

int wire_meet(struct comm *c, int root_fd, struct place root)
{
	int own = -1, r = wire_listen(&own, &c->member[c->rank].at);

	for (int i = 0; i < RANKS; i++)
		c->fd[i] = -1;
	if (!r)
		r = c->rank ? report(c, root) : gather(c, root_fd);
	if (!r)
		r = join(c, own);
	if (own >= 0)
		close(own);
	return r;
}

void wire_leave(struct comm *c)
{
	for (int i = 0; i < c->size; i++)
		if (c->fd[i] >= 0)
			close(c->fd[i]);
}

/* Some of one part, as far as it goes now; false: the peer is gone. */
static bool some(int fd, const struct part *p, size_t *done, bool out)
{
	uint8_t *at = (uint8_t *)p->at + *done;
	ssize_t n =
		out ? send(fd, at, p->len - *done, MSG_NOSIGNAL) : recv(fd, at, p->len - *done, 0);

	if (n > 0)
		*done += (size_t)n;
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

int wire_exchange(struct comm *c, const struct part *out, const struct part *in)
{
	size_t sent[RANKS] = {0}, got[RANKS] = {0};
	struct pollfd p[RANKS];
	unsigned int left;

	if (out[c->rank].len)
		memmove(in[c->rank].at, out[c->rank].at, out[c->rank].len);
	for (;;) {
		left = 0;
		for (int i = 0; i < c->size; i++) {
			p[i] = (struct pollfd){.fd = -1};
			if (i == c->rank)
				continue;
			p[i].events = (short)((sent[i] < out[i].len ? POLLOUT : 0) |
					      (got[i] < in[i].len ? POLLIN : 0));
			p[i].fd = p[i].events ? c->fd[i] : -1;
			left += p[i].events != 0;
		}
		if (!left)
			return SUCCESS;
		if (c->stop)
			return INTERNAL_ERROR;
		(void)poll(p, (nfds_t)c->size, 20);
		for (int i = 0; i < c->size; i++) {
			if (p[i].fd < 0 || !p[i].revents)
				continue;
			if ((sent[i] < out[i].len && p[i].revents & POLLOUT &&
			     !some(c->fd[i], &out[i], &sent[i], true)) ||
			    (got[i] < in[i].len && p[i].revents & (POLLIN | POLLHUP | POLLERR) &&
			     !some(c->fd[i], &in[i], &got[i], false)))
				return REMOTE;
		}
	}
}
