/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Section monitor of a policy: `KEY[/OBJECT][.above|.below|.for] = VALUE`.
 */
#ifndef PP_JUDGE_POLICY_WATCH_H
#define PP_JUDGE_POLICY_WATCH_H

#include "base/arena.h"
#include "judge/policy.h"

enum { PP_POLICY_WATCHES = 256 };

struct pp_policy_watches {
	struct pp_policy_watch list[PP_POLICY_WATCHES];
	size_t n;
};

/* -EINVAL, -EFBIG with the reason; an exhausted arena is the caller's to see. */
int pp_policy_watch_take(struct pp_policy_watches *all, struct pp_arena *arena, const char *key,
			 const char *value, unsigned int line, struct pp_error *err);

#endif
