/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/agent_state.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/banned.h"

enum { VERB = 48 };

/*
 * What loops ask when they may be left. pp_traffic takes a function without an argument, so the
 * one channel of this process is here; nothing else is.
 */
static const struct pp_channel *coordinator;

bool pp_agent_left(void)
{
	struct pollfd p = {.fd = coordinator ? pp_channel_fd(coordinator) : -1,
			   .events = POLLRDHUP};

	return p.fd >= 0 && poll(&p, 1, 0) > 0 && p.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

static pp_agent_handler *const handlers[PP_DOS] = {
	[PP_DO_LOOK] = pp_agent_look,	      [PP_DO_OPEN] = pp_agent_open,
	[PP_DO_CONNECT] = pp_agent_connect,   [PP_DO_RESET] = pp_agent_reset,
	[PP_DO_READY] = pp_agent_ready,	      [PP_DO_RUN] = pp_agent_run,
	[PP_DO_FILL] = pp_agent_fill,	      [PP_DO_CHECK] = pp_agent_check,
	[PP_DO_RESTRICT] = pp_agent_restrict, [PP_DO_NEGATIVE] = pp_agent_negative,
	[PP_DO_WITNESS] = pp_agent_witness,   [PP_DO_TRACE] = pp_agent_trace,
	[PP_DO_LINK] = pp_agent_link,	      [PP_DO_CLOSE] = pp_agent_close,
};

/* The verb that a line names, for who looks for causes by it. */
static const char *verb_in(const char *text, char verb[VERB])
{
	const char *at = strstr(text, "ibv_");
	size_t len = at ? strspn(at, "abcdefghijklmnopqrstuvwxyz_") : 0;

	if (!len || len >= VERB)
		return NULL;
	memcpy(verb, at, len);
	verb[len] = '\0';
	return verb;
}

static void write_failure(const struct pp_agent *a, struct pp_json *out, int error,
			  const struct pp_error *err)
{
	char verb[VERB];

	pp_json_i64(out, "error", -error);
	pp_json_i64(out, "status", a->status);
	pp_json_str(out, "call", a->call || a->status ? a->call : verb_in(err->text, verb));
	pp_json_str(out, "text", err->text);
}

static int answer(struct pp_agent *a, const json_t *message, struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(PP_CHANNEL_MOST);
	struct pp_json out = PP_JSON(&text, false);
	struct pp_command c;
	int r = pp_command_parse(message, &c, err);

	a->call = NULL;
	a->status = 0;
	pp_json_object(&out, NULL);
	if (!r) {
		pp_json_str(&out, "did", pp_do_name(c.what));
		r = handlers[c.what](a, &c, &out, err);
	}
	pp_json_bool(&out, "ok", !r);
	if (r)
		write_failure(a, &out, r, err);
	pp_json_end_object(&out);
	if (text.failed)
		return pp_error_set(err, text.failed, "the answer does not fit into a message");
	return pp_channel_send(a->channel, pp_buf_text(&text), text.len, err);
}

int pp_agent_serve(struct pp_channel *c, const void *arg)
{
	struct pp_agent *a = calloc(1, sizeof(*a));
	struct pp_error err = {0};
	json_t *message;
	int r;

	if (!a)
		return 1;
	a->options = arg;
	a->channel = c;
	a->tcp = PP_TCP_NONE;
	coordinator = c;
	do {
		r = pp_channel_receive(c, INT64_MAX, NULL, &message, &err);
		if (r)
			break;
		err = (struct pp_error){0};
		if (!a->options || !a->options->other ||
		    !a->options->other(c, message, a->options->other_arg))
			r = answer(a, message, &err);
		json_decref(message);
	} while (!r);
	pp_agent_shut(a);
	coordinator = NULL;
	free(a);
	/* that the channel ended is how every run ends */
	return r == -ECONNRESET || r == -EPIPE ? 0 : 1;
}
