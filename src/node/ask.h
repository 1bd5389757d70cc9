/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking what is no file: NVML, CUDA, verbs, netlink, uname, this process's environment.
 *
 * The question runs in a helper process that writes one JSON object; the parent waits until the
 * deadline and then abandons the helper (SIGKILL, never waited for: a process stuck in a driver
 * cannot be reaped). A library that blocks or crashes therefore costs its own facts only.
 * Live and replay meet in the same JSON, so a recorded answer is parsed by the code that parses a
 * fresh one.
 *
 * Document "peerpath.answer/1": {"schema", "name", "outcome": answered | timeout | crashed |
 * failed | not-asked, "detail": one line for people, "took_ms", "data": {...} or null}
 */
#ifndef PP_NODE_ASK_H
#define PP_NODE_ASK_H

#include <jansson.h>

#include "base/clock.h"
#include "base/json.h"
#include "node/source.h"

struct pp_question {
	const char *name; /* file name of the recorded answer: [a-z0-9-]+ */
	/*
	 * Runs in the helper. Writes the members of the data object to @data. Returns 0, or a
	 * negative errno with a line in @err: outcome "failed", what was written stays.
	 * Reports progress by pp_ask_doing().
	 */
	int (*run)(struct pp_json *data, const void *arg, struct pp_error *err);
	const void *arg;
	/*
	 * For each call that is named by pp_ask_doing(); for everything when none is. 0 = 5 s.
	 * The whole question ends after six deadlines.
	 */
	pp_ns deadline;
};

struct pp_answer {
	json_t *data; /* owned; an object, possibly empty; never NULL after pp_ask() */
	bool answered;
	enum pp_outcome outcome;
	char detail[256]; /* why not answered: "nvmlInit_v2 did not return in 5 s" */
	pp_ns took;
};

/*
 * 0 whatever the outcome; -ENOMEM only. Records the document when the source records.
 */
int pp_ask(struct pp_source *s, const struct pp_question *q, struct pp_answer *ret);
/*
 * Starts a slow question and goes on: a later pp_ask() of the same name only waits for it. Without
 * effect on a recording. @q->name must outlive the source.
 */
void pp_ask_ahead(struct pp_source *s, const struct pp_question *q);
void pp_answer_done(struct pp_answer *a);

/* In a helper: names the call about to be made, so that a timeout or crash can be blamed on it. */
void pp_ask_doing(const char *call);

/* NULL-safe readers of an answer. */
const char *pp_answer_str(const json_t *object, const char *key);	/* NULL if absent */
int pp_answer_i64(const json_t *object, const char *key, int64_t *ret); /* -ENOENT */
int pp_answer_bool(const json_t *object, const char *key, bool *ret);	/* -ENOENT */

#endif
