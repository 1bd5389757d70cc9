/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerpath bench: the ladder on pairs of nodes. One process coordinates (that with a HOST, with
 * --here, or rank 0 of a launched job) and prints; the others serve it and print nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/parse.h"
#include "bench/agent.h"
#include "bundle/page.h"
#include "cli/bench_child.h"
#include "cli/bench_keep.h"
#include "cli/bench_options.h"
#include "cli/bench_record.h"
#include "cli/bench_text.h"
#include "cli/interrupt.h"
#include "cli/library_agent.h"
#include "cli/output.h"
#include "cli/session.h"
#include "cli/simulation.h"
#include "cli/trace_soft.h"
#include "judge/policy.h"
#include "judge/transfer.h"
#include "rdma/location.h"
#include "rdma/token.h"
#include "base/banned.h"

struct run {
	const struct pp_args *args;
	struct pp_bench_options options;
	struct pp_launch launch;
	struct pp_policy *policy;
	struct pp_agent_options agents;
	char token[PP_TOKEN_MOST + 1];
	const char **peers; /* operands with their ports; in the arena, as the next */
	const char *listen;
	unsigned int port;
	struct pp_arena arena;
};

static void say(const char *text)
{
	(void)fprintf(stderr, "%s\n", text);
}

/* One line that is written over, on a terminal only: a log gets none of it. */
static void progress(unsigned int done, unsigned int all, const char *what)
{
	(void)fprintf(stderr, "\r\033[K%u of %u  %.60s%s", done, all, what,
		      done == all ? "\r\033[K" : "");
}

/* One of several processes, unless the user says that both ends are here. */
static bool is_launched(const struct run *r)
{
	return r->launch.by && r->launch.size > 1 && !pp_args_has(r->args, "here");
}

static bool is_rank(const struct run *r)
{
	return is_launched(r) && r->launch.rank > 0;
}

/* Who is whom must be said: nothing is measured with a machine that was not asked for. */
static int check_role(const struct pp_args *args, const struct pp_launch *launch)
{
	size_t peers = pp_args_operands(args);
	bool here = pp_args_has(args, "here"), listens = pp_args_has(args, "listen");
	bool alone = pp_args_has(args, "simulate") && !listens;

	if (peers && (here || listens))
		return pp_complain(args, PP_EXIT_USAGE, "--%s excludes a HOST",
				   here ? "here" : "listen");
	if (here && listens)
		return pp_complain(args, PP_EXIT_USAGE, "--here excludes --listen");
	if (pp_args_has(args, "once") && !listens)
		return pp_complain(args, PP_EXIT_USAGE, "--once goes with --listen");
	if (!peers && !here && !listens && !alone && !(launch->by && launch->size > 1))
		return pp_complain(args, PP_EXIT_USAGE,
				   "with whom? HOST (where 'peerpath bench --listen' waits), "
				   "--here for both ends on this machine, or a launcher such as "
				   "srun -N2 --ntasks-per-node=1");
	return 0;
}

/* Whoever waits without a token has one drawn, and says how the other node comes by it. */
static int draw_token(struct run *r)
{
	char host[HOST_NAME_MAX + 1] = "HOST";
	const char *port = pp_args_get(r->args, "port");
	struct pp_error err = {0};

	if (pp_token_draw(r->token, &err))
		return pp_complain(r->args, PP_EXIT_INTERNAL, "%s", err.text);
	if (!pp_args_has(r->args, "listen"))
		return 0;
	/* a name that was never set is "(none)", which no shell takes */
	if (gethostname(host, sizeof(host) - 1) || !host[0] || host[0] == '(')
		(void)snprintf(host, sizeof(host), "HOST");
	(void)fprintf(stderr, "On the other node:\n  PEERPATH_TOKEN=%s peerpath bench %s%s%s\n",
		      r->token, host, port ? " --port " : "", port ? port : "");
	return 0;
}

/* A file, the environment, what the launcher tells; else only who waits, or is alone, has one. */
static int find_token(struct run *r)
{
	const char *file = pp_args_get(r->args, "token-file");
	struct pp_error err = {0};
	int e = pp_token_find(file, is_launched(r) ? &r->launch : NULL, r->token, &err);

	if (e == -ENOENT && !err.code)
		return pp_args_operands(r->args)
			       ? pp_complain(r->args, PP_EXIT_USAGE,
					     "with which token? PEERPATH_TOKEN or --token-file, as "
					     "'peerpath bench --listen' on the other node says")
			       : draw_token(r);
	return e ? pp_complain(r->args, PP_EXIT_USAGE, "%s", err.text) : 0;
}

/* HOST as it was given, with --port where it names none. */
static int peer_of(struct run *r, const char *text, const char **ret)
{
	struct pp_location at;
	struct pp_error err = {0};

	*ret = text;
	if (pp_location_parse(text, 0, &at, &err))
		return pp_complain(r->args, PP_EXIT_USAGE, "%s", err.text);
	if (!at.port && r->port)
		*ret = pp_arena_printf(&r->arena, strchr(at.host, ':') ? "[%s]:%u" : "%s:%u",
				       at.host, r->port);
	return 0;
}

static int read_peers(struct run *r)
{
	const char *port = pp_args_get(r->args, "port");
	size_t n = pp_args_operands(r->args);
	uint64_t number = 0;
	int code = 0;

	if (port && pp_parse_u64(port, 1, UINT16_MAX, &number))
		return pp_complain(r->args, PP_EXIT_USAGE, "--port does not take '%s': 1 to 65535",
				   port);
	r->port = (unsigned int)number;
	if (port)
		r->listen = pp_arena_printf(&r->arena, ":%u", r->port);
	r->peers = pp_arena_array(&r->arena, n + 1, sizeof(*r->peers));
	for (size_t i = 0; r->peers && !code && i < n; i++)
		code = peer_of(r, pp_args_operand(r->args, i), &r->peers[i]);
	return r->arena.failed ? pp_complain(r->args, PP_EXIT_INTERNAL, "no memory") : code;
}

static int read_run(const struct pp_args *args, struct run *r)
{
	struct pp_error err = {0};
	int code;

	*r = (struct run){.args = args, .arena = PP_ARENA(1 << 20)};
	if (pp_launch_read(pp_bench_variable, &r->launch, &err))
		return pp_complain(args, PP_EXIT_USAGE, "%s", err.text);
	code = check_role(args, &r->launch);
	code = code ? code : read_peers(r);
	code = code ? code : pp_bench_options_read(args, &r->options);
	if (!code && pp_policy_load(pp_args_get(args, "policy"), &r->policy, &err))
		code = pp_complain(args, PP_EXIT_INPUT, "%s", err.text);
	if (!code)
		code = find_token(r);
	r->agents = (struct pp_agent_options){.registry = pp_trace_soft_ask,
					      .link = pp_trace_soft_link,
					      .other = pp_library_agent_answer,
					      .other_arg = r->token};
	r->options.stopped = pp_interrupted;
	if (isatty(STDERR_FILENO) && !is_rank(r))
		r->options.progress = progress;
	return code;
}

static struct pp_party_options party_of(const struct run *r)
{
	size_t n = pp_args_operands(r->args);
	bool others = n || is_launched(r) || pp_args_has(r->args, "listen");

	return (struct pp_party_options){
		.peers = r->peers,
		.n_peers = (unsigned int)n,
		.local = others ? 1 : 2,
		.launch = is_launched(r) ? &r->launch : NULL,
		.listen = r->listen,
		.token = r->token,
		.service = {.agent = pp_agent_serve, .record = pp_bench_record, .arg = &r->agents},
		.stopped = pp_interrupted,
		.say = say,
	};
}

static int write_page(struct run *r, const struct pp_bench *b, const struct pp_transfer *t)
{
	const char *file = pp_args_get(r->args, "html");
	PP_AUTO_BUF struct pp_buf content = PP_BUF((size_t)16 << 20);
	PP_AUTO_FREE char *page = NULL;
	struct pp_error err = {0};
	int e;

	if (!file || !b->n_pairs)
		return 0;
	e = pp_page_bench(b, t, pp_policy_margins(r->policy), &page);
	if (!e) {
		pp_buf_str(&content, page);
		e = pp_output_write(file, &content, pp_args_has(r->args, "force"), &err);
	}
	return e ? pp_complain(r->args, e == -EEXIST ? PP_EXIT_USAGE : PP_EXIT_INTERNAL,
			       "--html %s: %s", file, err.text[0] ? err.text : strerror(-e))
		 : 0;
}

static int exit_of(const struct run *r, const struct pp_bench *b, const struct pp_transfer *t)
{
	if (pp_interrupted())
		return PP_EXIT_INTERRUPTED;
	if (b->simulated)
		return t->passed ? PP_EXIT_PASS : PP_EXIT_BAD;
	return pp_exit_of(r->args, t->verdict);
}

/* The document is written whatever the run came to: what was measured is never lost. */
static int report(struct run *r, const struct pp_bench *b)
{
	const struct pp_margins *margins = pp_policy_margins(r->policy);
	struct pp_known_set *known = NULL;
	struct pp_transfer t = {0};
	struct pp_error err = {0};
	struct pp_session s;
	int code = pp_session_open_output(r->args, &s);

	if (!code && pp_known_load(NULL, &known, &err))
		code = pp_complain(r->args, PP_EXIT_INTERNAL, "%s", err.text);
	if (!code && pp_transfer_judge(b, margins, known, NULL, &t))
		code = pp_complain(r->args, PP_EXIT_INTERNAL, "no memory");
	if (!code) {
		pp_bench_emit(s.out, b, &t, margins);
		s.answered = true;
		code = write_page(r, b, &t);
		code = code ? code : exit_of(r, b, &t);
	}
	code = pp_session_close(&s, code);
	pp_transfer_done(&t);
	pp_known_free(known);
	return code;
}

static int exit_of_gather(int error)
{
	switch (error) {
	case -EINTR:
		return PP_EXIT_INTERRUPTED;
	case -EINVAL:
		return PP_EXIT_USAGE;
	case -ENOMEM:
		return PP_EXIT_INTERNAL;
	default:
		return PP_EXIT_UNKNOWN;
	}
}

/* Who asked for JSON gets a document of a run that was none, with the reason; prove knows it. */
static void report_nothing(struct run *r, const char *why)
{
	struct pp_bench *b;

	if (!pp_args_has(r->args, "json") || pp_bench_new(&b))
		return;
	b->started = pp_clock_wall();
	b->version = PEERPATH_VERSION;
	b->simulated = r->options.simulate;
	b->ended = pp_interrupted() ? "interrupted" : pp_arena_str(b->arena, why);
	(void)report(r, b);
	pp_bench_free(b);
}

/* No run: in one line why not. */
static int give_up(struct run *r, int error, const char *why)
{
	bool hint = error == -ENODEV && !r->options.simulate;

	if (!pp_bench_child_tell(why) && exit_of_gather(error) != PP_EXIT_USAGE)
		report_nothing(r, why);
	return pp_complain(r->args, exit_of_gather(error), "%s%s", why,
			   hint ? "; 'peerpath check' says why, and --simulate exercises the chain "
				  "without one"
				: "");
}

static int coordinate(struct run *r)
{
	const struct pp_party_options o = party_of(r);
	struct pp_party *party = NULL;
	struct pp_bench *b = NULL;
	struct pp_error err = {0};
	int e = pp_party_gather(&o, &party, &err), kept = 0, code;

	if (e)
		return give_up(r, e, err.text);
	e = pp_bench_run(party, &r->options, &b, &err);
	if (!e)
		kept = pp_bench_keep(r->args, party);
	pp_party_free(party);
	code = e ? give_up(r, e, err.text) : report(r, b);
	pp_bench_free(b);
	return code ? code : kept;
}

static int serve(struct run *r)
{
	const struct pp_party_options o = party_of(r);
	struct pp_error err = {0};
	int e = is_rank(r) ? pp_party_serve_rank(&o, &err)
			   : pp_party_serve_listen(&o, pp_args_has(r->args, "once"), &err);

	return e ? pp_complain(r->args, exit_of_gather(e), "%s", err.text) : 0;
}

int pp_cmd_bench(const struct pp_args *args)
{
	struct run r;
	int code;

	pp_simulation_settle();
	code = read_run(args, &r);
	if (!code && r.options.simulate && !pp_simulation_inside())
		code = pp_simulation_enter(args);
	else if (!code)
		code = is_rank(&r) || pp_args_has(args, "listen") ? serve(&r) : coordinate(&r);
	pp_policy_free(r.policy);
	pp_arena_done(&r.arena);
	pp_bench_child_leave(args);
	pp_simulation_leave();
	return code;
}
