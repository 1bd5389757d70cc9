/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerpath fleet serve: until Ctrl-C or SIGTERM.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/parse.h"
#include "cli/fleet.h"
#include "rdma/token.h"
#include "store/serve.h"
#include "base/banned.h"

static const uint64_t MAX_PUSH = (uint64_t)64 << 20, MOST_PUSH = (uint64_t)1 << 30;

/* As a request names it in front of its port; an IPv6 address stands in brackets there. */
static bool is_host(const char *name)
{
	static const char of_names[] = "abcdefghijklmnopqrstuvwxyz"
				       "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
	size_t n = strlen(name);

	if (*name == '[')
		return n > 3 && strspn(name + 1, "0123456789abcdefABCDEF:.") == n - 2 &&
		       name[n - 1] == ']';
	return n && strspn(name, of_names) == n;
}

/* It answers at each of its host's addresses, and by none of them. */
static bool needs_host(const struct pp_serve_options *o)
{
	return !o->host[0] && (!strcmp(o->listen, "0.0.0.0") || !strcmp(o->listen, "::"));
}

static int read_options(const struct pp_args *args, char token[PP_TOKEN_MOST + 1],
			struct pp_serve_options *ret)
{
	const char *port = pp_args_get(args, "port"), *size = pp_args_get(args, "max-push");
	const char *file = pp_args_get(args, "token-file"), *listen = pp_args_get(args, "listen");
	size_t hosts = pp_args_count(args, "host");
	struct pp_error err = {0};
	uint64_t number = 18517;

	*ret = (struct pp_serve_options){.listen = listen ? listen : "127.0.0.1",
					 .max_push = MAX_PUSH};
	if (port && pp_parse_u64(port, 0, 65535, &number))
		return pp_complain(args, PP_EXIT_USAGE, "--port does not take '%s': 0 to 65535",
				   port);
	ret->port = (unsigned int)number;
	if (size && (pp_parse_size(size, MOST_PUSH, &ret->max_push) || !ret->max_push))
		return pp_complain(args, PP_EXIT_USAGE,
				   "--max-push does not take '%s': 1 byte up to 1G", size);
	if (hosts > PP_SERVE_HOSTS)
		return pp_complain(args, PP_EXIT_USAGE, "--host: %d names at most", PP_SERVE_HOSTS);
	for (size_t i = 0; i < hosts; i++) {
		ret->host[i] = pp_args_nth(args, "host", i);
		if (!is_host(ret->host[i]))
			return pp_complain(args, PP_EXIT_USAGE,
					   "--host does not take '%s': a name or an address, "
					   "without a port",
					   ret->host[i]);
	}
	if (file && pp_token_read(file, token, &err))
		return pp_complain(args, PP_EXIT_USAGE, "--token-file %s", err.text);
	ret->token = file ? token : NULL;
	return 0;
}

static int serve(struct pp_session *s, struct pp_sql *sql, const struct pp_serve_options *options)
{
	struct pp_error err = {0};
	struct pp_serve *server = NULL;
	const struct timespec second = {.tv_sec = 1};
	sigset_t ends;
	int r;

	/* Blocked in every thread: a service that is told to end has ended well. */
	(void)sigemptyset(&ends);
	(void)sigaddset(&ends, SIGINT);
	(void)sigaddset(&ends, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &ends, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	r = pp_serve_start(sql, options, &server, &err);

	if (r)
		return pp_complain(s->args, r == -EINVAL ? PP_EXIT_USAGE : PP_EXIT_INTERNAL, "%s",
				   err.text);
	(void)fprintf(stderr, "serving on %s%s%s\n", pp_serve_url(server),
		      options->token ? "" : " (nobody may push: no --token-file)",
		      needs_host(options) ? " (each call from elsewhere is refused, 403: no "
					    "--host NAME that it would be called by)"
					  : "");
	while (sigtimedwait(&ends, NULL, &second) < 0)
		pp_serve_tick(server);
	pp_serve_stop(server);
	return PP_EXIT_PASS;
}

int pp_fleet_cmd_serve(struct pp_session *s)
{
	char token[PP_TOKEN_MOST + 1] = "";
	struct pp_serve_options options;
	struct pp_sql *sql = NULL;
	int code = read_options(s->args, token, &options);

	if (!code && pp_args_operands(s->args) > 1)
		code = pp_complain(s->args, PP_EXIT_USAGE, "'fleet serve' takes nothing more");
	if (!code)
		code = pp_fleet_database(s->args, PP_SQL_CREATE, &sql);
	if (code)
		return code;
	code = serve(s, sql, &options);
	pp_sql_close(sql);
	explicit_bzero(token, sizeof(token));
	return code;
}
