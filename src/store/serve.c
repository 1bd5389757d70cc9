/* SPDX-License-Identifier: Apache-2.0 */
#include "store/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/json.h"
#include "store/serve_parts.h"
#include "base/banned.h"

enum { HEADER_BYTES = 32 << 10, DEADLINE_S = 30, PAGE_HEADER = 512 };

enum MHD_Result pp_serve_answer(struct MHD_Connection *c, unsigned int status,
				struct MHD_Response *response)
{
	static const char *const headers[][2] = {{"X-Content-Type-Options", "nosniff"},
						 {"Referrer-Policy", "no-referrer"},
						 {"Cache-Control", "no-store"},
						 {"X-Frame-Options", "DENY"},
						 {"Cross-Origin-Resource-Policy", "same-origin"}};
	enum MHD_Result r;

	for (size_t i = 0; i < PP_ARRAY_LEN(headers); i++)
		(void)pp_web.add_response_header(response, headers[i][0], headers[i][1]);
	if (!pp_web.get_response_header(response, "Content-Security-Policy"))
		(void)pp_web.add_response_header(response, "Content-Security-Policy",
						 "default-src 'none'");
	r = pp_web.queue_response(c, status, response);
	pp_web.destroy_response(response);
	return r;
}

enum MHD_Result pp_serve_refuse(struct MHD_Connection *c, unsigned int status, const char *why)
{
	PP_AUTO_BUF struct pp_buf text = PP_BUF(8192);
	struct pp_json j = PP_JSON(&text, false);
	struct MHD_Response *response;

	pp_json_object(&j, NULL);
	pp_json_str(&j, "error", why);
	pp_json_end_object(&j);
	pp_buf_char(&text, '\n');
	response = pp_web.create_response_from_buffer(text.len, text.data, MHD_RESPMEM_MUST_COPY);
	if (!response)
		return MHD_NO;
	(void)pp_web.add_response_header(response, "Content-Type", "application/json");
	if (status == MHD_HTTP_UNAUTHORIZED)
		(void)pp_web.add_response_header(response, "WWW-Authenticate", "Bearer");
	/* What is still on its way is not read: the connection ends with the answer. */
	if (status >= MHD_HTTP_BAD_REQUEST && status != MHD_HTTP_NOT_FOUND)
		(void)pp_web.add_response_header(response, "Connection", "close");
	return pp_serve_answer(c, status, response);
}

/* Without the port; "[::1]" keeps its brackets. */
static size_t host_length(const char *host)
{
	const char *end = *host == '[' ? strchr(host, ']') : NULL;

	return end ? (size_t)(end - host) + 1 : strcspn(host, ":");
}

/* A name of somebody else's that leads here is how a page of the web would get at the fleet. */
static bool is_called_so(const struct pp_serve *s, struct MHD_Connection *c)
{
	static const char *const always[] = {"localhost", "127.0.0.1", "[::1]"};
	const char *host = pp_web.lookup_connection_value(c, MHD_HEADER_KIND, "Host");
	size_t len = host ? host_length(host) : 0;

	if (!len)
		return false;
	for (size_t i = 0; i < PP_ARRAY_LEN(always); i++)
		if (strlen(always[i]) == len && !strncasecmp(always[i], host, len))
			return true;
	for (const char *const *h = s->options.host; *h; h++)
		if (strlen(*h) == len && !strncasecmp(*h, host, len))
			return true;
	return strlen(s->address) == len && !strncasecmp(s->address, host, len);
}

static enum MHD_Result get(struct pp_serve *s, struct MHD_Connection *c, const char *path)
{
	enum MHD_Result r;

	if (!strcmp(path, "/"))
		return pp_web.queue_response(c, MHD_HTTP_OK, s->page);
	if (pp_serve_get(s, c, path, &r))
		return r;
	return pp_serve_refuse(c, MHD_HTTP_NOT_FOUND, "nothing is here");
}

static enum MHD_Result begin(struct pp_serve *s, struct MHD_Connection *c, const char *path,
			     const char *method, struct pp_serve_request *r)
{
	bool pushes = !strcmp(path, "/push");

	if (strcmp(path, PP_SERVE_HEALTH) != 0 && !is_called_so(s, c)) {
		r->answered = true;
		return pp_serve_refuse(c, MHD_HTTP_FORBIDDEN,
				       "not called by a name of this server's: --host NAME");
	}
	if (pushes && !strcmp(method, "POST"))
		return pp_serve_push_begin(s, c, r);
	if (!pushes && (!strcmp(method, "GET") || !strcmp(method, "HEAD")))
		return MHD_YES;
	r->answered = true;
	return pp_serve_refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED, "not this way");
}

/* Called with the headers, then with each part of the body, then once without. */
static enum MHD_Result on_request(void *ctx, struct MHD_Connection *c, const char *path,
				  const char *method, const char *version, const char *data,
				  size_t *len, void **state)
{
	struct pp_serve_request *r = *state;
	struct pp_serve *s = ctx;

	(void)version;
	if (!r) {
		r = calloc(1, sizeof(*r));
		if (!r)
			return MHD_NO;
		r->file = -1;
		*state = r;
		return begin(s, c, path, method, r);
	}
	if (*len) {
		/* A body that nobody asked for is passed over, within the deadline. */
		if (r->file >= 0)
			pp_serve_push_more(s, r, data, *len);
		*len = 0;
		return MHD_YES;
	}
	if (r->answered)
		return MHD_YES;
	return r->file >= 0 ? pp_serve_push_end(s, c, r) : get(s, c, path);
}

static void on_completed(void *ctx, struct MHD_Connection *c, void **state,
			 enum MHD_RequestTerminationCode how)
{
	struct pp_serve_request *r = *state;

	(void)how;
	if (r) {
		if (r->file >= 0)
			(void)close(r->file);
		free(r);
	}
	*state = NULL;
	pp_web_connection_renew(&((struct pp_serve *)ctx)->connections, c);
}

void pp_serve_tick(struct pp_serve *s)
{
	pp_ns limit = (s->options.deadline_s ? s->options.deadline_s : DEADLINE_S) * PP_SECOND;

	pp_web_connections_expire(&s->connections, limit, limit, PP_WEB_CONNECTIONS);
}

/* What stands between <script> and </script>, or the same of style: the policy allows just that. */
static void hash_of(const char *page, const char *begin, const char *end, char ret[64])
{
	const char *from = strstr(page, begin), *to = from ? strstr(from, end) : NULL;
	uint8_t hash[crypto_hash_sha256_BYTES];

	*ret = '\0';
	if (!to)
		return;
	from += strlen(begin);
	(void)crypto_hash_sha256(hash, (const unsigned char *)from, (size_t)(to - from));
	(void)sodium_bin2base64(ret, 64, hash, sizeof(hash), sodium_base64_VARIANT_ORIGINAL);
}

static int make_page(struct pp_serve *s)
{
	const char *text = (const char *)pp_serve_page;
	char script[64], style[64], policy[PAGE_HEADER];

	hash_of(text, "<script>", "</script>", script);
	hash_of(text, "<style>", "</style>", style);
	(void)snprintf(
		policy, sizeof(policy),
		"default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; img-src 'self' "
		"data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
		"frame-ancestors 'none'",
		script, style);
	s->page = pp_web.create_response_from_buffer(
		pp_serve_page_len, (void *)(uintptr_t)pp_serve_page, MHD_RESPMEM_PERSISTENT);
	if (!s->page)
		return -ENOMEM;
	(void)pp_web.add_response_header(s->page, "Content-Type", "text/html; charset=utf-8");
	(void)pp_web.add_response_header(s->page, "Content-Security-Policy", policy);
	(void)pp_web.add_response_header(s->page, "X-Content-Type-Options", "nosniff");
	(void)pp_web.add_response_header(s->page, "Referrer-Policy", "no-referrer");
	(void)pp_web.add_response_header(s->page, "Cache-Control", "no-store");
	return 0;
}

static int make_socket(struct pp_serve *s, struct pp_error *err)
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6,
				   .sin6_port = htons((uint16_t)s->options.port)};
	struct sockaddr_in four = {.sin_family = AF_INET,
				   .sin_port = htons((uint16_t)s->options.port)};
	bool is_four = inet_pton(AF_INET, s->options.listen, &four.sin_addr) == 1;
	struct sockaddr *at = is_four ? (struct sockaddr *)&four : (struct sockaddr *)&six;
	socklen_t len = is_four ? sizeof(four) : sizeof(six);
	int one = 1;

	if (!is_four && inet_pton(AF_INET6, s->options.listen, &six.sin6_addr) != 1)
		return pp_error_set(err, -EINVAL, "'%.64s' is no address to listen on",
				    s->options.listen);
	s->listening = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->listening < 0 ||
	    setsockopt(s->listening, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(s->listening, at, len) || listen(s->listening, 64) ||
	    getsockname(s->listening, at, &len))
		return pp_error_set(err, -errno, "%s port %u: %s", s->options.listen,
				    s->options.port, strerrordesc_np(errno));
	(void)snprintf(s->address, sizeof(s->address), is_four ? "%s" : "[%s]", s->options.listen);
	(void)snprintf(s->url, sizeof(s->url), "http://%s:%u/", s->address,
		       ntohs(is_four ? four.sin_port : six.sin6_port));
	return 0;
}

int pp_serve_start(struct pp_sql *sql, const struct pp_serve_options *options,
		   struct pp_serve **ret, struct pp_error *err)
{
	unsigned int deadline = options->deadline_s ? options->deadline_s : DEADLINE_S;
	struct pp_serve *s;
	int r = pp_web_load(err);

	if (r)
		return r;
	s = calloc(1, sizeof(*s));
	if (!s)
		return pp_error_set(err, -ENOMEM, "out of memory");
	s->sql = sql;
	s->options = *options;
	s->listening = -1;
	pp_web_connections_init(&s->connections);
	if (options->token)
		(void)crypto_hash_sha256(s->token, (const unsigned char *)options->token,
					 strlen(options->token));
	r = make_page(s);
	r = r ? pp_error_set(err, r, "out of memory") : make_socket(s, err);
	if (r) {
		pp_serve_stop(s);
		return r;
	}
	s->daemon = pp_web.start_daemon(
		MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, on_request, s,
		MHD_OPTION_LISTEN_SOCKET, s->listening, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned int)PP_WEB_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, deadline,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES,
		MHD_OPTION_NOTIFY_COMPLETED, on_completed, s, MHD_OPTION_NOTIFY_CONNECTION,
		pp_web_connection_notify, &s->connections, MHD_OPTION_END);
	if (!s->daemon) {
		pp_serve_stop(s);
		return pp_error_set(err, -EIO, "the HTTP server does not start");
	}
	*ret = s;
	return 0;
}

const char *pp_serve_url(const struct pp_serve *s)
{
	return s->url;
}

struct pp_serve *pp_serve_stop(struct pp_serve *s)
{
	if (!s)
		return NULL;
	if (s->daemon)
		pp_web.stop_daemon(s->daemon); /* closes the socket, too */
	else if (s->listening >= 0)
		(void)close(s->listening);
	if (s->page)
		pp_web.destroy_response(s->page);
	pp_web_connections_done(&s->connections);
	free(s);
	return NULL;
}
