/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/tcp.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/banned.h"

enum { BACKLOG = 4, SLICE_MS = 50, STRANGER_MS = 1000 };

pp_ns pp_cpu_used(void)
{
	struct rusage u = {0};

	(void)getrusage(RUSAGE_SELF, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * PP_SECOND +
	       (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

static int fail(struct pp_error *err, int error, const char *call, const char *address)
{
	char name[96];

	return pp_error_set(err, -error, "TCP: %s %s: %s", call, address,
			    pp_errno_text(error, name, sizeof(name)));
}

/* A numeric address and port; never asks a name server. */
static int resolve(const char *address, uint16_t port, struct addrinfo **ret, struct pp_error *err)
{
	const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
				       .ai_socktype = SOCK_STREAM};
	char service[8];
	int r;

	(void)snprintf(service, sizeof(service), "%u", port);
	r = getaddrinfo(address, service, &hints, ret);
	if (r)
		return pp_error_set(err, -EINVAL, "TCP: '%s' is no address: %s", address,
				    gai_strerror(r));
	return 0;
}

static int draw_nonce(char *ret)
{
	uint8_t bytes[PP_TCP_NONCE / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

static int bound(const char *address, struct addrinfo **ret_info, struct pp_error *err)
{
	int r = resolve(address, 0, ret_info, err), fd;

	if (r)
		return r;
	fd = socket((*ret_info)->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return fail(err, errno, "socket for", address);
	if (bind(fd, (*ret_info)->ai_addr, (*ret_info)->ai_addrlen)) {
		r = fail(err, errno, "bind", address);
		(void)close(fd);
		return r;
	}
	return fd;
}

int pp_tcp_listen(const char *address, struct pp_tcp *ret, struct pp_error *err)
{
	struct pp_tcp t = PP_TCP_NONE;
	struct addrinfo *info = NULL;
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);
	int r = 0;

	t.listener = bound(address, &info, err);
	if (info)
		freeaddrinfo(info);
	if (t.listener < 0)
		return t.listener;
	if (listen(t.listener, BACKLOG) || getsockname(t.listener, (struct sockaddr *)&own, &len))
		r = fail(err, errno, "listen", address);
	else if (draw_nonce(t.nonce))
		r = pp_error_set(err, -EIO, "TCP: no random bytes");
	if (r) {
		pp_tcp_close(&t);
		return r;
	}
	t.port = ntohs(own.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&own)->sin6_port
						 : ((struct sockaddr_in *)&own)->sin_port);
	*ret = t;
	return 0;
}

/* 1: ready; 0: the slice passed. */
static int wait_for(int fd, short events, int ms)
{
	struct pollfd p = {.fd = fd, .events = events};
	int r = poll(&p, 1, ms);

	return r > 0 ? 1 : r < 0 && errno != EINTR ? -errno : 0;
}

static int wait_until(int fd, short events, pp_ns deadline, bool (*stopped)(void))
{
	int r;

	for (;;) {
		r = wait_for(fd, events, SLICE_MS);
		if (r)
			return r < 0 ? r : 0;
		if (stopped && stopped())
			return -EINTR;
		if (pp_clock_monotonic() > deadline)
			return -ETIMEDOUT;
	}
}

static void tune(int fd)
{
	int one = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

int pp_tcp_connect(const char *local, const char *address, uint16_t port, const char *nonce,
		   pp_ns deadline, bool (*stopped)(void), struct pp_tcp *ret, struct pp_error *err)
{
	struct addrinfo *peer = NULL, *own = NULL;
	struct pp_tcp t = PP_TCP_NONE;
	int r = resolve(address, port, &peer, err), error = 0;
	socklen_t len = sizeof(error);

	if (r)
		return r;
	if (local)
		t.fd = bound(local, &own, err);
	else
		t.fd = socket(peer->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (own)
		freeaddrinfo(own);
	if (t.fd < 0) {
		freeaddrinfo(peer);
		return local ? t.fd : fail(err, errno, "socket for", address);
	}
	/* not blocking until it is connected, so that the deadline holds */
	r = fcntl(t.fd, F_SETFL, O_NONBLOCK) ? -errno : 0;
	if (!r && connect(t.fd, peer->ai_addr, peer->ai_addrlen) && errno != EINPROGRESS)
		r = -errno;
	freeaddrinfo(peer);
	r = r ? r : wait_until(t.fd, POLLOUT, deadline, stopped);
	if (!r && !getsockopt(t.fd, SOL_SOCKET, SO_ERROR, &error, &len) && error)
		r = -error;
	if (!r && fcntl(t.fd, F_SETFL, 0))
		r = -errno;
	tune(t.fd);
	if (!r && send(t.fd, nonce, PP_TCP_NONCE, MSG_NOSIGNAL) != PP_TCP_NONCE)
		r = -EPIPE;
	if (r) {
		r = fail(err, -r, "connect to", address);
		pp_tcp_close(&t);
		return r;
	}
	*ret = t;
	return 0;
}

/* Is the connection the pair's? A stranger has a second to say what it cannot know. */
static bool knows(int fd, const char *nonce)
{
	char said[PP_TCP_NONCE];
	size_t have = 0;
	unsigned char differ = 0;
	ssize_t n;

	while (have < sizeof(said) && wait_for(fd, POLLIN, STRANGER_MS) > 0) {
		n = recv(fd, said + have, sizeof(said) - have, MSG_DONTWAIT);
		if (n <= 0)
			break;
		have += (size_t)n;
	}
	for (size_t i = 0; i < have; i++)
		differ |= (unsigned char)(said[i] ^ nonce[i]);
	return have == sizeof(said) && !differ;
}

int pp_tcp_accept(struct pp_tcp *t, pp_ns deadline, bool (*stopped)(void), struct pp_error *err)
{
	int r, fd;

	for (;;) {
		r = wait_until(t->listener, POLLIN, deadline, stopped);
		if (r)
			return fail(err, -r, "accept", "the peer's connection");
		fd = accept4(t->listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0 && knows(fd, t->nonce)) {
			tune(fd);
			t->fd = fd;
			return 0;
		}
		if (fd >= 0)
			(void)close(fd);
	}
}

void pp_tcp_close(struct pp_tcp *t)
{
	if (t->listener >= 0)
		(void)close(t->listener);
	if (t->fd >= 0)
		(void)close(t->fd);
	*t = PP_TCP_NONE;
}
