/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What nearly every verb begins and ends with: the source by --root or --replay, the collected
 * node, and the output by --json.
 */
#ifndef PP_CLI_SESSION_H
#define PP_CLI_SESSION_H

#include "base/out.h"
#include "cli/verb.h"
#include "node/node.h"

struct pp_session {
	const struct pp_args *args; /* borrowed */
	struct pp_source *src;
	struct pp_record *record; /* what was read, when asked for; else NULL */
	struct pp_node *node;	  /* NULL for pp_session_open_output(), pp_session_open_source() */
	struct pp_out *out;
	bool answered; /* the output holds what was asked for: written whatever the exit code */
};

/*
 * Opens the source, collects, opens the output. @keep_record: hold what is read, for a bundle.
 * Returns 0 or an exit code after one line on stderr.
 */
int pp_session_open(const struct pp_args *args, bool keep_record, struct pp_session *ret);
/*
 * Whose width and colors the output has: the terminal on @fd instead of standard output. For a
 * process whose output another relays there. Before any output is opened.
 */
void pp_session_show_on(int fd);

/* Only the output, for verbs that read no node. */
int pp_session_open_output(const struct pp_args *args, struct pp_session *ret);
/* Output and source, for verbs that need no collected node. */
int pp_session_open_source(const struct pp_args *args, struct pp_session *ret);
/*
 * Writes the output and frees everything; returns @code, or PP_EXIT_INTERNAL with one line on
 * stderr when the output could not be written; a reader that went away is no error. NULL-safe
 * members: call it after any failure.
 */
int pp_session_close(struct pp_session *s, int code);

/* Exit code of a verdict; --fail-on=fail lets degraded pass where the verb has that option. */
int pp_exit_of(const struct pp_args *args, enum pp_verdict v);

/* Exit code of a bundle that could not be written (a negative errno). */
int pp_exit_of_writing(int error);

/* One line on stderr: "peerpath VERB: text". Returns @code. */
int pp_complain(const struct pp_args *args, int code, const char *fmt, ...) PP_PRINTF(3, 4);

#endif
