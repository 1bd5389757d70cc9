/* SPDX-License-Identifier: Apache-2.0 */
/* A node that waits for coordinators to knock, one run after the other. */
#include "rdma/party_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "rdma/channel_state.h"
#include "rdma/token.h"
#include "base/banned.h"

#define FOREVER (INT64_MAX / 2)

void pp_party_refused(void *strangers, const char *peer, const char *why)
{
	struct pp_party_strangers *s = strangers;
	char text[640];

	s->n++;
	if (!s->say || (s->n > 4 && (s->n & (s->n - 1))))
		return;
	/* Most reasons name the peer themselves. */
	(void)snprintf(text, sizeof(text), "refused a connection (%u so far): %s%s%s", s->n,
		       strstr(why, peer) ? "" : peer, strstr(why, peer) ? "" : " ", why);
	pp_sanitize(text, false);
	s->say(text);
}

static void say(const struct pp_party_options *o, const char *what, const char *text)
{
	char line[640];

	(void)snprintf(line, sizeof(line), "%s%s", what, text);
	pp_sanitize(line, false);
	if (o->say)
		o->say(line);
}

/* One run, from its coordinator's knock to its end. */
static int serve_run(const struct pp_party_options *o, struct pp_gate *gate, struct pp_channel *c,
		     struct pp_error *err)
{
	const json_t *i = pp_channel_introduction(c);
	const char *what = json_string_value(json_object_get(i, "for"));
	const char *run = json_string_value(json_object_get(i, "run"));
	struct pp_keeper *way PP_AUTO_FREE = calloc(1, sizeof(*way));
	static const char lost[] = "{\"ok\":false,\"text\":\"in no such run\"}";
	int r;

	if (!way || !what || !run || strcmp(what, "run") != 0 || strlen(run) >= sizeof(way->run)) {
		(void)pp_channel_send(c, lost, sizeof(lost) - 1, err);
		(void)pp_channel_free(c);
		return -EAGAIN;
	}
	way->gate = gate;
	(void)snprintf(way->run, sizeof(way->run), "%s", run);
	say(o, "a run begins, of ", pp_channel_peer(c));
	r = pp_channel_send(c, "{\"ok\":true}", 11, err);
	if (r) {
		(void)pp_channel_free(c);
		return pp_error_set(err, -ECONNRESET, "the coordinator is gone");
	}
	return pp_party_keep(o, c, way, err);
}

int pp_party_serve_listen(const struct pp_party_options *options, bool once, struct pp_error *err)
{
	const struct pp_party_introduction i = {.what = "node", .run = ""};
	struct pp_party_strangers strangers = {.say = options->say};
	struct pp_buf buf PP_AUTO_BUF = PP_BUF(PP_CHANNEL_INTRODUCTION);
	struct pp_gate_options g = {
		.token = options->token, .refused = pp_party_refused, .arg = &strangers};
	struct pp_gate *gate = NULL;
	struct pp_channel *c;
	uint16_t port;
	char text[32];
	int fd = -1, r = pp_token_check(options->token, err);

	if (!r)
		r = pp_channel_listen(options->listen, &fd, &port, err);
	if (r)
		return r;
	pp_party_introduce(&i, &buf);
	g.introduction = pp_buf_text(&buf);
	r = pp_gate_new(fd, &g, &gate, err);
	(void)snprintf(text, sizeof(text), "%u", port);
	if (!r)
		say(options, "listening at port ", text);
	while (!r) {
		r = pp_gate_wait(gate, FOREVER, options->stopped, &c, err);
		if (r)
			break;
		r = serve_run(options, gate, c, err);
		if (r == -EAGAIN) {
			r = 0;
			continue;
		}
		if (once || r == -EINTR)
			break;
		say(options, r ? "the run ended early: " : "the run has ended", r ? err->text : "");
		r = 0;
	}
	(void)pp_gate_free(gate);
	return r;
}
