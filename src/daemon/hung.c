/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "daemon/facts.h"
#include "daemon/watch.h"
#include "node/ask.h"
#include "base/banned.h"

/* Those that call into a driver or its library; others read /dev/kmsg or the environment. */
static const char *const questions[] = {
	"nvml", "cuda", "verbs", "verbs-list", "verbs-devices", "rdma-netlink", "dcb", "ethtool",
};

static void read_one(const struct pp_record *record, const char *name, struct pp_watch_hung *h)
{
	const struct pp_entry *e = pp_record_answer(record, name);
	json_t *doc = e ? json_loadb(e->content, e->len, JSON_REJECT_DUPLICATES, NULL) : NULL;
	const char *outcome = pp_answer_str(doc, "outcome"), *detail = pp_answer_str(doc, "detail");

	if (outcome && strcmp(outcome, "not-asked") != 0) {
		struct pp_watch_question *q = &h->question[h->n_questions++];

		(void)snprintf(q->name, sizeof(q->name), "%s", name);
		q->hung = !strcmp(outcome, "timeout");
		/* A library that is not there, or a helper that fell: nothing says that a call
		 * would come back. */
		q->answered = !strcmp(outcome, "answered");
		(void)snprintf(q->detail, sizeof(q->detail), "%s",
			       detail && *detail ? detail : "no reason recorded");
		pp_sanitize(q->detail, false);
		h->n += q->hung;
	}
	json_decref(doc);
}

void pp_watch_hung_read(const struct pp_record *record, struct pp_watch_hung *ret)
{
	*ret = (struct pp_watch_hung){0};
	for (size_t i = 0; i < PP_ARRAY_LEN(questions) && i < PP_WATCH_QUESTIONS; i++)
		read_one(record, questions[i], ret);
}

int pp_watch_hung_add(const struct pp_watch_hung *h, struct pp_looks *into)
{
	int r = 0;

	for (size_t i = 0; !r && i < h->n_questions; i++) {
		const struct pp_watch_question *q = &h->question[i];

		if (q->answered || q->hung)
			r = pp_look_state(into, PP_SIGNAL_HUNG_CALL, q->name,
					  q->hung ? q->detail : NULL, "%s",
					  q->hung ? "did not return" : PP_HUNG_CALL_FINE);
		else
			r = pp_look_unknown(into, PP_SIGNAL_HUNG_CALL, q->name, "%s", q->detail);
	}
	return r;
}
