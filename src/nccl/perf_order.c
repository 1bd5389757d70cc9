/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "nccl/library.h"
#include "nccl/perf_state.h"
#include "rdma/silence.h"
#include "base/banned.h"

enum { SLICE_MS = 50 };

/* A message that has begun to come is whole soon, or its rank is ill. */
#define WHOLE (5 * PP_SECOND)
/* After a rank failed, the others' reasons come soon too: a peer's death is seen by the rest. */
#define GRACE (PP_SECOND)
/* A log that grows without end is cut. */
#define LOG_MOST ((uint64_t)16 << 20)

void pp_perf_order_begin(struct pp_json *j, struct pp_buf *text, const char *what)
{
	*text = PP_BUF(64 << 10);
	*j = PP_JSON(text, false);
	pp_json_object(j, NULL);
	pp_json_str(j, "do", what);
}

int64_t pp_perf_answer(const struct pp_perf_seat *s, const char *key)
{
	const json_t *v = json_object_get(s->answer, key);
	int64_t n = json_is_integer(v) ? json_integer_value(v) : 0;

	return n >= 0 && n <= (int64_t)1 << 62 ? n : 0;
}

const char *pp_perf_answer_text(struct pp_perf_course *c, const struct pp_perf_seat *s,
				const char *key)
{
	const char *text = json_string_value(json_object_get(s->answer, key));
	char copy[PP_NCCL_PATH];

	if (!text)
		return NULL;
	(void)snprintf(copy, sizeof(copy), "%s", text);
	pp_sanitize(copy, false);
	return pp_arena_printf(&c->p->arena, "%s", copy);
}

static void lose(struct pp_perf_course *c, unsigned int i, const char *why)
{
	struct pp_perf_seat *s = &c->seat[i];
	char fate[512] = "";

	s->waits = false;
	s->lost = true;
	s->channel = pp_channel_free(s->channel);
	pp_party_fate(c->party, i, fate, sizeof(fate));
	(void)snprintf(s->why, sizeof(s->why), "%s", fate[0] ? fate : why);
}

static void tell_log(struct pp_perf_course *c, unsigned int i)
{
	struct pp_perf_seat *s = &c->seat[i];
	const char *log = json_string_value(json_object_get(s->answer, "log"));
	char *PP_AUTO_FREE text = NULL;

	if (!log || !c->watch->log || s->logged > LOG_MOST)
		return;
	s->logged += strlen(log);
	text = strdup(s->logged > LOG_MOST ? "(this rank's log is cut here)\n" : log);
	if (!text)
		return;
	pp_sanitize(text, true);
	c->watch->log(c->watch->arg, i, text);
}

static void take(struct pp_perf_course *c, unsigned int i)
{
	struct pp_perf_seat *s = &c->seat[i];
	struct pp_error err = {0};
	const char *text;
	int r;

	json_decref(s->answer);
	s->answer = NULL;
	r = pp_channel_receive(s->channel, pp_clock_monotonic() + WHOLE, c->p->options.stopped,
			       &s->answer, &err);
	if (r == -EINTR)
		return;
	if (r) {
		lose(c, i, err.text);
		return;
	}
	s->waits = false;
	tell_log(c, i);
	s->failed = !json_is_true(json_object_get(s->answer, "ok"));
	if (!s->failed)
		return;
	text = json_string_value(json_object_get(s->answer, "text"));
	(void)snprintf(s->why, sizeof(s->why), "%s", text ? text : "no reason given");
	pp_sanitize(s->why, false);
}

void pp_perf_send(struct pp_perf_course *c, unsigned int i, const char *text, size_t len)
{
	struct pp_perf_seat *s = &c->seat[i];
	struct pp_error err = {0};

	s->waits = s->channel;
	if (s->channel && pp_channel_send(s->channel, text, len, &err))
		lose(c, i, err.text);
}

static unsigned int poll_some(struct pp_perf_course *c, struct pollfd *p)
{
	unsigned int left = 0;

	for (unsigned int i = 0; i < c->n; i++) {
		p[i] = (struct pollfd){.fd = -1, .events = POLLIN};
		if (!c->seat[i].waits)
			continue;
		p[i].fd = pp_channel_fd(c->seat[i].channel);
		left++;
	}
	if (left)
		(void)poll(p, c->n, SLICE_MS);
	return left;
}

/* Hosts that vanished, and nodes that have no part in the order. */
static void look_around(struct pp_perf_course *c)
{
	pp_ns now = pp_clock_monotonic();
	struct pp_error err = {0};
	char why[512] = "";
	unsigned int i;

	if (now - c->looked < PP_SILENCE_LOOK)
		return;
	c->looked = now;
	for (i = 0; i < c->n; i++)
		if (c->seat[i].waits && pp_channel_gone(c->seat[i].channel, &err))
			lose(c, i, err.text);
	if (!pp_party_lost(c->party, &i, why, sizeof(why)) || c->seat[i].lost)
		return;
	c->seat[i].lost = true;
	c->seat[i].waits = false;
	c->seat[i].channel = pp_channel_free(c->seat[i].channel);
	(void)snprintf(c->seat[i].why, sizeof(c->seat[i].why), "%s", why);
}

/* What was lost is the root of what others complain of; then who complains of no other. */
static bool is_bad(const struct pp_perf_seat *s, int stage)
{
	bool remote = json_is_true(json_object_get(s->answer, "remote"));

	return stage == 0 ? s->lost : s->failed && (stage == 2 || !remote);
}

static bool find_bad(const struct pp_perf_course *c, unsigned int *ret)
{
	for (int stage = 0; stage < 3; stage++)
		for (unsigned int i = 0; i < c->n; i++)
			if (is_bad(&c->seat[i], stage)) {
				*ret = i;
				return true;
			}
	return false;
}

static int blame(const struct pp_perf_course *c, unsigned int i, const char *doing,
		 struct pp_error *err)
{
	const struct pp_perf_seat *s = &c->seat[i];
	int64_t code = s->failed ? pp_perf_answer(s, "error") : ECONNRESET;

	return pp_error_set(err, code > 0 && code < 4096 ? -(int)code : -EIO,
			    "rank %u on %s: %.300s%s%s", i, pp_party_node(c->party, i)->id, s->why,
			    doing ? ", at " : "", doing ? doing : "");
}

static int silent(const struct pp_perf_course *c, pp_ns limit, const char *doing,
		  struct pp_error *err)
{
	for (unsigned int i = 0; i < c->n; i++)
		if (c->seat[i].waits)
			return pp_error_set(err, -ETIMEDOUT,
					    "rank %u on %s does not answer after %.0f s, at %s", i,
					    pp_party_node(c->party, i)->id,
					    (double)limit / (double)PP_SECOND,
					    doing ? doing : "its beginning");
	return 0;
}

int pp_perf_await(struct pp_perf_course *c, pp_ns limit, const char *doing, struct pp_error *err)
{
	struct pollfd *PP_AUTO_FREE p = calloc(c->n, sizeof(*p));
	pp_ns end = pp_clock_monotonic() + limit, now;
	unsigned int bad;

	if (!p)
		return pp_error_set(err, -ENOMEM, "no memory to wait");
	while (poll_some(c, p)) {
		for (unsigned int i = 0; i < c->n; i++)
			if (p[i].fd >= 0 && p[i].revents && c->seat[i].waits)
				take(c, i);
		look_around(c);
		now = pp_clock_monotonic();
		if (c->p->options.stopped && c->p->options.stopped())
			return pp_error_set(err, -EINTR, "interrupted");
		if (now > c->end)
			return pp_error_set(err, -ETIMEDOUT,
					    "the time of the run is used up, at %s",
					    doing ? doing : "its beginning");
		if (find_bad(c, &bad) && end > now + GRACE)
			end = now + GRACE;
		if (now >= end)
			break;
	}
	if (find_bad(c, &bad))
		return blame(c, bad, doing, err);
	return silent(c, limit, doing, err);
}

int pp_perf_order(struct pp_perf_course *c, struct pp_json *j, struct pp_buf *text, int only,
		  pp_ns limit, const char *doing, struct pp_error *err)
{
	pp_json_end_object(j);
	if (text->failed) {
		pp_buf_done(text);
		return pp_error_set(err, -ENOMEM, "no memory for an order");
	}
	for (unsigned int i = 0; i < c->n; i++)
		if (only < 0 || (unsigned int)only == i)
			pp_perf_send(c, i, pp_buf_text(text), text->len);
	pp_buf_done(text);
	return pp_perf_await(c, limit, doing, err);
}
