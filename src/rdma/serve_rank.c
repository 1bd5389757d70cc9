/* SPDX-License-Identifier: Apache-2.0 */
/* A rank other than 0: finds rank 0, and keeps its agents until the run has ended. */
#include "rdma/party_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "rdma/channel_state.h"
#include "rdma/location.h"
#include "rdma/token.h"
#include "base/banned.h"

#define GATHER_LIMIT (30 * PP_SECOND)
#define TURN	     (3 * PP_SECOND)
#define PAUSE	     (200 * PP_MILLISECOND)

enum { WRONG_ROUNDS = 5 };

int pp_party_keep(const struct pp_party_options *o, struct pp_channel *control,
		  const struct pp_keeper *way, struct pp_error *err)
{
	struct pp_keeper *k = calloc(1, sizeof(*k));
	int r;

	if (!k) {
		(void)pp_channel_free(control);
		return pp_error_set(err, -ENOMEM, "no memory for a run");
	}
	*k = *way;
	k->service = &o->service;
	k->control = control;
	k->hand = -1;
	k->stopped = o->stopped;
	k->say = o->say;
	r = pp_keeper_run(k, err);
	free(k);
	(void)pp_channel_free(control);
	return r;
}

/* What rank 0 says to a rank that has come. */
static int is_welcome(const struct pp_party_options *o, struct pp_channel *c, pp_ns deadline,
		      struct pp_error *err)
{
	json_t *m = NULL;
	const char *why;
	int r = pp_channel_receive(c, deadline, o->stopped, &m, err);

	if (r)
		return r;
	why = json_string_value(json_object_get(m, "text"));
	if (!json_is_true(json_object_get(m, "ok")))
		r = pp_error_set(err, -EPROTO, "rank %u is refused: %.200s", o->launch->rank,
				 why ? why : "?");
	pp_sanitize(err->text, false);
	json_decref(m);
	return r;
}

/* @text: an address that is good for one try. */
static int dial(const struct pp_party_options *o, const char *text, const char *introduction,
		pp_ns deadline, struct pp_channel **ret, struct pp_error *err)
{
	pp_ns turn = pp_clock_monotonic() + TURN;
	struct pp_channel_dial d = {.address = text,
				    .token = o->token,
				    .introduction = introduction,
				    .deadline = turn < deadline ? turn : deadline,
				    .once = true,
				    .stopped = o->stopped};

	return pp_channel_dial(&d, ret, err);
}

/* Another port, or another time, may be better. */
static bool may_come(int code)
{
	return code == -ECONNREFUSED || code == -ECONNRESET || code == -ETIMEDOUT ||
	       code == -EACCES || code == -EPROTO;
}

/*
 * Every port at which rank 0 may listen, once. Of several faults that counts which says most: who
 * answers but is another, rather than a port where nobody listens.
 */
static int try_ports(const struct pp_party_options *o, const struct pp_location *at,
		     const char *introduction, pp_ns deadline, struct pp_channel **ret,
		     struct pp_error *err)
{
	unsigned int ports = at->port ? 1 : PP_LAUNCH_PORTS;
	struct pp_error one = {0};
	char text[300];
	int worst = 0, r;

	for (unsigned int k = 0; k < ports; k++) {
		(void)snprintf(text, sizeof(text), strchr(at->host, ':') ? "[%s]:%u" : "%s:%u",
			       at->host, at->port ? at->port : pp_launch_port(o->launch, k));
		r = dial(o, text, introduction, deadline, ret, &one);
		if (!r)
			return 0;
		if (!may_come(r) || !worst || worst == -ECONNREFUSED) {
			worst = r;
			*err = one;
		}
		if (!may_come(r))
			break;
	}
	return worst;
}

static int find(const struct pp_party_options *o, pp_ns deadline, struct pp_channel **ret,
		struct pp_error *err)
{
	const struct pp_party_introduction i = {
		.what = "rank", .run = "", .rank = o->launch->rank, .size = o->launch->size};
	struct pp_buf buf PP_AUTO_BUF = PP_BUF(PP_CHANNEL_INTRODUCTION);
	unsigned int wrong = 0;
	struct pp_location at;
	int r = pp_location_parse(o->launch->coordinator, 0, &at, err);

	if (r)
		return r;
	pp_party_introduce(&i, &buf);
	for (;;) {
		r = try_ports(o, &at, pp_buf_text(&buf), deadline, ret, err);
		if (!r || !may_come(r))
			return r;
		wrong += r == -EACCES || r == -EPROTO;
		if (wrong == WRONG_ROUNDS || pp_clock_monotonic() + PAUSE >= deadline)
			return r;
		if (pp_channel_wait(-1, 0, pp_clock_monotonic() + PAUSE, o->stopped) == -EINTR)
			return pp_error_set(err, -EINTR, "interrupted while looking for rank 0");
	}
}

/* @way: an empty one; its run and the way to rank 0 by what that has said. */
static int join(const struct pp_party_options *o, struct pp_channel *c, struct pp_keeper *way,
		pp_ns deadline, struct pp_error *err)
{
	const char *run = json_string_value(json_object_get(pp_channel_introduction(c), "run"));
	int r = is_welcome(o, c, deadline, err);

	if (r)
		return r;
	if (!run || strlen(run) >= sizeof(way->run))
		return pp_error_set(err, -EPROTO, "%s is no rank 0", pp_channel_peer(c));
	(void)snprintf(way->run, sizeof(way->run), "%s", run);
	way->address = pp_channel_peer(c);
	way->token = o->token;
	return 0;
}

int pp_party_serve_rank(const struct pp_party_options *options, struct pp_error *err)
{
	pp_ns deadline =
		pp_clock_monotonic() + (options->deadline ? options->deadline : GATHER_LIMIT);
	struct pp_keeper *way PP_AUTO_FREE = calloc(1, sizeof(*way));
	struct pp_channel *c = NULL;
	int r = way ? pp_token_check(options->token, err)
		    : pp_error_set(err, -ENOMEM, "no memory for a run");

	if (!r)
		r = find(options, deadline, &c, err);
	if (r == -EHOSTUNREACH && options->launch->coordinator_by)
		return pp_error_prefix(err, "rank 0 by %s", options->launch->coordinator_by), r;
	if (r)
		return r;
	r = join(options, c, way, deadline, err);
	if (r) {
		(void)pp_channel_free(c);
		return r;
	}
	return pp_party_keep(options, c, way, err);
}
