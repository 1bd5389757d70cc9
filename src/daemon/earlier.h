/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an alarm names of the hour before it: the signals that were early, or alarms themselves, and
 * moved then. A copy, for they may end and be forgotten while the alarm is open.
 *
 * A state moved when it was last told; a counter, gauge or event when it was last seen. So a change
 * that has been open for months is not what came before.
 */
#ifndef PP_DAEMON_EARLIER_H
#define PP_DAEMON_EARLIER_H

#include "base/json.h"
#include "daemon/ledger.h"

/* Of @c, an alarm as of @wall_ns; what it named before is replaced. -ENOMEM. */
int pp_earlier_take(const struct pp_ledger *k, struct pp_case *c, int64_t wall_ns);
/* One more, of a database. -ENOMEM; -E2BIG beyond PP_EARLIER_MOST. */
int pp_earlier_add(struct pp_case *c, const struct pp_earlier *e);

/* Member "earlier": a list; null when @level is no alarm and never was one. */
void pp_earlier_write(struct pp_json *j, enum pp_signal_level level, const struct pp_earlier *list,
		      size_t n);
/* "acs of 0000:17:00.0 (early, 2026-11-30T10:00:00Z), ... and 3 more"; "" for none. */
const char *pp_earlier_text(const struct pp_earlier *list, size_t n, char *text, size_t size);

#endif
