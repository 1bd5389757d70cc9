/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/nccl_run_party.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/interrupt.h"
#include "cli/nccl_run.h"
#include "cli/output.h"
#include "base/banned.h"

/* For all to come, and for rank 0 to let them begin. */
static const pp_ns COME = 30 * PP_SECOND, BEGIN = 90 * PP_SECOND;
/* Of rank 0, once we were told to end. */
static const pp_ns LEAVE = 25 * PP_SECOND;
enum { TURN_MS = 20 };

bool pp_nccl_ranks_many(const struct pp_nccl_ranks *r)
{
	return r->launch.by && r->launch.size > 1;
}

static const char *variable(const char *name)
{
	return getenv(name);
}

int pp_nccl_ranks_read(struct pp_nccl_running *c)
{
	struct pp_nccl_ranks *r = &c->ranks;
	const char *file = pp_args_get(c->args, "token-file");
	struct pp_error err = {0};
	int e;

	r->wide = true;
	if (pp_launch_read(variable, &r->launch, &err))
		return pp_complain(c->args, PP_EXIT_USAGE, "%s", err.text);
	if (!pp_nccl_ranks_many(r))
		return 0;
	if (c->n_arms > 1)
		return pp_complain(c->args, PP_EXIT_USAGE,
				   "under %s a job starts once: one arm a launch, each with "
				   "--arm and --output, then nccl run --join",
				   r->launch.by);
	e = pp_token_find(file, &r->launch, r->token, &err);
	return e ? pp_complain(c->args, PP_EXIT_USAGE, "%s", err.text) : 0;
}

static void say(const char *text)
{
	(void)fprintf(stderr, "peerpath nccl run: %s\n", text);
}

static bool never(void)
{
	return false;
}

static struct pp_party_options party_of(const struct pp_nccl_running *c)
{
	return (struct pp_party_options){
		.local = 1,
		.launch = &c->ranks.launch,
		.token = c->ranks.token,
		.deadline = COME,
		.service = {.agent = pp_nccl_agent_serve},
		.stopped = pp_interrupted,
		.say = c->ranks.launch.rank ? NULL : say,
	};
}

/* The first rank of a host looks at the whole of it. */
static bool is_first(const struct pp_party *p, unsigned int rank)
{
	for (unsigned int i = 0; i < rank; i++)
		if (!strcmp(pp_party_node(p, i)->host, pp_party_node(p, rank)->host))
			return false;
	return true;
}

static int begin_one(struct pp_nccl_ranks *r, unsigned int rank, struct pp_error *err)
{
	char text[64];
	json_t *answer = NULL;
	int n = snprintf(text, sizeof(text), "{\"do\":\"start\",\"wide\":%s}",
			 is_first(r->party, rank) ? "true" : "false");
	int e = pp_party_agent(r->party, rank, &r->channel[rank], err);

	if (!e)
		e = pp_channel_send(r->channel[rank], text, (size_t)n, err);
	if (!e)
		e = pp_channel_receive(r->channel[rank], pp_clock_monotonic() + COME,
				       pp_interrupted, &answer, err);
	if (!e && !json_is_true(json_object_get(answer, "ok")))
		e = pp_error_set(err, -EREMOTEIO, "it cannot begin");
	json_decref(answer);
	return e;
}

/* Nobody begins before all are there: else one would wait for the others inside of its job. */
static int gather(struct pp_nccl_running *c)
{
	const struct pp_party_options o = party_of(c);
	struct pp_nccl_ranks *r = &c->ranks;
	struct pp_error err = {0};
	unsigned int rank = 0;
	int e = pp_party_gather(&o, &r->party, &err);

	if (!e) {
		r->channel = calloc(r->launch.size, sizeof(struct pp_channel *));
		e = r->channel ? 0 : pp_error_set(&err, -ENOMEM, "out of memory");
	}
	for (rank = 1; !e && rank < r->launch.size; rank++) {
		e = begin_one(r, rank, &err);
		if (e)
			(void)pp_error_prefix(&err, "rank %u", rank);
	}
	if (!e)
		return 0;
	return pp_complain(c->args,
			   e == -EINTR	  ? PP_EXIT_INTERRUPTED
			   : e == -ENOMEM ? PP_EXIT_INTERNAL
					  : PP_EXIT_UNKNOWN,
			   "%s", err.text);
}

static PP_NORETURN void keep(struct pp_nccl_running *c, const char *dir, pid_t parent)
{
	const struct pp_nccl_agent agent = {.dir = dir, .owner = parent};
	struct pp_party_options o = party_of(c);
	struct pp_error err = {0};
	int e;

	/* It lasts as long as its parent, whoever is told to end. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGINT, SIG_IGN);
	if (getppid() != parent)
		_exit(1);
	o.service.arg = &agent;
	o.stopped = never;
	e = pp_party_serve_rank(&o, &err);
	if (e)
		(void)pp_complain(c->args, 0, "rank %u: %s", c->ranks.launch.rank, err.text);
	_exit(e ? 1 : 0);
}

static bool keeper_lives(struct pp_nccl_ranks *r)
{
	if (r->keeper > 0 && waitpid(r->keeper, NULL, WNOHANG) == r->keeper)
		r->keeper = 0;
	return r->keeper > 0;
}

/* False: not yet. */
static bool may_begin(struct pp_nccl_ranks *r, const char *dir)
{
	char path[PATH_MAX], word[4] = "";
	int fd;

	(void)snprintf(path, sizeof(path), "%s/" PP_NCCL_GO, dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	r->wide = read(fd, word, sizeof(word)) == (ssize_t)sizeof(word) &&
		  !memcmp(word, "wide", sizeof(word));
	(void)close(fd);
	return true;
}

static int come(struct pp_nccl_running *c, const char *dir)
{
	pp_ns deadline = pp_clock_monotonic() + BEGIN;
	struct pp_nccl_ranks *r = &c->ranks;
	pid_t parent = getpid();

	(void)signal(SIGCHLD, SIG_DFL);
	(void)fflush(NULL);
	r->keeper = fork();
	if (!r->keeper)
		keep(c, dir, parent);
	if (r->keeper < 0)
		return pp_complain(c->args, PP_EXIT_INTERNAL, "fork: %s", strerror(errno));
	while (!may_begin(r, dir)) {
		if (pp_interrupted())
			return PP_EXIT_INTERRUPTED;
		if (!keeper_lives(r)) /* it has said why */
			return PP_EXIT_UNKNOWN;
		if (pp_clock_monotonic() > deadline)
			return pp_complain(c->args, PP_EXIT_UNKNOWN,
					   "rank 0 did not let rank %u begin", r->launch.rank);
		(void)poll(NULL, 0, TURN_MS);
	}
	return 0;
}

int pp_nccl_ranks_join(struct pp_nccl_running *c, const char *dir)
{
	if (!pp_nccl_ranks_many(&c->ranks))
		return 0;
	return c->ranks.launch.rank ? come(c, dir) : gather(c);
}

int pp_nccl_ranks_report(struct pp_nccl_running *c, const char *dir, const struct pp_nccl_run *r)
{
	PP_AUTO_BUF struct pp_buf text = PP_BUF(PP_CHANNEL_MOST / 2);
	struct pp_json j = PP_JSON(&text, false);
	struct pp_error err = {0};
	char path[PATH_MAX];
	pp_ns until = 0;

	(void)snprintf(path, sizeof(path), "%s/" PP_NCCL_REPORT, dir);
	pp_nccl_run_write(&j, NULL, r);
	if (text.failed || pp_output_write(path, &text, /* force= */ true, &err))
		return pp_complain(c->args, PP_EXIT_INTERNAL, "no report: %s",
				   text.failed ? "out of memory" : err.text);
	/* Rank 0 ends the run, and so the keeper; a second signal ends us at once. */
	while (keeper_lives(&c->ranks)) {
		until = until ? until : pp_interrupted() ? pp_clock_monotonic() + LEAVE : 0;
		if (until && pp_clock_monotonic() > until)
			return PP_EXIT_INTERRUPTED;
		(void)poll(NULL, 0, TURN_MS);
	}
	return 0;
}

void pp_nccl_ranks_leave(struct pp_nccl_running *c)
{
	struct pp_nccl_ranks *r = &c->ranks;

	for (unsigned int i = 0; r->channel && i < r->launch.size; i++)
		(void)pp_channel_free(r->channel[i]);
	free(r->channel);
	r->channel = NULL;
	r->party = pp_party_free(r->party);
	if (keeper_lives(r)) {
		(void)kill(r->keeper, SIGKILL);
		(void)waitpid(r->keeper, NULL, 0);
	}
	r->keeper = 0;
}
