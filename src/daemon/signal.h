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

/* Another signal that moved in the hour before an alarm: daemon/earlier.h. */
struct pp_earlier {
	uint64_t of; /* its number */
	enum pp_signal_kind kind;
	enum pp_signal_level level;
	int64_t at_ns; /* wall */
	char object[104];
};

enum { PP_EARLIER_MOST = 16 };

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
	const struct pp_earlier *earlier; /* of an alarm, the newest first */
	size_t n_earlier;
};

enum pp_signal_shape { PP_SHAPE_STATE, PP_SHAPE_COUNTER, PP_SHAPE_GAUGE, PP_SHAPE_EVENT };

const char *pp_signal_key(enum pp_signal_kind kind);
const char *pp_signal_what(enum pp_signal_kind kind);
const char *pp_signal_unit(enum pp_signal_kind kind); /* "" for words */
/* "128 GiB" of bytes, else "0.93" with the kind's unit behind it. */
const char *pp_signal_number(enum pp_signal_kind kind, double number, char text[48]);
const char *pp_signal_next(enum pp_signal_kind kind); /* one command */
enum pp_signal_shape pp_signal_shape(enum pp_signal_kind kind);
/* The most it may reach without a threshold of the policy. */
enum pp_signal_level pp_signal_usual(enum pp_signal_kind kind);
const char *pp_level_name(enum pp_signal_level level); /* "info", "early", "alarm" */
/* -EINVAL for another word. */
int pp_signal_find(const char *key, enum pp_signal_kind *ret);
int pp_level_find(const char *name, enum pp_signal_level *ret);

#endif
