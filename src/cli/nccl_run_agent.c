/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What rank 0 has of another rank: when that may begin, its report, its logs. Nothing here runs a
 * command or calls a driver.
 *
 *   {"do": "start", "wide": true}  -> {"ok": true}
 *   {"do": "report"}               -> {"ok": true, "run": {...}}, once there is one
 *   {"do": "logs", "most": BYTES}  -> {"name": ...}, {"text": ...}, ..., {"end": true, "bytes",
 *                                     "dropped", "files"}
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/nccl_run_party.h"
#include "nccl/run_logs.h"
#include "base/banned.h"

enum { TURN_MS = 50 };

struct serving {
	struct pp_channel *channel;
	const struct pp_nccl_agent *a;
	int failed; /* of sending */
};

static int send_json(struct serving *s, struct pp_buf *text)
{
	struct pp_error err = {0};

	if (text->failed)
		return -ENOMEM;
	return pp_channel_send(s->channel, pp_buf_text(text), text->len, &err);
}

static int refuse(struct serving *s, const char *why)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(4096);
	struct pp_json j = PP_JSON(&text, false);

	pp_json_object(&j, NULL);
	pp_json_bool(&j, "ok", false);
	pp_json_str(&j, "text", why);
	pp_json_end_object(&j);
	return send_json(s, &text);
}

static int start(struct serving *s, const json_t *message)
{
	bool wide = json_is_true(json_object_get(message, "wide"));
	struct pp_buf PP_AUTO_BUF text = PP_BUF(64);
	char path[PATH_MAX];
	int r;

	(void)snprintf(path, sizeof(path), "%s/" PP_NCCL_GO, s->a->dir);
	r = pp_file_replace(path, wide ? "wide" : "own ", 4, 0600,
			    PP_REPLACE_ALONE | PP_REPLACE_CACHED);
	if (r)
		return refuse(s, strerror(-r));
	pp_buf_str(&text, "{\"ok\":true}");
	return send_json(s, &text);
}

/* The whole file; false: it is not there. */
static bool read_report(const char *dir, struct pp_buf *text)
{
	char path[PATH_MAX];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/" PP_NCCL_REPORT, dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	(void)pp_fd_read(fd, text);
	(void)close(fd);
	return true;
}

static int report(struct serving *s)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(PP_CHANNEL_MOST);

	pp_buf_str(&text, "{\"ok\":true,\"run\":");
	while (!read_report(s->a->dir, &text)) {
		if (kill(s->a->owner, 0))
			return refuse(s, "its process has ended without a report");
		(void)poll(NULL, 0, TURN_MS);
	}
	pp_buf_char(&text, '}');
	return text.failed ? refuse(s, "its report is too long") : send_json(s, &text);
}

/* JSON takes no byte as it is that is no text; what reads logs takes none either. */
static void clean(char *to, const char *from, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (from[i] >= ' ' && from[i] < 0x7f) || from[i] == '\n' || from[i] == '\t'
				? from[i]
				: '?';
	to[len] = '\0';
}

static void send_piece(void *ctx, const char *name, const char *bytes, size_t len)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(PP_CHANNEL_MOST);
	struct pp_json j = PP_JSON(&text, false);
	char *PP_AUTO_FREE copy = bytes ? malloc(len + 1) : NULL;
	struct serving *s = ctx;

	if (s->failed)
		return;
	pp_json_object(&j, NULL);
	if (copy)
		clean(copy, bytes, len);
	pp_json_str(&j, bytes ? "text" : "name", bytes ? copy : name);
	pp_json_end_object(&j);
	s->failed = send_json(s, &text);
}

static int logs(struct serving *s, const json_t *message)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(4096);
	struct pp_json j = PP_JSON(&text, false);
	struct pp_nccl_log_count count = {0};
	json_int_t most = json_integer_value(json_object_get(message, "most"));

	if (most < 0 || most > PP_NCCL_RUN_LOG)
		most = PP_NCCL_RUN_LOG;
	(void)pp_nccl_logs_read(s->a->dir, (uint64_t)most, send_piece, s, &count);
	pp_json_object(&j, NULL);
	pp_json_bool(&j, "end", true);
	pp_json_u64(&j, "bytes", count.bytes);
	pp_json_u64(&j, "dropped", count.dropped);
	pp_json_u64(&j, "files", count.files);
	pp_json_end_object(&j);
	return s->failed ? s->failed : send_json(s, &text);
}

static int answer(struct serving *s, const json_t *message)
{
	const char *what = json_string_value(json_object_get(message, "do"));

	if (what && !strcmp(what, "start"))
		return start(s, message);
	if (what && !strcmp(what, "report"))
		return report(s);
	if (what && !strcmp(what, "logs"))
		return logs(s, message);
	return refuse(s, "no such thing to do");
}

int pp_nccl_agent_serve(struct pp_channel *c, const void *arg)
{
	struct serving s = {.channel = c, .a = arg};
	struct pp_error err = {0};
	json_t *message;
	int r;

	/* Who ends a job sends it to all its processes; the report is to be had all the same. */
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGINT, SIG_IGN);
	do {
		r = pp_channel_receive(c, INT64_MAX, NULL, &message, &err);
		if (r)
			break;
		r = answer(&s, message);
		json_decref(message);
	} while (!r);
	/* that the channel ended is how every run ends */
	return r == -ECONNRESET || r == -EPIPE ? 0 : 1;
}
