/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/prove_ranks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/parse.h"
#include "cli/interrupt.h"
#include "cli/library_agent.h"
#include "nccl/run.h"
#include "rdma/location.h"
#include "rdma/party.h"
#include "rdma/token.h"
#include "base/banned.h"

/* Gate 2 had these nodes a moment ago. Its ranks come when gate 2 has ended on theirs. */
static const pp_ns COME = 10 * PP_SECOND, COME_RANKS = 30 * PP_SECOND, LEAVE = 5 * PP_SECOND;
/* For the other ranks' last words, after rank 0's. */
static const pp_ns WORDS = 60 * PP_SECOND;

struct course {
	const struct pp_args *args;
	const struct pp_launch *launch;
	struct pp_prove_library *l;
	struct pp_party *party;
	struct pp_channel **channel; /* by node; NULL: none for this arm */
	const char **peers;
	char token[PP_TOKEN_MOST + 1];
	char name[64];
	bool lost; /* a node: no further arm begins */
	struct pp_nccl_runs runs;
	struct pp_arena arena;
};

static bool is_launched(const struct pp_launch *launch)
{
	return launch->by && launch->size > 1;
}

/* The same as gate 2's. */
static int find_token(const struct pp_args *args, const struct pp_launch *launch, char *ret)
{
	const char *file = pp_args_get(args, "token-file");
	struct pp_error err = {0};
	int e = pp_token_find(file, launch, ret, &err);

	return e ? pp_complain(args, PP_EXIT_USAGE, "%s", err.text) : 0;
}

static const char *address_of(struct course *c, const char *text)
{
	const char *port = pp_args_get(c->args, "port");
	struct pp_location at;
	struct pp_error err;

	if (!port || pp_location_parse(text, 0, &at, &err) || at.port)
		return text;
	return pp_arena_printf(&c->arena, strchr(at.host, ':') ? "[%s]:%s" : "%s:%s", at.host,
			       port);
}

static int open_course(const struct pp_args *args, const struct pp_launch *launch, struct course *c)
{
	size_t n = pp_args_count(args, "peer");

	*c = (struct course){.args = args, .launch = launch, .arena = PP_ARENA(1 << 20)};
	c->peers = pp_arena_array(&c->arena, n + 1, sizeof(*c->peers));
	for (size_t i = 0; c->peers && i < n; i++)
		c->peers[i] = address_of(c, pp_args_nth(args, "peer", i));
	if (c->arena.failed)
		return pp_complain(args, PP_EXIT_INTERNAL, "no memory");
	return find_token(args, launch, c->token);
}

static struct pp_party_options party_of(struct course *c, pp_ns deadline)
{
	const char *port = pp_args_get(c->args, "port");
	bool launched = is_launched(c->launch);

	return (struct pp_party_options){
		.peers = c->peers,
		.n_peers = launched ? 0 : (unsigned int)pp_args_count(c->args, "peer"),
		.local = 1,
		.launch = launched ? c->launch : NULL,
		.listen = launched && port ? pp_arena_printf(&c->arena, ":%s", port) : NULL,
		.token = c->token,
		.deadline = deadline,
		.service = {.agent = pp_library_agent_serve, .arg = c->token},
		.stopped = pp_interrupted,
	};
}

static void close_course(struct course *c)
{
	for (unsigned int i = 0; c->channel && i < pp_party_size(c->party); i++)
		(void)pp_channel_free(c->channel[i]);
	free(c->channel);
	c->party = pp_party_free(c->party);
	pp_nccl_runs_done(&c->runs);
	pp_arena_done(&c->arena);
}

static void say_why(struct course *c, const char *who, const char *why)
{
	(void)snprintf(c->l->why, sizeof(c->l->why), "%s%.60s%s%.300s", who ? "node " : "",
		       who ? who : "", who ? ": " : "", why);
	pp_sanitize(c->l->why, false);
}

static int gather(struct course *c)
{
	struct pp_party_options o = party_of(c, is_launched(c->launch) ? COME_RANKS : COME);
	struct pp_error err = {0};
	char drawn[PP_TOKEN_MOST + 1];
	int e = pp_party_gather(&o, &c->party, &err);

	if (!e) {
		c->channel = calloc(pp_party_size(c->party), sizeof(struct pp_channel *));
		e = c->channel ? pp_token_draw(drawn, &err) : -ENOMEM;
	}
	if (e == -EINTR || pp_interrupted())
		return PP_EXIT_INTERRUPTED;
	/* Gate 2 was served by who does not listen any more. */
	if (e == -ECONNREFUSED || e == -ETIMEDOUT)
		(void)pp_error_prefix(&err, "a peer with --once serves gate 2 alone");
	if (e) {
		say_why(c, NULL, err.text[0] ? err.text : strerror(-e));
		return 0;
	}
	/* A name of its own: another run between these nodes has other ports. */
	(void)snprintf(c->name, sizeof(c->name), "prove-%.16s", drawn);
	return 0;
}

static struct pp_library_job job_of(const struct course *c, const char *arm)
{
	return (struct pp_library_job){
		.arm = arm,
		.busy_ok = pp_args_has(c->args, "busy-ok"),
		.gpu = pp_args_get(c->args, "gpu"),
		.sizes = pp_args_get(c->args, "size"),
		.logs = c->l->logs.path[0] ? c->l->logs.path : NULL,
		.size = pp_party_size(c->party),
		.coordinator = "127.0.0.1",
		.token = c->token,
		.name = c->name,
	};
}

/* False: it did not begin, and l->why says why. */
static bool begin_one(struct course *c, unsigned int i, struct pp_library_job job)
{
	PP_AUTO_BUF struct pp_buf text = PP_BUF(4096);
	struct pp_json j = PP_JSON(&text, false);
	struct pp_error err = {0};
	int e = pp_party_agent(c->party, i, &c->channel[i], &err);

	job.rank = i;
	pp_library_agent_write(&j, &job);
	if (!e)
		e = pp_channel_send(c->channel[i], pp_buf_text(&text), text.len, &err);
	if (e)
		say_why(c, NULL, err.text);
	return !e;
}

/* What the rank came to, in l->why where it is the cause that there is no document. */
static void end_one(struct course *c, unsigned int i, bool failed)
{
	struct pp_error err = {0};
	json_t *answer = NULL;
	const char *text;
	int e = pp_channel_receive(c->channel[i], pp_clock_monotonic() + WORDS, pp_interrupted,
				   &answer, &err);

	text = json_string_value(json_object_get(answer, "text"));
	if (e) {
		text = err.text;
		c->lost = true;
	} else if (json_is_true(json_object_get(answer, "ok")) &&
		   !json_integer_value(json_object_get(answer, "status")))
		text = NULL;
	if (failed && text && *text)
		say_why(c, pp_party_node(c->party, i)->id, text);
	json_decref(answer);
	c->channel[i] = pp_channel_free(c->channel[i]);
}

static int take_document(struct course *c, const struct pp_library_done *d, enum pp_nccl_arm arm)
{
	struct pp_nccl_runs one = {{NULL}};
	struct pp_error err = {0};
	int e = pp_nccl_runs_read(d->document, d->len, &one, &err);

	if (!e && one.arm[arm])
		c->runs.arm[arm] = pp_take(one.arm[arm]);
	else
		say_why(c, NULL, e ? err.text : "nccl run gave another arm's document");
	pp_nccl_runs_done(&one);
	return c->runs.arm[arm] ? 0 : -EBADMSG;
}

/* 0: it ran; 1: it did not, and l->why says why; else an exit code. */
static int run_arm(struct course *c, enum pp_nccl_arm arm)
{
	struct pp_library_job job = job_of(c, pp_nccl_arm_name(arm));
	struct pp_library_done d = {0};
	unsigned int n = pp_party_size(c->party), begun = 1;
	int e = -ECANCELED;

	while (begun < n && begin_one(c, begun, job))
		begun++;
	if (begun == n) {
		e = pp_library_child_run(&job, &d);
		if (e)
			say_why(c, NULL, strerror(-e));
		else if (!d.document)
			say_why(c, NULL, d.why);
		else
			e = take_document(c, &d, arm);
	}
	/* The word of who could not take part is nearer to the cause than that rank 0 missed it. */
	for (unsigned int i = 1; i < begun; i++)
		end_one(c, i, !c->runs.arm[arm]);
	free(d.document);
	if (pp_interrupted() || d.status == PP_EXIT_INTERRUPTED)
		return PP_EXIT_INTERRUPTED;
	return c->runs.arm[arm] ? 0 : 1;
}

static int take_all(struct course *c)
{
	struct pp_buf text = PP_BUF((size_t)64 << 20);
	struct pp_json j = PP_JSON(&text, true);
	struct pp_error err = {0};

	pp_nccl_runs_write(&j, &c->runs);
	pp_buf_char(&text, '\n');
	pp_buf_char(&text, '\0');
	if (text.failed) {
		pp_buf_done(&text);
		return pp_complain(c->args, PP_EXIT_INTERNAL, "no memory");
	}
	if (pp_prove_library_take(c->l, text.data, text.len - 1, &err))
		say_why(c, NULL, err.text);
	return 0;
}

static int run_arms(struct course *c)
{
	static const enum pp_nccl_arm arms[] = {PP_NCCL_ARM_UNCHANGED, PP_NCCL_ARM_A, PP_NCCL_ARM_B,
						PP_NCCL_ARM_C};
	size_t n = PP_ARRAY_LEN(arms);
	int code = 0;

	(void)fprintf(stderr,
		      "gate 3: %zu runs of NCCL on %u nodes, at most %zu minutes; with each the "
		      "next\n",
		      n, pp_party_size(c->party), n * PP_LIBRARY_ARM_MINUTES);
	for (size_t i = 0; !code && !c->lost && i < n; i++)
		code = run_arm(c, arms[i]);
	/* A control that could not be run leaves what was seen of the others. */
	return code == 1 && c->runs.arm[PP_NCCL_ARM_UNCHANGED] ? 0 : code;
}

int pp_prove_ranks_run(const struct pp_args *args, const struct pp_launch *launch,
		       struct pp_prove_library *l)
{
	struct course c;
	int code = open_course(args, launch, &c);

	c.l = l;
	code = code ? code : gather(&c);
	if (!code && c.party && !l->why[0]) {
		code = run_arms(&c);
		if (!code)
			code = take_all(&c);
		if (!code)
			code = pp_prove_library_logs(args, c.token, l);
		code = code == 1 ? 0 : code;
	}
	close_course(&c);
	return code;
}

void pp_prove_ranks_dismiss(const struct pp_args *args, const struct pp_launch *launch)
{
	struct pp_error err = {0};
	struct course c;

	if (!is_launched(launch))
		return;
	if (!open_course(args, launch, &c)) {
		struct pp_party_options o = party_of(&c, LEAVE);

		(void)pp_party_gather(&o, &c.party, &err);
	}
	close_course(&c);
}

int pp_prove_ranks_serve(const struct pp_args *args, const struct pp_launch *launch)
{
	struct pp_error err = {0};
	struct course c;
	int code = open_course(args, launch, &c), e = 0;

	if (!code) {
		struct pp_party_options o = party_of(&c, COME_RANKS);

		e = pp_party_serve_rank(&o, &err);
	}
	if (e)
		code = e == -EINTR || e == -ECANCELED
			       ? PP_EXIT_INTERRUPTED
			       : pp_complain(args, PP_EXIT_UNKNOWN, "gate 3: %s", err.text);
	close_course(&c);
	return code;
}
