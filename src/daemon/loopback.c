/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.0 is asked for, so that an answer ends with its connection and comes in one piece.
 */
#include "daemon/loopback.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "base/banned.h"

enum { HTTP_PORT = 80, PIECE = 16 << 10 };

/* "127.0.0.1:9000" or "[::1]:9000" into host and port. */
static int parse_where(char *where, struct pp_loopback *l)
{
	char *port = NULL, *end;
	uint64_t number = HTTP_PORT;

	if (*where == '[') {
		end = strchr(where++, ']');
		if (!end || (end[1] && end[1] != ':'))
			return -EINVAL;
		port = end[1] ? end + 2 : NULL;
		*end = '\0';
	} else if ((end = strchr(where, ':'))) {
		port = end + 1;
		*end = '\0';
	}
	if (port && pp_parse_u64(port, 1, UINT16_MAX, &number))
		return -EINVAL;
	if (!strcmp(where, "localhost"))
		where = (char *)(uintptr_t) "127.0.0.1";
	if (strlen(where) >= sizeof(l->host))
		return -EINVAL;
	(void)snprintf(l->host, sizeof(l->host), "%s", where);
	l->port = (uint16_t)number;
	return 0;
}

static bool is_loopback(const char *host)
{
	struct in6_addr six;
	struct in_addr four;

	if (inet_pton(AF_INET, host, &four) == 1)
		return ntohl(four.s_addr) >> 24 == 127;
	return inet_pton(AF_INET6, host, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

int pp_loopback_parse(const char *url, struct pp_loopback *ret, struct pp_error *err)
{
	static const char SCHEME[] = "http://";
	struct pp_loopback l = {.port = HTTP_PORT};
	const char *at = url + sizeof(SCHEME) - 1;
	char where[64];
	size_t n;

	if (strncmp(url, SCHEME, sizeof(SCHEME) - 1) != 0)
		return pp_error_set(err, -EINVAL, "'%.80s' is no http://127.0.0.1... address", url);
	n = strcspn(at, "/");
	if (n >= sizeof(where) || strlen(at + n) >= sizeof(l.path))
		return pp_error_set(err, -EINVAL, "'%.80s' is too long", url);
	(void)memcpy(where, at, n);
	where[n] = '\0';
	(void)snprintf(l.path, sizeof(l.path), "%s", at[n] ? at + n : "/");
	for (const char *c = l.path; *c; c++)
		if (*c <= ' ' || *c > '~')
			return pp_error_set(err, -EINVAL, "'%.80s' holds a blank or worse", url);
	if (parse_where(where, &l) || !is_loopback(l.host))
		return pp_error_set(err, -EINVAL,
				    "'%.80s' is not of this machine: 127.0.0.1, [::1] or localhost",
				    url);
	*ret = l;
	return 0;
}

static int connect_to(const struct pp_loopback *l)
{
	struct sockaddr_in six_or_four = {.sin_family = AF_INET, .sin_port = htons(l->port)};
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(l->port)};
	bool is_six = inet_pton(AF_INET6, l->host, &six.sin6_addr) == 1;
	int fd, r;

	if (!is_six && inet_pton(AF_INET, l->host, &six_or_four.sin_addr) != 1)
		return -EINVAL;
	fd = socket(is_six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	r = is_six ? connect(fd, (struct sockaddr *)&six, sizeof(six))
		   : connect(fd, (struct sockaddr *)&six_or_four, sizeof(six_or_four));
	if (r && errno != EINPROGRESS) {
		r = -errno;
		(void)close(fd);
		return r;
	}
	return fd;
}

static int await(int fd, short events, pp_ns end)
{
	struct pollfd p = {.fd = fd, .events = events};
	pp_ns left;

	while ((left = end - pp_clock_monotonic()) > 0) {
		int n = poll(&p, 1, (int)(left / PP_MILLISECOND) + 1);

		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
	return -ETIMEDOUT;
}

static int talk(int fd, const struct pp_loopback *l, pp_ns end, struct pp_buf *to)
{
	char request[sizeof(l->path) + 160], piece[PIECE];
	int n = snprintf(request, sizeof(request),
			 "GET %s HTTP/1.0\r\nHost: localhost\r\nAccept: text/plain\r\n"
			 "User-Agent: peerpath\r\nConnection: close\r\n\r\n",
			 l->path);
	int r = await(fd, POLLOUT, end);

	/* So short a request fits a socket's buffer whole. */
	if (!r && send(fd, request, (size_t)n, MSG_NOSIGNAL) != n)
		r = errno ? -errno : -EPROTO;
	while (!r && !(r = await(fd, POLLIN, end))) {
		ssize_t got = recv(fd, piece, sizeof(piece), 0);

		if (got == 0)
			return 0;
		if (got < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (got > 0)
			pp_buf_add(to, piece, (size_t)got);
		r = to->failed;
	}
	return r;
}

/* The head's line @name; NULL: there is none. Up to the line's end. */
static const char *header(const char *head, size_t len, const char *name)
{
	size_t n = strlen(name);
	const char *at = memchr(head, '\n', len);

	while (at && (size_t)(at - head) + 1 + n < len) {
		if (!strncasecmp(at + 1, name, n) && at[1 + n] == ':')
			return at + 2 + n;
		at = memchr(at + 1, '\n', len - (size_t)(at + 1 - head));
	}
	return NULL;
}

static int check_length(const char *text, size_t head, size_t len, struct pp_error *err)
{
	const char *at = header(text, head, "Content-Length");
	char digits[24];
	size_t n = 0;
	uint64_t length;

	if (header(text, head, "Transfer-Encoding"))
		return pp_error_set(err, -EPROTO, "the answer is chunked, which HTTP/1.0 has not");
	if (!at)
		return 0;
	at += strspn(at, " \t");
	while (n + 1 < sizeof(digits) && at[n] >= '0' && at[n] <= '9') {
		digits[n] = at[n];
		n++;
	}
	digits[n] = '\0';
	if (pp_parse_u64(digits, 0, UINT64_MAX, &length) || length != len - head)
		return pp_error_set(err, -EPROTO, "the answer is cut: %zu of %.20s bytes",
				    len - head, digits);
	return 0;
}

int pp_loopback_answer(const char *text, size_t len, size_t *ret_body, struct pp_error *err)
{
	const char *end = memmem(text, len, "\r\n\r\n", 4);
	size_t head = end ? (size_t)(end - text) + 4 : 0;
	int r;

	if (!end || len < 13 || strncmp(text, "HTTP/1.", 7) != 0)
		return pp_error_set(err, -EPROTO, "the answer is no HTTP");
	if (strncmp(text + 8, " 200", 4) != 0)
		return pp_error_set(
			err, -EPROTO, "the answer is '%.*s'",
			(int)strcspn(text, "\r\n") < 60 ? (int)strcspn(text, "\r\n") : 60, text);
	r = check_length(text, head, len, err);
	if (!r)
		*ret_body = head;
	return r;
}

int pp_loopback_get(const struct pp_loopback *l, pp_ns limit, struct pp_buf *to,
		    struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF all = PP_BUF(to->max);
	int PP_AUTO_CLOSE fd = connect_to(l);
	size_t body = 0;
	char text[96];
	int r = fd < 0 ? fd : talk(fd, l, pp_clock_monotonic() + limit, &all);

	if (r)
		return pp_error_set(err, r, "http://%s:%u%.80s: %s", l->host, l->port, l->path,
				    r == -EFBIG ? "the answer is too long"
						: pp_errno_text(r, text, sizeof(text)));
	r = pp_loopback_answer(pp_buf_text(&all), all.len, &body, err);
	if (r)
		return r;
	pp_buf_add(to, pp_buf_text(&all) + body, all.len - body);
	return to->failed;
}
