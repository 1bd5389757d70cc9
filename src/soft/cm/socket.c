/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control sockets: TCP for RDMA_PS_TCP, UDP for RDMA_PS_UDP, at the address and port that the
 * program named. So that ports that are taken, privileged or firewalled behave as users know it.
 */
#include "soft/cm/cm.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include "soft/cm/address.h"

#include "base/banned.h"

enum {
	/* A peer whose host is gone says nothing: its connection ends after half a minute. */
	KEEP_IDLE_S = 10,
	KEEP_INTERVAL_S = 5,
	KEEP_COUNT = 3,
	UNANSWERED_MS = 25000,
};

static void set(int fd, int level, int name, int value)
{
	(void)setsockopt(fd, level, name, &value, sizeof(value));
}

int soft_cm_socket_listen(int fd)
{
	/* The port is checked once more, and what was accepted of an earlier listener has it. */
	set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	return listen(fd, SOMAXCONN) ? errno : 0;
}

void soft_cm_tune(int fd)
{
	set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_S);
	set(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEP_INTERVAL_S);
	set(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEP_COUNT);
	set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, UNANSWERED_MS);
}

/*
 * The connection manager of the kernel knows no TIME_WAIT of ports, TCP does: who is refused asks
 * again with SO_REUSEADDR, which passes what is over. It is taken back afterwards: two programs may
 * not share a port unless both say so.
 */
static int bind_stream(int fd, const struct sockaddr_storage *a, bool reuse)
{
	const struct sockaddr *address = (const struct sockaddr *)a;
	socklen_t len = soft_cm_address_length(address);

	if (reuse)
		set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (!bind(fd, address, len))
		return 0;
	if (errno != EADDRINUSE || reuse)
		return errno;
	set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (bind(fd, address, len))
		return errno;
	set(fd, SOL_SOCKET, SO_REUSEADDR, 0);
	return 0;
}

static int prepare(struct soft_cm_id *id, int fd, struct sockaddr_storage *a)
{
	socklen_t len = sizeof(*a);
	int r;

	if (a->ss_family == AF_INET6) {
		set(fd, IPPROTO_IPV6, IPV6_V6ONLY, id->afonly > 0);
		set(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	}
	if (soft_cm_datagram(id)) {
		/* To answer from the address that was asked. */
		set(fd, IPPROTO_IP, IP_PKTINFO, 1);
		r = bind(fd, (struct sockaddr *)a, soft_cm_address_length((struct sockaddr *)a))
			    ? errno
			    : 0;
	} else {
		r = bind_stream(fd, a, id->reuse);
	}
	if (!r && getsockname(fd, (struct sockaddr *)a, &len))
		r = errno;
	return r;
}

int soft_cm_socket(struct soft_cm_id *id, struct sockaddr_storage *a)
{
	int type = soft_cm_datagram(id) ? SOCK_DGRAM : SOCK_STREAM, r;
	int fd = socket(a->ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	r = prepare(id, fd, a);
	if (r) {
		(void)close(fd);
		return -r;
	}
	return fd;
}

int soft_cm_route(const struct sockaddr *from, const struct sockaddr *to,
		  struct sockaddr_storage *ret)
{
	struct sockaddr_storage source = {0};
	socklen_t len = sizeof(source);
	int fd = socket(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), r = 0;

	if (fd < 0)
		return errno;
	if (from) {
		memcpy(&source, from, soft_cm_address_length(from));
		soft_cm_address_set_port(&source, 0);
		if (bind(fd, (struct sockaddr *)&source, soft_cm_address_length(from)))
			r = errno;
	}
	if (!r && (connect(fd, to, soft_cm_address_length(to)) ||
		   getsockname(fd, (struct sockaddr *)&source, &len)))
		r = errno;
	(void)close(fd);
	if (r)
		return r;
	soft_cm_address_set_port(&source, 0);
	*ret = source;
	return 0;
}
