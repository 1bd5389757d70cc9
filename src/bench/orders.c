/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/orders.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "base/banned.h"

enum { SLICE_MS = 50, TEXT_MOST = 256 << 10 };
/* A message that has begun to come is whole soon, or its agent is ill. */
static const pp_ns WHOLE = 5 * PP_SECOND;

struct pp_json *pp_order_begin(struct pp_order *o, struct pp_seat *seat, enum pp_do what)
{
	*o = (struct pp_order){.seat = seat, .text = PP_BUF(TEXT_MOST)};
	o->outcome = PP_ORDER_NOT_SENT;
	o->json = PP_JSON(&o->text, false);
	pp_json_object(&o->json, NULL);
	pp_json_str(&o->json, "do", pp_do_name(what));
	return &o->json;
}

static void give_up(struct pp_order *o, enum pp_order_outcome outcome, const char *why)
{
	o->outcome = outcome;
	(void)snprintf(o->why, sizeof(o->why), "%s", why);
	pp_seat_leave(o->seat);
}

static void send_one(struct pp_order *o)
{
	struct pp_error err = {0};

	/* the writer keeps a pointer to the text, which moved with the order */
	o->json.out = &o->text;
	pp_json_end_object(&o->json);
	o->sent = pp_clock_monotonic();
	if (!o->seat->channel) {
		(void)snprintf(o->why, sizeof(o->why), "the agent was given up before");
		return;
	}
	if (o->text.failed)
		give_up(o, PP_ORDER_LOST, "the command does not fit into a message");
	else if (pp_channel_send(o->seat->channel, pp_buf_text(&o->text), o->text.len, &err))
		give_up(o, PP_ORDER_LOST, err.text);
	else
		o->outcome = PP_ORDER_SILENT;
}

static void take(struct pp_order *o, bool (*stopped)(void))
{
	struct pp_error err = {0};
	const char *text;
	int r = pp_channel_receive(o->seat->channel, pp_clock_monotonic() + WHOLE, stopped,
				   &o->answer, &err);

	o->arrived = pp_clock_monotonic();
	if (r == -EINTR)
		return;
	if (r) {
		give_up(o, PP_ORDER_LOST, err.text);
		return;
	}
	if (json_is_true(json_object_get(o->answer, "ok"))) {
		o->outcome = PP_ORDER_DONE;
		return;
	}
	text = json_string_value(json_object_get(o->answer, "text"));
	o->outcome = PP_ORDER_REFUSED;
	(void)snprintf(o->why, sizeof(o->why), "%s", text ? text : "no reason given");
	pp_sanitize(o->why, false);
}

static bool waiting(const struct pp_order *o)
{
	return o->outcome == PP_ORDER_SILENT && o->seat->channel;
}

static void lose_gone(struct pp_order *o, unsigned int n)
{
	struct pp_error err;

	for (unsigned int i = 0; i < n; i++)
		if (waiting(&o[i]) && pp_channel_gone(o[i].seat->channel, &err))
			give_up(&o[i], PP_ORDER_LOST, err.text);
}

static unsigned int poll_some(struct pp_order *o, unsigned int n, struct pollfd *p)
{
	unsigned int left = 0;

	for (unsigned int i = 0; i < n; i++) {
		p[i] = (struct pollfd){.fd = -1, .events = POLLIN};
		if (!waiting(&o[i]))
			continue;
		p[i].fd = pp_channel_fd(o[i].seat->channel);
		left++;
	}
	if (left)
		(void)poll(p, n, SLICE_MS);
	return left;
}

int pp_orders_do(struct pp_order *o, unsigned int n, pp_ns limit,
		 const struct pp_orders_watch *watch)
{
	static const struct pp_orders_watch none;
	pp_ns end = pp_clock_monotonic() + limit;
	struct pollfd *PP_AUTO_FREE p = calloc(n ? n : 1, sizeof(*p));
	char why[96];

	watch = watch ? watch : &none;
	if (!p)
		return -ENOMEM;
	for (unsigned int i = 0; i < n; i++)
		send_one(&o[i]);
	while (poll_some(o, n, p)) {
		for (unsigned int i = 0; i < n; i++)
			if (p[i].fd >= 0 && p[i].revents)
				take(&o[i], watch->stopped);
		if ((watch->stopped && watch->stopped()) ||
		    (watch->look && watch->look(watch->arg)))
			return -EINTR;
		lose_gone(o, n);
		if (pp_clock_monotonic() < end)
			continue;
		(void)snprintf(why, sizeof(why), "the agent did not answer in %lld s",
			       (long long)((limit + PP_SECOND - 1) / PP_SECOND));
		for (unsigned int i = 0; i < n; i++)
			if (waiting(&o[i]))
				give_up(&o[i], PP_ORDER_SILENT, why);
	}
	return 0;
}

bool pp_orders_good(const struct pp_order *o, unsigned int n, unsigned int *ret_bad)
{
	for (unsigned int i = 0; i < n; i++) {
		if (o[i].outcome == PP_ORDER_DONE)
			continue;
		*ret_bad = i;
		return false;
	}
	return true;
}

void pp_orders_free(struct pp_order *o, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		pp_buf_done(&o[i].text);
		json_decref(o[i].answer);
		o[i].answer = NULL;
	}
}

void pp_seat_leave(struct pp_seat *s)
{
	s->channel = pp_channel_free(s->channel);
	json_decref(s->opened);
	s->opened = NULL;
	s->open = false;
}
