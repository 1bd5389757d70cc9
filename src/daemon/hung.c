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
		char *why = h->question[h->n_questions].detail;

		(void)snprintf(h->question[h->n_questions].name, sizeof(h->question[0].name), "%s",
			       name);
		*why = '\0';
		if (!strcmp(outcome, "timeout")) {
			(void)snprintf(why, sizeof(h->question[0].detail), "%s",
				       detail && *detail ? detail : "did not return");
			pp_sanitize(why, false);
			h->n++;
		}
		h->n_questions++;
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
		const char *detail = h->question[i].detail;

		r = pp_look_state(into, PP_SIGNAL_HUNG_CALL, h->question[i].name,
				  *detail ? detail : NULL, "%s",
				  *detail ? "did not return" : "returns");
	}
	return r;
}
