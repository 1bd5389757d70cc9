/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets of a link. All are unconnected: only such a socket, with IP_MTU_DISCOVER=DO, gives the
 * IPv4 identifications that the ICRC counts on (see wire/icrc.h).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <netinet/udp.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/compiler.h"
#include "soft/link/parts.h"
#include "base/banned.h"

#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102 /* linux/udp.h, which clashes with netinet/udp.h */
#endif
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

enum {
	BUFFER_BYTES = 16 << 20, /* asked for; the kernel grants what its limits allow */
	PORT_FIRST = 0xC000,	 /* where RoCE v2 sends from */
	PORT_COUNT = 0x4000,
	PORT_TRIES = 64,
	DEFAULT_TTL = 64,
};

struct option {
	int level, name, value;
	bool needed;
};

socklen_t soft_sockaddr_make(const struct soft_gid *gid, uint16_t port, union soft_sockaddr *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (soft_gid_is_ipv4(gid)) {
		ret->in.sin_family = AF_INET;
		ret->in.sin_port = htons(port);
		memcpy(&ret->in.sin_addr, gid->raw + 12, 4);
		return sizeof(ret->in);
	}
	ret->in6.sin6_family = AF_INET6;
	ret->in6.sin6_port = htons(port);
	memcpy(&ret->in6.sin6_addr, gid->raw, 16);
	return sizeof(ret->in6);
}

static int open_socket(const struct soft_gid *gid)
{
	int fd = socket(soft_gid_is_ipv4(gid) ? AF_INET : AF_INET6,
			SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

static int set_options(int fd, const struct option *options, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (setsockopt(fd, options[i].level, options[i].name, &options[i].value,
			       sizeof(options[i].value)) < 0 &&
		    options[i].needed)
			return -errno;
	return 0;
}

/* The larger of what everybody and what only CAP_NET_ADMIN may have. */
static void grow_buffer(int fd, int name, int forced_name)
{
	const int bytes = BUFFER_BYTES;

	if (setsockopt(fd, SOL_SOCKET, forced_name, &bytes, sizeof(bytes)) < 0)
		(void)setsockopt(fd, SOL_SOCKET, name, &bytes, sizeof(bytes));
}

/* What SO_RCVBUF reads is twice what was granted: the kernel's allowance for its own overhead. */
static size_t granted(int fd)
{
	int bytes = 0;
	socklen_t len = sizeof(bytes);

	if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &len) < 0 || bytes < 0)
		return 0;
	return (size_t)bytes / 2;
}

static int receiver_set(int fd, bool ipv4)
{
	static const struct option both[] = {
		{SOL_SOCKET, SO_REUSEPORT, 1, true},
		{IPPROTO_UDP, UDP_GRO, 1, false},
	};
	static const struct option v4[] = {
		{IPPROTO_IP, IP_RECVTOS, 1, true},
		{IPPROTO_IP, IP_RECVTTL, 1, true},
	};
	static const struct option v6[] = {
		{IPPROTO_IPV6, IPV6_V6ONLY, 1, true},
		{IPPROTO_IPV6, IPV6_RECVTCLASS, 1, true},
		{IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1, true},
		/* RoCE v2 devices send UDP checksum 0 over IPv6 too: the ICRC is the check. */
		{IPPROTO_UDP, UDP_NO_CHECK6_RX, 1, true},
	};
	int rc = set_options(fd, both, PP_ARRAY_LEN(both));

	if (rc == 0)
		rc = ipv4 ? set_options(fd, v4, PP_ARRAY_LEN(v4))
			  : set_options(fd, v6, PP_ARRAY_LEN(v6));
	if (rc == 0)
		grow_buffer(fd, SO_RCVBUF, SO_RCVBUFFORCE);
	return rc;
}

static int bind_error(const struct soft_gid *gid, int code, struct pp_error *err)
{
	char text[INET6_ADDRSTRLEN] = "?";
	bool ipv4 = soft_gid_is_ipv4(gid);

	(void)inet_ntop(ipv4 ? AF_INET : AF_INET6, gid->raw + (ipv4 ? 12 : 0), text, sizeof(text));
	if (code == -EADDRINUSE)
		return pp_error_set(err, code,
				    "UDP port %d of %s belongs to another user or to the kernel "
				    "(rdma_rxe): one user a network namespace can have it",
				    SOFT_UDP_PORT, text);
	return pp_error_set(err, code, "cannot take UDP port %d of %s: %s", SOFT_UDP_PORT, text,
			    strerrordesc_np(-code));
}

static int open_bound(const struct soft_gid *gid, bool first)
{
	union soft_sockaddr at;
	socklen_t len = soft_sockaddr_make(gid, SOFT_UDP_PORT, &at);
	int fd = open_socket(gid);
	int rc;

	if (fd < 0)
		return fd;
	rc = receiver_set(fd, soft_gid_is_ipv4(gid));
	if (first)
		soft_steer_by_number(fd);
	if (rc == 0 && bind(fd, &at.any, len) < 0)
		rc = -errno;
	if (rc < 0) {
		(void)close(fd);
		return rc;
	}
	return fd;
}

int soft_receiver_open(struct soft_receiver *r, const struct soft_gid *gid, size_t *ret_buffer,
		       struct pp_error *err)
{
	/* A socket that has a filter before it binds can be the first of a group, and nothing else.
	 */
	int fd = open_bound(gid, /* first= */ true);

	if (fd == -EADDRINUSE)
		fd = open_bound(gid, /* first= */ false);
	if (fd < 0)
		return bind_error(gid, fd, err);
	*ret_buffer = granted(fd);
	r->fd = fd;
	r->ipv4 = soft_gid_is_ipv4(gid);
	r->gid = *gid;
	return 0;
}

static int sender_set(int fd, bool ipv4)
{
	static const struct option v4[] = {
		{IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO, true},
		{IPPROTO_IP, IP_TTL, DEFAULT_TTL, true},
	};
	static const struct option v6[] = {
		{IPPROTO_IPV6, IPV6_V6ONLY, 1, true},
		{IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO, true},
		{IPPROTO_IPV6, IPV6_UNICAST_HOPS, DEFAULT_TTL, true},
	};
	/* Nobody reads what is sent to this port: it must not fill memory. */
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog filter = {.len = 1, .filter = &nothing};
	int rc = ipv4 ? set_options(fd, v4, PP_ARRAY_LEN(v4))
		      : set_options(fd, v6, PP_ARRAY_LEN(v6));

	if (rc == 0 && setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) < 0)
		rc = -errno;
	if (rc == 0)
		grow_buffer(fd, SO_SNDBUF, SO_SNDBUFFORCE);
	return rc;
}

static int bind_random(int fd, const struct soft_gid *gid, uint16_t *ret_port)
{
	for (int i = 0; i < PORT_TRIES; i++) {
		union soft_sockaddr at;
		uint16_t random, port;
		socklen_t len;

		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			return -EIO;
		port = (uint16_t)(PORT_FIRST + random % PORT_COUNT);
		len = soft_sockaddr_make(gid, port, &at);
		if (bind(fd, &at.any, len) == 0) {
			*ret_port = port;
			return 0;
		}
		if (errno != EADDRINUSE)
			return -errno;
	}
	return -EADDRINUSE;
}

int soft_sender_open(struct soft_sender *s, const struct soft_gid *gid)
{
	const int zero = 0;
	int fd = open_socket(gid);
	int rc;

	if (fd < 0)
		return fd;
	rc = sender_set(fd, soft_gid_is_ipv4(gid));
	if (rc == 0)
		rc = bind_random(fd, gid, &s->port);
	if (rc < 0) {
		(void)close(fd);
		return rc;
	}
	/* Old kernels would not understand the control message, and send one big datagram. */
	s->no_trains = setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &zero, sizeof(zero)) < 0;
	s->fd = fd;
	return 0;
}
