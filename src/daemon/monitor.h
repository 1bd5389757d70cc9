/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_monitor: rounds of looks, what they mean, where that is kept and who is told.
 *
 * A round looks, judges, writes in one transaction if something happened, and then tells. What
 * cannot be written or told waits in memory, up to a bound, and is tried again; watching goes on.
 * A database that is damaged is put aside under another name, and a new one begins.
 */
#ifndef PP_DAEMON_MONITOR_H
#define PP_DAEMON_MONITOR_H

#include "base/arena.h"
#include "daemon/ledger.h"
#include "daemon/watching.h"

struct pp_monitor_options {
	struct pp_source *source; /* borrowed */
	const struct pp_watcher *const *watchers;
	const char *where;	 /* the database */
	const char *policy;	 /* file; NULL: the site's */
	const char *baseline;	 /* bundle or directory; NULL: what is known, else the first look */
	const char *events;	 /* file of JSON Lines; NULL: none */
	const char *const *logs; /* globs; NULL: none */
	const char *slo;
	bool simulate;	   /* take a baseline of a simulation */
	bool any_node;	   /* take one of another node */
	int64_t period_ns; /* of all watchers; 0: each its own */
	/* Diagnostics, one line each, once per cause. */
	void (*say)(void *ctx, const char *text);
	/* A signal began, rose, ended: for people. */
	void (*tell)(void *ctx, const struct pp_telling *telling);
	void (*alive)(void *ctx); /* called often enough for a watchdog */
	void *ctx;
};

struct pp_monitor; /* opaque */

/* -EBUSY: another monitor has this database. The line in @err says what is wrong. */
int pp_monitor_open(const struct pp_monitor_options *options, struct pp_monitor **ret,
		    struct pp_error *err);
/* Writes what waits, and frees; returns NULL. */
struct pp_monitor *pp_monitor_close(struct pp_monitor *m);

/* One round. An error (-ENOMEM, a fault of a watcher) ends the monitor. */
int pp_monitor_round(struct pp_monitor *m, struct pp_error *err);
/* When the next one is due, monotonic. */
int64_t pp_monitor_next(const struct pp_monitor *m);

/* Policy, baseline and the file of events anew. On error the old ones stay. */
int pp_monitor_reload(struct pp_monitor *m, struct pp_error *err);

const struct pp_ledger *pp_monitor_ledger(const struct pp_monitor *m);
/* Copies what is known now. -ENOMEM. */
int pp_monitor_state(const struct pp_monitor *m, struct pp_arena *arena, struct pp_state *ret);
/* One line: "12 looks, 1 early, 0 alarms". */
const char *pp_monitor_status(const struct pp_monitor *m, char *text, size_t size);

/* Is a monitor at work on this database? Only for one in a file. */
bool pp_monitor_at_work(const char *where);

#endif
