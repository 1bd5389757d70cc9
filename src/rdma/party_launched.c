/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that a launcher started: rank 0 listens where all ranks know to look, the others come. */
#include "rdma/party_state.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "rdma/channel_state.h"
#include "rdma/location.h"
#include "base/banned.h"

#define AGENT_LIMIT (10 * PP_SECOND)

static int send_order(struct pp_party *p, struct pp_party_member *m, enum pp_keeper_kind kind,
		      uint64_t number, struct pp_error *err)
{
	char text[128];
	int n = snprintf(text, sizeof(text), "{\"do\":\"agent\",\"kind\":\"%s\",\"number\":%llu}",
			 pp_keeper_kind_name(kind), (unsigned long long)number);

	(void)p;
	return pp_channel_send(m->control, text, (size_t)n, err);
}

static bool is_the_one(const struct pp_party *p, const struct pp_channel *c,
		       enum pp_keeper_kind kind, uint64_t number)
{
	const json_t *i = pp_channel_introduction(c);
	const char *what = json_string_value(json_object_get(i, "for"));
	const char *run = json_string_value(json_object_get(i, "run"));

	return what && run && strcmp(what, pp_keeper_kind_name(kind)) == 0 &&
	       strcmp(run, p->run) == 0 &&
	       (uint64_t)json_integer_value(json_object_get(i, "number")) == number;
}

static int open_launched(struct pp_party *p, struct pp_party_member *m, enum pp_keeper_kind kind,
			 struct pp_channel **ret, struct pp_error *err)
{
	pp_ns deadline = pp_clock_monotonic() + AGENT_LIMIT;
	uint64_t number = p->agents++;
	struct pp_channel *c = NULL;
	int r = send_order(p, m, kind, number, err);

	m->fate[0] = '\0';
	while (!r) {
		r = pp_gate_wait(p->gate, pp_clock_monotonic() + PP_SILENCE_LOOK, p->stopped, &c,
				 err);
		if (!r && is_the_one(p, c, kind, number)) {
			*ret = c;
			return 0;
		}
		if (!r)
			c = pp_channel_free(c);
		if (r == -ETIMEDOUT && pp_clock_monotonic() < deadline) {
			r = 0;
			(void)pp_party_hear(m, 0, NULL);
			if (m->fate[0])
				return pp_error_set(err, -ECONNRESET, "%s", m->fate);
		}
	}
	return r == -ETIMEDOUT ? pp_error_set(err, r, "its agent has not come") : r;
}

static int listen_at(const struct pp_party_options *o, int *ret_fd, struct pp_error *err)
{
	struct pp_location given;
	uint16_t port;
	char text[16];
	int r;

	if (o->listen)
		return pp_channel_listen(o->listen, ret_fd, &port, err);
	r = pp_location_parse(o->launch->coordinator, 0, &given, err);
	if (r)
		return r;
	r = -EADDRINUSE;
	for (unsigned int i = 0; i < PP_LAUNCH_PORTS && r == -EADDRINUSE; i++) {
		(void)snprintf(text, sizeof(text), ":%u",
			       given.port ? given.port : pp_launch_port(o->launch, i));
		r = pp_channel_listen(text, ret_fd, &port, err);
	}
	return r;
}

static int open_gate(struct pp_party *p, const struct pp_party_options *o, struct pp_error *err)
{
	const struct pp_party_introduction i = {
		.what = "coordinator", .run = p->run, .size = o->launch->size};
	struct pp_buf buf PP_AUTO_BUF = PP_BUF(PP_CHANNEL_INTRODUCTION);
	struct pp_gate_options g = {
		.token = p->token, .refused = pp_party_refused, .arg = &p->strangers};
	int fd = -1, r = listen_at(o, &fd, err);

	if (r)
		return r;
	pp_party_introduce(&i, &buf);
	g.introduction = pp_buf_text(&buf);
	return pp_gate_new(fd, &g, &p->gate, err);
}

/* Whether it is a rank that is awaited; if not, why. @c is taken. */
static void admit(struct pp_party *p, const struct pp_launch *launch, struct pp_channel *c,
		  unsigned int *missing)
{
	const json_t *i = pp_channel_introduction(c);
	const char *what = json_string_value(json_object_get(i, "for"));
	json_int_t rank = json_integer_value(json_object_get(i, "rank"));
	json_int_t size = json_integer_value(json_object_get(i, "size"));
	struct pp_party_member *m;
	struct pp_error err;
	const char *why = NULL;

	if (!what || strcmp(what, "rank") != 0)
		why = "{\"ok\":false,\"text\":\"rank 0 waits for ranks\"}";
	else if (size != launch->size || rank < 1 || rank >= size)
		why = "{\"ok\":false,\"text\":\"rank 0 has another number of ranks\"}";
	else if (p->member[rank].control)
		why = "{\"ok\":false,\"text\":\"rank 0 has a process of this rank already\"}";
	if (why || pp_channel_send(c, "{\"ok\":true}", 11, &err)) {
		if (why)
			(void)pp_channel_send(c, why, strlen(why), &err);
		(void)pp_channel_free(c);
		return;
	}
	m = &p->member[rank];
	m->control = c;
	pp_party_meet(m);
	(*missing)--;
}

static int missing_ranks(const struct pp_party *p, unsigned int missing, pp_ns began,
			 struct pp_error *err)
{
	char who[128] = "";
	size_t len = 0;

	for (unsigned int i = 1; i < p->n && len < sizeof(who) - 16; i++)
		if (!p->member[i].control)
			len += (size_t)snprintf(who + len, sizeof(who) - len, "%s%u",
						len ? ", " : "", i);
	return pp_error_set(
		err, -ETIMEDOUT,
		"%u of %u nodes have not come in %d s (rank %s): did they start, and do "
		"they reach this host? PEERPATH_COORDINATOR=HOST:PORT names another way",
		missing, p->n, (int)((pp_clock_monotonic() - began) / PP_SECOND), who);
}

int pp_party_gather_launched(struct pp_party *p, const struct pp_party_options *options,
			     pp_ns deadline, struct pp_error *err)
{
	pp_ns began = pp_clock_monotonic(), said = began;
	unsigned int missing = options->launch->size - 1;
	struct pp_channel *c;
	char text[64];
	int r;

	while (p->n < options->launch->size)
		pp_party_add(p)->open = open_launched;
	r = missing ? open_gate(p, options, err) : 0;
	while (!r && missing) {
		pp_ns turn = pp_clock_monotonic() + PP_SECOND;

		r = pp_gate_wait(p->gate, turn < deadline ? turn : deadline, p->stopped, &c, err);
		if (!r)
			admit(p, options->launch, c, &missing);
		if (r != -ETIMEDOUT)
			continue;
		if (pp_clock_monotonic() >= deadline)
			return missing_ranks(p, missing, began, err);
		(void)snprintf(text, sizeof(text), "waiting for %u of %u nodes", missing, p->n);
		if (p->say && pp_clock_monotonic() - said > 5 * PP_SECOND) {
			p->say(text);
			said = pp_clock_monotonic();
		}
		r = 0;
	}
	return r;
}
