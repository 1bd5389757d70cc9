/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/exporter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "node/helper.h"
#include "store/web_connection.h"
#include "base/banned.h"

enum {
	CONNECTIONS = 16,
	SECONDS = 10,
	MEMORY = 16 << 10,
	ANSWER = 8 << 20,
	BACKLOG = 16,
	WAIT_MS = 1000
};

/* Of a connection, from its first byte to its last; where no place is left for another, less. */
static const pp_ns LIMIT = SECONDS * PP_SECOND, CROWDED = PP_SECOND;

struct pp_exporter {
	struct MHD_Daemon *daemon;
	struct pp_web_connections connections;
	pp_exporter_page *page;
	void *ctx;
	int fd, listening;
	unsigned int port;
};

union address {
	struct sockaddr any;
	struct sockaddr_in four;
	struct sockaddr_in6 six;
};

static enum MHD_Result reply(struct MHD_Connection *c, unsigned int status, const char *type,
			     const char *text, size_t len)
{
	struct MHD_Response *r = pp_web.create_response_from_buffer(len, (void *)(uintptr_t)text,
								    MHD_RESPMEM_MUST_COPY);
	enum MHD_Result done;

	if (!r)
		return MHD_NO;
	(void)pp_web.add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	(void)pp_web.add_response_header(r, "X-Content-Type-Options", "nosniff");
	/* One answer: a scrape each quarter of a minute has no use for a place in between. */
	(void)pp_web.add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		(void)pp_web.add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	done = pp_web.queue_response(c, status, r);
	pp_web.destroy_response(r);
	return done;
}

static enum MHD_Result say(struct MHD_Connection *c, unsigned int status, const char *text)
{
	return reply(c, status, "text/plain; charset=utf-8", text, strlen(text));
}

static enum MHD_Result answer(void *cls, struct MHD_Connection *c, const char *url,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_size, void **request)
{
	static int seen; /* only its address counts */
	struct pp_exporter *e = cls;
	struct pp_buf PP_AUTO_BUF text = PP_BUF(ANSWER);
	enum pp_metrics_format format;

	(void)version;
	(void)upload;
	(void)upload_size;
	/* At the first call the head is read: only then is it known whether a body follows. */
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return say(c, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET\n");
	if (!*request) {
		*request = &seen;
		return MHD_YES;
	}
	if (strcmp(url, "/metrics") != 0)
		return say(c, MHD_HTTP_NOT_FOUND, "there is /metrics here and nothing else\n");
	format = pp_metrics_negotiate(
		pp_web.lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT));
	if (e->page(e->ctx, format, &text) || text.failed)
		return say(c, MHD_HTTP_INTERNAL_SERVER_ERROR, "there are no metrics now\n");
	return reply(c, MHD_HTTP_OK, pp_metrics_content_type(format), pp_buf_text(&text), text.len);
}

static int parse_port(const char *text, union address *a, struct pp_error *err)
{
	uint64_t port;

	if (pp_parse_u64(text, 0, UINT16_MAX, &port))
		return pp_error_set(err, -EINVAL, "'%.40s' is no port", text);
	if (a->any.sa_family == AF_INET6)
		a->six.sin6_port = htons((uint16_t)port);
	else
		a->four.sin_port = htons((uint16_t)port);
	return 0;
}

static int parse(const char *listen, union address *ret, struct pp_error *err)
{
	const char *colon = strrchr(listen, ':'), *from = listen;
	union address a = {0};
	char host[64];
	size_t n = colon ? (size_t)(colon - listen) : 0;

	if (!colon) {
		a.four = (struct sockaddr_in){.sin_family = AF_INET,
					      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		*ret = a;
		return parse_port(listen, ret, err);
	}
	if (n >= 2 && listen[0] == '[' && colon[-1] == ']') {
		from++;
		n -= 2;
	}
	if (!n || n >= sizeof(host))
		return pp_error_set(
			err, -EINVAL,
			"'%.80s' names no address: give 127.0.0.1:PORT, or 0.0.0.0:PORT "
			"for all",
			listen);
	(void)memcpy(host, from, n);
	host[n] = '\0';
	if (from == listen && inet_pton(AF_INET, host, &a.four.sin_addr) == 1)
		a.four.sin_family = AF_INET;
	else if (from != listen && inet_pton(AF_INET6, host, &a.six.sin6_addr) == 1)
		a.six.sin6_family = AF_INET6;
	else
		return pp_error_set(err, -EINVAL,
				    "'%.80s' is no numeric address: 127.0.0.1:PORT or "
				    "[::1]:PORT",
				    listen);
	*ret = a;
	return parse_port(colon + 1, ret, err);
}

/* The socket is ours, so that what bind(2) says can be told. */
static int listen_at(const char *where, union address *a, struct pp_error *err)
{
	socklen_t len = a->any.sa_family == AF_INET6 ? sizeof(a->six) : sizeof(a->four);
	int yes = 1, r = 0;
	int fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	char text[96];

	if (fd < 0)
		return pp_error_set(err, -errno, "no socket: %s",
				    pp_errno_text(errno, text, sizeof(text)));
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (a->any.sa_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
	if (bind(fd, &a->any, len) || listen(fd, BACKLOG) || getsockname(fd, &a->any, &len))
		r = -errno;
	if (!r)
		return fd;
	(void)close(fd);
	return pp_error_set(err, r, "cannot listen at '%.80s': %s", where,
			    pp_errno_text(r, text, sizeof(text)));
}

/* What it would print of broken clients is nothing that a service should say. */
static void silent(void *cls, const char *fmt, va_list ap)
{
	(void)cls;
	(void)fmt;
	(void)ap;
}

int pp_exporter_open(const char *listen, pp_exporter_page *page, void *ctx,
		     struct pp_exporter **ret, struct pp_error *err)
{
	const union MHD_DaemonInfo *info;
	struct pp_exporter *e;
	union address a;
	int fd, r = parse(listen, &a, err);

	if (!r)
		r = pp_web_load(err);
	if (r)
		return r;
	fd = listen_at(listen, &a, err);
	if (fd < 0)
		return fd;
	e = calloc(1, sizeof(*e));
	if (e) {
		*e = (struct pp_exporter){.page = page, .ctx = ctx};
		pp_web_connections_init(&e->connections);
		e->port = ntohs(a.any.sa_family == AF_INET6 ? a.six.sin6_port : a.four.sin_port);
		e->daemon = pp_web.start_daemon(
			MHD_USE_EPOLL | MHD_USE_ERROR_LOG, 0, NULL, NULL, answer, e,
			MHD_OPTION_EXTERNAL_LOGGER, silent, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
			MHD_OPTION_CONNECTION_LIMIT, (unsigned int)CONNECTIONS,
			MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)SECONDS,
			MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY,
			MHD_OPTION_NOTIFY_CONNECTION, pp_web_connection_notify, &e->connections,
			MHD_OPTION_END);
	}
	info = e && e->daemon ? pp_web.get_daemon_info(e->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	if (!info) {
		if (e && e->daemon)
			pp_web.stop_daemon(e->daemon);
		else
			(void)close(fd);
		if (e)
			pp_web_connections_done(&e->connections);
		free(e);
		return pp_error_set(err, -ENOMEM, "libmicrohttpd could not be started");
	}
	e->fd = info->epoll_fd;
	e->listening = fd;
	pp_helper_shed(e->fd);
	pp_helper_shed(e->listening);
	*ret = e;
	return 0;
}

struct pp_exporter *pp_exporter_close(struct pp_exporter *e)
{
	if (!e)
		return NULL;
	pp_helper_shed_no_more(e->fd);
	pp_helper_shed_no_more(e->listening);
	pp_web.stop_daemon(e->daemon);
	pp_web_connections_done(&e->connections);
	free(e);
	return NULL;
}

int pp_exporter_fd(const struct pp_exporter *e)
{
	return e->fd;
}

/*
 * With connections open: soon, whatever libmicrohttpd thinks. One that was full takes note of its
 * listening socket again only when it is run.
 */
int pp_exporter_wait_ms(const struct pp_exporter *e)
{
	const union MHD_DaemonInfo *info =
		pp_web.get_daemon_info(e->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
	MHD_UNSIGNED_LONG_LONG ms;

	if (pp_web.get_timeout(e->daemon, &ms) == MHD_YES && ms < WAIT_MS)
		return (int)ms;
	return info && info->num_connections ? WAIT_MS : -1;
}

void pp_exporter_run(struct pp_exporter *e)
{
	pp_web_connections_expire(&e->connections, LIMIT, CROWDED, CONNECTIONS);
	(void)pp_web.run(e->daemon);
	(void)pp_web.run(e->daemon);
}

unsigned int pp_exporter_port(const struct pp_exporter *e)
{
	return e->port;
}
