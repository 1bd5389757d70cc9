/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/library_agent.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/parse.h"
#include "nccl/run.h"
#include "rdma/party.h"
#include "base/banned.h"

enum { NAME_MOST = 96, GPU_MOST = 16, SIZES_MOST = 512 };

static const char COMMAND[] = "library";

/* NULL: absent, or nothing that a command line should see. */
static const char *text_of(const json_t *message, const char *key, size_t most, const char *allowed)
{
	const char *text = json_string_value(json_object_get(message, key));

	if (!text || !*text || strlen(text) > most || text[strspn(text, allowed)])
		return NULL;
	return text;
}

static bool number_of(const json_t *message, const char *key, unsigned int most, unsigned int *ret)
{
	const json_t *v = json_object_get(message, key);

	if (!json_is_integer(v) || json_integer_value(v) < 1 || json_integer_value(v) > most)
		return false;
	*ret = (unsigned int)json_integer_value(v);
	return true;
}

static bool read_job(const json_t *message, struct pp_library_job *job)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "._-";
	enum pp_nccl_arm arm;

	job->arm = text_of(message, "arm", GPU_MOST, plain);
	job->name = text_of(message, "name", NAME_MOST, plain);
	job->gpu = text_of(message, "gpu", GPU_MOST, "0123456789abcdefABCDEF:.");
	job->sizes = text_of(message, "sizes", SIZES_MOST, "0123456789kKmMgGiB,");
	job->busy_ok = json_is_true(json_object_get(message, "busy_ok"));
	return job->arm && !pp_nccl_arm_parse(job->arm, &arm) && job->name &&
	       number_of(message, "size", PP_PARTY_NODES, &job->size) &&
	       number_of(message, "rank", job->size - 1, &job->rank);
}

static void send(struct pp_channel *c, bool ok, int status, const char *text)
{
	PP_AUTO_BUF struct pp_buf out = PP_BUF(4096);
	struct pp_json j = PP_JSON(&out, false);
	struct pp_error err = {0};

	pp_json_object(&j, NULL);
	pp_json_bool(&j, "ok", ok);
	if (ok)
		pp_json_i64(&j, "status", status);
	pp_json_str(&j, "text", text);
	pp_json_end_object(&j);
	/* Who is gone has noticed; the channel says so at its next use. */
	(void)pp_channel_send(c, pp_buf_text(&out), out.len, &err);
}

/* Rank 0 is where this channel comes from: "10.0.0.1:41234", "[fd00::1]:41234". */
static void coordinator_of(const struct pp_channel *c, char *ret, size_t size)
{
	const char *peer = pp_channel_peer(c), *colon = strrchr(peer, ':');

	(void)snprintf(ret, size, "%.*s", colon ? (int)(colon - peer) : (int)strlen(peer), peer);
}

bool pp_library_agent_answer(struct pp_channel *c, const json_t *message, const void *token)
{
	const char *what = json_string_value(json_object_get(message, "do"));
	struct pp_library_job job = {.token = token};
	struct pp_library_done done = {0};
	char coordinator[256];
	int r;

	if (!what || strcmp(what, COMMAND) != 0)
		return false;
	coordinator_of(c, coordinator, sizeof(coordinator));
	job.coordinator = coordinator;
	if (!read_job(message, &job)) {
		send(c, false, 0, "no job that this peerpath knows");
		return true;
	}
	r = pp_library_child_run(&job, &done);
	if (r)
		send(c, false, 0, strerror(-r));
	else
		send(c, true, done.status, done.why);
	free(done.document);
	return true;
}

int pp_library_agent_serve(struct pp_channel *c, const void *token)
{
	struct pp_error err = {0};
	json_t *message;
	int r;

	while (!(r = pp_channel_receive(c, INT64_MAX, NULL, &message, &err))) {
		if (!pp_library_agent_answer(c, message, token))
			send(c, false, 0, "no such thing to do");
		json_decref(message);
	}
	return r == -ECONNRESET || r == -EPIPE ? 0 : 1;
}

void pp_library_agent_write(struct pp_json *j, const struct pp_library_job *job)
{
	pp_json_object(j, NULL);
	pp_json_str(j, "do", COMMAND);
	pp_json_str(j, "arm", job->arm);
	pp_json_u64(j, "rank", job->rank);
	pp_json_u64(j, "size", job->size);
	pp_json_str(j, "name", job->name);
	if (job->gpu)
		pp_json_str(j, "gpu", job->gpu);
	if (job->sizes)
		pp_json_str(j, "sizes", job->sizes);
	pp_json_bool(j, "busy_ok", job->busy_ok);
	pp_json_end_object(j);
}
