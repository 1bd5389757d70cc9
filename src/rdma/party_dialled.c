/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes at which 'peerpath bench --listen' waits: the coordinator connects to each. */
#include "rdma/party_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "rdma/channel_state.h"
#include "base/banned.h"

/* One missing node must not take the time in which the others can be tried. */
#define TURN	    (2 * PP_SECOND)
#define PAUSE	    (200 * PP_MILLISECOND)
#define AGENT_LIMIT (10 * PP_SECOND)
#define READY_LIMIT (5 * PP_SECOND)

static int dial(struct pp_party *p, const char *address, const struct pp_party_introduction *i,
		struct pp_channel_dial *d, struct pp_channel **ret, struct pp_error *err)
{
	struct pp_buf buf PP_AUTO_BUF = PP_BUF(PP_CHANNEL_INTRODUCTION);

	pp_party_introduce(i, &buf);
	d->address = address;
	d->token = p->token;
	d->introduction = pp_buf_text(&buf);
	d->stopped = p->stopped;
	return pp_channel_dial(d, ret, err);
}

static int open_dialled(struct pp_party *p, struct pp_party_member *m, enum pp_keeper_kind kind,
			struct pp_channel **ret, struct pp_error *err)
{
	const struct pp_party_introduction i = {
		.what = pp_keeper_kind_name(kind), .run = p->run, .number = p->agents++};
	struct pp_channel_dial d = {
		.deadline = pp_clock_monotonic() + AGENT_LIMIT, .once = true, .beside = m->control};

	return dial(p, m->dialled, &i, &d, ret, err);
}

/* Its first word: whether it is free for us. */
static int is_ready(struct pp_party *p, struct pp_channel *c, struct pp_error *err)
{
	json_t *m = NULL;
	const char *why;
	int r = pp_channel_receive(c, pp_clock_monotonic() + READY_LIMIT, p->stopped, &m, err);

	if (r)
		return r;
	why = json_string_value(json_object_get(m, "text"));
	if (!json_is_true(json_object_get(m, "ok")))
		r = pp_error_set(err, -EBUSY, "%s is %.200s", pp_channel_peer(c),
				 why ? why : "not ready");
	pp_sanitize(err->text, false);
	json_decref(m);
	return r;
}

static int reach(struct pp_party *p, struct pp_party_member *m, pp_ns deadline, bool once,
		 struct pp_error *err)
{
	const struct pp_party_introduction i = {.what = "run", .run = p->run};
	struct pp_channel_dial d = {.deadline = deadline, .once = once};
	struct pp_channel *c = NULL;
	int r = dial(p, m->dialled, &i, &d, &c, err);

	if (!r)
		r = is_ready(p, c, err);
	if (r) {
		(void)pp_channel_free(c);
		return r;
	}
	m->control = c;
	pp_party_meet(m);
	return 0;
}

/* It may still come. */
static bool may_come(int code)
{
	return code == -ECONNREFUSED || code == -ETIMEDOUT || code == -ECONNRESET;
}

/* One round; returns how many are missing, and fails when one cannot come any more. */
static int round_once(struct pp_party *p, unsigned int first, pp_ns deadline, char why[384],
		      struct pp_error *err)
{
	unsigned int missing = 0;
	size_t len = 0;
	pp_ns turn;
	int r;

	for (unsigned int i = first; i < p->n; i++) {
		struct pp_party_member *m = &p->member[i];

		if (m->control)
			continue;
		turn = pp_clock_monotonic() + TURN;
		r = reach(p, m, turn < deadline ? turn : deadline, /* once= */ true, err);
		if (r && !may_come(r))
			return r;
		missing += r != 0;
		if (r && len < 384)
			len += (size_t)snprintf(why + len, 384 - len, "%s%s", len ? "; " : "",
						err->text);
	}
	return (int)missing;
}

static int gather_many(struct pp_party *p, unsigned int first, pp_ns deadline, struct pp_error *err)
{
	char why[384] = "", text[64];
	pp_ns began = pp_clock_monotonic(), said = 0;
	int missing;

	for (;;) {
		missing = round_once(p, first, deadline, why, err);
		if (missing <= 0)
			return missing;
		(void)snprintf(text, sizeof(text), "waiting for %d of %u nodes", missing, p->n);
		if (p->say && pp_clock_monotonic() - said > 5 * PP_SECOND) {
			p->say(text);
			said = pp_clock_monotonic();
		}
		if (pp_clock_monotonic() + PAUSE >= deadline)
			return pp_error_set(err, -ETIMEDOUT,
					    "%d of %u nodes missing after %d s: %s", missing, p->n,
					    (int)((pp_clock_monotonic() - began) / PP_SECOND), why);
		if (pp_channel_wait(-1, 0, pp_clock_monotonic() + PAUSE, p->stopped) == -EINTR)
			return pp_error_set(err, -EINTR, "interrupted while nodes were missing");
	}
}

int pp_party_gather_dialled(struct pp_party *p, const char *const *peers, unsigned int n,
			    pp_ns deadline, struct pp_error *err)
{
	unsigned int first = p->n;

	for (unsigned int i = 0; i < n; i++) {
		struct pp_party_member *m = pp_party_add(p);

		m->open = open_dialled;
		m->dialled = strdup(peers[i]);
		if (!m->dialled)
			return pp_error_set(err, -ENOMEM, "no memory for %u nodes", n);
	}
	/* One alone has all the time, and its own words say why it did not come. */
	if (n == 1)
		return reach(p, &p->member[first], deadline, /* once= */ false, err);
	return gather_many(p, first, deadline, err);
}
