/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_policy: what a site decides (policy.conf): fixes that it forbids, with the reason, and
 * the margins of a transfer.
 *
 *   [forbid]
 *   iommu-passthrough = DMA isolation is required by the security policy
 *
 *   [transfer]
 *   spread = 0.05
 *   gpu_host = 0.90
 *   hop = 0.70
 *   from = 1MiB
 *
 *   [monitor]
 *   link-state = alarm
 *   retransmits.above = 100
 *   application-slo/tokens_per_second.below = 95%
 *   application-slo/tokens_per_second.for = 5m
 *
 * A forbidden fix does not change a verdict: the finding stays, its fix is shown as blocked.
 * Margins are printed with each verdict that they decide.
 */
#ifndef PP_JUDGE_POLICY_H
#define PP_JUDGE_POLICY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "judge/rule.h"

struct pp_policy;
struct pp_margins; /* judge/transfer.h */

/* @name is used in messages. -EINVAL (file:line), -ENOMEM. */
int pp_policy_parse(const char *name, const char *text, size_t len, struct pp_policy **ret,
		    struct pp_error *err);

/*
 * @path NULL: the site's /etc/peerpath/policy.conf, and an empty policy when there is none. A
 * given path must exist.
 */
int pp_policy_load(const char *path, struct pp_policy **ret, struct pp_error *err);
struct pp_policy *pp_policy_free(struct pp_policy *p); /* returns NULL */

/* File it came from; NULL for the empty policy. */
const char *pp_policy_name(const struct pp_policy *p);

/* Those of the site where it says something, else the usual ones; NULL policy: the usual ones. */
const struct pp_margins *pp_policy_margins(const struct pp_policy *p);

/* The forbidden words in the order of the file; NULL past the end. */
const char *pp_policy_word(const struct pp_policy *p, size_t i);

/* Why the site forbids the fix; NULL when it does not. NULL policy and NULL id forbid nothing. */
const char *pp_policy_forbids(const struct pp_policy *p, const char *fix_id);

/*
 * A line of section monitor, its value read; what signals there are the monitor knows
 * (daemon/threshold.h), who also refuses a key that is none.
 */
enum pp_policy_watch_part { PP_WATCH_LEVEL, PP_WATCH_ABOVE, PP_WATCH_BELOW, PP_WATCH_FOR };

struct pp_policy_watch {
	const char *key;    /* "link-state" */
	const char *object; /* behind '/': of this one only; NULL: of all */
	enum pp_policy_watch_part part;
	unsigned int level; /* 0 info, 1 early, 2 alarm */
	double number;
	bool percent; /* the number is of what is normal */
	pp_ns time;
	unsigned int line;
};

/* In the order of the file; NULL past the end, and for the empty policy. */
const struct pp_policy_watch *pp_policy_watch_at(const struct pp_policy *p, size_t i);

/* Each forbidden word must be the fix of a rule: a misspelt one would forbid nothing. -EINVAL. */
int pp_policy_check(const struct pp_policy *p, const struct pp_rules *rules, struct pp_error *err);

#endif
