/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the rules of signals share: daemon/judge*.c.
 */
#ifndef PP_DAEMON_JUDGE_PARTS_H
#define PP_DAEMON_JUDGE_PARTS_H

#include "daemon/judge.h"

enum { PP_OBJECT_TEXT = 512, PP_SENTENCE = 1024, PP_REASON = 128 };

/* Equal ones of an event, and what comes and goes, are one signal for so long. */
static const int64_t PP_QUIET_NS = (int64_t)10 * 60 * 1000000000;

/* A name as it is kept: control bytes replaced, and cut, with a digest of the whole. */
const char *pp_object_text(const char *object, char buf[PP_OBJECT_TEXT]);
/* A text that may be long, for a sentence; @size at least 8. */
const char *pp_short_text(const char *text, char *buf, size_t size);
/*
 * The policy's part in a level, behind a sentence: "; an alarm by the site's policy", "; alarm
 * after 600 s by the site's policy"; "" where it says nothing of it.
 */
const char *pp_level_reason(const struct pp_threshold *t, enum pp_signal_kind kind,
			    enum pp_signal_level level, char text[PP_REASON]);

/* What a rule found of an entry. */
struct pp_shown {
	bool on;
	enum pp_signal_level level;
	const char *before, *after, *text, *raw;
	int64_t quiet_ns;
	bool numbers; /* another `after` is no change: a number moves */
};

/* Opens, goes on with, or ends the signal of @e. -ENOMEM. */
int pp_case_show(struct pp_ledger *k, struct pp_subject *e, const struct pp_shown *shown,
		 const struct pp_round *round);
/* Ends what was quiet for long enough; events whose time is over. -ENOMEM. */
int pp_cases_tick(struct pp_ledger *k, const struct pp_round *round);
int pp_case_end(struct pp_ledger *k, struct pp_case *c, const struct pp_round *round);

/* One line for those who listen: @what "begins", "returns", "changes", "rises", "ends". -ENOMEM. */
int pp_case_tell(struct pp_ledger *k, struct pp_case *c, const char *what,
		 const struct pp_round *round);

int pp_judge_state(struct pp_ledger *k, struct pp_subject *e, const struct pp_round *round);
int pp_judge_counter(struct pp_ledger *k, struct pp_subject *e, const struct pp_look *look,
		     const struct pp_round *round);
int pp_judge_gauge(struct pp_ledger *k, struct pp_subject *e, const struct pp_look *look,
		   const struct pp_round *round);
int pp_judge_event(struct pp_ledger *k, const struct pp_look *look, const struct pp_round *round);
/* Kind WATCHER, of all kinds. */
int pp_judge_unknown(struct pp_ledger *k, const struct pp_round *round);

#endif
