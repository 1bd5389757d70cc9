/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_look: what a watcher of the monitor saw at one time; struct pp_watcher: who looks.
 *
 * A watcher only reads and only tells what it saw: it knows no baseline, no threshold, no level.
 * What a look means is daemon/signal.h. So watchers are tested on recorded trees, and signals on
 * looks that were written down.
 */
#ifndef PP_DAEMON_LOOK_H
#define PP_DAEMON_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

struct pp_source; /* node/source.h */

/* Row of signals.def. */
enum pp_signal_kind {
#define X(id, key, shape, level, unit, what) PP_SIGNAL_##id,
#include "daemon/signals.def"
#undef X
	PP_SIGNAL_KINDS
};

/* The value of a call (kind HUNG_CALL) that returns. */
#define PP_HUNG_CALL_FINE "returns"
/* That of what the monitor knows (kind KEPT). */
#define PP_KEPT_FINE "kept"
/* The value of a port, or of a gpu, that was there and is there no more. */
#define PP_OBJECT_GONE "gone"

/* What is known of something whose value is not, and of a log that is quiet. */
enum pp_look_yet {
	PP_LOOK_NOTHING,
	PP_LOOK_WATCHED, /* its events are looked for: the value says where; it is none of them */
	PP_LOOK_NONE,	 /* there is none of the kind: those that were there are gone */
	PP_LOOK_THERE,	 /* it is there: a recording has its name, not its number */
};

struct pp_look {
	enum pp_signal_kind kind;
	/* Of whom: "node", "0000:17:00.0", "0000:17:00.0 port 1", "pid 4711", a file's name. */
	const char *object;
	/* State: its words. Counter and gauge: NULL. Event: one line that tells it. */
	const char *value;
	double number; /* counter: the sum so far; gauge: the value; in the kind's unit */
	/* Not NULL: it could not be read, and why. Then neither value nor number means anything. */
	const char *unknown;
	const char *raw;   /* the text that it was read from, one line; NULL when there is none */
	const char *named; /* event: what names it once and for all (boot id and sequence number of
			    * a kernel record, a log's file, inode and offset); NULL otherwise */
	enum pp_look_yet yet; /* with unknown; WATCHED: of an event's kind, without */
};

/* Grows by one look at a time, up to PP_LOOKS_MOST; strings are copied into the arena. */
struct pp_looks {
	struct pp_arena *arena; /* owned by the caller, cleared by him between rounds */
	struct pp_look *looks;
	size_t n, room;
	size_t left_out; /* beyond the most */
};

enum { PP_LOOKS_MOST = 20000 };

/* -ENOMEM; 0 also when the look was one too many (left_out). */
int pp_looks_add(struct pp_looks *into, const struct pp_look *look);

struct pp_watch; /* what a watcher keeps between looks; its own type behind it */

struct pp_watch_context {
	struct pp_source *source; /* the machine, or a recording */
	bool live;		  /* false: a recording; no driver is asked, no socket opened */
	int64_t now_ns;		  /* monotonic, of this round */
	int64_t wall_ns;	  /* since 1970 */
	const char *const *logs;  /* globs of --log, NULL ends */
	const char *slo; /* file or http://127.0.0.1... of the application's metrics; or NULL */
	/* What a watcher remembers across a restart, a line of its own (offset in a log, sequence
	 * number of the kernel log): read at its first look, set by it at each. */
	const char *(*recall)(void *ctx, const char *watcher, const char *key);
	int (*remember)(void *ctx, const char *watcher, const char *key, const char *value);
	void *ctx;
};

struct pp_watcher {
	const char *name;	/* "link", "fingerprint" */
	unsigned int period_ms; /* how often; 0: each round */
	/*
	 * Adds what it sees. What cannot be read is a look with its reason, not an error: an error
	 * (-ENOMEM, a fault of the program) ends the monitor. Bounded: a driver is asked through
	 * node/helper.h with a deadline of at most 5 s.
	 */
	int (*look)(struct pp_watch_context *at, void **state, struct pp_looks *into,
		    struct pp_error *err);
	void (*end)(void *state); /* NULL when it keeps nothing */
	/*
	 * Of one whose files may lie on a server that is gone: what they are called ("job logs"),
	 * for then it looks in a process of its own (daemon/apart.h); NULL from it: nothing of @at
	 * can hang. NULL: it looks where the monitor is.
	 */
	const char *(*apart)(const struct pp_watch_context *at);
	/* With it: what cannot be known while there is no answer. */
	int (*silent)(const struct pp_watch_context *at, struct pp_looks *into, const char *why);
};

/* All watchers, in the order in which they look; NULL ends. daemon/watchers.c. */
extern const struct pp_watcher *const pp_watchers[];

#endif
