/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What watchers share: short ways to add a look, and lists of what is watched. Private to
 * daemon/watch_*.c.
 *
 * Texts come from files and logs of others: every string of a look is one line without control
 * bytes, and short.
 */
#ifndef PP_DAEMON_WATCH_H
#define PP_DAEMON_WATCH_H

#include "daemon/look.h"
#include "node/node.h"

enum { PP_LOOK_TEXT = 512 }; /* longest string of a look, its NUL included */

/* All: -ENOMEM. The number of a state is not used. */
int pp_look_state(struct pp_looks *into, enum pp_signal_kind kind, const char *object,
		  const char *raw, const char *value_fmt, ...) PP_PRINTF(5, 6);
int pp_look_number(struct pp_looks *into, enum pp_signal_kind kind, const char *object,
		   const char *raw, double number);
int pp_look_unknown(struct pp_looks *into, enum pp_signal_kind kind, const char *object,
		    const char *why_fmt, ...) PP_PRINTF(4, 5);
int pp_look_event(struct pp_looks *into, enum pp_signal_kind kind, const char *object,
		  const char *named, const char *raw, const char *value);

/* The watcher's own state, zeroed at its first look. NULL: no memory. */
void *pp_watch_state(void **state, size_t size);

/* What was remembered across a restart; NULL when nothing was, or nothing can be. */
const char *pp_watch_recall(const struct pp_watch_context *at, const char *watcher,
			    const char *key);
int pp_watch_remember(const struct pp_watch_context *at, const char *watcher, const char *key,
		      const char *value);

extern const struct pp_watcher pp_watch_facts;
extern const struct pp_watcher pp_watch_link;
extern const struct pp_watcher pp_watch_counters;
extern const struct pp_watcher pp_watch_kernel_log;
extern const struct pp_watcher pp_watch_bar1;
extern const struct pp_watcher pp_watch_memlock;
extern const struct pp_watcher pp_watch_registrations;
extern const struct pp_watcher pp_watch_logs;
extern const struct pp_watcher pp_watch_host;
extern const struct pp_watcher pp_watch_slo;

#endif
