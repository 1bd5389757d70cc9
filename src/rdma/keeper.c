/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/keeper.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/json.h"
#include "rdma/channel_state.h"
#include "rdma/party_state.h"
#include "rdma/record.h"
#include "base/banned.h"

enum {
	TICK_MS = PP_SILENCE_LOOK / PP_MILLISECOND,
	HURRY_MS = 20,
	WATCHED = 2 + PP_GATE_WATCHED + 2 * PP_KEEPER_CHILDREN
};

#define DIAL_LIMIT (3 * PP_SECOND)

static const char *const kinds[] = {"agent", "record"};

const char *pp_keeper_kind_name(enum pp_keeper_kind kind)
{
	return kinds[kind];
}

int pp_keeper_kind_parse(const char *name, enum pp_keeper_kind *ret)
{
	for (unsigned int i = 0; name && i < PP_ARRAY_LEN(kinds); i++) {
		if (strcmp(name, kinds[i]) != 0)
			continue;
		*ret = (enum pp_keeper_kind)i;
		return 0;
	}
	return -EINVAL;
}

/* @elapsed: of the time in which all is to have ended. */
static void end_run(struct pp_keeper *k, int code, const char *why, pp_ns elapsed)
{
	if (k->over)
		return;
	k->over = true;
	k->code = code;
	(void)snprintf(k->why, sizeof(k->why), "%s", why);
	for (unsigned int i = 0; i < k->n; i++)
		pp_child_end(&k->child[i], pp_ending_step(elapsed));
}

/* News for the coordinator: lost rather than waited for when it does not read. */
static void tell(struct pp_keeper *k, const char *event, uint64_t number, const char *text)
{
	struct pollfd p = {.fd = pp_channel_fd(k->control), .events = POLLOUT};
	struct pp_buf buf PP_AUTO_BUF = PP_BUF(4096);
	struct pp_json j = PP_JSON(&buf, false);
	struct pp_error err;

	pp_json_object(&j, NULL);
	pp_json_str(&j, "event", event);
	pp_json_u64(&j, "number", number);
	pp_json_str(&j, "text", text);
	pp_json_end_object(&j);
	if (!buf.failed && poll(&p, 1, 0) > 0 && (p.revents & POLLOUT))
		(void)pp_channel_send(k->control, buf.data, buf.len, &err);
}

/* @c is taken. */
static void start(struct pp_keeper *k, struct pp_channel *c, enum pp_keeper_kind kind,
		  uint64_t number)
{
	int (*run)(struct pp_channel * c, const void *arg) =
		kind == PP_KEEPER_RECORD ? pp_record_serve : k->service->agent;
	const void *arg = kind == PP_KEEPER_RECORD ? k->service : k->service->arg;
	char text[128];
	int r = k->n < PP_KEEPER_CHILDREN ? pp_child_start(c, run, arg, &k->child[k->n]) : -EAGAIN;

	(void)pp_channel_free(c);
	if (!r) {
		k->child[k->n++].number = number;
		return;
	}
	(void)snprintf(text, sizeof(text), "cannot start an agent: %s (%u run)", strerror(-r),
		       k->n);
	tell(k, "ended", number, text);
}

/* The end of a pair that the coordinator passes; false: nothing has come. */
static bool receive_hand(struct pp_keeper *k)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct pp_keeper_request request;
	struct iovec iov = {.iov_base = &request, .iov_len = sizeof(request)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *cmsg;
	struct pp_channel *c;
	int fd;

	if (recvmsg(k->hand, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(request))
		return false;
	cmsg = CMSG_FIRSTHDR(&m);
	if (!cmsg || cmsg->cmsg_type != SCM_RIGHTS)
		return false;
	memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
	c = pp_channel_new(fd, PP_CHANNEL_OPEN);
	if (c)
		start(k, c, (enum pp_keeper_kind)request.kind, request.number);
	return true;
}

static const char *word(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "";
}

static void turn_away(struct pp_channel *c)
{
	static const char busy[] =
		"{\"ok\":false,\"text\":\"busy with another run; try again when that has ended\"}";
	struct pp_error err;

	(void)pp_channel_send(c, busy, sizeof(busy) - 1, &err);
	(void)pp_channel_free(c);
}

static bool receive_gate(struct pp_keeper *k)
{
	enum pp_keeper_kind kind;
	const json_t *introduction;
	struct pp_channel *c;
	struct pp_error err;

	if (pp_gate_step(k->gate, &c, &err))
		return false;
	introduction = pp_channel_introduction(c);
	if (strcmp(word(introduction, "run"), k->run) != 0 ||
	    pp_keeper_kind_parse(word(introduction, "for"), &kind)) {
		turn_away(c);
		return true;
	}
	start(k, c, kind, (uint64_t)json_integer_value(json_object_get(introduction, "number")));
	return true;
}

/* Rank 0 waits for this: it is quick or never. */
static void dial(struct pp_keeper *k, const json_t *order)
{
	uint64_t number = (uint64_t)json_integer_value(json_object_get(order, "number"));
	struct pp_party_introduction i = {.run = k->run, .number = number};
	struct pp_buf buf PP_AUTO_BUF = PP_BUF(PP_CHANNEL_INTRODUCTION);
	struct pp_channel_dial d = {.address = k->address,
				    .token = k->token,
				    .deadline = pp_clock_monotonic() + DIAL_LIMIT};
	enum pp_keeper_kind kind;
	struct pp_channel *c;
	struct pp_error err;

	if (!k->address || pp_keeper_kind_parse(word(order, "kind"), &kind))
		return;
	i.what = kinds[kind];
	pp_party_introduce(&i, &buf);
	d.introduction = pp_buf_text(&buf);
	if (pp_channel_dial(&d, &c, &err))
		tell(k, "ended", number, err.text);
	else
		start(k, c, kind, number);
}

/* One message of the coordinator; false: none has come. */
static bool receive_order(struct pp_keeper *k)
{
	struct pp_error err;
	json_t *m = NULL;
	int r = pp_channel_receive(k->control, 0, NULL, &m, &err);

	if (r == -ETIMEDOUT)
		return false;
	if (r) {
		end_run(k, -ECONNRESET, err.text, k->control->silence.gone ? PP_SILENCE_WORST : 0);
		return false;
	}
	if (strcmp(word(m, "do"), "agent") == 0 && !k->over)
		dial(k, m);
	if (strcmp(word(m, "do"), "end") == 0)
		end_run(k, word(m, "why")[0] ? -ECANCELED : 0, word(m, "why"),
			json_is_true(json_object_get(m, "hurry")) ? PP_SILENCE_WORST : 0);
	json_decref(m);
	return true;
}

static void bury(struct pp_keeper *k)
{
	char fate[512], text[640];
	unsigned int kept = 0;

	for (unsigned int i = 0; i < k->n; i++) {
		struct pp_child *child = &k->child[i];

		if (!pp_child_is_over(child)) {
			k->child[kept++] = *child;
			continue;
		}
		pp_child_fate(child, fate, sizeof(fate));
		pp_child_done(child);
		if (fate[0])
			tell(k, child->stage == PP_CHILD_LEFT ? "left" : "ended", child->number,
			     fate);
		(void)snprintf(text, sizeof(text), "an agent %s", fate);
		if (child->stage == PP_CHILD_LEFT && k->say)
			k->say(text);
	}
	k->n = kept;
}

static void wait_for_news(const struct pp_keeper *k)
{
	struct pollfd p[WATCHED];
	unsigned int n = 0;
	bool hurry = k->over;

	if (!k->over) {
		p[n++] = (struct pollfd){.fd = pp_channel_fd(k->control), .events = POLLIN};
		p[n++] = (struct pollfd){.fd = k->hand, .events = POLLIN};
		n += k->gate ? pp_gate_watch(k->gate, &p[n]) : 0;
	}
	for (unsigned int i = 0; i < k->n; i++) {
		pp_child_watch(&k->child[i], &p[n]);
		n += 2;
		/* It is a matter of moments, and nothing else wakes us. */
		hurry = hurry || k->child[i].stage != PP_CHILD_RUNS || k->child[i].from < 0;
	}
	(void)poll(p, n, hurry ? HURRY_MS : TICK_MS);
}

/* Bounded: a coordinator that talks all the time must not keep us from looking after agents. */
static void take_news(struct pp_keeper *k)
{
	for (int i = 0; i < 64 && !k->over && receive_order(k); i++)
		continue;
	for (int i = 0; i < 64 && !k->over && k->hand >= 0 && receive_hand(k); i++)
		continue;
	for (int i = 0; i < 64 && !k->over && k->gate && receive_gate(k); i++)
		continue;
}

int pp_keeper_run(struct pp_keeper *k, struct pp_error *err)
{
	while (!k->over || k->n) {
		wait_for_news(k);
		if (k->stopped && k->stopped() && !k->over) {
			tell(k, "gone", 0, "was interrupted");
			end_run(k, -EINTR, "interrupted", 0);
		}
		take_news(k);
		for (unsigned int i = 0; i < k->n; i++)
			pp_child_step(&k->child[i]);
		bury(k);
	}
	if (k->code == -ECANCELED)
		return pp_error_set(err, k->code, "the coordinator %s", k->why);
	return k->code ? pp_error_set(err, k->code, "%s", k->why) : 0;
}
