/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows that reading and writing agree on.
 */
#ifndef PP_DAEMON_KEEP_PARTS_H
#define PP_DAEMON_KEEP_PARTS_H

#include "daemon/keep.h"

#define PP_KEEP_LOOK                                                                       \
	"kind, object, watcher, has_base, bundled, base, base_number, known, value, raw, " \
	"number, wall_ns, unknown, normal, normal_n, rate, away"
#define PP_KEEP_SIGNAL                                                                     \
	"id, kind, level, object, before, after, text, raw, since_ns, last_ns, ended_ns, " \
	"count, restless"
enum { PP_KEEP_LOOK_COLUMNS = 17, PP_KEEP_SIGNAL_COLUMNS = 13 };

/* Words of monitor_about. */
#define PP_KEEP_NUMBERS(X)              \
	X("saved_ns", saved_ns)         \
	X("started_ns", started_ns)     \
	X("baseline_ns", baseline_ns)   \
	X("rounds", rounds)             \
	X("last_signal", last_case)     \
	X("last_telling", last_telling) \
	X("last_event", last_name)      \
	X("told", told)

#endif
