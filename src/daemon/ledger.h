/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_ledger: all that the monitor knows between rounds: the last look of each kind and
 * object beside its baseline, the signals, the events that were seen, and what is not told yet.
 *
 * It lives in memory and is written by daemon/keep.h; while that cannot be done (a full disk) it is
 * complete without it. Everything in it has a most. It does no input or output of its own.
 */
#ifndef PP_DAEMON_LEDGER_H
#define PP_DAEMON_LEDGER_H

#include "daemon/signal.h"
#include "daemon/state.h"

enum {
	PP_LEDGER_CHECKS = 5, /* gates */
	PP_LEDGER_SUBJECTS = PP_LOOKS_MOST,
	PP_LEDGER_EVENTS = 1000,   /* different ones open at a time; more share one signal */
	PP_LEDGER_ENDED = 200,	   /* signals that ended, kept in memory */
	PP_LEDGER_NAMED = 16384,   /* events that are not taken for new ones */
	PP_LEDGER_TOLD = 10000,	   /* tellings that wait */
	PP_LEDGER_PLACES = 20000,  /* positions that watchers remember */
	PP_LEDGER_TEXT = 2000,	   /* bytes of one text */
	PP_LEDGER_MARK = 64 << 10, /* of what a watcher remembers: half of it would be another */
};

/* What waits for the database, by how long it may: see daemon/keep.h. */
enum pp_urgency { PP_NOT_URGENT, PP_LATER, PP_SOON, PP_NOW };

struct pp_case;

/* One kind and object. Texts are owned; NULL: none. */
struct pp_subject {
	enum pp_signal_kind kind;
	char *object;
	char *watcher; /* who told it last */
	/* The baseline. */
	bool has_base;
	bool base_bundled; /* of a bundle, not the first look */
	char *base;
	double base_number;
	/* The last look that could be read. */
	bool known;
	char *value, *raw;
	double number;
	int64_t wall_ns;
	int64_t now_ns; /* monotonic; 0: it was an earlier process */
	char *unknown;	/* now it cannot be read */
	/* Gauge: mean of what was within its bounds; counter: growth per second. */
	double normal, rate;
	uint64_t n_normal;
	/* Of this process: monotonic, 0 not. */
	int64_t beyond_ns;  /* since when it has been beyond its bound, or differed */
	int64_t moved_ns;   /* when the counter grew last */
	int64_t gone_ns;    /* since when nobody has told of it */
	bool away;	    /* nobody told of it at its watcher's last look */
	uint64_t round;	    /* of its last look */
	struct pp_case *of; /* its signal, open or ended lately; borrowed */
	bool dirty, dead;
	struct pp_subject *chain;
};

/* One signal. */
struct pp_case {
	uint64_t id;
	enum pp_signal_kind kind;
	enum pp_signal_level level;
	char *object, *before, *after, *text, *raw;
	int64_t since_ns, last_ns, ended_ns; /* wall */
	int64_t told_ns;		     /* wall, of its last line */
	uint64_t count;
	struct pp_earlier *earlier; /* owned; of an alarm: daemon/earlier.h */
	size_t n_earlier;
	/* Of this process, monotonic. */
	int64_t last_now_ns;  /* of the last look or event; when it ended, once it has */
	int64_t quiet_now_ns; /* it came and went before, and shows the old state since; 0: not */
	bool restless;	      /* it ended and came again */
	struct pp_subject *subject; /* NULL for an event, and when the object has gone */
	bool dirty;
};

/* A line for whoever listens: made with the signal, stored with it, told at least once. */
struct pp_telling {
	uint64_t id, of; /* of the signal */
	int64_t wall_ns;
	enum pp_signal_level level;
	char *line; /* JSON, without the line's end */
	char *text;
	bool stored;
};

struct pp_event_name {
	enum pp_signal_kind kind;
	char *name;
	uint64_t number, of; /* its own, and of the signal */
	int64_t wall_ns;
	bool stored;
	struct pp_event_name *chain;
};

/* A line that a watcher remembers. */
struct pp_mark {
	char *watcher, *key, *value;
	bool dirty;
	struct pp_mark *chain;
};

enum { PP_LEDGER_BUCKETS = 4096 };

struct pp_ledger {
	char run[5];	   /* of this process */
	char id[17];	   /* of this memory: tellings of another have other names */
	char node[256];	   /* hostname */
	char boot[64];	   /* id of the boot that counters are of; "": not known */
	char baseline[80]; /* id of the bundle; "": the first look */
	int64_t baseline_ns, started_ns, saved_ns; /* wall */
	int64_t round_ns;  /* wall, of this process: when something looked last */
	int64_t period_ns; /* of this process, of what looks most often */
	struct pp_state_check check[PP_LEDGER_CHECKS];
	size_t n_checks;
	unsigned char seed[16]; /* of the hash, so that nobody can choose what collides */
	struct pp_subject *entry[PP_LEDGER_BUCKETS];
	size_t n_subjects;
	struct pp_case **cases; /* by id */
	size_t n_cases, room_cases;
	struct pp_event_name *named[PP_LEDGER_BUCKETS],
		**ring; /* ring: PP_LEDGER_NAMED, oldest first */
	size_t n_names;
	struct pp_telling *tellings; /* by id */
	size_t n_tellings, room_tellings;
	struct pp_mark *place[PP_LEDGER_BUCKETS];
	size_t n_places;
	uint64_t last_case, last_telling, last_name; /* numbers given out */
	uint64_t told;				     /* tellings up to this one have been told */
	uint64_t untold;			     /* left out of those that wait */
	uint64_t left_out; /* looks of the last round that were too many */
	uint64_t rounds;
	enum pp_urgency urgency;
};

/* The name of a gate, static; NULL when it is none. */
const char *pp_ledger_check_name(const char *name);

/* -ENOMEM; -EIO when there is no randomness. */
int pp_ledger_new(const char *node, struct pp_ledger **ret);
struct pp_ledger *pp_ledger_free(struct pp_ledger *k); /* returns NULL */

/* Copies, cut at PP_LEDGER_TEXT bytes of whole characters; control bytes become '?'. -ENOMEM. */
int pp_text_set(char **at, const char *text);
/* The same, but never cut: -E2BIG beyond PP_LEDGER_MARK. */
int pp_text_set_whole(char **at, const char *text);

struct pp_subject *pp_subject_find(const struct pp_ledger *k, enum pp_signal_kind kind,
				   const char *object);
/* Finds or makes. -ENOMEM, -E2BIG over the most. */
int pp_subject_get(struct pp_ledger *k, enum pp_signal_kind kind, const char *object,
		   struct pp_subject **ret);
/* NULL first; in no order that means anything. */
struct pp_subject *pp_subject_next(const struct pp_ledger *k, const struct pp_subject *after);
void pp_subject_changed(struct pp_ledger *k, struct pp_subject *e, enum pp_urgency urgency);
/* Frees those that are dead. Their rows must be gone by then. */
void pp_subjects_bury(struct pp_ledger *k);

/* -ENOMEM. A new number, nothing else set. */
int pp_case_new(struct pp_ledger *k, enum pp_signal_kind kind, const char *object,
		struct pp_case **ret);
struct pp_case *pp_case_find(const struct pp_ledger *k, uint64_t id);
void pp_case_changed(struct pp_ledger *k, struct pp_case *c, enum pp_urgency urgency);
/* Forgets the oldest of those that ended and are written, down to PP_LEDGER_ENDED. */
void pp_cases_forget(struct pp_ledger *k);
/* From now on it belongs to no entry. */
void pp_case_detach(struct pp_case *c);
struct pp_case *pp_case_free(struct pp_case *c); /* returns NULL */

bool pp_event_name_has(const struct pp_ledger *k, enum pp_signal_kind kind, const char *name);
/* -ENOMEM. The oldest makes room. */
int pp_event_name_add(struct pp_ledger *k, enum pp_signal_kind kind, const char *name, uint64_t of,
		      int64_t wall_ns, bool stored);

/* Takes @line and @text (malloc'ed), also on failure. -ENOMEM. */
int pp_telling_add(struct pp_ledger *k, const struct pp_telling *t);
struct pp_telling *pp_telling_at(const struct pp_ledger *k, size_t i); /* NULL past the end */
/* Those up to @id are told: forgotten. */
void pp_tellings_done(struct pp_ledger *k, uint64_t id);

const char *pp_mark_get(const struct pp_ledger *k, const char *watcher, const char *key);
/* -ENOMEM; -E2BIG. NULL @value: forgets, as "". */
int pp_mark_set(struct pp_ledger *k, const char *watcher, const char *key, const char *value);
/* Frees those without a value. Their rows must be gone by then. */
void pp_marks_bury(struct pp_ledger *k);
struct pp_mark *pp_mark_next(const struct pp_ledger *k, const struct pp_mark *after);

/* Something waits that may wait so long. */
void pp_ledger_urge(struct pp_ledger *k, enum pp_urgency urgency);

#endif
