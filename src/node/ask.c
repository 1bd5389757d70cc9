/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helper writes into two pipes: the answer's bytes, and one line per call it is about to make
 * (so that silence can be blamed on a call). The parent polls both until the deadline. Nothing is
 * shared after fork(), and the parent has one thread only.
 */
#include "node/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/parse.h"
#include "base/banned.h"

enum { MAX_ANSWER = 16 << 20, READ_SIZE = 16384, REAP_TRIES = 20 };

static const pp_ns DEFAULT_DEADLINE = 5 * PP_SECOND;
/* A helper that goes on naming calls may take this many deadlines in all. */
enum { MAX_DEADLINES = 6 };

/* In the helper only: where pp_ask_doing() reports. -1 in the parent. */
static int doing_fd = -1;

enum outcome { ANSWERED, TIMEOUT, CRASHED, FAILED, NOT_ASKED };

static const char *const outcomes[] = {"answered", "timeout", "crashed", "failed", "not-asked"};

struct reply {
	enum outcome outcome;
	struct pp_buf data; /* the data object's text */
	char doing[128];    /* last call named */
	pp_ns since;	    /* when it was named */
	char detail[256];
};

void pp_ask_doing(const char *call)
{
	char line[128] = "";

	if (doing_fd < 0)
		return;
	(void)snprintf(line, sizeof(line), "%s", call);
	(void)!write(doing_fd, line, sizeof(line));
}

/*
 * Runs in the helper and does not return. The object is followed by a line break and one digit, 0
 * answered or 1 failed; then the pipe is closed by hand, since leaving a process that a driver
 * knows can take long (an H200 node: half a second), and the answer is whole already.
 */
static PP_NORETURN void helper(const struct pp_question *q, int out, int doing)
{
	struct pp_buf buf = PP_BUF(MAX_ANSWER);
	struct pp_json j = PP_JSON(&buf, false);
	struct pp_error err = {0};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), r;
	size_t done = 0;
	ssize_t n;

	/* Libraries print; the parent's output is a document. */
	if (null >= 0) {
		(void)dup2(null, STDIN_FILENO);
		(void)dup2(null, STDOUT_FILENO);
		(void)dup2(null, STDERR_FILENO);
	}
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)signal(SIGPIPE, SIG_DFL);
	doing_fd = doing;
	pp_json_object(&j, NULL);
	r = q->run(&j, q->arg, &err);
	while (j.depth > 1)
		pp_json_end_object(&j);
	if (r && err.text[0])
		pp_json_str(&j, "failure", err.text);
	pp_json_end_object(&j);
	pp_buf_str(&buf, r ? "\n1" : "\n0");
	while (!buf.failed && done < buf.len) {
		n = write(out, buf.data + done, buf.len - done);
		if (n < 0 && errno != EINTR)
			break;
		done += n > 0 ? (size_t)n : 0;
	}
	(void)close(out);
	_exit(0);
}

/* One poll round; true while more may come. */
static bool drain(struct reply *reply, struct pollfd fds[2], pp_ns left)
{
	char part[READ_SIZE];
	ssize_t n;
	int ms = (int)((left + PP_MILLISECOND - 1) / PP_MILLISECOND);

	if (poll(fds, 2, ms) < 0)
		return errno == EINTR;
	if (fds[1].revents) {
		n = read(fds[1].fd, part, sizeof(reply->doing));
		if (n == (ssize_t)sizeof(reply->doing)) {
			memcpy(reply->doing, part, sizeof(reply->doing));
			reply->since = pp_clock_monotonic();
		} else {
			fds[1].fd = -1;
		}
		return true;
	}
	if (!fds[0].revents)
		return true;
	n = read(fds[0].fd, part, sizeof(part));
	if (n > 0)
		pp_buf_add(&reply->data, part, (size_t)n);
	return n > 0;
}

/* Takes the closing digit off the reply; false when it is not whole. */
static bool whole(struct reply *reply)
{
	struct pp_buf *b = &reply->data;
	char digit;

	if (b->failed || b->len < 2 || b->data[b->len - 2] != '\n')
		return false;
	digit = b->data[b->len - 1];
	b->len -= 2;
	b->data[b->len] = '\0';
	reply->outcome = digit == '0' ? ANSWERED : FAILED;
	return digit == '0' || digit == '1';
}

/* Reaps a helper that has closed its pipe; one that does not die is left to init. */
static int reap(pid_t pid)
{
	const struct timespec pause = {.tv_nsec = PP_MILLISECOND};
	int status;

	for (int i = 0; i < REAP_TRIES; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return status;
		(void)nanosleep(&pause, NULL);
	}
	return -1;
}

static void blame(struct reply *reply, const struct pp_question *q, int status, pp_ns waited)
{
	const char *call = reply->doing[0] ? reply->doing : q->name;

	if (reply->outcome == TIMEOUT)
		(void)snprintf(reply->detail, sizeof(reply->detail), "%s did not return in %lld ms",
			       call, (long long)(waited / PP_MILLISECOND));
	else if (status == -1)
		(void)snprintf(reply->detail, sizeof(reply->detail), "%s: its process does not end",
			       call);
	else if (WIFSIGNALED(status))
		(void)snprintf(reply->detail, sizeof(reply->detail),
			       "%s crashed with signal %d (%s)", call, WTERMSIG(status),
			       sigabbrev_np(WTERMSIG(status)));
	else
		(void)snprintf(reply->detail, sizeof(reply->detail),
			       "%s: the helper ended without a whole answer", call);
}

static int pipes(int out[2], int doing[2])
{
	if (pipe2(out, O_CLOEXEC))
		return -errno;
	if (pipe2(doing, O_CLOEXEC)) {
		int r = -errno;

		(void)close(out[0]);
		(void)close(out[1]);
		return r;
	}
	return 0;
}

/*
 * @limit holds for one call (initialising eight GPUs one after the other is slow, not stuck), or
 * for everything when the helper names no calls; @end for the question.
 */
static int run_helper(const struct pp_question *q, pp_ns limit, pp_ns end, struct reply *reply)
{
	pp_ns left = limit, now;
	int out[2], doing[2], status, r = pipes(out, doing);
	struct pollfd fds[2];
	pid_t pid;

	if (r)
		return r;
	(void)fflush(NULL);
	pid = fork();
	if (pid == 0)
		helper(q, out[1], doing[1]);
	r = pid < 0 ? -errno : 0;
	(void)close(out[1]);
	(void)close(doing[1]);
	fds[0] = (struct pollfd){.fd = out[0], .events = POLLIN};
	fds[1] = (struct pollfd){.fd = doing[0], .events = POLLIN};
	reply->since = pp_clock_monotonic();
	while (!r && left > 0 && drain(reply, fds, left)) {
		now = pp_clock_monotonic();
		left = reply->since + limit < end ? reply->since + limit - now : end - now;
	}
	(void)close(out[0]);
	(void)close(doing[0]);
	if (r)
		return r;
	if (left <= 0) {
		(void)kill(pid, SIGKILL);
		reply->outcome = TIMEOUT;
		(void)reap(pid);
		blame(reply, q, 0, reply->since + limit < end ? limit : end - reply->since);
		return 0;
	}
	if (whole(reply)) {
		(void)waitpid(pid, NULL, WNOHANG);
		return 0;
	}
	status = reap(pid);
	if (status == -1)
		(void)kill(pid, SIGKILL);
	reply->outcome = CRASHED;
	blame(reply, q, status, 0);
	return 0;
}

/* The document that is recorded, from the helper's reply. */
static json_t *document(const struct pp_question *q, const struct reply *reply, pp_ns took)
{
	json_t *data = NULL;
	const char *failure;
	enum outcome outcome = reply->outcome;

	if (outcome == ANSWERED || outcome == FAILED)
		data = json_loadb(pp_buf_text(&reply->data), reply->data.len, 0, NULL);
	failure = pp_answer_str(data, "failure");
	/* What cannot be read back (an integer over 63 bits) was not answered. */
	if (outcome == ANSWERED && !data) {
		outcome = FAILED;
		failure = "the helper's answer is not well-formed JSON";
	}
	return json_pack("{s:s, s:s, s:s, s:s, s:I, s:o}", "schema", "peerpath.answer/1", "name",
			 q->name, "outcome", outcomes[outcome], "detail",
			 failure ? failure : reply->detail, "took_ms",
			 (json_int_t)(took / PP_MILLISECOND), "data", data ? data : json_null());
}

static json_t *ask_live(struct pp_source *s, const struct pp_question *q)
{
	struct reply reply = {.outcome = NOT_ASKED, .data = PP_BUF(MAX_ANSWER)};
	pp_ns start = pp_clock_monotonic(), end = pp_source_deadline(s);
	pp_ns limit = q->deadline ? q->deadline : DEFAULT_DEADLINE;
	char text[128];
	json_t *doc;
	int r;

	if (!end || start + MAX_DEADLINES * limit < end)
		end = start + MAX_DEADLINES * limit;
	if (end - start < limit)
		limit = end - start;
	if (limit <= 0) {
		(void)snprintf(reply.detail, sizeof(reply.detail),
			       "not asked: the deadline of the run had passed");
	} else if (!pp_source_may_ask(s)) {
		(void)snprintf(reply.detail, sizeof(reply.detail),
			       "not asked: the root is not the tree of this running kernel");
	} else {
		r = run_helper(q, limit, end, &reply);
		if (r)
			(void)snprintf(reply.detail, sizeof(reply.detail), "no helper process: %s",
				       pp_errno_text(r, text, sizeof(text)));
	}
	doc = document(q, &reply, pp_clock_monotonic() - start);
	pp_buf_done(&reply.data);
	return doc;
}

static json_t *ask_recorded(struct pp_source *s, const struct pp_question *q)
{
	char *PP_AUTO_FREE text = NULL;
	size_t len = 0;
	json_t *doc = NULL;
	int r = pp_source_answer(s, q->name, &text, &len);

	if (!r)
		doc = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
	if (json_is_object(doc))
		return doc;
	json_decref(doc);
	return json_pack("{s:s, s:s, s:s, s:n}", "name", q->name, "outcome", "not-asked", "detail",
			 r ? "not in the recording" : "the recorded answer is no JSON object",
			 "data");
}

static void keep(struct pp_source *s, const struct pp_question *q, const json_t *doc)
{
	struct pp_record *r = pp_source_record(s);
	char *text = r ? json_dumps(doc, JSON_INDENT(1)) : NULL;

	if (text)
		(void)pp_record_put(r, PP_ENTRY_ANSWER, q->name, text, strlen(text), 0);
	free(text);
}

int pp_ask(struct pp_source *s, const struct pp_question *q, struct pp_answer *ret)
{
	bool recorded = pp_source_mode(s) == PP_SOURCE_REPLAY;
	json_t *doc = recorded ? ask_recorded(s, q) : ask_live(s, q), *data;
	const char *outcome, *detail;
	int64_t took = 0;

	if (!doc)
		return -ENOMEM;
	keep(s, q, doc);
	*ret = (struct pp_answer){0};
	outcome = pp_answer_str(doc, "outcome");
	ret->answered = outcome && !strcmp(outcome, "answered");
	detail = pp_answer_str(doc, "detail");
	if (!ret->answered)
		(void)snprintf(ret->detail, sizeof(ret->detail), "%s",
			       detail && *detail ? detail : "no reason recorded");
	pp_sanitize(ret->detail, false);
	(void)pp_answer_i64(doc, "took_ms", &took);
	if (took >= 0 && took < 3600 * 1000)
		ret->took = took * PP_MILLISECOND;
	data = json_object_get(doc, "data");
	ret->data = json_is_object(data) ? json_incref(data) : json_object();
	json_decref(doc);
	return ret->data ? 0 : -ENOMEM;
}

void pp_answer_done(struct pp_answer *a)
{
	json_decref(a->data);
	a->data = NULL;
}

const char *pp_answer_str(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

int pp_answer_i64(const json_t *object, const char *key, int64_t *ret)
{
	const json_t *v = json_object_get(object, key);

	if (!json_is_integer(v))
		return -ENOENT;
	*ret = json_integer_value(v);
	return 0;
}

int pp_answer_bool(const json_t *object, const char *key, bool *ret)
{
	const json_t *v = json_object_get(object, key);

	if (!json_is_boolean(v))
		return -ENOENT;
	*ret = json_is_true(v);
	return 0;
}
