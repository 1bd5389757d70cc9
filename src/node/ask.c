/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions become documents: live ones from a helper process, recorded ones from the source.
 */
#include "node/ask.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "node/helper.h"
#include "base/banned.h"

static const pp_ns DEFAULT_DEADLINE = 5 * PP_SECOND;
/* A helper that goes on naming calls may take this many deadlines in all. */
enum { MAX_DEADLINES = 6 };

static const char *const outcomes[] = {
	[PP_ANSWERED] = "answered", [PP_TIMEOUT] = "timeout",	  [PP_CRASHED] = "crashed",
	[PP_FAILED] = "failed",	    [PP_NOT_ASKED] = "not-asked",
};

/* The document that is recorded, from the helper's reply. */
static json_t *document(const struct pp_question *q, const struct pp_reply *reply, pp_ns took)
{
	json_t *data = NULL;
	const char *failure;
	enum pp_outcome outcome = reply->outcome;

	if (outcome == PP_ANSWERED || outcome == PP_FAILED)
		data = json_loadb(pp_buf_text(&reply->data), reply->data.len, 0, NULL);
	failure = pp_answer_str(data, "failure");
	/* What cannot be read back (an integer over 63 bits) was not answered. */
	if (outcome == PP_ANSWERED && !data) {
		outcome = PP_FAILED;
		failure = "the helper's answer is not well-formed JSON";
	}
	return json_pack("{s:s, s:s, s:s, s:s, s:I, s:o}", "schema", "peerpath.answer/1", "name",
			 q->name, "outcome", outcomes[outcome], "detail",
			 failure ? failure : reply->detail, "took_ms",
			 (json_int_t)(took / PP_MILLISECOND), "data", data ? data : json_null());
}

/* The helper that was started ahead for this question, if there is one. */
static bool take_ahead(struct pp_source *s, const char *name, struct pp_helper *ret)
{
	struct pp_helpers *ahead = pp_source_helpers(s);

	for (unsigned int i = 0; i < ahead->n; i++) {
		if (strcmp(ahead->list[i].name, name) != 0)
			continue;
		*ret = ahead->list[i];
		ahead->list[i] = ahead->list[--ahead->n];
		return true;
	}
	return false;
}

void pp_ask_ahead(struct pp_source *s, const struct pp_question *q)
{
	struct pp_helpers *ahead = pp_source_helpers(s);

	if (!pp_source_may_ask(s) || ahead->n == PP_ARRAY_LEN(ahead->list))
		return;
	if (!pp_helper_start(q, &ahead->list[ahead->n]))
		ahead->n++;
}

/*
 * Of the time that is left a call gets half at most: one library that does not return leaves some
 * for the next.
 */
static pp_ns share(pp_ns limit, pp_ns left)
{
	return left <= 0 ? left : limit < left / 2 ? limit : left / 2;
}

static json_t *ask_live(struct pp_source *s, const struct pp_question *q)
{
	struct pp_reply reply = {.outcome = PP_NOT_ASKED};
	pp_ns start = pp_clock_monotonic(), end = pp_source_deadline(s);
	pp_ns limit = q->deadline ? q->deadline : DEFAULT_DEADLINE;
	struct pp_helper helper;
	char text[128];
	json_t *doc;
	int r;

	if (!end || start + MAX_DEADLINES * limit < end)
		end = start + MAX_DEADLINES * limit;
	limit = share(limit, end - start);
	if (limit <= 0) {
		(void)snprintf(reply.detail, sizeof(reply.detail),
			       "not asked: the deadline of the run had passed");
	} else if (!pp_source_may_ask(s)) {
		(void)snprintf(reply.detail, sizeof(reply.detail),
			       "not asked: the root is not the tree of this running kernel");
	} else {
		r = take_ahead(s, q->name, &helper) ? 0 : pp_helper_start(q, &helper);
		if (r)
			(void)snprintf(reply.detail, sizeof(reply.detail), "no helper process: %s",
				       pp_errno_text(r, text, sizeof(text)));
		else
			pp_helper_wait(&helper, limit, end, &reply);
		if (!r)
			pp_helpers_note(pp_source_helpers(s), &helper);
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

static enum pp_outcome outcome_of(const char *word)
{
	for (unsigned int i = 0; word && i < PP_ARRAY_LEN(outcomes); i++)
		if (!strcmp(word, outcomes[i]))
			return (enum pp_outcome)i;
	return PP_NOT_ASKED;
}

int pp_ask(struct pp_source *s, const struct pp_question *q, struct pp_answer *ret)
{
	bool recorded = pp_source_mode(s) == PP_SOURCE_REPLAY;
	json_t *doc = recorded ? ask_recorded(s, q) : ask_live(s, q), *data;
	const char *detail;
	int64_t took = 0;

	if (!doc)
		return -ENOMEM;
	keep(s, q, doc);
	*ret = (struct pp_answer){0};
	ret->outcome = outcome_of(pp_answer_str(doc, "outcome"));
	ret->answered = ret->outcome == PP_ANSWERED;
	detail = pp_answer_str(doc, "detail");
	if (!ret->answered)
		(void)snprintf(ret->detail, sizeof(ret->detail), "%s",
			       detail && *detail ? detail : "no reason recorded");
	pp_sanitize(ret->detail, false);
	if (ret->outcome == PP_TIMEOUT)
		pp_helpers_stuck(pp_source_helpers(s), ret->detail);
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
