/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of a canary file, section by section: what each takes, and who reads it. */
#ifndef PP_JUDGE_CANARY_KEY_H
#define PP_JUDGE_CANARY_KEY_H

#include "judge/canary.h"

/* What the parse keeps beside its result. */
struct pp_canary_reading {
	struct pp_canary *c;
	struct pp_metric *metric;	/* of the section at hand; NULL: another section */
	bool has_direction, has_source; /* of it */
	const char *section;		/* copied: a change of it is a new section */
};

/* One key of a section: what it takes, and who reads it. */
struct pp_canary_entry {
	const char *key, *takes;
	int (*read)(struct pp_canary_reading *r, const char *value);
};

/* Each ends with key NULL. */
extern const struct pp_canary_entry pp_canary_run_keys[], pp_canary_metric_keys[],
	pp_canary_change_keys[];

#endif
