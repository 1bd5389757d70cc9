/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/location.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/parse.h"
#include "rdma/channel_state.h"
#include "base/banned.h"

/* What the child writes: less than PIPE_BUF, so it comes whole. */
struct found {
	int code; /* of getaddrinfo() */
	struct pp_location_list list;
};

_Static_assert(sizeof(struct found) <= 4096, "PIPE_BUF");

static int bad(const char *text, const char *why, struct pp_error *err)
{
	char shown[64];

	(void)snprintf(shown, sizeof(shown), "%.60s", text);
	pp_sanitize(shown, false);
	return pp_error_set(err, -EINVAL, "address \"%s\": %s (HOST, HOST:PORT or [IPv6]:PORT)",
			    shown, why);
}

/* Blanks, slashes and the like are no part of a name; "%" is that of an IPv6 scope. */
static bool is_host(const char *host)
{
	return !host[strspn(host, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				  ".-_:%")];
}

int pp_location_parse(const char *text, uint16_t port, struct pp_location *ret,
		      struct pp_error *err)
{
	struct pp_location a = {.port = port};
	const char *host = text, *after, *colon = strchr(text, ':');
	uint64_t number;
	size_t len;

	if (text[0] == '[') {
		host = text + 1;
		after = strchr(host, ']');
		if (!after)
			return bad(text, "no closing bracket", err);
		len = (size_t)(after - host);
		after++;
	} else {
		bool six = colon && strchr(colon + 1, ':');

		len = colon && !six ? (size_t)(colon - host) : strlen(host);
		after = host + len;
	}
	if (len >= sizeof(a.host))
		return bad(text, "too long", err);
	memcpy(a.host, host, len);
	if (!is_host(a.host) || (!len && *after != ':'))
		return bad(text, "no name", err);
	if (*after && *after != ':')
		return bad(text, "something follows the bracket", err);
	if (*after) {
		if (pp_parse_u64(after + 1, 0, UINT16_MAX, &number))
			return bad(text, "the port is no number up to 65535", err);
		a.port = (uint16_t)number;
	}
	*ret = a;
	return 0;
}

static int look(const struct pp_location *address, int flags, struct pp_location_list *ret)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
	struct addrinfo *all = NULL;
	char port[8];
	int r;

	(void)snprintf(port, sizeof(port), "%u", address->port);
	r = getaddrinfo(address->host, port, &hints, &all);
	if (r)
		return r;
	ret->n = 0;
	for (const struct addrinfo *a = all; a && ret->n < PP_LOCATION_ADDRESSES; a = a->ai_next) {
		if (a->ai_addrlen > sizeof(ret->at[0]))
			continue;
		memcpy(&ret->at[ret->n], a->ai_addr, a->ai_addrlen);
		ret->size[ret->n++] = a->ai_addrlen;
	}
	freeaddrinfo(all);
	return ret->n ? 0 : EAI_NONAME;
}

static PP_NORETURN void child(const struct pp_location *address, int out)
{
	struct found found = {0};

	(void)signal(SIGTERM, SIG_DFL);
	found.code = look(address, AI_ADDRCONFIG, &found.list);
	(void)!write(out, &found, sizeof(found));
	_exit(0);
}

static int ask(const struct pp_location *address, pp_ns deadline, bool (*stopped)(void),
	       struct found *ret)
{
	struct found found = {0};
	int fd[2], r;
	pid_t pid;

	if (pipe2(fd, O_CLOEXEC))
		return -errno;
	(void)fflush(NULL);
	pid = fork();
	if (pid == 0)
		child(address, fd[1]);
	r = pid < 0 ? -errno : 0;
	(void)close(fd[1]);
	if (!r)
		r = pp_channel_wait(fd[0], POLLIN, deadline, stopped);
	if (!r && read(fd[0], &found, sizeof(found)) != (ssize_t)sizeof(found))
		r = -EIO;
	(void)close(fd[0]);
	if (pid > 0) {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
	if (!r)
		*ret = found;
	return r;
}

int pp_location_resolve(const struct pp_location *address, pp_ns deadline, bool (*stopped)(void),
			struct pp_location_list *ret, struct pp_error *err)
{
	struct found found = {0};
	int r;

	if (look(address, AI_NUMERICHOST, ret) == 0)
		return 0;
	r = ask(address, deadline, stopped, &found);
	if (r == -ETIMEDOUT)
		return pp_error_set(err, r, "the name servers do not answer for \"%s\"",
				    address->host);
	if (r == -EINTR)
		return pp_error_set(err, r, "interrupted while looking \"%s\" up", address->host);
	if (r)
		return pp_error_set(err, r, "cannot look \"%s\" up: %s", address->host,
				    strerror(-r));
	if (found.code)
		return pp_error_set(err, -EHOSTUNREACH, "no address for \"%s\": %s", address->host,
				    gai_strerror(found.code));
	*ret = found.list;
	return 0;
}
