/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/gate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rdma/channel_state.h"
#include "base/banned.h"

struct pp_gate {
	int fd;
	char *token, *introduction; /* owned */
	void (*refused)(void *arg, const char *peer, const char *why);
	void *arg;
	unsigned int n;
	struct waiting {
		struct pp_channel *c;
		pp_ns deadline;
	} waiting[PP_GATE_WAITING]; /* oldest first */
	pp_ns rest;		    /* no more files before then */
};

int pp_gate_new(int fd, const struct pp_gate_options *options, struct pp_gate **ret,
		struct pp_error *err)
{
	struct pp_gate *g = calloc(1, sizeof(*g));

	if (!g) {
		(void)close(fd);
		return pp_error_set(err, -ENOMEM, "no memory to listen");
	}
	g->fd = fd;
	g->refused = options->refused;
	g->arg = options->arg;
	g->token = strdup(options->token);
	g->introduction = options->introduction ? strdup(options->introduction) : NULL;
	if (!g->token || (options->introduction && !g->introduction)) {
		(void)pp_gate_free(g);
		return pp_error_set(err, -ENOMEM, "no memory to listen");
	}
	*ret = g;
	return 0;
}

struct pp_gate *pp_gate_free(struct pp_gate *g)
{
	if (!g)
		return NULL;
	for (unsigned int i = 0; i < g->n; i++)
		(void)pp_channel_free(g->waiting[i].c);
	(void)close(g->fd);
	free(g->token);
	free(g->introduction);
	free(g);
	return NULL;
}

unsigned int pp_gate_watch(const struct pp_gate *g, struct pollfd *ret)
{
	unsigned int n = 0;

	if (pp_clock_monotonic() >= g->rest)
		ret[n++] = (struct pollfd){.fd = g->fd, .events = POLLIN};
	for (unsigned int i = 0; i < g->n; i++)
		ret[n++] = (struct pollfd){.fd = pp_channel_fd(g->waiting[i].c), .events = POLLIN};
	return n;
}

static void drop(struct pp_gate *g, unsigned int i)
{
	g->n--;
	memmove(&g->waiting[i], &g->waiting[i + 1], (g->n - i) * sizeof(g->waiting[0]));
}

static void refuse(struct pp_gate *g, unsigned int i, const char *why)
{
	if (g->refused)
		g->refused(g->arg, pp_channel_peer(g->waiting[i].c), why);
	(void)pp_channel_free(g->waiting[i].c);
	drop(g, i);
}

/* Same host, whatever the port. */
static bool is_neighbour(const char *a, const char *b)
{
	size_t len = (size_t)(strrchr(a, ':') - a);

	return strncmp(a, b, len + 1) == 0 && !strchr(b + len + 1, ':');
}

/* Of the host that most are from, who waits longest. */
static unsigned int who_has_to_go(const struct pp_gate *g)
{
	unsigned int most = 0, who = 0;

	for (unsigned int i = 0; i < g->n; i++) {
		const char *peer = pp_channel_peer(g->waiting[i].c);
		unsigned int n = 0;

		for (unsigned int k = i; k < g->n; k++)
			n += is_neighbour(peer, pp_channel_peer(g->waiting[k].c));
		if (n > most) {
			most = n;
			who = i;
		}
	}
	return who;
}

/* Those who came since; not for ever, where more come all the time. */
static void let_in(struct pp_gate *g)
{
	struct pp_error err;
	struct pp_channel *c;
	pp_ns now = pp_clock_monotonic();
	int fd;

	for (int i = 0; i < PP_GATE_WAITING && now >= g->rest; i++) {
		fd = accept4(g->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 &&
		    (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
			g->rest = now + PP_CHANNEL_SLICE_MS * PP_MILLISECOND;
		/* Else nobody, or one that has gone already. */
		if (fd < 0)
			return;
		if (pp_channel_begin(fd, /* dialler= */ false, g->introduction, &c, &err))
			return;
		if (g->n == PP_GATE_WAITING)
			refuse(g, who_has_to_go(g), "silent while many others came");
		g->waiting[g->n++] =
			(struct waiting){.c = c, .deadline = now + PP_CHANNEL_GREETING_LIMIT};
	}
}

int pp_gate_step(struct pp_gate *g, struct pp_channel **ret, struct pp_error *err)
{
	unsigned int i = 0;
	struct pp_error why;
	int r;

	let_in(g);
	while (i < g->n) {
		r = pp_channel_greet(g->waiting[i].c, g->token, &why);
		if (!r) {
			*ret = g->waiting[i].c;
			drop(g, i);
			return 0;
		}
		if (r != -EAGAIN)
			refuse(g, i, why.text);
		else if (pp_clock_monotonic() >= g->waiting[i].deadline)
			refuse(g, i, "did not greet in 5 s");
		else
			i++;
	}
	return pp_error_set(err, -EAGAIN, "nobody has come");
}

int pp_gate_wait(struct pp_gate *g, pp_ns deadline, bool (*stopped)(void), struct pp_channel **ret,
		 struct pp_error *err)
{
	struct pollfd p[PP_GATE_WATCHED];
	pp_ns now;
	int r;

	for (;;) {
		r = pp_gate_step(g, ret, err);
		if (r != -EAGAIN)
			return r;
		if (stopped && stopped())
			return pp_error_set(err, -EINTR, "interrupted while listening");
		now = pp_clock_monotonic();
		if (now >= deadline)
			return pp_error_set(err, -ETIMEDOUT, "nobody has come");
		(void)poll(p, pp_gate_watch(g, p),
			   deadline - now < PP_CHANNEL_SLICE_MS * PP_MILLISECOND
				   ? 1 + (int)((deadline - now) / PP_MILLISECOND)
				   : PP_CHANNEL_SLICE_MS);
	}
}
