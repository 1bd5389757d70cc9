/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fleet: results of many nodes in one database, and what is asked of them.
 *
 *   documents   each result once, by the digest of its text        (kind, when, verdict)
 *   nodes       who they are: a digest of their parts, not a name
 *   parts       a GPU's UUID, an hca's GUID -> the node it was last seen in
 *   results     what a document says of a node                     (gates, software, topology)
 *   sets        facts that nodes share, by digest
 *   states      of each node the last, and since when              (measured and simulated apart)
 *   figures     measured values;  rails: the last of each rail
 *   gains       the direct path beside something else
 *
 * What is simulated never meets what was measured: each table that is summed up has the column, and
 * each question asks for one of the two.
 */
#ifndef PP_STORE_FLEET_H
#define PP_STORE_FLEET_H

#include "base/clock.h"
#include "base/out.h"
#include "store/result.h"
#include "store/sql.h"

/* As pp_sql_open(), and brings the tables up to date unless it is opened to read. */
int pp_fleet_open(const char *where, unsigned int flags, struct pp_sql **ret, struct pp_error *err);

/* pp_sql_renew(), and the tables of what is open then. For a server that runs for months. */
int pp_fleet_renew(struct pp_sql *sql, struct pp_error *err);
/* The database answers, and is a fleet's. */
int pp_fleet_alive(struct pp_sql *sql, struct pp_error *err);

struct pp_fleet_added {
	size_t results, known; /* new; there already */
	bool of_input;	       /* a failure is the fault of what was added, not of the database */
};

/*
 * All results of a file or none: a bundle (archive or directory, verified), a document, or
 * documents one a line. Adds to @ret, which the caller has zeroed.
 */
int pp_fleet_add_file(struct pp_sql *sql, const char *path, struct pp_fleet_added *ret,
		      struct pp_error *err);
int pp_fleet_add_text(struct pp_sql *sql, const char *text, size_t len, struct pp_fleet_added *ret,
		      struct pp_error *err);

struct pp_fleet_prune {
	const char *before; /* a time: what is as old or newer stays */
	bool gains;	    /* old gains go, too */
	bool dry_run;	    /* only counts */
	bool (*stop)(void); /* asked between transactions; NULL: never */
};

/* Rows that went, or would go. */
struct pp_fleet_pruned {
	int64_t documents, results, figures, gains;
	int64_t facts, pictures; /* that nobody had any more; 0 of a dry run */
	int64_t kept;		 /* old documents that stay */
};

/*
 * Old results go, in transactions that are short; what tells what a node is, since when, and of
 * which class a gain is, stays: all answers but the list of results and figures of a node are what
 * they were. @ret counts what went also when it fails half way. -EINTR: @stop.
 */
int pp_fleet_prune(struct pp_sql *sql, const struct pp_fleet_prune *how,
		   struct pp_fleet_pruned *ret, struct pp_error *err);
/* The file without what is free in it. -EOPNOTSUPP: a server's. */
int pp_fleet_compact(struct pp_sql *sql, struct pp_error *err);
/* -EOPNOTSUPP: a server's. */
int pp_fleet_space(struct pp_sql *sql, int64_t *ret_bytes, int64_t *ret_free, struct pp_error *err);

/* Which nodes are listed; NULL: all. Texts are compared whole, @text is found anywhere in a name.
 */
struct pp_fleet_filter {
	const char *text, *verdict, *flavour, *topology, *software;
	unsigned int offset, limit; /* limit 0: PP_FLEET_LISTED */
	pp_ns silent_after;	    /* who was not heard from for so long is silent; 0: nobody */
};

/* Unless told otherwise: a node that proves itself each hour has missed 72 of them. */
#define PP_FLEET_SILENT_AFTER (3 * 86400 * PP_SECOND)

enum { PP_FLEET_LISTED = 200, PP_FLEET_LIST_MOST = 20000 };

/*
 * Answers, written to @o as members of a document that is open. -ENOENT: no such node; -ENOTUNIQ:
 * several of that name.
 */
int pp_fleet_list(struct pp_sql *sql, bool simulated, const struct pp_fleet_filter *filter,
		  struct pp_out *o, struct pp_error *err);
int pp_fleet_show(struct pp_sql *sql, bool simulated, const char *node, struct pp_out *o,
		  struct pp_error *err);
int pp_fleet_classes(struct pp_sql *sql, bool simulated, struct pp_out *o, struct pp_error *err);
/*
 * @ret_found: how many nodes are unlike their like, or were not heard from for @silent_after (0:
 * that is not looked at); how many rails are slow everywhere.
 */
int pp_fleet_odd(struct pp_sql *sql, bool simulated, pp_ns silent_after, struct pp_out *o,
		 size_t *ret_found, struct pp_error *err);
int pp_fleet_rails(struct pp_sql *sql, bool simulated, struct pp_out *o, size_t *ret_found,
		   struct pp_error *err);
int pp_fleet_diff(struct pp_sql *sql, bool simulated, const char *a, const char *b,
		  struct pp_out *o, struct pp_error *err);
/* The picture of a node as SVG, appended. -ENODATA: none is kept. */
int pp_fleet_picture(struct pp_sql *sql, bool simulated, const char *node, struct pp_buf *svg,
		     struct pp_error *err);

struct pp_history_filter {
	const char *node, *what, *topology, *software; /* NULL: all */
};

/* Gains by class, software, what and size; of a node also its verdicts and figures in time. */
int pp_fleet_history(struct pp_sql *sql, bool simulated, const struct pp_history_filter *filter,
		     struct pp_out *o, struct pp_error *err);

#endif
