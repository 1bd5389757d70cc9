/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_state: what the monitor knows now, as others see it: the exporter writes it as metrics,
 * `monitor --show` as text and JSON. Read from the monitor's memory, or from its database by
 * pp_state_load(); never changed by who reads it.
 */
#ifndef PP_DAEMON_STATE_H
#define PP_DAEMON_STATE_H

#include "base/words.h"
#include "daemon/signal.h"

/* The last verdict of a gate or check, from the last bundle or result that the monitor was given.
 */
struct pp_state_check {
	const char *name; /* "identity", "prerequisites", "memory", "library", "application" */
	enum pp_verdict verdict;
	bool simulated;
	int64_t run_ns;	     /* wall */
	int64_t duration_ns; /* 0: not told */
};

struct pp_state {
	const char *node;	    /* hostname as the kernel has it */
	const char *version;	    /* of this program */
	const char *baseline;	    /* id of the bundle, NULL: none */
	int64_t baseline_ns;	    /* wall, when it was taken */
	int64_t started_ns, now_ns; /* wall */
	int64_t round_ns;	    /* wall, when something looked last; 0: not yet */
	int64_t period_ns;	    /* between looks of what looks most often; 0: not told */
	uint64_t rounds;
	const struct pp_state_check *checks;
	size_t n_checks;
	const struct pp_look *looks; /* the last of each kind and object */
	size_t n_looks;
	const struct pp_signal *signals; /* open ones, then the last that ended */
	size_t n_signals;
};

/* Everything is the arena's. @where: the monitor's database. -ENOENT: none there. */
int pp_state_load(const char *where, struct pp_arena *arena, struct pp_state *ret,
		  struct pp_error *err);

#endif
