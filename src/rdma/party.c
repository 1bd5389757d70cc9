/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/party_state.h"

#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/parse.h"
#include "rdma/channel_state.h"
#include "rdma/record.h"
#include "rdma/token.h"
#include "base/banned.h"

#define GATHER_LIMIT (30 * PP_SECOND)
#define NEWS_LIMIT   (PP_SECOND)

struct pp_party_member *pp_party_add(struct pp_party *p)
{
	struct pp_party_member *m = &p->member[p->n++];

	m->hand = -1;
	return m;
}

static int check(const struct pp_party_options *o, struct pp_error *err)
{
	unsigned int n = o->n_peers + o->local;

	if (!o->local)
		return pp_error_set(err, -EINVAL, "a party without a node here");
	if (n < o->local || n > PP_PARTY_NODES || (o->launch && o->launch->size > PP_PARTY_NODES))
		return pp_error_set(err, -EINVAL, "more than %d nodes", PP_PARTY_NODES);
	if (o->launch && (o->n_peers || o->local != 1))
		return pp_error_set(err, -EINVAL, "launched, and peers are named too");
	if (o->launch && o->launch->rank)
		return pp_error_set(err, -EINVAL, "rank %u is not the coordinator",
				    o->launch->rank);
	if ((o->n_peers || o->launch) && !o->token)
		return pp_error_set(err, -EINVAL, "other nodes need a token");
	return o->n_peers || o->launch ? pp_token_check(o->token, err) : 0;
}

static int make(const struct pp_party_options *o, unsigned int n, struct pp_party **ret,
		struct pp_error *err)
{
	struct pp_party *p = calloc(1, sizeof(*p));
	uint8_t run[(PP_KEEPER_RUN - 1) / 2];

	if (sodium_init() < 0) {
		free(p);
		return pp_error_set(err, -EIO, "no random numbers");
	}
	if (!p || !(p->member = calloc(n, sizeof(*p->member))) ||
	    (o->token && !(p->token = strdup(o->token)))) {
		(void)pp_party_free(p);
		return pp_error_set(err, -ENOMEM, "no memory for %u nodes", n);
	}
	randombytes_buf(run, sizeof(run));
	(void)sodium_bin2hex(p->run, sizeof(p->run), run, sizeof(run));
	p->service = o->service;
	p->stopped = o->stopped;
	p->say = o->say;
	p->strangers.say = o->say;
	*ret = p;
	return 0;
}

int pp_party_gather(const struct pp_party_options *options, struct pp_party **ret,
		    struct pp_error *err)
{
	pp_ns deadline =
		pp_clock_monotonic() + (options->deadline ? options->deadline : GATHER_LIMIT);
	struct pp_party *p = NULL;
	int r = check(options, err);

	if (!r)
		r = make(options,
			 options->launch ? options->launch->size
					 : options->n_peers + options->local,
			 &p, err);
	/* Those here first: what is opened later, they do not inherit. */
	if (!r)
		r = pp_party_gather_here(p, options->local, err);
	if (!r && options->n_peers)
		r = pp_party_gather_dialled(p, options->peers, options->n_peers, deadline, err);
	if (!r && options->launch)
		r = pp_party_gather_launched(p, options, deadline, err);
	if (r) {
		(void)pp_party_free(p);
		return r;
	}
	pp_party_name(p);
	*ret = p;
	return 0;
}

unsigned int pp_party_size(const struct pp_party *p)
{
	return p->n;
}

const struct pp_party_node *pp_party_node(const struct pp_party *p, unsigned int i)
{
	return &p->member[i].node;
}

int pp_party_agent(struct pp_party *p, unsigned int i, struct pp_channel **ret,
		   struct pp_error *err)
{
	struct pp_party_member *m = &p->member[i];
	int r = m->open(p, m, PP_KEEPER_AGENT, ret, err);

	return r ? pp_error_prefix(err, "node %s", m->node.id), r : 0;
}

int pp_party_record(struct pp_party *p, unsigned int i, char **ret, size_t *ret_len,
		    struct pp_error *err)
{
	struct pp_party_member *m = &p->member[i];
	struct pp_channel *c = NULL;
	int r = m->open(p, m, PP_KEEPER_RECORD, &c, err);

	if (!r)
		r = pp_record_receive(c, p->stopped, ret, ret_len, err);
	(void)pp_channel_free(c);
	return r ? pp_error_prefix(err, "node %s", m->node.id), r : 0;
}

bool pp_party_hear(struct pp_party_member *m, pp_ns deadline, bool (*stopped)(void))
{
	const char *event, *text;
	struct pp_error err;
	json_t *news = NULL;
	int r = pp_channel_receive(m->control, deadline, stopped, &news, &err);

	if (r && r != -ETIMEDOUT && r != -EINTR && !m->fate[0])
		(void)snprintf(m->fate, sizeof(m->fate), "node %s",
			       m->control->silence.gone ? "does not answer any more"
							: "has ended its connection");
	if (r)
		return false;
	event = json_string_value(json_object_get(news, "event"));
	text = json_string_value(json_object_get(news, "text"));
	if (event && text && *text)
		(void)snprintf(m->fate, sizeof(m->fate), "%s %s",
			       strcmp(event, "gone") == 0 ? "node" : "agent", text);
	json_decref(news);
	return true;
}

void pp_party_fate(struct pp_party *p, unsigned int i, char *ret, size_t size)
{
	struct pp_party_member *m = &p->member[i];
	pp_ns deadline = pp_clock_monotonic() + NEWS_LIMIT;

	/* What is there already, the last of it counts; else what comes soon. */
	for (int n = 0; n < 1000 && pp_party_hear(m, 0, NULL); n++)
		continue;
	if (!m->fate[0])
		(void)pp_party_hear(m, deadline, p->stopped);
	(void)snprintf(ret, size, "%s", m->fate);
	pp_sanitize(ret, false);
	m->fate[0] = '\0';
}

bool pp_party_lost(struct pp_party *p, unsigned int *ret_i, char *ret, size_t size)
{
	static const char node[] = "node ";

	for (unsigned int i = 0; i < p->n; i++) {
		struct pp_party_member *m = &p->member[i];

		for (int n = 0; m->control && n < 1000 && pp_party_hear(m, 0, NULL); n++)
			continue;
		if (strncmp(m->fate, node, sizeof(node) - 1) != 0)
			continue;
		(void)snprintf(ret, size, "%s", m->fate);
		pp_sanitize(ret, false);
		*ret_i = i;
		return true;
	}
	return false;
}

/* Until its connection ends; of what it says meanwhile only what stays behind matters. */
static void wait_end(const struct pp_party *p, struct pp_party_member *m, pp_ns deadline)
{
	const char *event, *what;
	char text[640];
	struct pp_error err;
	json_t *news = NULL;

	while (pp_channel_receive(m->control, deadline, NULL, &news, &err) == 0) {
		event = json_string_value(json_object_get(news, "event"));
		what = json_string_value(json_object_get(news, "text"));
		(void)snprintf(text, sizeof(text), "node %s: an agent %.500s", m->node.id,
			       what ? what : "");
		pp_sanitize(text, false);
		if (p->say && event && strcmp(event, "left") == 0)
			p->say(text);
		json_decref(news);
		if (pp_clock_monotonic() >= deadline)
			return;
	}
}

static void wait_child(pid_t pid, pp_ns deadline)
{
	while (waitpid(pid, NULL, WNOHANG) == 0) {
		if (pp_clock_monotonic() >= deadline) {
			(void)kill(pid, SIGKILL);
			(void)waitpid(pid, NULL, 0);
			return;
		}
		(void)pp_channel_wait(-1, 0, pp_clock_monotonic() + PP_MILLISECOND, NULL);
	}
}

/* Did one vanish? Then most of the time in which all is to end has gone by. */
static bool is_late(const struct pp_party *p)
{
	for (unsigned int i = 0; i < p->n; i++)
		if (p->member[i].control && p->member[i].control->silence.gone)
			return true;
	return false;
}

static const char *last_order(const struct pp_party *p, bool late)
{
	if (p->stopped && p->stopped())
		return "{\"do\":\"end\",\"why\":\"was interrupted\"}";
	return late ? "{\"do\":\"end\",\"hurry\":true}" : "{\"do\":\"end\"}";
}

struct pp_party *pp_party_free(struct pp_party *p)
{
	struct pp_error err;
	const char *end;
	pp_ns deadline;
	bool late;

	if (!p)
		return NULL;
	late = is_late(p);
	end = last_order(p, late);
	deadline = pp_clock_monotonic() + pp_ending_wait(late ? PP_SILENCE_WORST : 0);
	for (unsigned int i = 0; i < p->n; i++) {
		if (!p->member[i].control)
			continue;
		(void)pp_channel_send(p->member[i].control, end, strlen(end), &err);
		(void)shutdown(pp_channel_fd(p->member[i].control), SHUT_WR);
	}
	for (unsigned int i = 0; i < p->n; i++) {
		struct pp_party_member *m = &p->member[i];

		if (m->control)
			wait_end(p, m, deadline);
		m->control = pp_channel_free(m->control);
		free(m->dialled);
		if (m->hand >= 0)
			(void)close(m->hand);
		if (m->keeper > 0)
			wait_child(m->keeper, deadline);
	}
	(void)pp_gate_free(p->gate);
	if (p->token)
		sodium_memzero(p->token, strlen(p->token));
	free(p->token);
	free(p->member);
	free(p);
	return NULL;
}
