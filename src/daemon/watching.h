/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_watching: watchers, what they keep, and when each looks next.
 */
#ifndef PP_DAEMON_WATCHING_H
#define PP_DAEMON_WATCHING_H

#include "daemon/apart.h"
#include "daemon/judge.h"

enum { PP_WATCHERS_MOST = 32 };

struct pp_watching {
	const struct pp_watcher *const *watchers;
	struct pp_watch_context context;
	int64_t period_ns;	  /* of all of them; 0: each its own */
	void (*alive)(void *ctx); /* between two of them; NULL: nobody asks */
	void *alive_ctx;
	/* Of this object. */
	void *state[PP_WATCHERS_MOST];
	struct pp_apart *apart[PP_WATCHERS_MOST]; /* NULL: it looks here */
	int64_t next_ns[PP_WATCHERS_MOST];	  /* monotonic; 0: at once */
	struct pp_arena arena;
	struct pp_looks looks;
	struct pp_round_part part[PP_WATCHERS_MOST];
};

/*
 * One round: those whose time it is look, at context.now_ns. Fills @round's looks and parts, which
 * live until the next call. An error ends the monitor.
 */
int pp_watching_look(struct pp_watching *w, struct pp_round *round, struct pp_error *err);
/* When the next of them looks, monotonic. */
int64_t pp_watching_next(const struct pp_watching *w);
/* Between looks of the one that looks most often. */
int64_t pp_watching_period(const struct pp_watching *w);
void pp_watching_done(struct pp_watching *w);

#endif
