/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0: what the other ranks have seen. What comes is bounded and hostile, as all that comes. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/parse.h"
#include "cli/interrupt.h"
#include "cli/nccl_run.h"
#include "cli/nccl_run_party.h"
#include "nccl/run_logs.h"
#include "nccl/run_merge.h"
#include "base/banned.h"

/* After the end of ours: of a job that failed the others end soon, or never. */
static const pp_ns AFTER_FAILURE = 60 * PP_SECOND, AFTER_END = 600 * PP_SECOND,
		   AFTER_TIMEOUT = 15 * PP_SECOND, MESSAGE = 30 * PP_SECOND,
		   AFTER_SIGNAL = 10 * PP_SECOND;

struct collecting {
	struct pp_nccl_running *c;
	struct pp_nccl_ranks *ranks;
	struct pp_nccl_run *r;
	const char *dir;
	pp_ns deadline;
	bool (*stopped)(void); /* NULL: we were told to end already, as the others are */
};

static void lose(struct collecting *k, unsigned int rank, const char *why)
{
	struct pp_nccl_run *r = k->r;
	const char *host = pp_party_node(k->ranks->party, rank)->host;
	size_t len = strlen(r->missing_why);

	(void)pp_channel_free(k->ranks->channel[rank]);
	k->ranks->channel[rank] = NULL;
	(void)pp_complain(k->c->args, 0, "no report of rank %u on %s: %s", rank, host, why);
	(void)snprintf(r->missing_why + len, sizeof(r->missing_why) - len, "%srank %u on %.60s: %s",
		       len ? "; " : "", rank, host, why);
	pp_sanitize(r->missing_why, false);
}

static void ask_all(struct collecting *k)
{
	static const char question[] = "{\"do\":\"report\"}";
	struct pp_error err = {0};

	for (unsigned int i = 1; i < k->ranks->launch.size; i++)
		if (pp_channel_send(k->ranks->channel[i], question, sizeof(question) - 1, &err))
			lose(k, i, err.text);
}

static void take_report(struct collecting *k, unsigned int rank)
{
	struct pp_channel *from = k->ranks->channel[rank];
	struct pp_nccl_run *run = NULL;
	struct pp_error err = {0};
	json_t *answer = NULL;
	const char *why;
	int e = pp_channel_receive(from, k->deadline, k->stopped, &answer, &err);

	why = json_string_value(json_object_get(answer, "text"));
	if (!e && !json_is_true(json_object_get(answer, "ok")))
		e = pp_error_set(&err, -EREMOTEIO, "%.200s", why ? why : "?");
	if (!e)
		e = pp_nccl_run_read(json_object_get(answer, "run"), &run, &err);
	if (!e && run->n_nodes != 1)
		e = pp_error_set(&err, -EBADMSG, "its report is not of one node");
	if (!e)
		e = pp_nccl_run_merge(k->r, run);
	if (e)
		lose(k, rank, err.text[0] ? err.text : strerror(-e));
	(void)pp_nccl_run_free(run);
	json_decref(answer);
}

/* "nccl.HOST.PID.log", "stdout"; others' names cannot lead anywhere else. */
static int create(const struct collecting *k, unsigned int rank, const char *name)
{
	char path[PATH_MAX], clean[NAME_MAX / 2];
	bool output = !strncmp(name, PP_NCCL_LOG_STDOUT, strlen(PP_NCCL_LOG_STDOUT)) ||
		      !strncmp(name, PP_NCCL_LOG_STDERR, strlen(PP_NCCL_LOG_STDERR));

	(void)snprintf(clean, sizeof(clean), "%s", name);
	for (char *at = clean; *at; at++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-",
			    *at))
			*at = '_';
	if (output)
		(void)snprintf(path, sizeof(path), "%s/" PP_NCCL_OTHERS "/%s-rank%u", k->dir, clean,
			       rank);
	else
		(void)snprintf(path, sizeof(path), "%s/" PP_NCCL_OTHERS "/nccl.rank%u.%s.log",
			       k->dir, rank, clean);
	return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static struct pp_nccl_run_node *node_of(const struct collecting *k, unsigned int rank)
{
	const char *host = pp_party_node(k->ranks->party, rank)->host;

	for (uint32_t i = 0; i < k->r->n_nodes; i++)
		if (!strcmp(k->r->node[i].host, host))
			return &k->r->node[i];
	return NULL;
}

/* One message of a log. True: it was the last. */
static bool take_piece(struct collecting *k, unsigned int rank, const json_t *m, int *fd,
		       uint64_t *room)
{
	const char *name = json_string_value(json_object_get(m, "name"));
	const json_t *text = json_object_get(m, "text");
	size_t len = json_string_length(text);
	struct pp_nccl_run_node *n;

	if (name) {
		pp_cleanup_close(fd);
		*fd = create(k, rank, name);
	}
	if (len > *room)
		len = (size_t)*room;
	if (*fd >= 0 && len && write(*fd, json_string_value(text), len) == (ssize_t)len)
		*room -= len;
	if (!json_is_true(json_object_get(m, "end")))
		return false;
	n = node_of(k, rank);
	if (n) {
		json_int_t bytes = json_integer_value(json_object_get(m, "bytes")),
			   dropped = json_integer_value(json_object_get(m, "dropped"));

		n->log_bytes += bytes > 0 ? (uint64_t)bytes : 0;
		n->log_dropped += dropped > 0 ? (uint64_t)dropped : 0;
	}
	return true;
}

static unsigned int ranks_of_host(const struct collecting *k, unsigned int rank)
{
	const struct pp_party *p = k->ranks->party;
	unsigned int n = 0;

	for (unsigned int i = 0; i < k->ranks->launch.size; i++)
		n += !strcmp(pp_party_node(p, i)->host, pp_party_node(p, rank)->host);
	return n ? n : 1;
}

static void take_logs(struct collecting *k, unsigned int rank)
{
	uint64_t room = PP_NCCL_RUN_LOG / ranks_of_host(k, rank);
	struct pp_channel *from = k->ranks->channel[rank];
	struct pp_error err = {0};
	char question[64];
	bool over = false;
	int fd = -1, e, n;

	n = snprintf(question, sizeof(question), "{\"do\":\"logs\",\"most\":%llu}",
		     (unsigned long long)room);
	e = pp_channel_send(from, question, (size_t)n, &err);
	while (!e && !over) {
		json_t *m = NULL;

		e = pp_channel_receive(from, pp_clock_monotonic() + MESSAGE, k->stopped, &m, &err);
		over = !e && take_piece(k, rank, m, &fd, &room);
		json_decref(m);
	}
	pp_cleanup_close(&fd);
	if (e)
		lose(k, rank, err.text);
}

/* Nodes of which no rank at all has reported. */
static uint32_t count_missing(const struct collecting *k)
{
	uint32_t n = 0;

	for (unsigned int i = 1; i < k->ranks->launch.size; i++) {
		bool first = !node_of(k, i);

		for (unsigned int b = 1; first && b < i; b++)
			first = strcmp(pp_party_node(k->ranks->party, b)->host,
				       pp_party_node(k->ranks->party, i)->host) != 0;
		n += first;
	}
	return n;
}

int pp_nccl_ranks_collect(struct pp_nccl_running *c, const char *dir, struct pp_nccl_run *r)
{
	struct collecting k = {.c = c, .ranks = &c->ranks, .r = r, .dir = dir};
	pp_ns now = pp_clock_monotonic();
	char folder[PATH_MAX];

	if (!pp_nccl_ranks_many(&c->ranks) || c->ranks.launch.rank)
		return 0;
	(void)snprintf(folder, sizeof(folder), "%s/" PP_NCCL_OTHERS, dir);
	if (mkdir(folder, 0700))
		return pp_complain(c->args, PP_EXIT_INTERNAL, "%s: %s", folder, strerror(errno));
	k.deadline = now + (r->node[0].status ? AFTER_FAILURE : AFTER_END);
	if (c->timeout) {
		pp_ns left = c->timeout > r->took ? c->timeout - r->took : 0;

		k.deadline = now + left + AFTER_TIMEOUT;
	}
	/* Who ends a job tells all of it: the others are at their reports, too. */
	if (pp_interrupted())
		k.deadline = now + AFTER_SIGNAL;
	else
		k.stopped = pp_interrupted;
	ask_all(&k);
	for (unsigned int i = 1; i < c->ranks.launch.size; i++)
		if (c->ranks.channel[i])
			take_report(&k, i);
	for (unsigned int i = 1; i < c->ranks.launch.size; i++)
		if (c->ranks.channel[i])
			take_logs(&k, i);
	r->missing = count_missing(&k);
	return 0;
}
