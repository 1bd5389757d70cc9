/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/channel_state.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "rdma/location.h"
#include "base/banned.h"

#define LOOK_UP_LIMIT (10 * PP_SECOND)

static int bind_one(const struct sockaddr_storage *at, socklen_t size, int *ret_fd)
{
	const int one = 1, zero = 0;
	int fd = socket(at->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r = 0;

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (at->ss_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	if (bind(fd, (const struct sockaddr *)at, size) || listen(fd, SOMAXCONN))
		r = -errno;
	if (r) {
		(void)close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

/* Both families by one socket; IPv4 alone where the kernel has no IPv6. */
static void everywhere(uint16_t port, struct pp_location_list *ret)
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};

	ret->n = 2;
	memcpy(&ret->at[0], &six, sizeof(six));
	ret->size[0] = sizeof(six);
	memcpy(&ret->at[1], &four, sizeof(four));
	ret->size[1] = sizeof(four);
}

static int taken(const struct pp_location *a, int code, struct pp_error *err)
{
	const char *host = a->host[0] ? a->host : "any address";

	if (code == -EADDRINUSE)
		return pp_error_set(err, code,
				    "%s port %u is in use: end who listens there ('ss -ltnp'), or "
				    "choose another port",
				    host, a->port);
	if (code == -EADDRNOTAVAIL)
		return pp_error_set(err, code, "%s is no address of this host", host);
	return pp_error_set(err, code, "cannot listen at %s port %u: %s", host, a->port,
			    strerror(-code));
}

int pp_channel_listen(const char *address, int *ret_fd, uint16_t *ret_port, struct pp_error *err)
{
	struct pp_location a = {.port = PP_CHANNEL_PORT};
	struct sockaddr_storage bound = {0};
	struct pp_location_list list = {0};
	socklen_t size = sizeof(bound);
	int fd = -1, r = 0;

	if (address)
		r = pp_location_parse(address, PP_CHANNEL_PORT, &a, err);
	if (!r && a.host[0])
		r = pp_location_resolve(&a, pp_clock_monotonic() + LOOK_UP_LIMIT, NULL, &list, err);
	else if (!r)
		everywhere(a.port, &list);
	if (r)
		return r;
	r = -EADDRNOTAVAIL;
	for (unsigned int i = 0; i < list.n && r && r != -EADDRINUSE; i++)
		r = bind_one(&list.at[i], list.size[i], &fd);
	if (!r && getsockname(fd, (struct sockaddr *)&bound, &size)) {
		r = -errno;
		(void)close(fd);
	}
	if (r)
		return taken(&a, r, err);
	*ret_fd = fd;
	/* The port lies at the same place in both families. */
	*ret_port = ntohs(((struct sockaddr_in *)&bound)->sin_port);
	return 0;
}

static int one(int fd, const char *token, pp_ns deadline, bool (*stopped)(void),
	       struct pp_channel **ret, struct pp_error *err)
{
	pp_ns limit = pp_clock_monotonic() + PP_CHANNEL_GREETING_LIMIT;
	struct pp_channel *c;
	int r = pp_channel_begin(fd, /* dialler= */ false, /* introduction= */ NULL, &c, err);

	if (r)
		return r;
	*ret = c;
	while ((r = pp_channel_greet(c, token, err)) == -EAGAIN) {
		r = pp_channel_wait(c->fd, POLLIN, deadline < limit ? deadline : limit, stopped);
		if (r == -EINTR)
			return pp_error_set(err, r, "interrupted while listening");
		if (r)
			return pp_error_set(err, -EPROTO, "%s did not greet in time", c->peer);
	}
	return r;
}

int pp_channel_accept(int fd, const char *token, pp_ns deadline, bool (*stopped)(void),
		      void (*refused)(const char *peer, const char *why), struct pp_channel **ret,
		      struct pp_error *err)
{
	struct pp_channel *c = NULL;
	int peer, r;

	for (;;) {
		r = pp_channel_wait(fd, POLLIN, deadline, stopped);
		if (r == -ETIMEDOUT)
			return pp_error_set(err, r, "nobody has come");
		if (r)
			return pp_error_set(err, r, "interrupted while listening");
		peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (peer < 0 && (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR))
			continue;
		if (peer < 0)
			return pp_error_set(err, -errno, "cannot take a connection: %s",
					    strerror(errno));
		r = one(peer, token, deadline, stopped, &c, err);
		if (!r) {
			*ret = c;
			return 0;
		}
		if (refused && c && r != -EINTR)
			refused(c->peer, err->text);
		c = pp_channel_free(c);
		if (r == -EINTR || r == -ENOMEM)
			return r;
	}
}
