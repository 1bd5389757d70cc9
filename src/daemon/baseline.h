/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The baseline: what a bundle that passed holds, seen by the watchers that look at the live node.
 *
 * A bundle is taken only when its result says so: passed (or degraded, when it is named itself),
 * and when it is of this node as far as its parts tell. A simulated one, or one of another node, is
 * refused unless it is asked for; a scrubbed one has other names than the node.
 */
#ifndef PP_DAEMON_BASELINE_H
#define PP_DAEMON_BASELINE_H

#include "daemon/judge.h"
#include "daemon/parts.h"

struct pp_baseline_options {
	const char *path; /* a bundle, or a directory of them: the newest that passed */
	bool simulate;
	bool any_node;
	const struct pp_parts *parts; /* of the node that is watched */
	const struct pp_watcher *const *watchers;
	const struct pp_thresholds *thresholds;
	int64_t wall_ns, now_ns;
};

struct pp_baseline_taken {
	char path[4096]; /* of the bundle */
	char id[80];
	char host[128];
	enum pp_verdict verdict;
	bool simulated;
	enum pp_parts_like like; /* whose it is */
	size_t looks;
};

/*
 * Puts its looks into the ledger, and its checks. -ENOENT: no bundle there that may be one;
 * -EBADMSG, -EINVAL: it is damaged, or may not be one; -EPROTONOSUPPORT: a newer one; -ENOMEM. On
 * error but -ENOMEM the ledger is as before.
 */
int pp_baseline_read(const struct pp_baseline_options *options, struct pp_ledger *k,
		     struct pp_baseline_taken *ret, struct pp_error *err);

#endif
