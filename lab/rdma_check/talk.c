/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ends' TCP connection. Both always send and receive the same number of bytes, less than a
 * socket buffers, so neither can block the other.
 */
#include "check.h"

#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/banned.h"

enum { PP_TALK_WAIT_S = 60, PP_TALK_TRIES = 100, PP_TALK_WORDS_MAX = 256 };

static int pp_talk_setup(int fd)
{
	const struct timeval wait = {.tv_sec = PP_TALK_WAIT_S};
	const int on = 1;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
		return -errno;
	return 0;
}

int pp_talk_listen(uint16_t port, int *ret_fd)
{
	const struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htobe16(port)};
	const struct timeval wait = {.tv_sec = PP_TALK_WAIT_S};
	const int on = 1;
	int listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd, err;

	if (listener < 0)
		return -errno;
	/* The wait is accept's too. */
	if (setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) ||
	    bind(listener, (const struct sockaddr *)&any, sizeof(any)) || listen(listener, 1)) {
		err = -errno;
		close(listener);
		return err;
	}
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	err = fd < 0 ? -errno : pp_talk_setup(fd);
	close(listener);
	if (err == 0)
		*ret_fd = fd;
	else if (fd >= 0)
		close(fd);
	return err;
}

int pp_talk_connect(const char *host, uint16_t port, int *ret_fd)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	const struct timespec pause = {.tv_nsec = 100000000};
	struct addrinfo *found;
	char service[8];
	int fd = -1, err = -ETIMEDOUT;

	snprintf(service, sizeof(service), "%u", port);
	if (getaddrinfo(host, service, &hints, &found))
		return -EHOSTUNREACH;
	/* The server may not listen yet. */
	for (int tries = 0; tries < PP_TALK_TRIES; tries++) {
		fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0) {
			err = -errno;
			break;
		}
		if (!connect(fd, found->ai_addr, found->ai_addrlen)) {
			err = pp_talk_setup(fd);
			break;
		}
		err = -errno;
		close(fd);
		fd = -1;
		if (err != -ECONNREFUSED)
			break;
		nanosleep(&pause, NULL);
	}
	freeaddrinfo(found);
	if (err == 0)
		*ret_fd = fd;
	else if (fd >= 0)
		close(fd);
	return err;
}

int pp_talk_exchange(int fd, const void *mine, void *ret_far, size_t len)
{
	const char *out = mine;
	char *in = ret_far;

	for (size_t sent = 0; sent < len;) {
		ssize_t n = send(fd, out + sent, len - sent, MSG_NOSIGNAL);

		if (n < 0)
			return -errno;
		sent += (size_t)n;
	}
	for (size_t got = 0; got < len;) {
		ssize_t n = recv(fd, in + got, len - got, 0);

		if (n < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		if (n == 0)
			return -ECONNRESET;
		got += (size_t)n;
	}
	return 0;
}

int pp_talk_words(int fd, const uint64_t *mine, uint64_t *ret_far, size_t count)
{
	uint64_t out[PP_TALK_WORDS_MAX] = {0}, in[PP_TALK_WORDS_MAX];
	int err;

	if (count > PP_TALK_WORDS_MAX)
		return -EMSGSIZE;
	for (size_t i = 0; i < count; i++)
		out[i] = htobe64(mine[i]);
	err = pp_talk_exchange(fd, out, in, count * sizeof(*out));
	if (err)
		return err;
	for (size_t i = 0; i < count; i++)
		ret_far[i] = be64toh(in[i]);
	return 0;
}

int pp_talk_meet(int fd)
{
	const uint64_t mine = 1;
	uint64_t far;

	return pp_talk_words(fd, &mine, &far, 1);
}
