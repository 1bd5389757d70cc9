/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors of NCCL's transport in the logs of jobs (--log): completions with an error, registrations
 * and verbs that failed, asynchronous events, networks that could not be had.
 *
 * A line is read by the tables of nccl/; what is harmless by them is no event. The paths are of
 * this machine, whatever the source is, as `explain FILE` takes its file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "daemon/tail.h"
#include "daemon/watch.h"
#include "nccl/error.h"
#include "nccl/event.h"
#include "base/banned.h"

enum { EVENTS = 2048, FILES_TEXT = 64 << 10 };
static const char NAME[] = "nccl-logs", FILES[] = "files";

struct logs {
	struct pp_tails tails;
	struct pp_nccl_formats formats;
};

struct round {
	struct logs *logs;
	struct pp_looks *into;
	unsigned int events, more;
};

static uint32_t number(uint64_t v)
{
	return v < UINT32_MAX ? (uint32_t)v : UINT32_MAX;
}

/* False: no error of the transport. */
static bool error_of(const struct pp_nccl_event *e, struct pp_nccl_error *ret)
{
	*ret = (struct pp_nccl_error){.key.kind = e->kind};
	switch (e->kind) {
	case PP_NCCL_COMPLETION:
		ret->key.status = number(e->field[1].value);
		ret->key.vendor = number(e->field[4].value);
		return true;
	case PP_NCCL_COMPLETION_NAMED:
		ret->key.kind = PP_NCCL_COMPLETION;
		ret->key.status = number(e->field[3].value);
		ret->key.vendor = number(e->field[7].value);
		return true;
	case PP_NCCL_REGISTER_FAILED:
	case PP_NCCL_VERB_FAILED:
	case PP_NCCL_ASYNC:
	case PP_NCCL_FAILOVER:
	case PP_NCCL_UNLIKE_DEVICES:
		return true;
	default:
		return false;
	}
}

/* Of the network that was wanted and could not be had. */
static const char *network_of(enum pp_nccl_kind kind)
{
	switch (kind) {
	case PP_NCCL_NET_FAILED:
	case PP_NCCL_NET_NONE:
		return "network: a plug-in of the network could not be initialised";
	case PP_NCCL_NET_NOT_FOUND:
		return "network: the network that was asked for is not there";
	case PP_NCCL_IB_NONE:
		return "network: NCCL finds no usable RDMA device and goes by sockets";
	default:
		return NULL;
	}
}

static int tell(struct round *r, const struct pp_tail_line *line, const char *text,
		const char *value)
{
	char named[96];

	if (r->events >= EVENTS) {
		r->more++;
		return 0;
	}
	r->events++;
	(void)snprintf(named, sizeof(named), "%" PRIu64 ":%" PRIu64 ":%" PRIx64 ":%" PRIu64,
		       (uint64_t)line->file->dev, (uint64_t)line->file->ino, line->file->head,
		       line->offset);
	return pp_look_event(r->into, PP_SIGNAL_NCCL_ERRORS, line->file->path, named, text, value);
}

static int one_event(struct round *r, const struct pp_tail_line *line, const char *text,
		     const struct pp_nccl_line *said)
{
	const char *network, *status;
	struct pp_nccl_event e;
	struct pp_nccl_error error;
	char value[PP_LOOK_TEXT];

	pp_nccl_event_read(&r->logs->formats, said, &e);
	network = network_of(e.kind);
	if (network)
		return tell(r, line, text, network);
	if (!error_of(&e, &error))
		return 0;
	(void)snprintf(error.text, sizeof(error.text), "%.*s", (int)said->message.len,
		       said->message.at);
	if (pp_nccl_error_nature(&error) == PP_NCCL_NATURE_WARNING && e.kind != PP_NCCL_FAILOVER)
		return 0;
	status = pp_nccl_error_status(&error);
	(void)snprintf(value, sizeof(value), "%s%s%s: %s", pp_nccl_error_name(&error),
		       status ? " " : "", status ? status : "", pp_nccl_error_cause(&error));
	return tell(r, line, text, value);
}

/* Bytes that a log grew by faster than they are read. */
static int skipped(struct round *r, const struct pp_tail_line *line, uint64_t bytes)
{
	char text[96];

	(void)snprintf(text, sizeof(text), "%" PRIu64 " bytes of it were not read", bytes);
	return tell(r, line, text, "the log grows faster than it is read");
}

static int each(void *ctx, const struct pp_tail_line *line, uint64_t left_out)
{
	struct round *r = ctx;
	struct pp_nccl_line said;
	char text[PP_TAIL_LINE + 1];
	size_t pos = 0;
	int ret = left_out ? skipped(r, line, left_out) : 0;

	if (ret ||
	    pp_nccl_line_find_word(line->text, line->text + line->len) == line->text + line->len)
		return ret;
	(void)memcpy(text, line->text, line->len);
	text[line->len] = '\0';
	/* A NUL of the log would end the text for all that follows. */
	for (size_t i = 0; i < line->len; i++)
		if (!text[i])
			text[i] = ' ';
	pp_sanitize(text, false);
	while (!ret && pp_nccl_line_next(text, line->len, &pos, &said))
		ret = one_event(r, line, text, &said);
	return ret;
}

static int remember(struct pp_watch_context *at, const struct logs *l)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(FILES_TEXT);

	pp_tails_write(&l->tails, &text);
	return text.failed ? -ENOMEM : pp_watch_remember(at, NAME, FILES, pp_buf_text(&text));
}

/* Named once and for all, so that it is told once though each new process finds it anew. */
static int tell_refused(const struct pp_tails *t, struct pp_looks *into)
{
	int r = 0;

	for (size_t i = 0; !r && i < t->n_refusals; i++) {
		const struct pp_tail_refusal *f = &t->refusal[i];
		char named[64], value[64];

		(void)snprintf(named, sizeof(named), "%" PRIu64 ":%" PRIu64, (uint64_t)f->dev,
			       (uint64_t)f->ino);
		(void)snprintf(value, sizeof(value), "it is %s", f->why);
		r = pp_look_event(into, PP_SIGNAL_NO_LOG, f->path, named, NULL, value);
	}
	return r;
}

/* Quiet is not the same as not looked at. */
static int tell_watched(size_t n, struct pp_looks *into)
{
	char value[64];

	(void)snprintf(value, sizeof(value), "%zu file%s followed", n, n == 1 ? " is" : "s are");
	return pp_looks_add(into, &(struct pp_look){.kind = PP_SIGNAL_NCCL_ERRORS,
						    .object = "logs",
						    .value = value,
						    .yet = PP_LOOK_WATCHED});
}

static int look_now(struct pp_watch_context *at, struct logs *l, struct pp_looks *into)
{
	struct round round = {.logs = l, .into = into};
	int r = pp_tails_read(&l->tails, at->logs, pp_watch_recall(at, NAME, FILES), each, &round);

	if (!r)
		r = tell_refused(&l->tails, into);
	if (!r && l->tails.why[0])
		r = pp_look_unknown(into, PP_SIGNAL_NCCL_ERRORS, "logs", "%s", l->tails.why);
	else if (!r && l->tails.unread)
		r = pp_look_unknown(into, PP_SIGNAL_NCCL_ERRORS, "logs",
				    "%u files more than the %d that are read", l->tails.unread,
				    PP_TAIL_FILES);
	else if (!r && !l->tails.n)
		r = pp_look_unknown(into, PP_SIGNAL_NCCL_ERRORS, "logs",
				    "no file that --log names is there");
	else if (!r)
		r = tell_watched(l->tails.n, into);
	if (!r && round.more) {
		char named[64], text[64];

		(void)snprintf(named, sizeof(named), "more:%" PRId64, at->wall_ns);
		(void)snprintf(text, sizeof(text), "%u further errors of this round", round.more);
		r = pp_look_event(into, PP_SIGNAL_NCCL_ERRORS, "logs", named, text,
				  "more errors than are told one by one");
	}
	return r ? r : remember(at, l);
}

static int look(struct pp_watch_context *at, void **state, struct pp_looks *into,
		struct pp_error *err)
{
	bool first = !*state;
	struct logs *l;
	int r;

	if (!at->logs || !*at->logs)
		return 0;
	l = pp_watch_state(state, sizeof(*l));
	if (l && first)
		pp_nccl_formats_init(&l->formats);
	r = l ? look_now(at, l, into) : -ENOMEM;
	return r ? pp_error_set(err, r, "watching logs: %s", pp_source_why(r)) : 0;
}

static void end(void *state)
{
	struct logs *l = state;

	if (l)
		pp_tails_done(&l->tails);
	free(l);
}

static const char *apart(const struct pp_watch_context *at)
{
	return at->logs && *at->logs ? "job logs" : NULL;
}

static int silent(const struct pp_watch_context *at, struct pp_looks *into, const char *why)
{
	(void)at;
	return pp_look_unknown(into, PP_SIGNAL_NCCL_ERRORS, "logs", "%s", why);
}

const struct pp_watcher pp_watch_logs = {.name = "logs",
					 .period_ms = 5000,
					 .look = look,
					 .end = end,
					 .apart = apart,
					 .silent = silent};
