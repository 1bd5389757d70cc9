/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_signal: something is other than it was, how serious that is, and since when.
 *
 * Made by pp_signals_judge() from a round of looks, the baseline and what is known from before:
 * a pure function. A signal is open from its first look until the look that shows the old state
 * again; while it is open it is told once. An event is open for the time of `<key>.for`, else 10
 * minutes, and an equal one within it adds to its count.
 */
#ifndef PP_DAEMON_SIGNAL_H
#define PP_DAEMON_SIGNAL_H

#include "daemon/look.h"

enum pp_signal_level { PP_LEVEL_INFO, PP_LEVEL_EARLY, PP_LEVEL_ALARM };

struct pp_signal {
	enum pp_signal_kind kind;
	const char *object;
	enum pp_signal_level level;
	const char *before; /* words or number of the baseline, or of the last look; NULL: none */
	const char *after;
	const char *text; /* one sentence: what changed, and the threshold that made the level */
	const char *next; /* one command */
	const char *raw;
	int64_t since_ns, last_ns, ended_ns; /* wall; ended_ns 0: open */
	uint64_t count;
};

const char *pp_signal_key(enum pp_signal_kind kind);
const char *pp_signal_what(enum pp_signal_kind kind);
const char *pp_level_name(enum pp_signal_level level); /* "info", "early", "alarm" */

#endif
